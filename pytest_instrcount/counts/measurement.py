"""The raw count of one test, as it comes from Callgrind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.work import count_work

#: The ways a test is kept apart from the others: forked from the zygote, or a process of its own.
ISOLATIONS = ("fork", "process")


def per_call(total_ir: int, calls: int) -> int:
    """Instructions of one call, rounded half up to an integer; exact at any size.

    Raises ValueError for fewer than one call.

    >>> per_call(5, 2), per_call(4, 3), per_call(0, 7)
    (3, 1, 0)
    """
    if calls < 1:
        raise ValueError(f"a count needs at least one call, not {calls}")
    return (2 * total_ir + calls) // (2 * calls)


@dataclass(frozen=True, slots=True)
class Counted:
    """A count of one test, now or once: ``total_ir`` and ``rows`` are sums over ``calls`` calls."""

    #: pytest's id of the test
    nodeid: str
    #: instructions over all counted calls
    total_ir: int
    #: how many calls were counted, 1 or more
    calls: int
    #: how many calls ran before, uncounted
    warmup: int
    #: "fork" or "process"
    isolation: str
    #: function name -> self count and calls, over all counted calls
    rows: Mapping[str, Row]
    #: distribution name -> version, of what is installed; explains a delta, never prevents one
    packages: Mapping[str, str]

    @property
    def ir(self) -> int:
        """Instructions per call: total_ir / calls, rounded half up (2.5 -> 3), as an integer.

        For people and reports; the gate compares the unrounded quotients.
        """
        return per_call(self.total_ir, self.calls)


@dataclass(frozen=True, slots=True)
class Measurement(Counted):
    """The raw count of one test.

    Raises ValueError if the numbers cannot be a count. A row may be negative: where the cost of
    switching was subtracted, a function can have run more often in what was subtracted.
    """

    #: who called what, as `Profile.callers`: needed to take the noise out
    callers: Mapping[str, Mapping[str, Row]] = field(default_factory=dict)
    #: the same calls counted in other layouts of memory; empty where one layout was enough
    layouts: tuple[Profile, ...] = ()
    #: functions that differed between two equal forks, the largest difference first
    unsteady: tuple[str, ...] = ()
    #: function -> instructions with all that it called, as `Profile.inclusive`
    inclusive: Mapping[str, int] = field(default_factory=dict)
    #: True if each counted call gave the same counts
    alike: bool = False
    #: under each other hash seed that was measured: function of dicts and sets -> self count and calls
    seeds: tuple[Mapping[str, Row], ...] = ()

    def __post_init__(self) -> None:
        if self.calls < 1 or self.total_ir < 0 or self.warmup < 0:
            raise ValueError(
                f"not a count: total_ir={self.total_ir} calls={self.calls} warmup={self.warmup}"
            )
        if self.isolation not in ISOLATIONS:
            raise ValueError(f"isolation is one of {ISOLATIONS}, not {self.isolation!r}")

    @property
    def calls_elsewhere(self) -> int:
        """How many calls to count in other layouts, and by function: one stands for all that are alike."""
        return 1 if self.alike else self.calls

    @property
    def profile(self) -> Profile:
        """The counts as a profile."""
        return Profile(self.total_ir, self.rows, self.callers, self.inclusive)

    @property
    def work(self) -> dict[str, int]:
        """Countable work, as from `count_work`."""
        return count_work(self.profile)
