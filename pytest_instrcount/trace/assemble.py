"""Rows of all threads -> Columns."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from pytest_instrcount.trace.columns import (
    Columns,
    Flag,
    Folded,
    RecognizedObject,
    ReplayStats,
    Thread,
)
from pytest_instrcount.trace.fold import Contexts, Folder
from pytest_instrcount.trace.replay import Rows
from pytest_instrcount.trace.stream import Recording, Stream


def replay(recording: Recording, folder: Folder | None = None) -> Columns:
    """All rows of all threads; ``folder`` has what was folded on the way.

    >>> code = (lambda: 0).__code__
    >>> recording = Recording("setprofile", False, (Stream(1, "main", [code]),))
    >>> columns = replay(recording)
    >>> len(columns), columns.stats.open_at_stop
    (1, 1)
    """
    if folder is None:
        folder = Folder(clock=recording.clock, unpaired=recording.backend == "setprofile")
    return _Assembly(recording, folder).columns()


class _Assembly:
    def __init__(self, recording: Recording, folder: Folder) -> None:
        self._recording, self._folder = recording, folder
        self._key, self._parent = array("i"), array("i")
        self._start, self._end = array("q"), array("q")
        self._flags, self._thread = array("H"), array("i")
        self._threads: list[Thread] = []
        self._objects: dict[int, RecognizedObject] = {}
        self._folded: dict[int, Folded] = {}
        self._events = self._unmatched = self._unfinished = self._open = 0

    def columns(self) -> Columns:
        recording = self._recording
        truncated = False
        for stream in recording.streams:
            rows, contexts = self._folder.rows_of(stream, recording.stopped_ns)
            self._events += rows.events
            self._unmatched += rows.unmatched_exits
            self._unfinished += rows.unfinished
            if contexts is None:
                self._add_rows(stream, rows)
            else:
                truncated = True
                self._add_contexts(stream, contexts)
        if recording.clock and len(recording.streams) > 1:
            self._sort()
        self._flag_finalizers()
        stats = ReplayStats(
            recording.backend,
            self._events,
            self._unmatched,
            self._unfinished,
            self._open,
            truncated,
            recording.started_ns,
            recording.stopped_ns,
        )
        return Columns(
            tuple(self._folder.table.keys),
            self._key,
            self._parent,
            self._start,
            self._end,
            self._flags,
            self._thread,
            tuple(self._threads),
            stats,
            recording.clock,
            self._objects,
            self._folded,
        )

    def _add_rows(self, stream: Stream, rows: Rows) -> None:
        base = len(self._key)
        stop = self._recording.stopped_ns if self._recording.clock else rows.last + 1
        for row in rows.open_rows():
            rows.end[row] = max(stop, rows.last)
            rows.flags[row] |= Flag.OPEN
            self._open += not rows.flags[row] & Flag.START_FRAME
        self._key.extend(rows.key)
        self._extend_parents(rows.parent, base)
        self._start.extend(rows.start)
        self._end.extend(rows.end)
        self._flags.extend(rows.flags)
        numbers: dict[int, int] = {}
        ends = [first for first, _ in rows.greenlets[1:]] + [len(rows.key)]
        for (first, greenlet), following in zip(rows.greenlets, ends):
            if greenlet not in numbers and (following > first or not numbers):
                numbers[greenlet] = self._add_thread(stream, greenlet)
            if following > first:
                self._thread.extend(array("i", [numbers[greenlet]]) * (following - first))
        for row, seen in rows.objects.items():
            self._objects[row + base] = seen

    def _add_contexts(self, stream: Stream, contexts: Contexts) -> None:
        base = len(self._key)
        self._key.extend(contexts.key)
        self._extend_parents(contexts.parent, base)
        self._start.extend(contexts.first)
        self._end.extend(contexts.last)
        self._flags.extend(contexts.flags)
        number = self._add_thread(stream, 0)
        self._thread.extend(array("i", [number]) * len(contexts.key))
        for row, numbers in enumerate(
            zip(contexts.calls, contexts.resumes, contexts.errors, contexts.ns)
        ):
            self._folded[base + row] = Folded(*numbers)

    def _extend_parents(self, parents: Sequence[int], base: int) -> None:
        self._parent.extend(
            parents if not base else [each + base if each >= 0 else each for each in parents]
        )

    def _add_thread(self, stream: Stream, greenlet: int) -> int:
        number = len(self._threads)
        self._threads.append(Thread(number, stream.name, stream.ident, greenlet))
        return number

    def _flag_finalizers(self) -> None:
        finalizers, flags, parents = self._folder.table.finalizers, self._flags, self._parent
        if not finalizers:
            return
        flag = int(Flag.FINALIZER)
        for row, key in enumerate(self._key):
            if key in finalizers or (parents[row] >= 0 and flags[parents[row]] & flag):
                flags[row] |= flag

    def _sort(self) -> None:
        """Bring rows of several threads into start order; a caller stays before what it calls."""
        order = sorted(range(len(self._key)), key=self._start.__getitem__)
        place = array("i", bytes(4 * len(order)))
        for new, old in enumerate(order):
            place[old] = new
        for name in ("_key", "_start", "_end", "_flags", "_thread"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, [column[old] for old in order]))
        parents = self._parent
        moved = [place[parents[old]] if parents[old] >= 0 else -1 for old in order]
        self._parent = array("i", moved)
        self._objects = {place[row]: each for row, each in self._objects.items()}
        self._folded = {place[row]: each for row, each in self._folded.items()}
