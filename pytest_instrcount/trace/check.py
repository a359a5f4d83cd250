"""The rules that every timeline keeps, as code: for files that come from outside, and for tests."""

from __future__ import annotations

from pytest_instrcount.trace.timeline import ASYNC, Timeline

_ALL_FLAGS = 2 * ASYNC - 1


def broken_rules(timeline: Timeline) -> str:
    """The first rule that a timeline breaks, in words; empty if it keeps them all.

    >>> broken_rules(Timeline())
    ''
    """
    size = len(timeline)
    times = timeline.start, timeline.end
    columns = (timeline.parent, *times, timeline.track, timeline.flags, timeline.label)
    if any(len(column) != size for column in columns):
        return "its columns differ in length"
    labels, tracks = len(timeline.labels), len(timeline.tracks)
    last: dict[int, int] = {}
    for row in range(size):
        track, flags = timeline.track[row], timeline.flags[row]
        if not (0 <= timeline.label[row] < labels and 0 <= track < tracks):
            return f"row {row} has a label or a track that is not there"
        if not _follows(timeline, row):
            return f"row {row} ends before it starts, or starts before the row above it"
        if not 0 <= flags <= _ALL_FLAGS:
            return f"row {row} has unknown flags"
        if not flags & ASYNC:
            if not _nests(timeline, row, last.get(track, -1)):
                return f"row {row} does not nest"
            last[track] = row
        elif timeline.parent[row] != -1:
            return f"row {row} overlaps others, and has a parent"
    return _broken_details(timeline, size, tracks) or _broken_extras(timeline, tracks)


def _follows(timeline: Timeline, row: int) -> bool:
    start = timeline.start[row]
    return start <= timeline.end[row] and (row == 0 or timeline.start[row - 1] <= start)


def _nests(timeline: Timeline, row: int, above: int) -> bool:
    """True if the parent is open, on this track, and encloses the row; ``above`` was the last."""
    parent = timeline.parent[row]
    if not -1 <= parent < row:
        return False
    while above != parent:
        if above == -1 or timeline.end[above] > timeline.start[row]:
            return False
        above = timeline.parent[above]
    return parent == -1 or timeline.end[row] <= timeline.end[parent]


def _broken_details(timeline: Timeline, size: int, tracks: int) -> str:
    for row in (*timeline.details, *timeline.folded):
        if not 0 <= row < size:
            return f"there is no row {row} for its details"
    for row, detail in timeline.details.items():
        if detail.end_track is not None and not 0 <= detail.end_track < tracks:
            return f"row {row} ended on a track that is not there"
    return ""


def _broken_extras(timeline: Timeline, tracks: int) -> str:
    on = [mark.track for mark in timeline.marks] + [sample.track for sample in timeline.memory]
    on += [track for flow in timeline.flows for track in (flow.from_track, flow.to_track)]
    if any(not 0 <= track < tracks for track in on):
        return "a mark, a memory sample or a flow has a track that is not there"
    if any(end < start for start, end in timeline.windows):
        return "a recording ends before it starts"
    return ""
