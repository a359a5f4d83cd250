"""The functions that ``sys.monitoring`` calls: as little as can be done, and never a tracked object."""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from types import CodeType, FrameType
from typing import Final

from pytest_instrcount.trace.cfunctions import CFunctions
from pytest_instrcount.trace.stream import CLOSE, LEAVE, RESUME, THROW, UNWIND, YIELD, Mark, Stream

#: name of an event -> what hears it
Callbacks = dict[str, Callable[..., object]]
#: What a thread writes to: lists of its stream, a tick for each exit until the next look at their
#: length, and the stream.
Lane = tuple[list[object], "array[int]", Iterator[None], Stream]

PYTHON_EVENTS: Final = ("PY_START", "PY_RETURN", "PY_RESUME", "PY_YIELD", "PY_UNWIND", "PY_THROW")
C_EVENTS: Final = ("CALL", "C_RETURN", "C_RAISE")


def counting_callbacks(
    stream: Stream, next_marks: Callable[[Mark], Iterator[Mark]], functions: CFunctions | None
) -> Callbacks:
    """For the only thread there is, without a clock.

    Marks of exits are taken from lists; when one is used up, ``next_marks`` looks for room and
    gives another one. That is cheaper than to compare a length: no number is made.
    """
    # "objs.append" is written out each time: the interpreter has an instruction for just that
    objs = stream.objs
    leaves, yields = next_marks(LEAVE), next_marks(YIELD)

    def enter(code: CodeType, offset: int) -> None:
        objs.append(code)

    def leave(code: CodeType, offset: int, value: object) -> None:
        nonlocal leaves
        for mark in leaves:
            objs.append(mark)
            objs.append(code)
            return
        leaves = next_marks(LEAVE)
        leave(code, offset, value)

    def resume(code: CodeType, offset: int) -> None:
        objs.append(RESUME)
        objs.append(code)

    def suspend(code: CodeType, offset: int, value: object) -> None:
        nonlocal yields
        for mark in yields:
            objs.append(mark)
            objs.append(code)
            return
        yields = next_marks(YIELD)
        suspend(code, offset, value)

    def unwind(code: CodeType, offset: int, error: BaseException) -> None:
        objs.append(UNWIND)
        objs.append(code)

    def throw(code: CodeType, offset: int, error: BaseException) -> None:
        objs.append(CLOSE if type(error) is GeneratorExit else THROW)
        objs.append(code)

    made: Callbacks = dict(zip(PYTHON_EVENTS, (enter, leave, resume, suspend, unwind, throw)))
    if functions is None:
        return made
    find = functions.find

    def c_enter(code: CodeType, offset: int, called: object, argument: object) -> None:
        function = find(called)
        if function is not None:
            objs.append(function)

    def c_leave(code: CodeType, offset: int, called: object, argument: object) -> None:
        nonlocal leaves
        function = find(called)
        if function is not None:
            for mark in leaves:
                objs.append(mark)
                objs.append(function)
                return
            leaves = next_marks(LEAVE)
            c_leave(code, offset, called, argument)

    def c_raise(code: CodeType, offset: int, called: object, argument: object) -> None:
        function = find(called)
        if function is not None:
            objs.append(UNWIND)
            objs.append(function)

    return made | dict(zip(C_EVENTS, (c_enter, c_leave, c_raise)))


def thread_callbacks(
    lanes: dict[int, Lane],
    adopt: Callable[[FrameType | None], Lane],
    renew: Callable[[], object],
    functions: CFunctions | None,
    *,
    timed: bool,
) -> Callbacks:
    """For any number of threads, with or without a clock.

    ``lanes`` is by thread; ``adopt`` makes one of a thread that is on the given frame, ``renew``
    makes room in that of the running thread.
    """
    clock = time.perf_counter_ns
    frame_of = sys._getframe

    def enter(code: CodeType, offset: int) -> None:
        try:
            objs, times, _, _ = lanes[get_ident()]
        except KeyError:
            objs, times, _, _ = adopt(frame_of(1).f_back)
        objs.append(code)
        if timed:
            times.append(clock())

    def leave(code: CodeType, offset: int, value: object) -> None:
        now = -clock() if timed else 0
        try:
            objs, times, ticks, _ = lanes[get_ident()]
        except KeyError:
            objs, times, ticks, _ = adopt(frame_of(1))
        # where there are times, their sign says what is an exit
        if timed:
            times.append(now)
        else:
            objs.append(LEAVE)
        objs.append(code)
        for _ in ticks:
            return
        renew()

    def resume(code: CodeType, offset: int) -> None:
        try:
            objs, times, _, _ = lanes[get_ident()]
        except KeyError:
            objs, times, _, _ = adopt(frame_of(1).f_back)
        objs.append(RESUME)
        objs.append(code)
        if timed:
            times.append(clock())

    def suspend(code: CodeType, offset: int, value: object) -> None:
        now = -clock() if timed else 0
        try:
            objs, times, ticks, _ = lanes[get_ident()]
        except KeyError:
            objs, times, ticks, _ = adopt(frame_of(1))
        objs.append(YIELD)
        if timed:
            times.append(now)
        objs.append(code)
        for _ in ticks:
            return
        renew()

    def leave_as(mark: Mark | None, function: object) -> None:
        now = -clock() if timed else 0
        try:
            objs, times, ticks, _ = lanes[get_ident()]
        except KeyError:
            objs, times, ticks, _ = adopt(frame_of(2))
        if mark is not None:
            objs.append(mark)
        if timed:
            times.append(now)
        objs.append(function)
        for _ in ticks:
            return
        renew()

    def unwind(code: CodeType, offset: int, error: BaseException) -> None:
        leave_as(UNWIND, code)

    def throw(code: CodeType, offset: int, error: BaseException) -> None:
        try:
            objs, times, _, _ = lanes[get_ident()]
        except KeyError:
            objs, times, _, _ = adopt(frame_of(1).f_back)
        objs.append(CLOSE if type(error) is GeneratorExit else THROW)
        if timed:
            times.append(clock())
        objs.append(code)

    made: Callbacks = dict(zip(PYTHON_EVENTS, (enter, leave, resume, suspend, unwind, throw)))
    if functions is None:
        return made
    find = functions.find

    left = None if timed else LEAVE

    def c_enter(code: CodeType, offset: int, called: object, argument: object) -> None:
        function = find(called)
        if function is not None:
            try:
                objs, times, _, _ = lanes[get_ident()]
            except KeyError:
                objs, times, _, _ = adopt(frame_of(1))
            objs.append(function)
            if timed:
                times.append(clock())

    def c_leave(code: CodeType, offset: int, called: object, argument: object) -> None:
        function = find(called)
        if function is not None:
            leave_as(left, function)

    def c_raise(code: CodeType, offset: int, called: object, argument: object) -> None:
        function = find(called)
        if function is not None:
            leave_as(UNWIND, function)

    return made | dict(zip(C_EVENTS, (c_enter, c_leave, c_raise)))


def frame_of(code: CodeType) -> FrameType:
    """The frame in which a callback of ours was called."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    assert frame is not None
    return frame


def watching(
    enter: Callable[..., object],
    watched: Mapping[int, object],
    see: Callable[[FrameType], object],
    note: Callable[[object], None],
) -> Callable[[CodeType, int], None]:
    """``enter``, and before it the ``self`` of what is watched; only where something is."""

    def enter_watched(code: CodeType, offset: int) -> None:
        if id(code) in watched:
            seen = see(frame_of(code))
            if seen is not None:
                note(seen)
        enter(code, offset)

    return enter_watched
