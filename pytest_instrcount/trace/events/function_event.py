"""One event as users see it: a view of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pytest_instrcount.trace.columns import Flag
from pytest_instrcount.trace.events.recording import Recording
from pytest_instrcount.trace.events.torch_names import TorchNames
from pytest_instrcount.trace.timeline import ASYNC, Detail, Label

_NO_DETAIL = Detail()
_UNFINISHED = int(Flag.UNFINISHED | Flag.OPEN)


class Interval(NamedTuple):
    """Start and end of an event, in microseconds since recording began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Length in microseconds.

        >>> Interval(1.5, 4.0).elapsed_us()
        2.5
        """
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class FunctionEvent(TorchNames):
    """One call of a function, one stretch of a generator, or one range; a view, made on demand.

    Times whose names say no unit are in microseconds; they are read from the wall clock.

    >>> from pytest_instrcount.trace.events.event_list import EventList
    >>> from pytest_instrcount.trace.weave import Span, Timeline, Track, weave
    >>> timeline = Timeline(tracks=(Track("MainThread"),))
    >>> spans = [Span(Label("outer"), 0, 0, 9_000), Span(Label("inner"), 0, 1_000, 3_000)]
    >>> event = EventList(weave(timeline, spans))[0]
    >>> event.name, event.cpu_time_total, event.self_cpu_time_total
    ('outer', 9.0, 7.0)
    """

    recording: Recording
    #: number of the event in its list, in order of start
    id: int

    @property
    def label(self) -> Label:
        """The kind of event."""
        timeline = self.recording.timeline
        return timeline.labels[timeline.label[self.id]]

    @property
    def name(self) -> str:
        """``module.qualname`` of the function, or name of the range."""
        return self.label.name

    #: What `EventList.key_averages` groups by.
    key = trace_name = name

    @property
    def kind(self) -> str:
        """One of "python", "c" and "range"."""
        return self.label.kind

    @property
    def start_ns(self) -> int:
        """When it began: ns of ``time.perf_counter_ns()``."""
        return self.recording.timeline.start[self.id]

    @property
    def end_ns(self) -> int:
        """When it ended: ns of ``time.perf_counter_ns()``."""
        return self.recording.timeline.end[self.id]

    @property
    def time_range(self) -> Interval:
        """Start and end since recording began, in microseconds."""
        origin = self.recording.timeline.origin
        return Interval((self.start_ns - origin) / 1000, (self.end_ns - origin) / 1000)

    @property
    def total_ns(self) -> int:
        """From start to end, ns."""
        return self.recording.timeline.ns(self.id)

    @property
    def self_ns(self) -> int:
        """Without its children, ns; 0 for what overlaps others, whose time is theirs."""
        return self.recording.self_ns[self.id]

    @property
    def cpu_time_total(self) -> float:
        """From start to end, microseconds."""
        return self.total_ns / 1000

    #: of one event, its mean is itself
    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Without its children, microseconds."""
        return self.self_ns / 1000

    @property
    def count(self) -> int:
        """1; 0 if it only goes on with a call, or was there when recording began."""
        return self.recording.timeline.calls(self.id)

    @property
    def resumes(self) -> int:
        """1 if a generator or coroutine goes on here, else 0."""
        return self.recording.timeline.resumes(self.id)

    @property
    def errors(self) -> int:
        """1 if it was left by an exception, else 0."""
        return self.recording.timeline.errors(self.id)

    @property
    def thread(self) -> int:
        """Number of the thread, in the order in which they were first seen."""
        return self.recording.timeline.track[self.id]

    # the CPU's resources are its threads
    device_resource_id = thread

    @property
    def end_thread(self) -> int:
        """Number of the thread on which it ended."""
        end = self._detail.end_track
        return self.thread if end is None else end

    @property
    def node_id(self) -> int:
        """Process that it ran in; 0 is the one that recorded."""
        timeline = self.recording.timeline
        return timeline.tracks[timeline.track[self.id]].node_id

    @property
    def is_async(self) -> bool:
        """True if it overlaps others or ended on another thread: it has no parent and no children."""
        return bool(self.recording.timeline.flags[self.id] & ASYNC)

    @property
    def unfinished(self) -> bool:
        """True if its end was not seen."""
        return bool(self.recording.timeline.flags[self.id] & _UNFINISHED)

    @property
    def cpu_parent(self) -> FunctionEvent | None:
        """The parent event, or None."""
        parent = self.recording.timeline.parent[self.id]
        return None if parent < 0 else FunctionEvent(self.recording, parent)

    @property
    def top_level(self) -> bool:
        """True if it ran in no other event that tables list."""
        return bool(self.recording.listing.top[self.id])

    @property
    def listed(self) -> bool:
        """False if tables leave it out: on the stack before the recording, or pytest's own."""
        return bool(self.recording.listing.listed[self.id])

    @property
    def cpu_children(self) -> tuple[FunctionEvent, ...]:
        """The child events, in order of start."""
        return tuple(
            FunctionEvent(self.recording, row) for row in self.recording.children.of(self.id)
        )

    @property
    def stack(self) -> tuple[str, ...]:
        """``file(line): name`` of itself and of what it ran in, outwards; empty without with_stack."""
        timeline = self.recording.timeline
        return timeline.stack(self.id) if timeline.recorded.stack else ()

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of its arguments, one tuple each; empty without record_shapes."""
        return self._detail.input_shapes

    @property
    def module(self) -> str:
        """The recognised object that it was a call of, such as "Linear #2"; or empty."""
        return self._detail.module

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes allocated within it and not freed; 0 where not measured: only ranges are."""
        return self._detail.memory or 0

    @property
    def self_cpu_memory_usage(self) -> int:
        """The same without the ranges within it."""
        return self.recording.self_memory.get(self.id, 0)

    @property
    def sequence_nr(self) -> int:
        """Number that ties it to another event, or -1."""
        return self._detail.sequence_nr

    @property
    def scope(self) -> int:
        """The source of the range: 0 a function, 7 the user."""
        return self._detail.scope

    @property
    def _detail(self) -> Detail:
        return self.recording.timeline.details.get(self.id, _NO_DETAIL)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} thread={self.thread} "
            f"time={self.cpu_time_total:.3f}us self={self.self_cpu_time_total:.3f}us>"
        )


@dataclass(frozen=True, slots=True)
class FunctionEventAvg(TorchNames):
    """All events of one key; times whose names say no unit are in microseconds.

    >>> average = FunctionEventAvg("json.loads", count=4, total_ns=10_000, self_ns=2_000)
    >>> average.cpu_time_total, average.cpu_time, average.self_cpu_time_total
    (10.0, 2.5, 2.0)
    """

    key: str
    kind: str = "python"
    #: calls; what goes on with one, or began before the recording, adds time but no call
    count: int = 0
    resumes: int = 0
    #: how many calls and resumes were left by an exception
    errors: int = 0
    #: from start to end, ns; where a function calls itself, only the outermost call adds
    total_ns: int = 0
    #: without what ran within, ns
    self_ns: int = 0
    #: bytes allocated and not freed in the outermost ranges of this name
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    node_id: int = 0
    #: of the grouping by shapes; else empty
    input_shapes: tuple[tuple[int, ...], ...] = ()
    #: innermost first: of the grouping by stack, else where the function is defined
    stack: tuple[str, ...] = ()
    module: str = ""
    #: of the first
    scope: int = 0
    #: whether all stood beside the tree
    is_async: bool = False
    #: whether one of them ran in no other event
    top_level: bool = True
    listed: ClassVar = True

    @property
    def cpu_time_total(self) -> float:
        """From start to end, microseconds."""
        return self.total_ns / 1000

    @property
    def self_cpu_time_total(self) -> float:
        """Without what ran within, microseconds."""
        return self.self_ns / 1000

    @property
    def cpu_time(self) -> float:
        """Mean of a call, microseconds; 0.0 where no call was counted."""
        return self.cpu_time_total / self.count if self.count else 0.0
