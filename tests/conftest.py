"""For all tests: pytest's own fixture for running pytest, and no collection in the middle."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """The collector off, as the gate has it: its callbacks (Hypothesis has one) are calls, too."""
    collecting = gc.isenabled()
    gc.disable()
    yield
    if collecting:
        gc.enable()
