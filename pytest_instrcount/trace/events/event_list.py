"""Events of a recording, or their sums, as a list."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.columns import reordered
from pytest_instrcount.trace.events.averages import average
from pytest_instrcount.trace.events.function_event import FunctionEvent, FunctionEventAvg
from pytest_instrcount.trace.events.recording import Recording
from pytest_instrcount.trace.events.table import Row, Tabled
from pytest_instrcount.trace.export.plain import read_timeline
from pytest_instrcount.trace.export.runner import Exporter
from pytest_instrcount.trace.timeline import Recorded, Timeline
from pytest_instrcount.trace.weave import join_all

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R = TypeVar("R", bound=Row, default=FunctionEvent)
else:  # typing has the default from 3.13 on
    from typing import TypeVar

    R = TypeVar("R")


class EventList(list[R], Exporter, Tabled):
    """A list of events, in order of start, or of their sums: to sum up, show and export.

    It is made of a `Timeline`, or of events or sums that were picked. What is shown, summed up and
    exported is what is in the list. With ``profile_memory`` a table of picked sums shows their bytes;
    ``use_device`` and ``with_flops`` are torch's and do nothing.

    >>> len(EventList()), EventList().self_cpu_time_total
    (0, 0.0)
    >>> averages = EventList([FunctionEventAvg("f", count=2), FunctionEventAvg("g", count=1)])
    >>> averages.total_average().count
    3
    >>> print(EventList([FunctionEventAvg("f", count=1, total_ns=500, self_ns=500)]).table())
    Name      Self CPU %    Self CPU    CPU total %    CPU total    CPU time avg    # of Calls
    ------  ------------  ----------  -------------  -----------  --------------  ------------
    f            100.00%     0.500us        100.00%      0.500us         0.500us             1
    Self CPU time total: 0.500us
    """

    def __init__(
        self,
        events: Timeline | Iterable[R] = (),
        *,
        use_device: object = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        recorded: Recorded | None = None,
    ) -> None:
        self._recording = Recording(events if isinstance(events, Timeline) else Timeline())
        self._memory = profile_memory
        #: what tables have columns for; None: what the rows have
        self._recorded = events.recorded if isinstance(events, Timeline) else recorded
        super().__init__(
            map(self._event, range(len(events))) if isinstance(events, Timeline) else events
        )

    def _event(self, row: int) -> R:
        return FunctionEvent(self._recording, row)  # type: ignore[return-value] # R is that here

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> EventList:
        """The events of a file that `export_json` wrote.

        Raises InstrcountError: slug "trace-unreadable", "trace-damaged" or "trace-newer".
        """
        return EventList(read_timeline(Path(path)))

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<EventList of {len(self):,} events>"

    @property
    def timeline(self) -> Timeline:
        """The rows that the events are views of, without those that are not in the list."""
        if any(isinstance(row, FunctionEventAvg) for row in self):
            how = "export the profile, or its function_events"
            raise InstrcountError("profile-empty", "sums have no timeline to export", how)
        return join_all(
            each if len(rows) == len(each) else reordered(each, sorted(rows))
            for each, rows in ((one.timeline, rows) for one, rows in self._parts().items())
        )

    def _parts(self) -> dict[Recording, set[int]]:
        """The events by recording."""
        found: dict[Recording, set[int]] = {}
        for event in self:
            if isinstance(event, FunctionEvent):
                found.setdefault(event.recording, set()).add(event.id)
        return found or {self._recording: set()}

    @property
    def self_cpu_time_total(self) -> float:
        """Time of all events, each nanosecond once, in microseconds."""
        return sum(row.self_ns for row in self._listed()) / 1000

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """Sums per function or range; also per shapes of arguments, or per first n of the stack.

        There are no overloads to group by.

        Raises InstrcountError (slug "profile-not-recorded") if shapes or stacks were not recorded.

        >>> EventList().key_averages().table()
        'no events were recorded'
        """
        parts = self._parts()
        sums = [
            average(one, rows, by_shapes=group_by_input_shapes, stack_depth=group_by_stack_n)
            for one, rows in parts.items()
        ]
        return EventList(chain(*sums), recorded=next(iter(parts)).timeline.recorded)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events; its time is what those without a parent took.

        >>> EventList().total_average().count
        0
        """
        rows, own, memory = self._listed(), "self_ns", "self_cpu_memory_usage"
        fields = ("count", "resumes", "errors", own, own, memory, memory)
        sums = (sum(getattr(row, name) for row in rows) for name in fields)
        return FunctionEventAvg("Total", "total", *sums)

    def _listed(self) -> list[R]:
        return [row for row in self if row.listed]

    def _tabled(self) -> tuple[list[R], Recorded, int]:
        rows, recorded = self._listed(), self._recorded
        if recorded is None:
            names = ("input_shapes", "stack", "module", "cpu_memory_usage")
            shapes, stack, module, memory = (any(getattr(r, name) for r in rows) for name in names)
            recorded = Recorded(shapes, stack, module, self._memory or memory)
        return rows, recorded, sum(row.self_ns for row in rows)
