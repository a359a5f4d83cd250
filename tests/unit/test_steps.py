"""Steps: one count for all who report them."""

from __future__ import annotations

import threading

import pytest

from pytest_instrcount.trace.ranges.steps import StepTracker
from tests.ranges import recorded


@pytest.fixture(autouse=True)
def _own_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is one per process; a test begins at 0, and leaves it as it was."""
    monkeypatch.setattr(StepTracker, "_current", 0)
    monkeypatch.setattr(StepTracker, "_steps", {})


def test_the_count_is_that_of_the_furthest() -> None:
    """Two who report the same steps do not count them twice."""
    StepTracker.init("loop")
    StepTracker.init("optimizer")
    counts = [StepTracker.increment(name) for name in ("loop", "optimizer") * 3]
    assert counts == [1, 1, 2, 2, 3, 3]
    assert StepTracker.current() == 3


def test_one_who_comes_later_starts_at_the_count() -> None:
    """With or without init; erased, it starts anew."""
    for _ in range(5):
        StepTracker.increment("loop")
    StepTracker.init("late")
    assert StepTracker.increment("loop") == 6
    assert StepTracker.increment("late") == 6
    assert StepTracker.increment("unknown") == 7


def test_erase() -> None:
    """It says whether it was known; the count stays."""
    StepTracker.increment("loop")
    assert StepTracker.erase("loop")
    assert not StepTracker.erase("loop")
    assert StepTracker.current() == 1
    assert StepTracker.increment("loop") == 2


def test_a_jump_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is ahead of the count makes it jump; each step has its mark."""
    monkeypatch.setattr(StepTracker, "_steps", {"ahead": 2})
    with recorded() as found, pytest.warns(UserWarning, match="from 0 to 3 at once") as caught:
        assert StepTracker.increment("ahead") == 3
    assert caught[0].filename == __file__
    assert found.story == ["step 1", "step 2", "step 3"]


def test_marks_only_where_the_count_grows() -> None:
    """What is behind the count makes none."""
    StepTracker.init("a")
    StepTracker.init("b")
    with recorded() as found:
        for name in "abab":
            StepTracker.increment(name)
    assert found.story == ["step 1", "step 2"]


def test_threads_share_the_count() -> None:
    """No step is lost."""
    threads = [
        threading.Thread(target=lambda: [StepTracker.increment("loop") for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert StepTracker.current() == 2000
