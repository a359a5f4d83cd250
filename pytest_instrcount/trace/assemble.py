"""Rows of all threads -> Columns."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import takewhile

from pytest_instrcount.trace.columns import (
    Columns,
    Flag,
    Folded,
    RecognizedObject,
    ReplayStats,
    Task,
    Thread,
    reordered,
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
        self._made = Columns(key=array("i"), parent=array("i"), flags=array("H"), thread=array("i"))
        self._objects: dict[int, RecognizedObject] = {}
        self._tasks: dict[int, Task] = {}
        self._values: dict[int, str] = {}
        self._folded: dict[int, Folded] = {}
        self._threads: list[Thread] = []
        self._open = 0

    def columns(self) -> Columns:
        recording = self._recording
        events = unmatched = unfinished = 0
        truncated = False
        for stream in recording.streams:
            rows, contexts = self._folder.rows_of(stream, recording.stopped_ns)
            events += rows.events
            unmatched += rows.unmatched_exits
            unfinished += rows.unfinished
            if contexts is None:
                self._add_rows(stream, rows)
            else:
                truncated = True
                self._add_contexts(stream, contexts)
        self._flag_finalizers()
        made = replace(
            self._made,
            keys=tuple(self._folder.table.keys),
            threads=tuple(self._threads),
            objects=self._objects,
            tasks=self._tasks,
            values=self._values,
            folded=self._folded,
            clock=recording.clock,
            stats=ReplayStats(
                recording.backend,
                events,
                unmatched,
                unfinished,
                self._open,
                truncated,
                recording.started_ns,
                recording.stopped_ns,
            ),
        )
        if recording.clock and len(recording.streams) > 1:
            # in start order over all threads; a caller stays before what it calls
            return reordered(made, sorted(range(len(made)), key=made.start.__getitem__))
        return made

    def _add_rows(self, stream: Stream, rows: Rows) -> None:
        stop = self._end_of(rows)
        if self._recording.clock and stream is self._recording.streams[0]:
            self._start_late(rows)
        for row in rows.open_rows():
            rows.end[row] = stop
            rows.flags[row] |= Flag.OPEN
            self._open += not rows.flags[row] & Flag.START_FRAME
        base = self._extend(rows)
        numbers: dict[int, int] = {}
        ends = [first for first, _ in rows.greenlets[1:]] + [len(rows.key)]
        for (first, greenlet), following in zip(rows.greenlets, ends):
            if greenlet not in numbers and (following > first or not numbers):
                numbers[greenlet] = self._add_thread(stream, greenlet)
            if following > first:
                self._made.thread.extend(array("i", [numbers[greenlet]]) * (following - first))
        self._values.update(zip(map(base.__add__, rows.values), rows.values.values()))
        for row, seen in rows.objects.items():
            if isinstance(seen, Task):
                self._tasks[row + base] = seen
            else:
                self._objects[row + base] = seen

    def _end_of(self, rows: Rows) -> int:
        """The end of what is open at the end."""
        stop = self._recording.stopped_ns
        if not self._recording.clock:
            return rows.last + 1
        # the last events of the thread that stopped it are our own, those of others are not
        if len(self._recording.streams) == 1 and max(rows.start[-1:], default=0) <= stop:
            return stop
        return max(stop, max(rows.end, default=0))

    def _start_late(self, rows: Rows) -> None:
        """Frames on the stack before have not taken the time that the start of the trace took."""
        before = sum(1 for _ in takewhile(int(Flag.START_FRAME).__and__, rows.flags))
        first = min(self._recording.started_ns, *rows.start[before : before + 1], 1 << 62) - before
        late = [max(at, first + row) for row, at in enumerate(rows.start[:before])]
        rows.start[:before] = array("q", late)

    def _add_contexts(self, stream: Stream, contexts: Contexts) -> None:
        base = self._extend(contexts)
        number = self._add_thread(stream, 0)
        self._made.thread.extend(array("i", [number]) * len(contexts.key))
        for row, numbers in enumerate(
            zip(contexts.calls, contexts.resumes, contexts.errors, contexts.ns)
        ):
            self._folded[base + row] = Folded(*numbers)

    def _extend(self, part: Rows | Contexts) -> int:
        """Add rows; returns the number of the first."""
        made, base = self._made, len(self._made)
        made.key.extend(part.key)
        parents = part.parent
        made.parent.extend(
            [each + base if each >= 0 else each for each in parents] if base else parents
        )
        made.start.extend(part.start)
        made.end.extend(part.end)
        made.flags.extend(part.flags)
        return base

    def _add_thread(self, stream: Stream, greenlet: int) -> int:
        number = len(self._threads)
        self._threads.append(Thread(number, stream.name, stream.ident, greenlet))
        return number

    def _flag_finalizers(self) -> None:
        finalizers, flags, parents = (
            self._folder.table.finalizers,
            self._made.flags,
            self._made.parent,
        )
        if not finalizers:
            return
        flag = int(Flag.FINALIZER)
        for row, key in enumerate(self._made.key):
            if key in finalizers or (parents[row] >= 0 and flags[parents[row]] & flag):
                flags[row] |= flag
