"""Arguments and returned values of calls as text: made at once, so that no object lives longer.

But up to 3.12 a frame that was asked for its locals keeps a copy of them until it is left.
"""

from __future__ import annotations

import gc
import reprlib
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

from pytest_instrcount.host.foreign import class_name
from pytest_instrcount.host.text import cut
from pytest_instrcount.trace.callbacks import frame_of
from pytest_instrcount.trace.own import is_own
from pytest_instrcount.trace.stream import RESUME, THROW, UNWIND, VOID, YIELD

#: Characters of one value, and of all arguments of a call.
_LONGEST: Final = 80
_LONGEST_OF_ALL: Final = 400
#: Flags of code objects with ``*args`` and ``**kwargs``; to import inspect for them takes long.
_VARARGS, _VARKEYWORDS = 4, 8


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = _LONGEST

    def repr_bytes(self, value: bytes, level: int) -> str:
        return self.repr_instance(value[:_LONGEST], level)

    repr_bytearray = repr_bytes


_short = _Short()


def text_of(value: object) -> str:
    """The ``repr()``, cut short; nothing that it raises is raised.

    >>> text_of([1, "x"]), len(text_of(b"x" * 10**6)) < 100
    ("[1, 'x']", True)
    """
    try:
        text = _short.repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = f"<{class_name(value)}: {type(error).__name__}>"
    return cut(text, _LONGEST)


def arguments_of(frame: FrameType) -> str:
    """The arguments of a call that has just begun.

    >>> import sys
    >>> def f(a, *rest, key="k"): return arguments_of(sys._getframe())
    >>> f(1, 2)
    "a=1, key='k', rest=(2,)"
    """
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
    if not count or is_own(code):
        return ""
    values = frame.f_locals
    names = (name for name in code.co_varnames[:count] if name in values)
    text = ", ".join(f"{name}={text_of(values[name])}" for name in names)
    return cut(text, _LONGEST_OF_ALL)


def argument_text(code: CodeType, offset: object) -> str:
    """The arguments of a call of it, which begins above us."""
    return arguments_of(frame_of(code))


def value_text(code: CodeType, value: object) -> str:
    """What a call of it returns."""
    return "" if is_own(code) else f" -> {text_of(value)}"


def telling(
    callback: Callable[..., object],
    note: Callable[[object], None],
    text: Callable[[CodeType, object], str],
) -> Callable[..., object]:
    """A callback of ``sys.monitoring`` that notes a text behind each event."""

    def told(code: CodeType, *more: object) -> None:
        callback(code, *more)
        # what a collection calls would not be told of while we are
        collecting = gc.isenabled()
        gc.disable()
        try:
            found = text(code, more[-1])
        finally:
            if collecting:
                gc.enable()
        if found:
            note(found)

    return told


def telling_hook(
    hook: Callable[[FrameType, str, Any], None],
    objs: list[object],
    *,
    arguments: bool,
    returns: bool,
) -> Callable[[FrameType, str, Any], None]:
    """The hook of ``sys.setprofile``, which writes to ``objs``, with both."""

    def tell(frame: FrameType, event: str, argument: Any) -> None:
        hook(frame, event, argument)
        if event not in ("call", "return") or not objs or objs[-1] is not frame.f_code:
            return
        if any(objs[-2:-1] == [mark] for mark in (RESUME, THROW, YIELD, UNWIND, VOID)):
            return
        if event == "call":
            text = arguments_of(frame) if arguments else ""
        else:
            text = value_text(frame.f_code, argument) if returns else ""
        if text:
            objs.append(text)

    return tell
