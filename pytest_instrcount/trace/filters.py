"""Filters of a recording: functions, files and levels that are left out of it while it is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from threading import get_ident
from types import FrameType
from typing import Any, Final

from pytest_instrcount.trace.callbacks import C_EVENTS, Callbacks
from pytest_instrcount.trace.columns import Key
from pytest_instrcount.trace.keys import KeyTable
from pytest_instrcount.trace.stream import CFunction
from pytest_instrcount.trace.text import matches

#: Calls of a function are recorded; none is; they are, and are no level; they are, with no level below.
COUNTED, LEFT_OUT, NO_LEVEL, LEAF = range(4)
_TOO_DEEP: Final = 4

_ENTRIES: Final = ("PY_START", "PY_RESUME", "PY_THROW", "CALL")
#: What ``sys.monitoring.DISABLE`` is no answer to: it would hold for other functions, too, or not at all.
_ALWAYS: Final = (*C_EVENTS, "PY_UNWIND", "PY_THROW")


def _is_path(pattern: str) -> bool:
    return "/" in pattern or pattern.endswith(".py")


def absolute(pattern: str) -> str:
    """A pattern of files from the current folder on, wherever it is used; others as they are.

    >>> absolute("json.*"), absolute("*/db.py"), absolute("/x/../y")
    ('json.*', '*/db.py', '/y')
    """
    return os.path.abspath(pattern) if _is_path(pattern) and pattern[0] != "*" else pattern


class Patterns:
    """Patterns of names like "json.*"; those of files, which are absolute, have a "/", or end in ".py".

    >>> patterns = Patterns(["json.*", "*/shop/"])
    >>> [patterns.match(Key("python", "a", "f"), path) for path in ("/x/a.py", "/x/shop/a.py")]
    [False, True]
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names: list[str] = []
        self._paths: list[str] = []
        for each in patterns:
            if _is_path(each):
                path = each.rstrip("/")
                self._paths += [path, f"{path}/*"]
            else:
                self._names.append(each)

    def match(self, key: Key, path: str) -> bool:
        """True if one matches the name, or the path of the source file."""
        return any(matches(key.name, each) for each in self._names) or any(
            fnmatchcase(path, each) for each in self._paths
        )


class Filter:
    """Judges each function once. The core in C asks it, and does the rest by itself."""

    def __init__(
        self, table: KeyTable, include: Iterable[str], ignore: Iterable[str], max_depth: int
    ) -> None:
        self._table = table
        self._include = Patterns(include) if include else None
        self._ignore = Patterns(ignore)
        self.max_depth = max_depth
        self.is_used = bool(include or ignore or max_depth)
        #: recorded, since replay needs them, and to be left out of the rows
        self.later: set[Key] = set()
        #: id of a code object or CFunction, which the table keeps
        self._verdicts: dict[int, int] = {}
        #: thread -> how many calls are open
        self._depths: dict[int, int] = {}

    def judge(self, function: Any) -> int:
        """What becomes of the calls of a code object or a CFunction."""
        number = self._table.index.get(id(function))
        if number is None:
            number = self._table.add(function)
        if number < 0:
            return NO_LEVEL
        # a script's is as it was given: "/home/app/../two.py"
        key, path = self._table.keys[number], os.path.normpath(getattr(function, "co_filename", ""))
        if self._ignore.match(key, path) or (
            self._include is not None and not self._include.match(key, path)
        ):
            # of what is around it in a thread, replay shows nothing
            if getattr(function, "co_name", "") != "run":
                return LEFT_OUT
            self.later.add(key)
            return NO_LEVEL
        return LEAF if isinstance(function, CFunction) else COUNTED

    def swap_depth(self, depth: int) -> int:
        """Another greenlet runs in this thread, at this depth; returns that of the one before."""
        before = self._depths.get(get_ident(), 0)
        self._depths[get_ident()] = depth
        return before

    def _verdict(self, function: object, *, entering: bool) -> int:
        verdict = self._verdicts.get(id(function))
        if verdict is None:
            verdict = self._verdicts[id(function)] = self.judge(function)
        if not self.max_depth or verdict not in (COUNTED, LEAF):
            return verdict
        level = depth = self._depths.get(get_ident(), 0)
        if verdict == COUNTED:
            level = depth if entering else max(0, depth - 1)
            self._depths[get_ident()] = level + entering
        return verdict if level < self.max_depth else _TOO_DEEP

    def of_callbacks(
        self, callbacks: Callbacks, find: Callable[[object], object], disable: object
    ) -> Callbacks:
        """The callbacks of ``sys.monitoring`` for what is recorded."""

        def filtered(name: str, callback: Callable[..., object]) -> Callable[..., object]:
            entering, of_c = name in _ENTRIES, name in C_EVENTS
            refusal = None if name in _ALWAYS else disable

            def hear(code: object, offset: int, *more: object) -> object:
                verdict = self._verdict(find(more[0]) if of_c else code, entering=entering)
                if verdict in (LEFT_OUT, _TOO_DEEP):
                    return refusal if verdict == LEFT_OUT else None
                return callback(code, offset, *more)

            return hear

        return {name: filtered(name, callback) for name, callback in callbacks.items()}

    def of_hook(
        self, hook: Callable[[FrameType, str, Any], None], find: Callable[[object], object] | None
    ) -> Callable[[FrameType, str, Any], None]:
        """The same for the hook of ``sys.setprofile``."""

        def hear(frame: FrameType, event: str, argument: Any) -> None:
            function = frame.f_code if event in ("call", "return") else find and find(argument)
            if function is not None:
                verdict = self._verdict(function, entering=event in ("call", "c_call"))
                if verdict not in (LEFT_OUT, _TOO_DEEP):
                    hook(frame, event, argument)

        return hear
