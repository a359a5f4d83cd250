"""The part shared by both backends: streams by thread, start frames, the bound, conflicts."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final, Literal

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.cfunctions import CFunctions
from pytest_instrcount.trace.filters import Filter
from pytest_instrcount.trace.identity import IdentityMap
from pytest_instrcount.trace.own import is_own
from pytest_instrcount.trace.recognize import Recognizer, Sightings
from pytest_instrcount.trace.stream import START_FRAME, Recording, Stream, Switch

#: Codes of generators, coroutines and async generators.
GENERATORS: Final = 0x20 | 0x80 | 0x200


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Settings of a recording."""

    #: "counts" reads no clock; "tree" reads one at each event
    mode: Literal["counts", "tree"] = "counts"
    #: builtin functions and methods, too
    c_calls: bool = False
    #: "auto" is "monitoring" where Python has it (3.12+)
    backend: Literal["auto", "monitoring", "setprofile"] = "auto"
    #: how many frames of the stack at the start are shown
    start_frames: int = 128
    #: enters and exits to keep; above it rows are folded, and counts stay exact
    max_events: int = 2_000_000
    #: whose ``self`` is looked at; see ``recognize``
    recognizers: tuple[Recognizer, ...] = ()
    #: patterns of functions to record alone, and to leave out; what they call is their caller's
    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    #: how many levels of Python functions are recorded; 0: all
    max_depth: int = 0
    #: with a clock: calls that are shorter, and call nothing that is recorded, are left out
    min_ns: int = 0
    #: Python functions' arguments, and what they return, as text; by the core in Python only
    arguments: bool = False
    returns: bool = False

    @property
    def has_text(self) -> bool:
        """True if any of these is asked for, which the core in C does not record."""
        return self.arguments or self.returns


class Recorder:
    """One trace: installed once, uninstalled once, in one process at a time."""

    backend = ""
    #: "c" or "python"
    core = "python"
    _active: Recorder | None = None
    _lock = threading.Lock()

    def __init__(
        self, options: TraceOptions, fold: Callable[[Stream], None], filter_: Filter
    ) -> None:
        self._options = options
        self._fold = fold
        self._filter = filter_
        self._clock: Callable[[], int] = time.perf_counter_ns
        self.timed = options.mode == "tree"
        self._functions = CFunctions()
        self._sightings = Sightings(options.recognizers)
        if self.timed:
            self._sightings.watch_tasks()
        self._streams: list[Stream] = []
        self._greenlets: dict[int, Any] = {}
        self._started_ns = self._stopped_ns = 0
        #: who has taken our hook away before the end, "" if it was there
        self.lost = ""

    def install(self) -> None:
        """Begin; raises InstrcountError ``tracer-busy`` if someone else is at it."""
        with Recorder._lock:
            if Recorder._active is not None:
                raise busy("a trace of pytest-instrcount", "stop it first; they do not nest")
            self._refuse_others()
            Recorder._active = self
        try:
            self._switch_on()
        except BaseException:
            self.uninstall()
            raise
        self._begin_to_time()

    def uninstall(self, at_ns: int = 0) -> None:
        """End, in all threads; those that are in a call leave at their next event.

        ``at_ns``: since when what runs is our own work, where that began before.
        """
        self._stopped_ns = at_ns or self._clock()
        try:
            self._switch_off()
        finally:
            Recorder._active = None
            self._leave_greenlets()

    def _begin_to_time(self) -> None:
        # in a frame that is entered within the trace: what that calls is known to be ours
        self._started_ns = self._clock()

    def watch_tasks(self) -> bool:
        """Have steps of tasks told, if asyncio was imported meanwhile; returns whether it was."""
        return self._sightings.watch_tasks() is not None

    def watch_greenlets(self) -> None:
        """Have switches of this thread told, if greenlet was imported meanwhile."""
        ident = threading.get_ident()
        for stream in self._streams:
            if stream.ident == ident and ident not in self._greenlets:
                self._enter_greenlets(stream)

    @property
    def size(self) -> int:
        """Bytes of its streams, without what these refer to, and without those of the C core."""
        return sum(stream.size for stream in self._streams)

    def recording(self) -> Recording:
        """The recording, and its start and end."""
        return Recording(
            self.backend, self.timed, tuple(self._streams), self._started_ns, self._stopped_ns
        )

    def _switch_on(self) -> None:
        raise NotImplementedError

    def _switch_off(self) -> None:
        raise NotImplementedError

    def _refuse_others(self) -> None:
        other = sys.getprofile()
        if other is not None:
            raise busy(describe(other), "stop it for this test")
        if sys.version_info >= (3, 12):
            tool = sys.monitoring.get_tool(sys.monitoring.PROFILER_ID)
            if tool is not None:
                number = sys.monitoring.PROFILER_ID
                raise busy(f"{tool} (sys.monitoring tool id {number})", "stop it for this test")

    @property
    def _most(self) -> int:
        """The maximum length of one stream's list; up to half of its items may be marks."""
        return max(64, self._options.max_events * 3 // 2 // max(1, len(self._streams)))

    @property
    def _pace(self) -> int:
        """The number of exits between two checks of that length: a check costs as much as an exit."""
        return max(16, min(4096, self._most // 4))

    def _open_stream(self, frame: FrameType | None, lane: Any = None) -> Stream:
        """A stream for the running thread, beginning with the frames that are on its stack."""
        ident = threading.get_ident()
        name = _thread_name(ident, sys._getframe())
        stream = Stream(ident, name, lane=lane, has_text=self._options.has_text)
        frames: list[CodeType] = []
        while frame is not None and len(frames) < self._options.start_frames:
            if not is_own(frame.f_code):
                frames.append(frame.f_code)
            frame = frame.f_back
        for code in reversed(frames):
            stream.append(START_FRAME)
            if lane is not None:
                lane.enter(code)
                continue
            stream.objs.append(code)
            if self.timed:
                stream.times.append(self._clock())
        self._streams.append(stream)
        self._enter_greenlets(stream)
        return stream

    def _make_room(self, stream: Stream) -> None:
        """Fold a stream of the running thread, if it got too long."""
        if len(stream.objs) >= self._most:
            self._fold(stream)

    def _enter_greenlets(self, stream: Stream) -> None:
        """Have switches recorded, where greenlets may be used; per thread."""
        greenlet = sys.modules.get("greenlet")
        if greenlet is None or not hasattr(greenlet, "settrace"):
            return
        numbers: IdentityMap[Switch] = IdentityMap()
        main = greenlet.getcurrent()
        while main.parent is not None:
            main = main.parent
        numbers[main] = Switch(0)
        if greenlet.getcurrent() is not main:
            numbers[greenlet.getcurrent()] = Switch(0)
        before = greenlet.gettrace()
        append = stream.append
        swap_depth = self._filter.swap_depth if stream.lane is None else stream.lane.swap_depth
        depths: IdentityMap[int] = IdentityMap()
        made = 0

        def switched(event: str, arguments: tuple[Any, Any]) -> None:
            nonlocal made
            # of other threads it cannot be taken away
            if not self._stopped_ns:
                found = numbers.get(arguments[1])
                if found is None:
                    made += 1
                    found = numbers[arguments[1]] = Switch(made)
                append(found)
                if self._filter.max_depth:
                    depths[arguments[0]] = swap_depth(depths.get(arguments[1]) or 0)
            if before is not None:
                before(event, arguments)

        greenlet.settrace(switched)
        self._greenlets[stream.ident] = (greenlet, switched, before)

    def _leave_greenlets(self) -> None:
        found = self._greenlets.pop(threading.get_ident(), None)
        if found is not None:
            greenlet, switched, before = found
            if greenlet.gettrace() is switched:
                greenlet.settrace(before)


def _thread_name(ident: int, frame: FrameType) -> str:
    # not current_thread(): that would make a dummy one
    known = threading._active.get(ident)  # type: ignore[attr-defined]
    while known is None and frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is threading.Thread._bootstrap.__code__:  # type: ignore[attr-defined]
            known = frame.f_locals.get("self")
    return str(known.name) if known is not None else f"thread {ident}"


def busy(holder: str, fix: str) -> InstrcountError:
    """Two profilers in one process would count each other."""
    return InstrcountError("tracer-busy", f"another profiler is active: {holder}", fix)


def describe(other: object) -> str:
    """Module and name of a function, or of the class of what is none."""
    named = other if hasattr(other, "__qualname__") else type(other)
    return f"{getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', '?')}"
