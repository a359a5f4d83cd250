"""Memory of ranges, through tracemalloc; and records of memory, looked up by time."""

from __future__ import annotations

import threading
import tracemalloc
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar


class Timed(Protocol):
    """Anything with a time."""

    @property
    def at_ns(self) -> int: ...


T = TypeVar("T", bound=Timed)


class MemRecordsAcc(Generic[T]):
    """Which records of memory lie in an interval, found by bisection.

    >>> from pytest_instrcount.trace.ranges.event import Event, EventKind
    >>> records = [Event(EventKind.MEMORY, "f", 0, at_ns=at) for at in (30, 10, 20)]
    >>> [record.at_ns for record in MemRecordsAcc(records).in_interval(10, 20)]
    [10, 20]
    """

    def __init__(self, records: Sequence[T]) -> None:
        self._records = sorted(records, key=lambda record: record.at_ns)
        self._times = [record.at_ns for record in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[T]:
        """The records from ``start_ns`` to ``end_ns``, both included, in order of time."""
        first, last = bisect_left(self._times, start_ns), bisect_right(self._times, end_ns)
        return iter(self._records[first:last])


class Watched:
    """A range that is measured: a link in the list of those that are open, in order of begin."""

    __slots__ = ("begin", "earlier", "later", "most", "traced")

    def __init__(self, traced: int, begin: int, earlier: Watched | None) -> None:
        #: bytes in use when it began, with those of events
        self.traced = traced
        #: bytes in use when it began
        self.begin = begin
        #: the most that was in use while this one was the last to have begun
        self.most = begin
        self.earlier = earlier
        self.later: Watched | None = None


class Measured(NamedTuple):
    """Memory use of a range, in bytes."""

    #: in use when it ended, with those of events
    traced: int
    #: without them
    in_use: int
    #: the difference to its begin
    delta: int
    #: the most that was in use, above its begin
    peak: int


class MemoryWatch:
    """Bytes in use and their peaks in ranges that nest or overlap, on any thread.

    tracemalloc has one peak for all. It is read and reset whenever a range begins or ends, and is
    then that of all that are open: it is kept with the last one that began, and goes to the one
    before when that ends. What a session allocates for its events is taken out of all numbers.
    All sessions of a process share one watch, as they share tracemalloc.
    """

    def __init__(self) -> None:
        # reentrant: a finalizer may open a range while one is opened
        self._lock = threading.RLock()
        self._last: Watched | None = None
        self._own = 0
        self._users = 0
        self._started = False

    def begin(self) -> None:
        """Make tracemalloc trace, if it does not yet; to be undone by as many calls of `end`."""
        with self._lock:
            self._users += 1
            if not tracemalloc.is_tracing():
                self._started = True
                tracemalloc.start()

    def end(self) -> None:
        """Stop tracemalloc, if it was started here and nobody else needs it."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if self._started:
                tracemalloc.stop()
            # ranges that never ended
            self._last, self._own, self._started = None, 0, False

    def in_use(self) -> int:
        """Bytes in use now, without those of events."""
        return tracemalloc.get_traced_memory()[0] - self._own

    def open(self) -> Watched:
        """A range begins; `own` is to follow once its event is stored."""
        with self._lock:
            traced = self._peak_to_last()
            opened = Watched(traced, traced - self._own, self._last)
            if self._last is not None:
                self._last.later = opened
            self._last = opened
            return opened

    def close(self, watched: Watched) -> Measured:
        """A range ends; `own` is to follow here, too."""
        with self._lock:
            traced = self._peak_to_last()
            now = traced - self._own
            most, later = watched.most, watched.later
            while later is not None:
                most, later = max(most, later.most), later.later
            earlier, later = watched.earlier, watched.later
            if earlier is not None:
                earlier.most, earlier.later = max(earlier.most, watched.most), later
            if later is None:
                self._last = earlier
            else:
                later.earlier = earlier
            return Measured(traced, now, now - watched.begin, most - watched.begin)

    def own(self, traced: int) -> None:
        """Record as events the allocations since `open` or `close` found ``traced`` bytes."""
        with self._lock:
            # From 3.14 on there is a free list of ints: the first call fills it, and the second allocates
            # nothing, which would be in use after it was read.
            self._with_growth(traced)
            self._own = self._with_growth(traced)
            tracemalloc.reset_peak()

    def _with_growth(self, traced: int) -> int:
        return self._own + tracemalloc.get_traced_memory()[0] - traced

    def _peak_to_last(self) -> int:
        traced, peak = tracemalloc.get_traced_memory()
        if self._last is not None:
            self._last.most = max(self._last.most, peak - self._own)
        return traced


WATCH = MemoryWatch()
