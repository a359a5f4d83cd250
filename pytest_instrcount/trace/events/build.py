"""Recordings -> Timeline: calls from columns, ranges and marks from events."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from time import perf_counter_ns, time_ns

from pytest_instrcount.trace.columns import Columns, Flag, Folded, RecognizedObject, reordered
from pytest_instrcount.trace.ranges.event import (
    START_MARK,
    STOP_MARK,
    Event,
    EventKind,
    ThreadEvents,
)
from pytest_instrcount.trace.sums import Children
from pytest_instrcount.trace.timeline import (
    ASYNC,
    Detail,
    Flow,
    Label,
    Mark,
    MemorySample,
    Recorded,
    Timeline,
    Track,
    column,
    printable,
)
from pytest_instrcount.trace.weave import Span, weave

#: The bit is ASYNC's in a timeline, and so in its files.
_WITHOUT_FINALIZER = int(Flag.FINALIZER) - 1


def build_timeline(
    columns: Columns, threads: Sequence[ThreadEvents], recorded: Recorded
) -> Timeline:
    """One timeline of calls and of the ranges around and within them.

    A range that is async, or ended on another thread, or overlaps a call, stands beside the tree.
    """
    calls = of_columns(columns, recorded)
    threads_of_calls = [
        number for number, thread in enumerate(columns.threads) if not thread.greenlet
    ]
    ranges = _Ranges(calls, columns.stats.stopped_ns, threads_of_calls)
    ranges.read(threads)
    with_ranges = replace(
        calls,
        tracks=tuple(ranges.tracks),
        marks=tuple(ranges.marks),
        memory=tuple(ranges.memory),
        flows=tuple(ranges.flows()),
    )
    return weave(with_ranges, ranges.spans())


def of_columns(columns: Columns, recorded: Recorded) -> Timeline:
    """The calls alone; what was folded is laid out by caller, as wide as it took in sum."""
    stats = columns.stats
    labels = [
        Label(printable(key.name), key.kind, printable(key.file), key.firstlineno)
        for key in columns.keys
    ]
    objects = columns.objects if recorded.modules else {}
    label = columns.key[:] if objects else columns.key
    known: dict[tuple[int, str], int] = {}
    for row, found in objects.items():
        place = label[row], found.name
        label[row] = known.setdefault(place, len(labels))
        if label[row] == len(labels):
            labels.append(_label_of(labels[place[0]], found))
    timeline = Timeline(
        labels=tuple(labels),
        tracks=tuple(
            Track(_thread_name(thread.name, thread.greenlet), thread.ident)
            for thread in columns.threads
        ),
        label=label,
        parent=columns.parent,
        start=columns.start,
        end=columns.end,
        track=columns.thread,
        flags=column(map(_WITHOUT_FINALIZER.__and__, columns.flags)),
        details={
            row: Detail(
                args=printable(columns.values.get(row, "").strip()),
                module=printable(f"{objects[row].cls} #{objects[row].number}")
                if row in objects
                else "",
            )
            for row in {**objects, **columns.values}
        },
        folded=columns.folded,
        tasks=columns.tasks,
        windows=((stats.started_ns, stats.stopped_ns),),
        recorded=recorded,
        pid=os.getpid(),
        epoch_ns=time_ns() - perf_counter_ns(),
        truncated=stats.truncated,
    )
    return _laid_out(timeline, columns) if columns.folded else timeline


def _label_of(method: Label, found: RecognizedObject) -> Label:
    """The label of a method of one object; of torch's modules it is the name that torch gives them."""
    if method.name.startswith("torch.nn."):
        return replace(method, name=f"nn.Module: {found.name.replace(' #', '_')}")
    return replace(method, name=f"{method.name} [{found.name}]")


def _thread_name(name: str, greenlet: int) -> str:
    return printable(f"{name}, greenlet {greenlet}" if greenlet else name)


def _laid_out(timeline: Timeline, columns: Columns) -> Timeline:
    """Rows in the order of a walk through the tree, with times that nest."""
    children = Children(columns.parent)
    order: list[int] = []
    todo = list(reversed(children.of(-1)))
    while todo:
        row = todo.pop()
        order.append(row)
        todo.extend(reversed(children.of(row)))
    width = [columns.ns(row) for row in range(len(columns))]
    for row in reversed(order):
        width[row] = max(width[row], sum(width[child] for child in children.of(row)))
    start = column([0]) * len(columns)
    free = {-1: columns.stats.started_ns}
    for row in order:
        parent = columns.parent[row]
        start[row] = free[row] = free[parent]
        free[parent] += width[row]
    folded = {
        row: columns.folded.get(row)
        or Folded(columns.calls(row), columns.resumes(row), columns.errors(row), columns.ns(row))
        for row in order
    }
    end = column(map(add, start, width))
    return reordered(replace(timeline, start=start, end=end, folded=folded), order)


@dataclass(slots=True)
class _Range:
    """A range in the making."""

    push: Event
    track: int
    node_id: int
    pop: Event | None = None
    end_track: int = -1
    memory: int | None = None


@dataclass(slots=True)
class _Ranges:
    """Events of all threads, put together by range."""

    calls: Timeline
    stopped_ns: int
    #: tracks of the calls that are no greenlet's
    threads: list[int]
    tracks: list[Track] = field(init=False)
    #: (node, number of the thread) -> track
    place: dict[tuple[int, int], int] = field(default_factory=dict)
    #: (node, handle) -> range
    ranges: dict[tuple[int, int], _Range] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    memory: list[MemorySample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tracks = list(self.calls.tracks)

    def read(self, threads: Sequence[ThreadEvents]) -> None:
        """Tracks first: a range may end on a thread that comes later."""
        seen = _first_starts(self.calls)
        for thread in threads:
            self.place.setdefault((thread.node_id, thread.number), self._track(thread, seen))
        for thread in threads:
            for event in thread.events:
                self._add(event, thread)

    def _track(self, thread: ThreadEvents, seen: dict[int, int]) -> int:
        """The track of the calls of this thread: idents are used again, so the latest by then."""
        first = thread.events[0].at_ns if thread.events else 0
        same = [
            number
            for number in self.threads
            if self.calls.tracks[number].ident == thread.ident and not thread.node_id
        ]
        before = [number for number in same if seen.get(number, 0) <= first]
        if same:
            return before[-1] if before else same[0]
        self.tracks.append(Track(printable(thread.name), thread.ident, thread.node_id))
        return len(self.tracks) - 1

    def _add(self, event: Event, thread: ThreadEvents) -> None:
        node = thread.node_id
        track = self.place.get((node, event.thread), self.place[node, thread.number])
        key = node, event.handle
        if event.in_use:
            self.memory.append(MemorySample(event.at_ns, event.in_use, track))
        if event.kind is EventKind.MARK:
            if event.name not in (START_MARK, STOP_MARK):
                self.marks.append(Mark(printable(event.name), track, event.at_ns))
        elif event.kind is EventKind.PUSH:
            self.ranges[key] = _Range(event, track, node)
        elif key in self.ranges:
            found = self.ranges[key]
            if event.kind is EventKind.MEMORY:
                found.memory = event.delta
            else:
                found.pop, found.end_track = event, track

    def spans(self) -> Iterable[Span]:
        """All ranges; one that did not end lasts until the recording did."""
        for found in self.ranges.values():
            push, pop = found.push, found.pop
            is_async = push.is_async or bool(self.calls.folded)
            if pop is not None:  # a thread that recorded nothing else has no track
                is_async = is_async or pop.is_async or pop.thread != push.thread
            flags = ASYNC if is_async else 0
            if pop is None:
                flags |= int(Flag.OPEN)
            elif pop.failed:
                flags |= int(Flag.ERROR)
            detail = Detail(
                end_track=found.end_track if found.end_track not in (-1, found.track) else None,
                input_shapes=push.shapes if self.calls.recorded.shapes else (),
                memory=found.memory,
                args=printable(push.args),
                sequence_nr=push.sequence_nr,
                scope=int(push.scope),
            )
            end = max(push.at_ns, self.stopped_ns) if pop is None else pop.at_ns
            yield Span(
                Label(printable(push.name), "range"), found.track, push.at_ns, end, flags, detail
            )

    def flows(self) -> Iterable[Flow]:
        """From each range to those that were opened in it on another thread."""
        for found in self.ranges.values():
            around = self.ranges.get((found.node_id, found.push.sequence_nr))
            if around is None or around.track == found.track:
                continue
            at = found.push.at_ns
            ended = around.pop is not None and around.pop.at_ns <= at
            came = around.push.at_ns if ended else at
            yield Flow(printable(found.push.name), around.track, came, found.track, at)


def _first_starts(timeline: Timeline) -> dict[int, int]:
    """When the first call of each track began."""
    first: dict[int, int] = {}
    for track, start in zip(timeline.track, timeline.start):
        if track not in first:
            first[track] = start
            if len(first) == len(timeline.tracks):
                break
    return first
