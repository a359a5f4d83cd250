"""The time limit of a traced test that runs in pytest's own process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Container, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class PhaseLimits:
    """The plugin object that ends a phase that takes too long, as ``--instrcount-timeout`` says.

    By SIGALRM, which nobody else must use: where a test or another plugin does, theirs wins. A
    test that never returns from C is not ended; the other processes of a run can be killed,
    but this one is pytest.
    """

    def __init__(self, nodeids: Container[str], seconds: float) -> None:
        self._nodeids = nodeids
        self._seconds = seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._limited(item):
            return (yield)

    pytest_runtest_call = pytest_runtest_teardown = pytest_runtest_setup

    @contextmanager
    def _limited(self, item: pytest.Item) -> Iterator[None]:
        if item.nodeid not in self._nodeids or not _is_free():
            yield
            return
        signal.signal(signal.SIGALRM, self._end_phase)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGALRM) == self._end_phase:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _end_phase(self, number: int, frame: object) -> None:
        __tracebackhide__ = True
        pytest.fail(
            f"instrcount: it did not end within {self._seconds:g} s, without Valgrind [timeout]\n"
            "  fix: pytest --instrcount --instrcount-timeout=SECONDS"
        )


def _is_free() -> bool:
    """True in the main thread if SIGALRM is unused."""
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )
