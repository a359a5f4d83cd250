"""Limits of our own on a machine that is slow: longer in proportion, and not without end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_instrcount.host import patience
from pytest_instrcount.host.patience import Patience


@pytest.mark.parametrize(
    ("slow", "seconds"), [(0.3, 60.0), (1.0, 60.0), (2.5, 150.0), (6.0, 360.0), (1000.0, 360.0)]
)
def test_slow_machines(monkeypatch: pytest.MonkeyPatch, slow: float, seconds: float) -> None:
    """The machine is tried when the time is up, and no earlier."""
    times = iter((0.0, slow * patience._USUAL_SECONDS))
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    waited = Patience(60.0)
    assert str(waited) == "60 s"
    assert waited.more() == pytest.approx(seconds - 60.0)
    assert waited.seconds == pytest.approx(seconds)


def test_tried_again_until_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that becomes slower is given more, one that becomes faster nothing."""
    slow = iter([2.0, 4.0, 3.0, 9.0])
    monkeypatch.setattr(patience, "slowness", lambda: next(slow))
    waited = Patience(10.0)
    assert [waited.more() for _ in range(5)] == [10.0, 20.0, 0.0, 20.0, 0.0]


def test_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts, until it has happened."""
    monkeypatch.setattr(patience, "slowness", lambda: 3.0)
    asked: list[float] = []

    def happens(answers: Iterator[bool]) -> bool:
        def wait(seconds: float) -> bool:
            asked.append(seconds)
            return next(answers)

        asked.clear()
        return Patience(10.0).spend(wait)

    assert happens(iter([True])) and asked == [10.0]
    assert happens(iter([False, True])) and asked == [10.0, 20.0]
    assert not happens(iter([False, False])) and asked == [10.0, 20.0]


def test_a_usual_machine_is_one() -> None:
    """The real thing gives a number, and takes no second of an idle machine."""
    assert patience.slowness() >= 1.0
