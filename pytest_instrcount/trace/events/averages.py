"""Events summed up: a row per function or range."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

from pytest_instrcount.trace.events.function_event import FunctionEventAvg, Source
from pytest_instrcount.trace.events.table import Tabled
from pytest_instrcount.trace.export.bounds import not_recorded
from pytest_instrcount.trace.sums import Stacks
from pytest_instrcount.trace.timeline import ASYNC, Detail, Recorded, Timeline, column


class AverageList(tuple[FunctionEventAvg, ...], Tabled):
    """A row per function or range, in order of their first events.

    >>> averages = AverageList([FunctionEventAvg("f", count=2), FunctionEventAvg("g", count=1)])
    >>> averages.total_average().count
    3
    >>> print(AverageList([FunctionEventAvg("f", count=1, total_ns=500, self_ns=500)]).table())
    Name      Self CPU %    Self CPU    CPU total %    CPU total    CPU time avg    # of Calls
    ------  ------------  ----------  -------------  -----------  --------------  ------------
    f            100.00%     0.500us        100.00%      0.500us         0.500us             1
    Self CPU time total: 0.500us
    """

    _recorded: Recorded

    def __new__(
        cls,
        averages: Iterable[FunctionEventAvg] = (),
        recorded: Recorded = Recorded(),  # noqa: B008 (frozen)
    ) -> AverageList:
        made = super().__new__(cls, averages)
        made._recorded = recorded
        return made

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<AverageList of {len(self):,} keys>"

    @property
    def self_cpu_time_total(self) -> float:
        """Time of all events, each nanosecond once, in microseconds."""
        return sum(average.self_ns for average in self) / 1000

    def total_average(self) -> FunctionEventAvg:
        """The sum of all rows; its time is what the events without a parent took."""
        own = sum(average.self_ns for average in self)
        memory = sum(average.self_cpu_memory_usage for average in self)
        return FunctionEventAvg(
            "Total",
            "total",
            sum(average.count for average in self),
            sum(average.resumes for average in self),
            sum(average.errors for average in self),
            own,
            own,
            memory,
            memory,
        )

    def _tabled(self) -> tuple[AverageList, Recorded, int]:
        return self, self._recorded, sum(average.self_ns for average in self)


def average(events: Source, *, by_shapes: bool = False, stack_depth: int = 0) -> AverageList:
    """Sums of the events of each function or range that tables list.

    Those with other shapes of arguments, or other callers in the first ``stack_depth`` frames, are
    summed up apart if asked for. Raises InstrcountError (slug "profile-not-recorded") if the
    recording has not what that needs.
    """
    timeline, self_ns, self_memory = events.timeline, events.self_ns, events.self_memory
    recorded, details = timeline.recorded, timeline.details
    if by_shapes and not recorded.shapes:
        raise not_recorded("the shapes of arguments were", "record_shapes=True")
    if stack_depth > 0 and not recorded.stack:
        raise not_recorded("stacks were", "with_stack=True")
    groups: defaultdict[Hashable, array[int]] = defaultdict(column)
    # per row whether no other row of its group encloses it
    outermost = bytearray(len(timeline))
    group, stacks = _group(timeline, by_shapes=by_shapes, stack_depth=stack_depth), Stacks()
    listing = events.listing
    for row, parent in enumerate(timeline.parent):
        if not listing.listed[row]:
            continue
        rows = groups[group(row)]
        rows.append(row)
        outermost[row] = bool(timeline.flags[row] & ASYNC) or stacks.enter(
            timeline.track[row], row, parent, rows[0]
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
            is_async=all(timeline.flags[row] & ASYNC for row in rows),
            top_level=any(listing.top[row] for row in rows),
        )

    return AverageList(map(sum_of, groups.values()), recorded)


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
