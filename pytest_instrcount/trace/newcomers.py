"""Hearing of threads before they start, while a trace needs to.

An audit hook would hear of them, too, but it cannot be taken away, and ``id()`` and
``sys._getframe()`` would be slower from then on. So the functions that start threads are replaced
for the time of a trace. Who kept one of them by name, or is C code, is not heard.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from pytest_instrcount.trace.own import transparent

#: Those of ``_thread``, and the names that threading gives them; some are of some versions only.
STARTERS: Final = ("start_new_thread", "start_new", "start_joinable_thread")


class Newcomers:
    """Calls ``before`` whenever a thread is about to start, in the thread that starts it."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._replaced: list[tuple[ModuleType, str, Any]] = []

    def watch(self) -> None:
        """Begin."""
        for module in (_thread, threading):
            for name in (*STARTERS, *(f"_{name}" for name in STARTERS)):
                starter = getattr(module, name, None)
                if starter is not None:
                    self._replaced.append((module, name, starter))
                    setattr(module, name, _announced(starter, self._before))

    def unwatch(self) -> None:
        """Put back what was there."""
        while self._replaced:
            module, name, starter = self._replaced.pop()
            setattr(module, name, starter)


def _announced(starter: Callable[..., Any], before: Callable[[], None]) -> Callable[..., Any]:
    @transparent
    def start(*args: Any, **kwargs: Any) -> Any:
        before()
        return starter(*args, **kwargs)

    return start
