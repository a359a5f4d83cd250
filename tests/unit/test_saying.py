"""What is said while something is awaited."""

from __future__ import annotations

import pytest

from pytest_instrcount.session import progress as saying
from pytest_instrcount.session.progress import Estimate, Pulse


def test_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every half minute, with the time since the begin."""
    times = iter((1000.0, 1000.0, 1029.9, 1030.0, 1059.9, 1070.0, 1075.0, 1100.0))
    monkeypatch.setattr(saying, "monotonic", lambda: next(times))
    lines: list[str] = []
    pulse = Pulse(lines.append)
    for _ in range(7):
        pulse("waiting for a")
    assert lines == [f"instrcount: waiting for a ({seconds} s)" for seconds in (30, 70, 100)]


@pytest.mark.parametrize(
    ("stored", "seconds", "said"),
    [
        (True, 4.0, "all 49 tests, about 20 minutes"),
        (False, 4.0, "all 49 tests, about 3 minutes"),
        (True, 0.1, ""),
        (False, 0.7, ""),
    ],
)
def test_estimate(
    monkeypatch: pytest.MonkeyPatch, *, stored: bool, seconds: float, said: str
) -> None:
    """Once, after ten seconds, by what the first tests took; not when all is nearly done."""
    now = 1000.0
    monkeypatch.setattr(saying, "monotonic", lambda: now)
    lines: list[str] = []
    one_done = Estimate(lines.append, 49, 2, stored=stored)
    now += 60.0  # Valgrind starts
    for _ in range(49):
        one_done()
        now += seconds
    first = "instrcount: measuring 49 tests under Valgrind, 2 at a time"
    assert lines == [first, *([f"instrcount: {said}"] if said else [])]
