"""Limits of our own, which hold on a machine that is slow, or loaded, as well.

They end what will not end by itself. So before one of them ends anything, the machine is tried: where
a fixed piece of work takes five times as long as usual, the limit is five times as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

#: Of the start of pytest under Valgrind, and of the import of one test file there.
START_SECONDS = 600.0
#: Limits are made longer by this factor at most.
MOST = 6.0
#: So long takes the work on a usual machine that has nothing else to do.
_USUAL_SECONDS = 0.05
_STEPS = 2_000_000


def slowness() -> float:
    """The slowdown of this machine against a usual one, now; 1 or more."""
    began = time.perf_counter()
    for _ in range(_STEPS):
        pass
    return max(1.0, (time.perf_counter() - began) / _USUAL_SECONDS)


@dataclass(slots=True, eq=False)
class Patience:
    """A waiting time: ``usual`` seconds, or more on a slow machine."""

    usual: float
    #: so long it is waited for by now
    seconds: float = field(init=False)

    def __post_init__(self) -> None:
        self.seconds = self.usual

    def more(self) -> float:
        """Seconds to wait still, now that all are over; 0 if the machine is not that slow."""
        if self.seconds >= self.usual * MOST:
            return 0.0
        longest = self.usual * min(MOST, slowness())
        before, self.seconds = self.seconds, max(self.seconds, longest)
        return self.seconds - before

    def spend(self, wait: Callable[[float], bool]) -> bool:
        """Wait by ``wait(seconds)``, which says whether it has happened; whether it has."""
        seconds = self.seconds
        while not (happened := wait(seconds)) and (seconds := self.more()):
            pass
        return happened

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s"
