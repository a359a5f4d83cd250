"""Memory of ranges while calls are recorded, too: without what the recorder keeps of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

from pytest_instrcount.trace.ranges.memory import WATCH, MemoryWatch
from pytest_instrcount.trace.ranges.session import Session


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
