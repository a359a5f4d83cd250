"""The wall time of a run by phase; each moment counts once.

Phases of this process nest, and a moment belongs to the innermost one. While it waits for
processes under Valgrind, a moment belongs to what those do, in equal parts if they do several things.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: What waits, and what is left of it where no process was known to do anything.
WAITING = "waiting"
#: What no phase explains.
OTHER = "other"
#: Phases that stand for all that is asked of processes while they last.
PURPOSES = ("layouts", "hash seeds", "by Python function", "calls")


@dataclass(frozen=True, slots=True)
class Span:
    """The work of a process under Valgrind in a span of time, in seconds of `time.monotonic`."""

    phase: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """A phase of a run; all times in seconds."""

    phase: str
    #: its share of the wall time
    wall: float
    #: what all processes together spent on it
    total: float
    times: int
    #: the function that the time was spent in, "" for a phase in other processes
    function: str = ""


class Timings:
    """The phases of one process. ``start`` is when its run began, on ``clock``."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, start: float | None = None
    ) -> None:
        self._clock = clock
        self._last = clock() if start is None else start
        self._stack: list[tuple[str, str]] = [(OTHER, "")]
        self._seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._times: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._waits: list[tuple[float, float]] = []
        self._spans: list[Span] = []

    @contextmanager
    def phase(self, name: str, function: str = "") -> Iterator[None]:
        """Until its end, time belongs to this phase, apart from phases within.

        >>> ticks = iter([0.0, 1.0, 3.0, 7.0, 8.0, 8.0])
        >>> timings = Timings(lambda: next(ticks))
        >>> with timings.phase("report"):
        ...     with timings.phase("parse"):
        ...         pass
        >>> [(row.phase, row.wall) for row in timings.rows()]
        [('parse', 4.0), ('report', 3.0), ('other', 1.0)]
        """
        self._turn()
        self._stack.append((name, function))
        self._times[name, function] += 1
        began = self._last
        try:
            yield
        finally:
            self._turn()
            self._stack.pop()
            if name == WAITING:
                self._waits.append((began, self._last))

    def _turn(self) -> None:
        now = self._clock()
        self._seconds[self._stack[-1]] += now - self._last
        self._last = now

    @property
    def purpose(self) -> str:
        """The phase that stands for what is asked now; "" for a first count."""
        return next((name for name, _ in reversed(self._stack) if name in PURPOSES), "")

    def add(self, span: Span) -> None:
        """Know what a process did."""
        self._spans.append(span)

    def explain_start(self, name: str) -> None:
        """Charge the time since the last change to this phase."""
        self._turn()
        self._seconds[name, ""] += self._seconds.pop((OTHER, ""), 0.0)
        self._times[name, ""] += 1

    def rows(self, *, by_function: bool = False) -> list[PhaseTime]:
        """All phases, the longest first; what is not explained last."""
        self._turn()
        found: dict[tuple[str, str], list[float]] = {}

        def note(phase: str, function: str, wall: float, total: float, times: int) -> None:
            row = found.setdefault((phase, function if by_function else ""), [0.0, 0.0, 0])
            for column, value in enumerate((wall, total, times)):
                row[column] += value

        while_waiting = apportion(self._waits, self._spans)
        for (phase, function), seconds in self._seconds.items():
            if phase == WAITING:
                # what is left where nobody worked
                seconds = max(0.0, seconds - sum(while_waiting.values()))
            note(phase, function, seconds, seconds, self._times[phase, function])
        for span in self._spans:
            note(span.phase, "", 0.0, span.end - span.start, 1)
        for phase, seconds in while_waiting.items():
            note(phase, "", seconds, 0.0, 0)
        rows = [
            PhaseTime(phase, wall, total, int(times), function)
            for (phase, function), (wall, total, times) in found.items()
            if wall or total
        ]
        return sorted(rows, key=lambda row: (row.phase == OTHER, -row.wall, -row.total, row.phase))

    def explained(self) -> float:
        """The share of the wall time that belongs to a phase: 0 to 1."""
        rows = self.rows()
        whole = sum(row.wall for row in rows)
        return sum(row.wall for row in rows if row.phase != OTHER) / whole if whole else 1.0


def apportion(waits: Sequence[tuple[float, float]], spans: Iterable[Span]) -> dict[str, float]:
    """Of the time within ``waits``, what was spent on each phase: in equal parts where many go on.

    >>> apportion([(0, 4)], [Span("fixtures", 1, 3), Span("count", 2, 9)])
    {'fixtures': 1.5, 'count': 1.5}
    """
    # at one moment, what ends comes before what begins
    events = [
        (moment, change, "") for begin, end in waits for moment, change in ((end, -1), (begin, 1))
    ]
    for span in spans:
        events += [(span.end, -1, span.phase), (span.start, 1, span.phase)]
    found: dict[str, float] = {}
    active: dict[str, int] = {}
    waiting, last = 0, 0.0
    for moment, change, phase in sorted(events):
        number = sum(active.values())
        if waiting and number and moment > last:
            for name, count in active.items():
                if count:
                    found[name] = found.get(name, 0.0) + (moment - last) * count / number
        last = moment
        if phase:
            active[phase] = active.get(phase, 0) + change
        else:
            waiting += change
    return found


def process_start() -> float | None:
    """When this process was started, on the clock of `time.monotonic`; None where nothing says."""
    try:
        fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    # of a container with a clock of its own, or of a machine that slept, it says nothing
    return time.monotonic() - age if 0 <= age < 1e6 else None
