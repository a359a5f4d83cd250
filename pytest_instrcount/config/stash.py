"""Typed keys for what the plugin keeps on pytest's config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

#: The variable of CI that was set when pytest started, before a conftest could change the environment.
CI = pytest.StashKey[str]()
#: True in the pytest that runs inside Valgrind.
INSIDE = pytest.StashKey[bool]()
#: Makes the fixture that counts; present only while a test is measured.
COUNTING = pytest.StashKey[Callable[[pytest.FixtureRequest], Any]]()
#: In the output of a worker of pytest-xdist: what is wrong and ends the run. Without lone surrogates,
#: which execnet refuses.
MISTAKES = "instrcount_mistakes"
#: `editable_tables` of this process, as they are to be under Valgrind; and the package of this
#: plugin, if it must not be found by ``sys.path``. Both sides of a run against a commit have them.
EDITABLE = pytest.StashKey[Mapping[str, Any]]()
OWN_PACKAGE = pytest.StashKey[str]()
#: Path and version of the valgrind, where it was looked for to know whether anything is counted.
VALGRIND = pytest.StashKey[tuple[str, str]]()
#: What the pytest that measures the other commit was told.
OTHER_SIDE = pytest.StashKey[Any]()
#: On an item: its `tracing.TraceProfile`, made when it is first asked for.
TRACE = pytest.StashKey[Any]()
#: On an item: its `adopting.Benchmark`, if it takes one.
BENCHMARK = pytest.StashKey[Any]()


def is_traced(item: pytest.Item) -> bool:
    """True if a test has the trace_profile marker or takes the fixture."""
    name = "trace_profile"
    return name in getattr(item, "fixturenames", ()) or item.get_closest_marker(name) is not None
