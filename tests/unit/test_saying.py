"""What is said while something is awaited."""

from __future__ import annotations

import pytest

from pytest_instrcount.session import progress as saying
from pytest_instrcount.session.progress import Pulse


def test_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every half minute, with the time since the begin."""
    times = iter((1000.0, 1000.0, 1029.9, 1030.0, 1059.9, 1070.0, 1075.0, 1100.0))
    monkeypatch.setattr(saying, "monotonic", lambda: next(times))
    lines: list[str] = []
    pulse = Pulse(lines.append)
    for _ in range(7):
        pulse("waiting for a")
    assert lines == [f"instrcount: waiting for a ({seconds} s)" for seconds in (30, 70, 100)]
