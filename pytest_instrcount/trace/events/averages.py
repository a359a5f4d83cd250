"""Events summed up: a row per function or range."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Set

from pytest_instrcount.trace.events.function_event import FunctionEventAvg
from pytest_instrcount.trace.events.recording import Recording
from pytest_instrcount.trace.export.bounds import not_recorded
from pytest_instrcount.trace.sums import Stacks
from pytest_instrcount.trace.timeline import ASYNC, Detail, Timeline, column


def average(
    recording: Recording, wanted: Set[int], *, by_shapes: bool, stack_depth: int
) -> Iterator[FunctionEventAvg]:
    """Sums of the wanted events of each function or range, of those that tables list.

    Those with other shapes of arguments, or other callers in the first ``stack_depth`` frames, are
    summed up apart if asked for. Raises InstrcountError (slug "profile-not-recorded") if the
    recording has not what that needs.
    """
    timeline, self_ns, self_memory = recording.timeline, recording.self_ns, recording.self_memory
    recorded, details = timeline.recorded, timeline.details
    if by_shapes and not recorded.shapes:
        raise not_recorded("the shapes of arguments were", "record_shapes=True")
    if stack_depth > 0 and not recorded.stack:
        raise not_recorded("stacks were", "with_stack=True")
    groups: defaultdict[Hashable, array[int]] = defaultdict(column)
    # per row whether no other row of its group encloses it
    outermost = bytearray(len(timeline))
    group, stacks = _group(timeline, by_shapes=by_shapes, stack_depth=stack_depth), Stacks()
    listing = recording.listing
    # per row the nearest wanted one at or above it
    nearest = column([-1]) * len(timeline)
    for row, parent in enumerate(timeline.parent):
        above = nearest[parent] if parent >= 0 else -1
        if row not in wanted or not listing.listed[row]:
            nearest[row] = above
            continue
        nearest[row] = row
        rows = groups[group(row)]
        rows.append(row)
        outermost[row] = bool(timeline.flags[row] & ASYNC) or stacks.enter(
            timeline.track[row], row, above, rows[0]
        )

    def sum_of(rows: array[int]) -> FunctionEventAvg:
        first, outer = rows[0], [row for row in rows if outermost[row]]
        label, detail = timeline.labels[timeline.label[first]], details.get(first, Detail())
        return FunctionEventAvg(
            label.name,
            label.kind,
            count=sum(map(timeline.calls, rows)),
            resumes=sum(map(timeline.resumes, rows)),
            errors=sum(map(timeline.errors, rows)),
            total_ns=sum(map(timeline.ns, outer)),
            self_ns=sum(map(self_ns.__getitem__, rows)),
            cpu_memory_usage=sum(details[row].memory or 0 for row in outer if row in self_memory),
            self_cpu_memory_usage=sum(self_memory.get(row, 0) for row in rows),
            node_id=timeline.tracks[timeline.track[first]].node_id,
            input_shapes=detail.input_shapes if by_shapes else (),
            stack=timeline.stack(first, max(1, stack_depth)) if recorded.stack else (),
            module=detail.module if recorded.modules else "",
            scope=detail.scope,
            is_async=all(timeline.flags[row] & ASYNC for row in rows),
            top_level=any(listing.top[row] for row in rows),
        )

    return map(sum_of, groups.values())


def _group(timeline: Timeline, *, by_shapes: bool, stack_depth: int) -> Callable[[int], Hashable]:
    """The values that rows of one average share."""
    nodes = [track.node_id for track in timeline.tracks]
    one_node = len(set(nodes)) <= 1
    if one_node and not by_shapes and stack_depth <= 0:
        return timeline.label.__getitem__

    def key(row: int) -> Hashable:
        return (
            timeline.label[row],
            nodes[timeline.track[row]],
            timeline.details.get(row, Detail()).input_shapes if by_shapes else (),
            timeline.stack(row, stack_depth),
        )

    return key
