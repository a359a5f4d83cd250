"""The account of a run, kept along pytest's hooks and told at the end."""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_instrcount.config.settings import MARKER, Settings
from pytest_instrcount.gate.store.names import reason_of, shown_path
from pytest_instrcount.host.account.current import Account, close_account, open_account, phase
from pytest_instrcount.host.account.debug import LOG, TIMINGS, DebugFolder
from pytest_instrcount.host.account.timings import Timings, process_start
from pytest_instrcount.host.files import write_output


def start_account(config: pytest.Config, settings: Settings) -> Account:
    """Open the account of a run. Raises pytest.UsageError if its debug folder cannot be made."""
    debug = None
    if settings.debug is not None:
        try:
            debug = DebugFolder(settings.debug)
        except (OSError, ValueError) as error:
            raise pytest.UsageError(
                f"instrcount: no folder can be made in {shown_path(settings.debug)}: "
                f"{reason_of(error)} [debug-write]\n"
                "  fix: pytest --instrcount --instrcount-debug=DIR with a DIR you may write to"
            ) from None
    # a pytest that another program has started did not begin with its process
    whole = list(map(str, config.invocation_params.args)) == sys.argv[1:]
    account = Account(Timings(start=process_start() if whole else None), debug)
    open_account(account)
    config.add_cleanup(lambda: close_account(account))
    LOG.info("pytest %s", " ".join(map(str, config.invocation_params.args)))
    return account


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Accounting:
    """The plugin object that knows which phase begins and ends. To be registered last: outermost.

    ``waits_for`` is what the tests are called that other processes run, under pytest-xdist.
    """

    config: pytest.Config
    settings: Settings
    account: Account
    waits_for: str = ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """All that was before is pytest's start."""
        self.account.timings.explain_start("start of pytest")
        with phase("collection"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        """If other processes run the tests, all time is spent waiting for them."""
        if not self.waits_for:
            return (yield)
        with phase(self.waits_for):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A measured test is told; any other one is run."""
        measured = item.get_closest_marker(MARKER) is not None
        with phase("report" if measured else "tests, natively"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, Any, Any]:
        """Tell it, once all else is told and written."""
        try:
            with phase("report"):
                return (yield)
        finally:
            self._tell()

    def _tell(self) -> None:
        # tabulate and csv are imported for those who ask
        from pytest_instrcount.host.account.render import render_account, timings_csv

        settings, account = self.settings, self.account
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        if settings.timings and reporter is not None:
            reporter.section("instrcount timings", "-")
            for line in render_account(account):
                reporter.write_line(line)
        if account.debug is not None:
            account.debug.write(TIMINGS, timings_csv(account))
        guard = self.config.pluginmanager.getplugin("instrcount-outputs")
        if settings.timings_csv is not None and not (guard and guard.refused):
            try:
                write_output(settings.timings_csv, timings_csv(account).encode())
            except (OSError, ValueError) as error:
                raise pytest.UsageError(
                    f"instrcount: the timings cannot be written to "
                    f"{shown_path(settings.timings_csv)}: {reason_of(error)} [timings-write]\n"
                    "  fix: pytest --instrcount --instrcount-timings-csv=PATH with a PATH you may "
                    "write to"
                ) from None
