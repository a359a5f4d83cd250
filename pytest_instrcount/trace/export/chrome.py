"""The JSON of Chrome's trace viewer and of Perfetto.

Perfetto's trace processor drops a slice that partially overlaps another one of its track, and one
that lies more than 512 deep. So ranges that overlap are asynchronous pairs with an id, and of deep
recursion every 500 levels get a track. It reads microseconds as a float, times 1000, cut off: where
that would lose a nanosecond, a fourth decimal is written.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from pytest_instrcount.trace.columns import RESUMED, Flag
from pytest_instrcount.trace.export.bounds import Bounds
from pytest_instrcount.trace.timeline import ASYNC, Flow, Timeline, printable

_LEVELS = 500
#: Above 46 days a double of microseconds has no nanoseconds.
_PERIOD = 4 * 10**15
_ERROR = int(Flag.ERROR)
_UNFINISHED = int(Flag.UNFINISHED | Flag.OPEN)
_BEFORE = int(Flag.START_FRAME)


def chrome_chunks(timeline: Timeline, bounds: Bounds) -> Iterator[str]:
    """The file in pieces, slices in order of start.

    Raises InstrcountError as `Bounds.depths` does, before the first piece.
    """
    tracks = timeline.by_task()
    return _Chrome(tracks, bounds.depths(tracks)).chunks()


def microseconds(ns: int) -> str:
    """Nanoseconds as microseconds that Perfetto reads back exactly.

    >>> microseconds(1500), microseconds(1001)
    ('1.500', '1.0011')
    """
    text = f"{ns // 1000}.{ns % 1000:03d}"
    return text if int(ns / 1000 * 1000.0) == ns else text + "1"


class _Chrome:
    def __init__(self, timeline: Timeline, depths: array[int]) -> None:
        self.timeline, self.depths, self.origin = timeline, depths, timeline.origin
        self.commands = dict(timeline.commands)
        if timeline.epoch_ns:
            # the clock of all processes since the machine started, so that their files can be joined
            self.origin -= self.origin % _PERIOD
        #: (track, depth // _LEVELS) -> tid; 0 means the idle thread to Perfetto
        self.tids = {(number, 0): number + 1 for number in range(len(timeline.tracks))}

    def chunks(self) -> Iterator[str]:
        epoch = self.timeline.epoch_ns
        base = f'"baseTimeNanoseconds":{epoch + self.origin},' if epoch else ""
        yield f'{{"displayTimeUnit":"ns",{base}"traceEvents":[\n'
        first, *others = sorted({track.node_id for track in self.timeline.tracks} or {0})
        # a first event, so that all others can begin with a comma
        yield self.process(first)
        yield from self.slices()
        yield from self.points()
        for number, flow in enumerate(self.timeline.flows):
            yield from self.flow(number, flow)
        yield from (f",\n{self.process(node)}" for node in others)
        yield from self.names()
        extra = {"truncated": self.timeline.truncated, "recorder": "pytest-instrcount"}
        yield f'\n],"otherData":{json.dumps(extra)}}}\n'

    def place(self, track: int, depth: int = 0) -> str:
        """``pid`` and ``tid`` of a track at a depth."""
        tid = self.tids.setdefault((track, depth // _LEVELS), len(self.tids) + 1)
        return f'"pid":{self.pid(self.timeline.tracks[track].node_id)},"tid":{tid}'

    def pid(self, node: int) -> int:
        """The process that recorded has its own number; of others it may not be known."""
        own = self.timeline.pid or 1
        if node in self.commands:
            return node
        return own if not node else (self.timeline.pid << 8) + node + 1

    def time(self, ns: int) -> str:
        return f'"ts":{microseconds(ns - self.origin)}'

    def slices(self) -> Iterator[str]:
        timeline, depths, details = self.timeline, self.depths, self.timeline.details
        heads = [
            f'"cat":"{label.kind}","name":{json.dumps(label.name)}' for label in timeline.labels
        ]
        for row, depth in enumerate(depths):
            if depth < 0:
                continue
            head, flags, track = (
                heads[timeline.label[row]],
                timeline.flags[row],
                timeline.track[row],
            )
            start, end = timeline.start[row], timeline.end[row]
            args = self.args(row) if flags or row in details else ""
            place = self.place(track, depth)
            if not flags & ASYNC:
                length = microseconds(end - start)
                yield f',\n{{"ph":"X",{head},{place},{self.time(start)},"dur":{length}{args}}}'
                continue
            detail = details.get(row)
            end_track = track if detail is None or detail.end_track is None else detail.end_track
            pair = f'{head},"id":"0x{row:x}"'
            yield f',\n{{"ph":"b",{pair},{place},{self.time(start)}{args}}}'
            yield f',\n{{"ph":"e",{pair},{self.place(end_track)},{self.time(end)}}}'

    def args(self, row: int) -> str:
        timeline = self.timeline
        flags, detail = timeline.flags[row], timeline.details.get(row)
        args: dict[str, object] = {}
        for word, bits in (
            ("raised", _ERROR),
            ("resumed", RESUMED),
            ("unfinished", _UNFINISHED),
            ("began before", _BEFORE),
        ):
            if flags & bits:
                args[word] = True
        if detail is not None:
            found = {
                "args": detail.args,
                "module": detail.module,
                "input shapes": str(detail.input_shapes) if detail.input_shapes else "",
            }
            args.update((word, value) for word, value in found.items() if value)
            if detail.memory is not None:
                args["bytes"] = detail.memory
        return f',"args":{json.dumps(args)}' if args else ""

    def points(self) -> Iterator[str]:
        """Marks and memory."""
        for mark in self.timeline.marks:
            head = f'"ph":"i","s":"t","cat":"mark","name":{json.dumps(mark.name)}'
            yield f",\n{{{head},{self.place(mark.track)},{self.time(mark.at_ns)}}}"
        for sample in self.timeline.memory:
            head = '"ph":"C","name":"memory"'
            value = f'"args":{{"bytes":{sample.in_use}}}'
            yield f",\n{{{head},{self.place(sample.track)},{self.time(sample.at_ns)},{value}}}"

    def flow(self, number: int, flow: Flow) -> Iterator[str]:
        """An arrow between two slices; none where one of them is missing: Perfetto needs both."""
        came = self.open_at(flow.from_track, flow.from_ns)
        went = self.open_at(flow.to_track, max(flow.from_ns, flow.to_ns), or_next=True)
        if came is None or went is None:
            return
        head = f'"cat":"start","name":{json.dumps(flow.name)},"id":{number + 1}'
        place, end_place = (
            self.place(self.timeline.track[row], self.depths[row]) for row in (came, went)
        )
        at = max(flow.from_ns, flow.to_ns, self.timeline.start[went])
        yield f',\n{{"ph":"s",{head},{place},{self.time(flow.from_ns)}}}'
        yield f',\n{{"ph":"f","bp":"e",{head},{end_place},{self.time(at)}}}'

    def open_at(self, track: int, ns: int, *, or_next: bool = False) -> int | None:
        """The innermost slice of the track at a time; else the first one after it, if asked for."""
        timeline, rows = self.timeline, self.rows.get(track, [])
        at = bisect_right(rows, ns, key=timeline.start.__getitem__)
        row = rows[at - 1] if at else -1
        while row >= 0 and timeline.end[row] <= ns:
            row = timeline.parent[row]
        if row >= 0:
            return row
        if or_next and at < len(rows) and timeline.end[rows[at]] > timeline.start[rows[at]]:
            return rows[at]
        return None

    @cached_property
    def rows(self) -> dict[int, list[int]]:
        """The slices of each track that stand in its tree."""
        rows: dict[int, list[int]] = {}
        for row, depth in enumerate(self.depths):
            if depth >= 0 and not self.timeline.flags[row] & ASYNC:
                rows.setdefault(self.timeline.track[row], []).append(row)
        return rows

    def process(self, node: int) -> str:
        """A metadata event: the name of a process in the viewer."""
        known = self.commands.get(node, f"python, node {node}" if node else "python")
        name = json.dumps(printable(known))
        return f'{{"ph":"M","pid":{self.pid(node)},"name":"process_name","args":{{"name":{name}}}}}'

    def names(self) -> Iterator[str]:
        """Metadata events: names and order of tracks in the viewer."""
        tracks = self.timeline.tracks
        order = {key: at for at, key in enumerate(sorted(self.tids))}
        for (number, block), tid in self.tids.items():
            track = tracks[number]
            deep = f" ({block * _LEVELS} calls deep)" if block else ""
            place = f'"pid":{self.pid(track.node_id)},"tid":{tid}'
            name, at = json.dumps(track.name + deep), order[number, block]
            yield f',\n{{"ph":"M",{place},"name":"thread_name","args":{{"name":{name}}}}}'
            yield f',\n{{"ph":"M",{place},"name":"thread_sort_index","args":{{"sort_index":{at}}}}}'
