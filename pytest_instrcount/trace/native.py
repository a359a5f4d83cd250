"""The backends with the core in C: they record what those in Python do, in a fraction of the time."""

from __future__ import annotations

import sys
from types import FrameType, MethodType
from typing import Any

from pytest_instrcount.trace.callbacks import C_EVENTS, PYTHON_EVENTS
from pytest_instrcount.trace.core import load_core
from pytest_instrcount.trace.monitoring import Monitoring, monitoring
from pytest_instrcount.trace.recorder import Recorder
from pytest_instrcount.trace.setprofile import SetProfile
from pytest_instrcount.trace.stream import Stream


class Native(Recorder):
    """Keeps a lane of the core for each stream, and empties it into the stream."""

    core = "c"
    _core: Any
    #: lane -> stream
    _filled: dict[Any, Stream]

    def _make_core(self) -> Any:
        module = load_core(self.backend)
        assert module is not None
        made = module.make(
            self.timed,
            self._functions.find_kept if self._options.c_calls else None,
            self._adopt_running,
            self._renew_lane,
            self._see,
            MethodType,
            self._filter.judge if self._filter.is_used else None,
            getattr(monitoring, "DISABLE", None),
            self._filter.max_depth,
            self._options.min_ns if self.timed else 0,
        )
        for each in self._sightings.watched.values():
            made.watch(each.code)
        self._filled = {}
        return made

    def watch_tasks(self) -> bool:
        code = self._sightings.watch_tasks()
        if code is not None:
            self._core.watch(code)
        return code is not None

    def _open_lane(self, frame: FrameType | None) -> Any:
        lane = self._core.lane(self._pace)
        self._filled[lane] = self._open_stream(frame, lane)
        return lane

    def _adopt_running(self, entering: bool) -> None:
        frame: FrameType | None = sys._getframe(1)
        self._open_lane(frame.f_back if entering and frame is not None else frame)

    def _see(self) -> object:
        return self._sightings.see(sys._getframe(1))

    def _renew_lane(self, lane: Any) -> None:
        """A chunk of it is full."""
        stream = self._filled.get(lane)
        # with start frames that may be before there is a stream
        if stream and len(lane) >= max(64, self._options.max_events // len(self._streams)):
            self._fold(stream)


class NativeMonitoring(Native, Monitoring):
    """Its callbacks know by themselves which thread runs."""

    def _listen(self, frame: FrameType) -> None:
        self._core = self._make_core()
        self._open_lane(frame)
        names = (*PYTHON_EVENTS, *(C_EVENTS if self._options.c_calls else ()))
        self._register({name: getattr(self._core, name.lower()) for name in names})


class NativeSetProfile(Native, SetProfile):
    """Its hook stays where it is after a RecursionError, or ``sys.setprofile(None)``."""

    def _switch_on(self) -> None:
        self._core = self._make_core()
        super()._switch_on()

    def _hook(self, frame: FrameType | None) -> Any:
        return self._open_lane(frame)

    def _set_hook(self, hook: Any) -> None:
        hook.install()

    def _end(self) -> None:
        super()._end()
        self._core.end()
