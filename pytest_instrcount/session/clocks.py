"""Clocks of other plugins, which are to bound no test that is measured elsewhere."""

from __future__ import annotations

import faulthandler
from collections.abc import Container

import pytest


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
