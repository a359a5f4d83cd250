"""Events summed up: a row per function or range."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.events.function_event import FunctionEventAvg
from pytest_instrcount.trace.events.table import Tabled
from pytest_instrcount.trace.sums import Stacks
from pytest_instrcount.trace.timeline import ASYNC, Recorded, Timeline


class AverageList(Sequence[FunctionEventAvg], Tabled):
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

    def __init__(
        self,
        averages: Sequence[FunctionEventAvg] = (),
        recorded: Recorded = Recorded(),  # noqa: B008 (frozen)
        total: FunctionEventAvg | None = None,
    ) -> None:
        self._averages = tuple(averages)
        self._recorded = recorded
        self._total = total

    def __len__(self) -> int:
        return len(self._averages)

    @overload
    def __getitem__(self, index: int) -> FunctionEventAvg: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[FunctionEventAvg, ...]: ...
    def __getitem__(self, index: int | slice) -> FunctionEventAvg | tuple[FunctionEventAvg, ...]:
        return self._averages[index]

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
        if self._total is not None:
            return self._total
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


@dataclass(frozen=True, slots=True)
class Grouping:
    """The key of a row: events of one function with different keys are different rows."""

    by_shapes: bool = False
    #: how many frames of the stack, the function's own first; 0: none
    stack_depth: int = 0


@dataclass(slots=True)
class _Sum:
    """A row in the making."""

    first: int
    stack: tuple[str, ...]
    count: int = 0
    resumes: int = 0
    errors: int = 0
    total_ns: int = 0
    self_ns: int = 0
    memory: int = 0
    self_memory: int = 0
    is_async: bool = True
    top_level: bool = False


def average(
    timeline: Timeline,
    self_ns: array[int],
    self_memory: Mapping[int, int],
    grouping: Grouping = Grouping(),
) -> AverageList:
    """Sums of the events of each key.

    Raises InstrcountError (slug "profile-not-recorded") if the grouping needs what is not there.

    >>> average(Timeline(), array("q"), {})
    <AverageList of 0 keys>
    """
    _check(grouping, timeline.recorded)
    keys: dict[Hashable, int] = {}
    sums: list[_Sum] = []
    stacks = Stacks()
    group, parents, details = _group(timeline, grouping), timeline.parent, timeline.details
    for row, parent in enumerate(parents):
        key = group(row)
        number = keys.setdefault(key, len(sums))
        if number == len(sums):
            stack = _stack(timeline, row, max(1, grouping.stack_depth))
            sums.append(_Sum(row, stack if timeline.recorded.stack else ()))
        sum_ = sums[number]
        outermost = True
        if timeline.flags[row] & ASYNC == 0:
            sum_.is_async = False
            outermost = stacks.enter(timeline.track[row], row, parent, number)
        sum_.count += timeline.calls(row)
        sum_.resumes += timeline.resumes(row)
        sum_.errors += timeline.errors(row)
        sum_.self_ns += self_ns[row]
        sum_.top_level |= parent < 0
        if outermost:
            sum_.total_ns += timeline.ns(row)
        if row in self_memory:
            sum_.self_memory += self_memory[row]
            if outermost:
                sum_.memory += details[row].memory or 0
    return AverageList([_made(timeline, sum_, grouping) for sum_ in sums], timeline.recorded)


def _check(grouping: Grouping, recorded: Recorded) -> None:
    if grouping.by_shapes and not recorded.shapes:
        raise not_recorded("the shapes of arguments", "record_shapes=True")
    if grouping.stack_depth > 0 and not recorded.stack:
        raise not_recorded("stacks", "with_stack=True")


def not_recorded(what: str, option: str) -> InstrcountError:
    """The error for a question about what was not recorded.

    >>> raise not_recorded("stacks", "with_stack=True")
    Traceback (most recent call last):
    pytest_instrcount.errors.InstrcountError: instrcount: stacks were not recorded [profile-not-recorded]
      fix: profile(with_stack=True)
    """
    return InstrcountError(
        "profile-not-recorded", f"{what} were not recorded", f"profile({option})"
    )


def _group(timeline: Timeline, grouping: Grouping) -> Callable[[int], Hashable]:
    """The values that rows of one average share."""
    nodes = [track.node_id for track in timeline.tracks]
    one_node = len(set(nodes)) <= 1
    if one_node and not grouping.by_shapes and grouping.stack_depth <= 0:
        return timeline.label.__getitem__

    def key(row: int) -> Hashable:
        detail = timeline.details.get(row)
        return (
            timeline.label[row],
            nodes[timeline.track[row]],
            detail.input_shapes if grouping.by_shapes and detail is not None else (),
            _stack(timeline, row, grouping.stack_depth),
        )

    return key


def _stack(timeline: Timeline, row: int, depth: int) -> tuple[str, ...]:
    """The first ``depth`` frames, innermost first."""
    stack: list[str] = []
    while row >= 0 and len(stack) < depth:
        stack.append(timeline.labels[timeline.label[row]].location)
        row = timeline.parent[row]
    return tuple(stack)


def _made(timeline: Timeline, sum_: _Sum, grouping: Grouping) -> FunctionEventAvg:
    row = sum_.first
    label, detail = timeline.labels[timeline.label[row]], timeline.details.get(row)
    return FunctionEventAvg(
        label.name,
        label.kind,
        sum_.count,
        sum_.resumes,
        sum_.errors,
        sum_.total_ns,
        sum_.self_ns,
        sum_.memory,
        sum_.self_memory,
        timeline.tracks[timeline.track[row]].node_id,
        detail.input_shapes if grouping.by_shapes and detail is not None else (),
        sum_.stack,
        detail.module if detail is not None and timeline.recorded.modules else "",
        sum_.is_async,
        sum_.top_level,
    )
