"""Typed keys for what the plugin keeps on pytest's config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

#: True in the pytest that runs inside Valgrind.
INSIDE = pytest.StashKey[bool]()
#: Makes the fixture that counts; present only while a test is measured.
COUNTING = pytest.StashKey[Callable[[pytest.FixtureRequest], Any]]()
#: In the output of a worker of pytest-xdist: what is wrong and ends the run. Without lone surrogates,
#: which execnet refuses.
MISTAKES = "instrcount_mistakes"
#: On an item: its `tracing.TraceProfile`, made when it is first asked for.
TRACE = pytest.StashKey[Any]()
#: On an item: its `adopting.Benchmark`, if it takes one.
BENCHMARK = pytest.StashKey[Any]()


def is_traced(item: pytest.Item) -> bool:
    """Whether a test has the trace_profile marker or takes the fixture."""
    name = "trace_profile"
    return name in getattr(item, "fixturenames", ()) or item.get_closest_marker(name) is not None
