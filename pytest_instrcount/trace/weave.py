"""Ranges woven into calls, and runs into one timeline: a tree by time, per track."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, pairwise

from pytest_instrcount.trace.columns import reordered
from pytest_instrcount.trace.timeline import ASYNC, Detail, Label, Timeline, Track, column


@dataclass(frozen=True, slots=True)
class Span:
    """An event by itself, before it has a place in a tree; times in ns."""

    label: Label
    track: int
    start: int
    end: int
    flags: int = 0
    detail: Detail | None = None


def weave(timeline: Timeline, spans: Iterable[Span]) -> Timeline:
    """The timeline with ``spans`` in it, each a child of what encloses it and a parent within.

    Where two overlap and neither encloses the other, the range stands beside the tree as ASYNC;
    of two ranges the one that began later. Calls enclose one another, and stay in the tree.

    >>> main = Timeline(tracks=(Track("main"),))
    >>> woven = weave(main, [Span(Label("inner"), 0, 3, 4), Span(Label("outer"), 0, 1, 9)])
    >>> [woven.labels[label].name for label in woven.label], list(woven.parent)
    (['outer', 'inner'], [-1, 0])
    """
    spans = list(spans)
    if not spans:
        return timeline
    calls = len(timeline)
    numbers = {label: number for number, label in enumerate(timeline.labels)}
    labels = [numbers.setdefault(span.label, len(numbers)) for span in spans]
    details = {calls + at: span.detail for at, span in enumerate(spans) if span.detail is not None}
    both = replace(
        timeline,
        labels=tuple(numbers),
        label=column([*timeline.label, *labels]),
        start=column([*timeline.start, *(span.start for span in spans)]),
        end=column([*timeline.end, *(max(span.start, span.end) for span in spans)]),
        track=column([*timeline.track, *(span.track for span in spans)]),
        flags=column([*timeline.flags, *map(_flags, spans)]),
        details={**timeline.details, **details},
    )
    # Of what starts together the longer is outside. A range before a call: it may be its with-block.
    order = sorted(
        chain(range(calls, len(both)), range(calls)),
        key=lambda row: (both.start[row], -both.end[row]),
    )
    return reordered(replace(both, parent=_parents(both, order, calls)), order)


def _flags(span: Span) -> int:
    """Those of the span; what ended on another track has no place on the stack of either."""
    ended = None if span.detail is None else span.detail.end_track
    return span.flags if ended in (None, span.track) else span.flags | ASYNC


def _parents(timeline: Timeline, order: Iterable[int], calls: int) -> array[int]:
    """The parents of all rows, which start in this order; what is no call may be made ASYNC."""
    start, end, flags = timeline.start, timeline.end, timeline.flags
    stacks: dict[int, list[int]] = {}
    parent = column([-1]) * len(timeline)
    for row in order:
        if flags[row] & ASYNC:
            continue
        stack = stacks.setdefault(timeline.track[row], [])
        while stack and end[stack[-1]] <= start[row]:
            stack.pop()
        if row >= calls and stack and end[stack[-1]] < end[row]:
            flags[row] |= ASYNC
            continue
        while stack and end[stack[-1]] < end[row]:
            flags[stack.pop()] |= ASYNC
        if stack:
            parent[row] = stack[-1]
        stack.append(row)
    return _past_async(parent, flags, order)


def _past_async(parent: array[int], flags: array[int], order: Iterable[int]) -> array[int]:
    """The parents, where what was put beside the tree has none, and is none."""
    for row in order:
        above = parent[row]
        if above >= 0 and flags[above] & ASYNC:
            parent[row] = parent[above]
    for row, flag in enumerate(flags):
        if flag & ASYNC:
            parent[row] = -1
    return parent


def join(first: Timeline, second: Timeline) -> Timeline:
    """One timeline of two runs; what ran on the same thread in both stays on one track.

    >>> one = weave(Timeline(tracks=(Track("main"),)), [Span(Label("f"), 0, 1, 2)])
    >>> two = weave(Timeline(tracks=(Track("main"),)), [Span(Label("f"), 0, 3, 4)])
    >>> both = join(one, two)
    >>> list(both.start), list(both.label), len(both.tracks)
    ([1, 3], [0, 0], 1)
    """
    labels = {label: number for number, label in enumerate(first.labels)}
    to_label = [labels.setdefault(label, len(labels)) for label in second.labels]
    tracks, to_track = _joined_tracks(first.tracks, second.tracks)
    moved = _moved(second, len(first), to_label, to_track)
    joined = replace(
        first,
        labels=tuple(labels),
        tracks=tracks,
        label=column(first.label) + moved.label,
        parent=column(first.parent) + moved.parent,
        start=column(first.start) + column(second.start),
        end=column(first.end) + column(second.end),
        track=column(first.track) + moved.track,
        flags=column(first.flags) + column(second.flags),
        folded={**first.folded, **moved.folded},
        tasks={**first.tasks, **moved.tasks},
        details={**first.details, **moved.details},
        marks=(*first.marks, *moved.marks),
        memory=(*first.memory, *moved.memory),
        flows=(*first.flows, *moved.flows),
        windows=first.windows + second.windows,
        truncated=first.truncated or second.truncated,
        commands=first.commands + second.commands,
    )
    return in_start_order(joined)


def join_all(timelines: Iterable[Timeline]) -> Timeline:
    """One timeline of any number of runs.

    >>> len(join_all([]))
    0
    """
    parts = [*timelines] or [Timeline()]
    while len(parts) > 1:  # in pairs: each join copies both
        parts = [reduce(join, parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return parts[0]


def _moved(one: Timeline, rows: int, to_label: list[int], to_track: list[int]) -> Timeline:
    """The same with ``rows`` before it, and other numbers of labels and tracks."""
    details = {}
    for row, detail in one.details.items():
        at = detail.end_track
        details[rows + row] = detail if at is None else replace(detail, end_track=to_track[at])
    return replace(
        one,
        label=column(to_label[label] for label in one.label),
        parent=column(-1 if row < 0 else rows + row for row in one.parent),
        track=column(to_track[track] for track in one.track),
        folded={rows + row: folded for row, folded in one.folded.items()},
        tasks={rows + row: task for row, task in one.tasks.items()},
        details=details,
        marks=tuple(replace(mark, track=to_track[mark.track]) for mark in one.marks),
        memory=tuple(replace(sample, track=to_track[sample.track]) for sample in one.memory),
        flows=tuple(
            replace(flow, from_track=to_track[flow.from_track], to_track=to_track[flow.to_track])
            for flow in one.flows
        ),
    )


def _joined_tracks(
    first: tuple[Track, ...], second: tuple[Track, ...]
) -> tuple[tuple[Track, ...], list[int]]:
    """All tracks, and where each of ``second`` went. Greenlets of one thread look alike."""
    free: dict[Track, list[int]] = {}
    for number, track in enumerate(first):
        free.setdefault(track, []).append(number)
    tracks, to_track = list(first), []
    for track in second:
        same = free.get(track)
        to_track.append(same.pop(0) if same else len(tracks))
        if to_track[-1] == len(tracks):
            tracks.append(track)
    return tuple(tracks), to_track


def in_start_order(timeline: Timeline) -> Timeline:
    """The timeline with its rows sorted by start; on one track they must be so already.

    >>> rows = map(column, ([-1, -1], [7, 5], [8, 9], [0, 0]))
    >>> timeline = Timeline(*rows, label=column([0, 0]), track=column([0, 1]))
    >>> list(in_start_order(timeline).track)
    [1, 0]
    """
    start = timeline.start
    if all(one <= other for one, other in pairwise(start)):
        return timeline
    order = sorted(range(len(start)), key=start.__getitem__)
    return reordered(timeline, order)


def of_thread(timeline: Timeline, ident: int) -> Timeline:
    """The events of one thread of this process, and of its greenlets.

    >>> tracks = Track("main", 1), Track("worker", 2)
    >>> both = weave(Timeline(tracks=tracks), [Span(Label(n), n == "g", 0, 1) for n in "fg"])
    >>> list(of_thread(both, 1).label)
    [0]
    """
    keep = [track.ident == ident and not track.node_id for track in timeline.tracks]
    order = [row for row, track in enumerate(timeline.track) if keep[track]]
    kept = reordered(timeline, order)
    return replace(
        kept,
        marks=tuple(mark for mark in kept.marks if keep[mark.track]),
        memory=tuple(sample for sample in kept.memory if keep[sample.track]),
        flows=tuple(one for one in kept.flows if keep[one.from_track] and keep[one.to_track]),
    )
