"""``profile``: records what a block calls, and says what took the time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Literal

from pytest_instrcount.errors import InstrcountError, InstrcountWarning
from pytest_instrcount.trace.backends import check_backend
from pytest_instrcount.trace.columns import ReplayStats
from pytest_instrcount.trace.events.build import build_timeline
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.events.function_event import FunctionEvent, FunctionEventAvg
from pytest_instrcount.trace.events.table import Tabled
from pytest_instrcount.trace.export.runner import Exporter
from pytest_instrcount.trace.ranges.session import Session
from pytest_instrcount.trace.ranges.traced_memory import TracedSession
from pytest_instrcount.trace.recognize import Recognizer, with_builtin
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.timeline import Recorded, Timeline
from pytest_instrcount.trace.tracer import Tracer
from pytest_instrcount.trace.weave import join, of_thread

Backend = Literal["auto", "monitoring", "setprofile"]


@dataclass(frozen=True, slots=True)
class ProfileStats:
    """Totals of a profile: events, and their cost, over all its runs."""

    #: how often the block was entered
    runs: int = 0
    #: from start to stop
    window_seconds: float = 0.0
    #: rows of ``function_events``
    events: int = 0
    #: "monitoring" or "setprofile"
    backend: str = ""
    #: exits of calls that were never entered
    unmatched: int = 0
    #: calls whose exit was never seen
    unfinished: int = 0
    #: there were more events than ``max_events``: counts are exact, the timeline is gone
    truncated: bool = False
    #: phases of its own cost: before the start, to switch the tracers on and off (with the replay
    #: of what they recorded), and to build the events
    prepare_seconds: float = 0.0
    start_seconds: float = 0.0
    stop_seconds: float = 0.0
    build_seconds: float = 0.0


class profile(Exporter, Tabled):
    """Records all calls and ranges of a with-block: to sum up, show and export.

    ``record_shapes``: shapes of what `record_function` is given. ``with_stack``: stacks with files
    and lines. ``with_modules``: names of recognised objects: torch's modules and optimizers if torch
    is imported, and those of ``recognizers``. ``profile_memory``: bytes per range,
    by tracemalloc. ``c_calls``: builtin functions, too. ``threads=False``: only the thread that
    enters. ``enabled=False``: nothing. Times are of the wall clock, in microseconds unless their
    names say another unit.

    The arguments after ``recognizers`` are torch's. Nothing is known of devices and FLOPs: a warning
    says so where ``use_cuda``, ``use_device`` or ``with_flops`` ask for them. The others do nothing.

    It can be entered again after its end; the second run's events are appended. Raises
    InstrcountError: slug "profile-reentrant" if entered twice at once, "profile-unfinished" if
    asked for results before the end, "tracer-backend" at once for a backend that is none, and those
    of the tracers.

    >>> def twice(n):
    ...     return n + n
    >>> with profile() as prof:
    ...     _ = [twice(n) for n in range(3)]
    >>> [average.count for average in prof.key_averages() if average.key.endswith(".twice")]
    [3]
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        record_shapes: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        profile_memory: bool = False,
        c_calls: bool = False,
        threads: bool = True,
        backend: Backend = "auto",
        start_frames: int = 128,
        max_events: int = 2_000_000,
        recognizers: tuple[Recognizer, ...] = (),
        use_cuda: bool = False,
        use_device: str | None = None,
        with_flops: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: object = None,
        acc_events: bool = False,
        custom_trace_id_callback: object = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: object = None,
    ) -> None:
        check_backend(backend)
        if use_cuda or use_device or with_flops:
            what = "operators: no FLOPs" if with_flops else "devices: no times of them"
            why = f"instrcount: this profile knows nothing of {what} are recorded"
            warnings.warn(InstrcountWarning(why), stacklevel=2)
        self.enabled = enabled
        self.threads = threads
        self.recorded = Recorded(record_shapes, with_stack, with_modules, profile_memory)
        # by torch's names, too
        self.record_shapes, self.with_stack = record_shapes, with_stack
        self.with_modules, self.profile_memory = with_modules, profile_memory
        self.use_device, self.with_flops = use_device, with_flops
        self._options = TraceOptions(
            mode="tree",
            c_calls=c_calls,
            backend=backend,
            start_frames=start_frames,
            max_events=max_events,
            recognizers=recognizers,
        )
        self._run: _Run | None = None
        self._timeline: Timeline | None = None
        self._events: EventList | None = None
        self._stats = ProfileStats()

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self._run is not None:
            raise InstrcountError(
                "profile-reentrant",
                "this profile runs already",
                "leave its with-block first, or make a profile of its own",
            )
        before, wanted = perf_counter_ns(), self.recorded
        found = with_builtin(self._options.recognizers) if wanted.modules else ()
        tracer = Tracer(replace(self._options, recognizers=found))
        session = (
            TracedSession(lambda: tracer.size, record_shapes=wanted.shapes)
            if wanted.memory
            else Session(record_shapes=wanted.shapes)
        )
        run = _Run(tracer, session, wanted, _seconds_since(before))
        run.start()
        self._run = run
        return self

    def __exit__(self, *error: object) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        timeline, stats, stop_seconds = run.stop(own_thread_only=not self.threads)
        before = perf_counter_ns()
        if self._timeline is not None:
            timeline = join(self._timeline, timeline)
        self._timeline, self._events = timeline, None
        old = self._stats
        self._stats = ProfileStats(
            runs=old.runs + 1,
            window_seconds=old.window_seconds + (stats.stopped_ns - stats.started_ns) / 1e9,
            events=len(timeline),
            backend=stats.backend,
            unmatched=old.unmatched + stats.unmatched_exits,
            unfinished=old.unfinished + stats.unfinished,
            truncated=timeline.truncated,
            prepare_seconds=old.prepare_seconds + run.prepare_seconds,
            start_seconds=old.start_seconds + run.start_seconds,
            stop_seconds=old.stop_seconds + stop_seconds,
            build_seconds=old.build_seconds + run.build_seconds + _seconds_since(before),
        )

    def __repr__(self) -> str:
        if self._run is not None or self._timeline is None:
            return "<unfinished profile>"
        return f"<profile of {self._stats.events:,} events>"

    def __str__(self) -> str:
        return repr(self) if self._run is not None or self._timeline is None else self.table()

    @property
    def function_events(self) -> EventList:
        """All events, in order of start; the same list each time."""
        timeline = self.timeline
        if self._events is None:
            self._events = EventList(timeline)
        return self._events

    @property
    def timeline(self) -> Timeline:
        """The rows that the events are views of: what the exports write."""
        if self._run is not None or self._timeline is None:
            raise InstrcountError(
                "profile-unfinished",
                "this profile has not finished" if self.enabled else "this profile is switched off",
                "ask after its with-block has ended" if self.enabled else "profile(enabled=True)",
            )
        return self._timeline

    @property
    def stats(self) -> ProfileStats:
        """Events recorded, and the cost of recording."""
        self.timeline  # noqa: B018 (it raises before the end)
        return self._stats

    @property
    def self_cpu_time_total(self) -> float:
        """Time of all events, each nanosecond once, in microseconds."""
        return self.function_events.self_cpu_time_total

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """Sums per function or range; see `EventList.key_averages`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self.function_events.total_average()

    def _tabled(self) -> tuple[list[FunctionEvent], Recorded, int]:
        return self.function_events._tabled()


@dataclass(slots=True)
class _Run:
    """One run of a profile, while it runs."""

    tracer: Tracer
    session: Session
    recorded: Recorded
    prepare_seconds: float
    start_seconds: float = 0.0
    build_seconds: float = 0.0

    def start(self) -> None:
        """Switch both tracers on, the one that sees calls last: it is not to see us."""
        before = perf_counter_ns()
        self.session.begin()
        try:
            self.tracer.start()
        except BaseException:
            self.session.stop()
            raise
        self.start_seconds = _seconds_since(before)

    def stop(self, *, own_thread_only: bool) -> tuple[Timeline, ReplayStats, float]:
        """The events, the tracer's statistics, and how many seconds it took to stop."""
        before = perf_counter_ns()
        try:
            # first, since the replay would take long under tracemalloc
            threads = self.session.stop()
        finally:
            columns = self.tracer.stop(before)
        stopped = perf_counter_ns()
        timeline = build_timeline(columns, threads, self.recorded)
        if own_thread_only:
            timeline = of_thread(timeline, timeline.tracks[0].ident)
        self.build_seconds = _seconds_since(stopped)
        return timeline, columns.stats, (stopped - before) / 1e9


def _seconds_since(ns: int) -> float:
    return (perf_counter_ns() - ns) / 1e9
