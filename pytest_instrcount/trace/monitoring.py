"""The backend on ``sys.monitoring`` (3.12+): builtins that are not asked for cost nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import repeat
from threading import get_ident
from types import FrameType
from typing import Any, Final

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.callbacks import (
    C_EVENTS,
    PYTHON_EVENTS,
    Callbacks,
    Lane,
    counting_callbacks,
    thread_callbacks,
    watching,
)
from pytest_instrcount.trace.newcomers import Newcomers
from pytest_instrcount.trace.recorder import Recorder
from pytest_instrcount.trace.stream import Mark, Stream
from pytest_instrcount.trace.values import argument_text, telling, value_text

#: Before 3.12 there is none, and this backend is not chosen.
monitoring: Any = getattr(sys, "monitoring", None)
#: 0 is for debuggers, 1 for coverage, 5 for optimizers; 2, for profilers, comes last.
TOOL_IDS: Final = (4, 3, 2)
TOOL_NAME: Final = "pytest-instrcount"


class Monitoring(Recorder):
    """Hears of all threads. While there is one only, its callbacks need not ask which one runs."""

    backend = "monitoring"
    _tool = -1
    _events = 0
    _asking = False

    def _switch_on(self) -> None:
        self._newcomers = Newcomers(self._before_new_thread)
        self._tool = take_tool()
        self._listen(sys._getframe())
        names = (*PYTHON_EVENTS, "CALL") if self._options.c_calls else PYTHON_EVENTS
        self._events = sum(getattr(monitoring.events, name) for name in names)
        monitoring.set_events(self._tool, self._events)

    def _listen(self, frame: FrameType) -> None:
        """Register callbacks; the running thread is on this frame."""
        self._lanes: dict[int, Lane] = {}
        stream = self._adopt(frame)[-1]
        self._functions_or_none = self._functions if self._options.c_calls else None
        self._newcomers.watch()
        if self.timed or len(sys._current_frames()) > 1:
            self._ask_for_thread()
        else:
            self._watch(counting_callbacks(stream, self._next_marks, self._functions_or_none))

    def _switch_off(self) -> None:
        tool, self._tool = self._tool, -1
        if tool < 0:
            return
        self._newcomers.unwatch()
        if monitoring.get_tool(tool) != TOOL_NAME:
            self.lost = f"sys.monitoring.free_tool_id({tool})"
            return
        if monitoring.get_events(tool) != self._events:
            self.lost = f"sys.monitoring.set_events({tool}, ...)"
        # to free the id alone would leave events and callbacks where they are
        monitoring.set_events(tool, 0)
        for name in (*PYTHON_EVENTS, *C_EVENTS):
            monitoring.register_callback(tool, getattr(monitoring.events, name), None)
        monitoring.free_tool_id(tool)
        if self._filter.is_used:  # else what is disabled now would be so in the next trace
            monitoring.restart_events()

    def _ask_for_thread(self) -> None:
        self._asking = True
        self._watch(
            thread_callbacks(
                self._lanes, self._adopt, self._renew, self._functions_or_none, timed=self.timed
            )
        )

    def watch_tasks(self) -> bool:
        found = super().watch_tasks()
        if found:
            self._ask_for_thread()
        return found

    def _before_new_thread(self) -> None:
        """From here on callbacks ask which thread runs; an ident may be used again from here on."""
        alive = set(sys._current_frames())  # the frames would keep all callers' objects alive
        for ident in [each for each in self._lanes if each not in alive]:
            del self._lanes[ident]
        if not self._asking:
            self._ask_for_thread()

    def _watch(self, callbacks: Callbacks) -> None:
        if self._sightings.watched:
            callbacks["PY_START"] = watching(
                callbacks["PY_START"], self._sightings.watched, self._sightings.see, self._note
            )
        if self._options.arguments:
            callbacks["PY_START"] = telling(callbacks["PY_START"], self._note, argument_text)
        if self._options.returns:
            callbacks["PY_RETURN"] = telling(callbacks["PY_RETURN"], self._note, value_text)
        if self._filter.is_used:
            callbacks = self._filter.of_callbacks(
                callbacks, self._functions.find, monitoring.DISABLE
            )
        self._register(callbacks)

    def _register(self, callbacks: Callbacks) -> None:
        for name, callback in callbacks.items():
            event = getattr(monitoring.events, name)
            monitoring.register_callback(self._tool, event, callback)

    def _adopt(self, frame: FrameType | None) -> Lane:
        """A lane for the running thread, which is on this frame."""
        return self._set_lane(self._open_stream(frame))

    def _set_lane(self, stream: Stream) -> Lane:
        lane = stream.objs, stream.times, repeat(None, self._pace), stream
        self._lanes[get_ident()] = lane
        return lane

    def _renew(self) -> Lane:
        """Room in the lane of the running thread, and new ticks."""
        stream = self._lanes[get_ident()][-1]
        self._make_room(stream)
        return self._set_lane(stream)

    def _next_marks(self, mark: Mark) -> Iterator[Mark]:
        """The same for the only thread, whose ticks are the marks that it writes."""
        self._renew()
        return iter([mark] * self._pace)

    def _note(self, seen: object) -> None:
        lane = self._lanes.get(get_ident()) or self._adopt(sys._getframe(2).f_back)
        lane[0].append(seen)


def take_tool() -> int:
    """One of our tool ids; raises InstrcountError ``tracer-busy`` if others have all of them."""
    for tool in TOOL_IDS:
        if monitoring.get_tool(tool) is None:
            monitoring.use_tool_id(tool, TOOL_NAME)
            return tool
    holders = ", ".join(f"{monitoring.get_tool(tool)} has {tool}" for tool in TOOL_IDS)
    raise InstrcountError(
        "tracer-busy",
        f"no tool id of sys.monitoring is free: {holders}",
        "stop one of them, or: pytest --instrcount-trace-backend=setprofile",
    )
