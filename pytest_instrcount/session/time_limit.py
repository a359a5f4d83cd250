"""What bounds the time of a test: our limit where it is traced, no clock of others where it is measured."""

from __future__ import annotations

import faulthandler
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


class OtherClocks:
    """The plugin object that holds them: while pytest waits for Valgrind, none of the test's time passes.

    What is awaited may be the start of Valgrind, or another test. Its own limit is
    ``--instrcount-timeout``, which the supervisor keeps.
    """

    def __init__(self, measured: Container[str]) -> None:
        self._measured = measured

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self, item: pytest.Item) -> bool | None:
        """That of pytest-timeout: as if it were set, for a measured test."""
        return True if item.nodeid in self._measured else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """That of ``faulthandler_timeout``: pytest has started it right before, and can exit by it."""
        known = item.config.pluginmanager.hasplugin("faulthandler")
        if known and item.nodeid in self._measured and item.config.getini("faulthandler_timeout"):
            faulthandler.cancel_dump_traceback_later()


def _is_free() -> bool:
    """True in the main thread if SIGALRM is unused."""
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )
