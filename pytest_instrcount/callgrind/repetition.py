"""Chooses the number of repetitions: by counted instructions, and by a clock only for calls that wait."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_instrcount.counts.totals import read_total

#: The adaptive interpreter settles after 10 to 20 calls.
MOST_WARMUP = 20
MOST_CALLS = 3
#: What all warm-up calls, and all counted calls, may cost, in instructions: long tests have fewer.
WARMUP_IR = 200_000_000
COUNTED_IR = 50_000_000
#: From here on, the pilot is the warm-up, and one call is counted.
LONG_IR = 1_000_000_000

#: A call that does nothing for so long (it sleeps, it waits for others) is called once.
LONG_WAIT_SECONDS = 10.0


def choose_repetition(
    pilot_ir: int, warmup: int | None, calls: int | None, waited: float = 0.0
) -> tuple[int, int]:
    """Warm-up calls and counted calls for a call that cost ``pilot_ir`` instructions.

    What the user or the baseline says wins. A call that ``waited`` so many seconds is not repeated.

    >>> choose_repetition(300_000, None, None), choose_repetition(2_000_000_000, None, 3)
    ((20, 3), (0, 3))
    >>> choose_repetition(300_000, None, None, 100.0)
    (0, 1)
    """
    if waited >= LONG_WAIT_SECONDS:
        return 0 if warmup is None else warmup, 1 if calls is None else calls
    if warmup is None:
        fitting = min(MOST_WARMUP, WARMUP_IR // max(pilot_ir, 1))
        warmup = 0 if pilot_ir > LONG_IR else max(1, fitting)
    if calls is None:
        calls = max(1, min(MOST_CALLS, COUNTED_IR // max(pilot_ir, 1)))
    return warmup, calls


def rounds_of(calls: int | None, iterations: int) -> int | None:
    """How many rounds make ``calls`` calls, or a few more: rounds are made whole.

    >>> rounds_of(30, 10), rounds_of(1, 10), rounds_of(None, 10)
    (3, 1, None)
    """
    return None if calls is None else -(-calls // iterations)


def read_pilot(dumps: Sequence[Path]) -> int:
    """Instructions of the pilot call, from the newest dump of a child."""
    return read_total(dumps[-1]) if dumps else 0
