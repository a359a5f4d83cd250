"""How often a call is repeated: a pure choice by instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_instrcount.callgrind.repetition import (
    COUNTED_IR,
    LONG_IR,
    MOST_CALLS,
    MOST_WARMUP,
    WARMUP_IR,
    choose_repetition,
    read_pilot,
)
from pytest_instrcount.errors import InstrcountError


@pytest.mark.parametrize(
    ("pilot", "chosen"),
    [
        (0, (MOST_WARMUP, MOST_CALLS)),
        (1, (MOST_WARMUP, MOST_CALLS)),
        (WARMUP_IR // MOST_WARMUP, (MOST_WARMUP, MOST_CALLS)),
        (WARMUP_IR // MOST_WARMUP + 1, (MOST_WARMUP - 1, MOST_CALLS)),
        (COUNTED_IR // MOST_CALLS + 1, (WARMUP_IR // (COUNTED_IR // MOST_CALLS + 1), 2)),
        (COUNTED_IR, (WARMUP_IR // COUNTED_IR, 1)),
        (WARMUP_IR, (1, 1)),
        (WARMUP_IR + 1, (1, 1)),
        (LONG_IR, (1, 1)),
        (LONG_IR + 1, (0, 1)),
        (10**15, (0, 1)),
    ],
)
def test_choice(pilot: int, chosen: tuple[int, int]) -> None:
    """Cheap calls get all; dear ones less; above 10^9 the pilot is the warm-up."""
    assert choose_repetition(pilot, None, None) == chosen


@pytest.mark.parametrize("pilot", [0, 10**6, 10**12])
def test_what_is_given_wins(pilot: int) -> None:
    """By the user or the baseline; each of the two by itself."""
    assert choose_repetition(pilot, 0, 9) == (0, 9)
    assert choose_repetition(pilot, 5, None)[0] == 5
    assert choose_repetition(pilot, None, 7)[1] == 7


def test_more_instructions_never_mean_more_calls() -> None:
    """The choice is monotonous, and one call is always counted."""
    chosen = [choose_repetition(10**n, None, None) for n in range(14)]
    assert chosen == sorted(chosen, reverse=True)
    assert min(calls for _, calls in chosen) == 1


def test_pilot(tmp_path: Path) -> None:
    """The newest dump counts; without one it cost nothing; damage is an error."""
    assert read_pilot([]) == 0
    paths = [tmp_path / "1", tmp_path / "2"]
    for number, path in enumerate(paths, 5):
        path.write_text(f"events: Ir\ntotals: {number}\n")
    assert read_pilot(paths) == 6
    paths[1].write_text("events: Ir\n")
    with pytest.raises(InstrcountError, match="profile-damaged"):
        read_pilot(paths)
