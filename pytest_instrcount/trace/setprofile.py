"""The backend on ``sys.setprofile``: for 3.11, and to compare with.

It says less than ``sys.monitoring``: calls and resumes are one event, so are returns, yields and
exceptions. The instruction that the frame is at tells them apart; but ``throw()`` looks like a resume
from 3.13 on, and leaving by it like a yield. On 3.11 it reaches threads that start
later, and not those that were there.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable
from itertools import repeat
from types import CodeType, FrameType
from typing import Any, Final

from pytest_instrcount.trace.keys import BOOTSTRAPS
from pytest_instrcount.trace.recorder import GENERATORS, Recorder, describe
from pytest_instrcount.trace.stream import LEAVE, RESUME, THROW, UNWIND, VOID, YIELD, Mark
from pytest_instrcount.trace.values import telling_hook

_RETURNS: Final = {dis.opmap["RETURN_VALUE"], dis.opmap.get("RETURN_CONST", -1)}
_YIELD: Final = dis.opmap["YIELD_VALUE"]
_RESUME: Final = dis.opmap["RESUME"]

Hook = Callable[[FrameType, str, Any], None]


class SetProfile(Recorder):
    """One hook per thread, made for it: so it need not ask which thread runs."""

    backend = "setprofile"

    def _switch_on(self) -> None:
        self._stopped = False
        self._starter: int | None = threading.get_ident()
        self._threads_before = threading.getprofile()
        self._of_threads = threading.local()
        self._dropped_in_a_thread = False
        self._first = threading.get_ident(), self._hook(sys._getframe())
        self._adopts = self._adopt
        threading.setprofile(self._adopts)
        if sys.version_info >= (3, 12):
            # what threading's function does, without a frame of threading
            sys._setprofileallthreads(self._adopt)  # type: ignore[attr-defined]
        self._set_hook(self._first[1])
        self._starter = None

    def _switch_off(self) -> None:
        # of threads that go on it cannot be known
        found = sys.getprofile()
        if threading.get_ident() == self._first[0] and found is not self._first[1]:
            # what raises in it is taken away by Python itself, a RecursionError as well
            self.lost = "a RecursionError, sys.setprofile() or a profiler"
            if found is not None:
                self.lost = describe(found)
        self._end()
        sys.setprofile(None)
        if threading.getprofile() is not self._adopts:
            self.lost = self.lost or "threading.setprofile()"
        if self._dropped_in_a_thread:
            self.lost = self.lost or "a RecursionError, sys.setprofile() or a profiler in a thread"
        if sys.version_info >= (3, 12):
            threading.setprofile_all_threads(None)
        threading.setprofile(self._threads_before)

    def _adopt(self, frame: FrameType, event: str, argument: Any) -> None:
        """The first event of a thread."""
        if self._stopped:
            sys.setprofile(None)
            return
        if threading.get_ident() == self._starter:
            return
        caller = frame.f_back if event == "call" else frame
        hook = self._hook(caller)
        self._set_hook(hook)
        self._of_threads.end = _End(self._note_end)
        if caller is not None and caller.f_code in BOOTSTRAPS:
            hook(caller, "call", None)
        # the exit of a call that began before
        if event not in ("c_return", "c_exception"):
            hook(frame, event, argument)

    def _note_end(self, hook: object) -> None:
        """A thread ends, and has this hook."""
        if not self._stopped and sys.getprofile() is not hook:
            self._dropped_in_a_thread = True

    def _end(self) -> None:
        """Threads that outlive the trace take their hooks away."""
        self._stopped = True

    def _set_hook(self, hook: Hook) -> None:
        sys.setprofile(hook)

    def _hook(self, frame: FrameType | None) -> Hook:
        stream = self._open_stream(frame)
        objs, times, clock, timed = stream.objs, stream.times, self._clock, self.timed
        watched, see = self._sightings.watched, self._sightings.see
        find = self._functions.find if self._options.c_calls else None
        ticks = repeat(None, self._pace)
        entry, exit_ = _Entry(), _Exit()

        def hook(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal ticks
            if event == "call":
                code = frame.f_code
                if code.co_flags & GENERATORS:
                    entered = entry.mark(frame)
                    if entered is not None:
                        objs.append(entered)
                elif watched and id(code) in watched:
                    seen = see(frame)
                    if seen is not None:
                        objs.append(seen)
                objs.append(code)
                if timed:
                    times.append(clock())
                return
            if event == "return":
                now = -clock() if timed else 0
                code = frame.f_code
                mark = LEAVE
                if argument is None or code.co_flags & GENERATORS:
                    mark = exit_.mark(frame, argument)
                # where there are times, their sign says what is an exit
                if not timed or mark is not LEAVE:
                    objs.append(mark)
                objs.append(code)
            elif find is None:
                return
            else:
                now = clock() if timed else 0
                function = find(argument)
                if function is None:
                    return
                if event == "c_call":
                    objs.append(function)
                    if timed:
                        times.append(now)
                    return
                now = -now
                if event != "c_return":
                    objs.append(UNWIND)
                elif not timed:
                    objs.append(LEAVE)
                objs.append(function)
            if timed:
                times.append(now)
            for _ in ticks:
                # a thread that outlives the trace
                if self._stopped:
                    sys.setprofile(None)
                return
            self._make_room(stream)
            ticks = repeat(None, self._pace)

        told: Hook = hook
        options = self._options
        if options.has_text:
            told = telling_hook(hook, objs, arguments=options.arguments, returns=options.returns)
        return self._filter.of_hook(told, find) if self._filter.is_used else told


class _End:
    """Kept by a thread: it is deleted within it when it ends, and tells then which hook was there before."""

    def __init__(self, tell: Callable[[object], None]) -> None:
        self._tell, self._hook = tell, sys.getprofile()

    def __del__(self) -> None:
        self._tell(self._hook)


class _Instructions:
    """Byte code by code object, which is kept, so that its id is not used again."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[bytes, int, CodeType]] = {}

    def of(self, code: CodeType) -> tuple[bytes, int, CodeType]:
        """The byte code, and where a generator starts in it."""
        found = self._known.get(id(code))
        if found is None:
            text = code.co_code
            # with 0, the start of a body: a generator expression of 3.15 has made its iterator before
            starts = (
                at for at in range(0, len(text), 2) if text[at] == _RESUME and not text[at + 1]
            )
            first = next(starts, -1)
            found = self._known[id(code)] = (text, first, code)
        return found


class _Entry(_Instructions):
    def mark(self, frame: FrameType) -> Mark | None:
        """The way a generator is entered; None for its start."""
        text, first, _ = self.of(frame.f_code)
        at = frame.f_lasti
        if at <= first:
            return None
        # 3.11 and 3.12 only: later, a thrown exception looks like a resume
        return THROW if text[at] == _YIELD else RESUME


class _Exit(_Instructions):
    def mark(self, frame: FrameType, value: object) -> Mark:
        """The way a frame is left."""
        text, first, _ = self.of(frame.f_code)
        at = frame.f_lasti
        if at < first or at < 0:
            return VOID
        if text[at] in _RETURNS:
            return LEAVE
        if frame.f_code.co_flags & GENERATORS and self._waits(text, at, first):
            return YIELD
        return LEAVE if value is not None else UNWIND

    @staticmethod
    def _waits(text: bytes, at: int, first: int) -> bool:
        # from 3.13 on the frame stands at the next instruction already
        return text[at] == _YIELD or (text[at] == _RESUME and at > first)
