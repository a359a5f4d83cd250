"""The file format of speedscope.app: an evented profile per thread, always balanced."""

from __future__ import annotations

import heapq
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping

from pytest_instrcount.trace.export.bounds import Bounds
from pytest_instrcount.trace.timeline import ASYNC, Label, Timeline, column

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_chunks(timeline: Timeline, bounds: Bounds) -> Iterator[str]:
    """The file in pieces. Ranges that overlap others stand in profiles of their own.

    Raises InstrcountError as `Bounds.depths` does, before the first piece.
    """
    tracks = timeline.by_task()
    return _chunks(tracks, bounds.depths(tracks))


def file_start(name: str, frames: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """All that comes before the first profile; after the last one comes ``]}``."""
    yield f'{{"$schema":"{_SCHEMA}","exporter":"pytest-instrcount","name":{json.dumps(name)},'
    yield '"activeProfileIndex":0,"shared":{"frames":['
    for number, frame in enumerate(frames):
        yield ("," if number else "") + json.dumps(frame)
    yield ']},"profiles":['


def profile_start(name: str, unit: str, first: int, last: int) -> str:
    """The start of an evented profile, up to its events; after the last one comes ``]}``."""
    return (
        f'{{"type":"evented","name":{json.dumps(name)},"unit":"{unit}",'
        f'"startValue":{first},"endValue":{last},"events":['
    )


def _chunks(timeline: Timeline, depths: array[int]) -> Iterator[str]:
    yield from file_start("pytest-instrcount", map(_frame, timeline.labels))
    stacked, beside = _sorted_rows(timeline, depths)
    profiles = [
        (timeline.tracks[track].name, rows) for track, rows in sorted(stacked.items()) if rows
    ]
    profiles += [
        (f"overlapping ranges {at}", lane) for at, lane in enumerate(_lanes(timeline, beside), 1)
    ]
    origin = timeline.origin
    for number, (name, rows) in enumerate(profiles):
        yield ("," if number else "") + _head(timeline, name, rows)
        separator = ""
        for kind, frame_of, at in _events(timeline, rows):
            yield f'{separator}{{"type":"{kind}","frame":{frame_of},"at":{at - origin}}}'
            separator = ","
        yield "]}"
    yield "]}\n"


def _frame(label: Label) -> dict[str, object]:
    place = {"file": label.file, "line": label.line} if label.file else {}
    return {"name": label.name, **place}


def _sorted_rows(
    timeline: Timeline, depths: array[int]
) -> tuple[dict[int, array[int]], array[int]]:
    """The rows of each track, and those beside the tree."""
    stacked: dict[int, array[int]] = {}
    beside = column()
    for row, depth in enumerate(depths):
        if depth < 0:
            continue
        if timeline.flags[row] & ASYNC:
            beside.append(row)
        else:
            stacked.setdefault(timeline.track[row], column()).append(row)
    return stacked, beside


def _lanes(timeline: Timeline, rows: array[int]) -> list[array[int]]:
    """As few lists as there can be in which nothing overlaps."""
    lanes: list[array[int]] = []
    free: list[tuple[int, int]] = []
    for row in rows:
        if free and free[0][0] <= timeline.start[row]:
            _, lane = heapq.heappop(free)
        else:
            lane = len(lanes)
            lanes.append(column())
        lanes[lane].append(row)
        heapq.heappush(free, (timeline.end[row], lane))
    return lanes


def _head(timeline: Timeline, name: str, rows: array[int]) -> str:
    first = timeline.start[rows[0]] - timeline.origin
    last = max(timeline.end[row] for row in rows) - timeline.origin
    return profile_start(name, "nanoseconds", first, last)


def _events(timeline: Timeline, rows: array[int]) -> Iterator[tuple[str, int, int]]:
    """Opened and closed frames: kind, label, time."""
    label, start, end, parent = timeline.label, timeline.start, timeline.end, timeline.parent
    stack: list[int] = []
    for row in rows:
        while stack and stack[-1] != parent[row]:
            closed = stack.pop()
            yield "C", label[closed], end[closed]
        yield "O", label[row], start[row]
        stack.append(row)
    while stack:
        closed = stack.pop()
        yield "C", label[closed], end[closed]
