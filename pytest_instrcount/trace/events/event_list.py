"""All events of a recording, as users see them."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import overload

from pytest_instrcount.trace.events.averages import AverageList, average
from pytest_instrcount.trace.events.function_event import FunctionEvent, FunctionEventAvg
from pytest_instrcount.trace.events.table import Tabled
from pytest_instrcount.trace.export.plain import read_timeline
from pytest_instrcount.trace.export.runner import Exporter
from pytest_instrcount.trace.sums import Children, Listing, list_rows, self_memory, self_times
from pytest_instrcount.trace.timeline import Recorded, Timeline


class EventList(Sequence[FunctionEvent], Exporter, Tabled):
    """All events of a recording, in order of start: to sum up, show and export.

    >>> len(EventList()), EventList().self_cpu_time_total
    (0, 0.0)
    """

    def __init__(self, timeline: Timeline | None = None) -> None:
        self._timeline = Timeline() if timeline is None else timeline

    @property
    def timeline(self) -> Timeline:
        """The rows that the events are views of."""
        return self._timeline

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> EventList:
        """The events of a file that `export_json` wrote.

        Raises InstrcountError: slug "trace-unreadable", "trace-damaged" or "trace-newer".
        """
        return cls(read_timeline(Path(path)))

    def __len__(self) -> int:
        return len(self.timeline)

    @overload
    def __getitem__(self, index: int) -> FunctionEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[FunctionEvent]: ...
    def __getitem__(self, index: int | slice) -> FunctionEvent | list[FunctionEvent]:
        rows = range(len(self))[index]
        if isinstance(rows, range):
            return [FunctionEvent(self, row) for row in rows]
        return FunctionEvent(self, rows)

    def __iter__(self) -> Iterator[FunctionEvent]:
        return (FunctionEvent(self, row) for row in range(len(self)))

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<EventList of {len(self):,} events>"

    @property
    def self_cpu_time_total(self) -> float:
        """Time of all events, each nanosecond once, in microseconds."""
        return self._self_total_ns / 1000

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> AverageList:
        """Sums per function or range; also per shapes of arguments, or per first n of the stack.

        Raises InstrcountError (slug "profile-not-recorded") if shapes or stacks were not recorded.

        >>> EventList().key_averages().table()
        'no events were recorded'
        """
        return average(self, by_shapes=group_by_input_shape, stack_depth=group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events.

        >>> EventList().total_average().count
        0
        """
        return self.key_averages().total_average()

    def _tabled(self) -> tuple[list[FunctionEvent], Recorded, int]:
        rows = [event for event in self if self.listing.listed[event.id]]
        return rows, self.timeline.recorded, self._self_total_ns

    @property
    def _self_total_ns(self) -> int:
        return sum(compress(self.self_ns, self.listing.listed))

    @cached_property
    def listing(self) -> Listing:
        """The events that tables list, and whose time is in totals."""
        return list_rows(self.timeline)

    @cached_property
    def self_ns(self) -> array[int]:
        """Per event its time without its children, ns."""
        return self_times(self.timeline)

    @cached_property
    def self_memory(self) -> dict[int, int]:
        """Per event with a measured memory, its bytes without the ranges within."""
        return self_memory(self.timeline)

    @cached_property
    def children(self) -> Children:
        """The children of all events."""
        return Children(self.timeline.parent)
