"""Memory of ranges while calls are recorded, too: without what the recorder keeps of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

from pytest_instrcount.trace.ranges.memory import WATCH, MemoryWatch
from pytest_instrcount.trace.ranges.session import Session
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import Tracer

_DEFAULT = TraceOptions()


class SizedTracer(Tracer):
    """A tracer that knows how much it holds.

    >>> tracer = SizedTracer()
    >>> tracer.size
    0
    """

    def __init__(self, options: TraceOptions = _DEFAULT) -> None:
        super().__init__(options)
        #: per stream how far it was looked at, and the bytes of identities up to there
        self._identities: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        """Bytes of its streams, and of the identities of generators in them."""
        if self._recorder is None:
            return 0
        streams = self._recorder.recording().streams
        seen = self._identities
        seen.extend([(0, 0)] * (len(streams) - len(seen)))
        size = 0
        for number, stream in enumerate(streams):
            at, held = seen[number]
            objs, end = stream.objs, len(stream.objs)
            if end < at:  # it was folded since
                at = held = 0
            for index in range(at, end):
                if type(objs[index]) is int:
                    held += objs[index].__sizeof__()
            seen[number] = end, held
            size += stream.size + held
        return size


class TracedSession(Session):
    """A session whose ranges are measured without ``others()``: bytes that somebody else holds."""

    def __init__(self, others: Callable[[], int], *, record_shapes: bool = False) -> None:
        super().__init__(profile_memory=True, record_shapes=record_shapes)
        self._memory = _Watch(others)


class _Watch(MemoryWatch):
    """A watch for one profile. tracemalloc and its peak stay those of all: a profile shows no peaks."""

    def __init__(self, others: Callable[[], int]) -> None:
        super().__init__()
        self._others = others
        #: bytes of the others that are part of ``_own``; how many were when a range began or ended
        self._seen = self._seen_before = 0

    def begin(self) -> None:
        WATCH.begin()

    def end(self) -> None:
        WATCH.end()

    def in_use(self) -> int:
        with self._lock:
            return self._read()[0] - self._own

    def own(self, traced: int) -> None:
        with self._lock:
            now, _ = self._read()
            self._own += now - traced - (self._seen - self._seen_before)

    def _peak_to_last(self) -> int:
        traced, peak = self._read()
        self._seen_before = self._seen
        if self._last is not None:
            self._last.most = max(self._last.most, peak - self._own)
        return traced

    def _read(self) -> tuple[int, int]:
        """Bytes in use and their peak, with the others' share at that very moment in ``_own``.

        To look at them is recorded, too, and a list grows by an eighth at a time.
        """
        while True:
            size = self._others()
            now, peak = tracemalloc.get_traced_memory()
            if self._others() == size:
                self._own += size - self._seen
                self._seen = size
                return now, peak
