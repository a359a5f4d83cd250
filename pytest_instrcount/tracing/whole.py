"""The trace of the whole run: written by the process that knows of all tests, from their reports.

Under pytest-xdist that is the controller. A worker's report of a test carries its events: so nothing
is left on the disk whoever dies, and of a worker that crashed all is there but its last test.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.export.runner import write_chunks
from pytest_instrcount.trace.run import Sent, TestEvents, run_chunks
from pytest_instrcount.tracing.settings import load_trace_settings

#: Name of the file; those of tests end in eight digits before the suffix.
RUN_TRACE = "run.trace.json"

#: On the report of a tear-down: a `Sent`, as a list.
_ATTRIBUTE = "instrcount_events"


def attach(report: Any, test: TestEvents, config: pytest.Config) -> None:
    """Send along with a report what the test has recorded."""
    worker = getattr(config, "workerinput", {}).get("workerid", "")
    setattr(report, _ATTRIBUTE, list(test.send(worker)))


def watch_run(config: pytest.Config) -> None:
    """Write the trace of the run at its end. Raises pytest.UsageError for wrong settings."""
    folder = load_trace_settings(config).folder
    assert folder is not None
    config.pluginmanager.register(RunTrace(folder / RUN_TRACE), "instrcount-run-trace")


class RunTrace:
    """The plugin object of a run with ``--trace-profile``, where the reports of all tests arrive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: list[Sent] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """What an earlier run has left is not this one's."""
        if not session.config.option.collectonly:
            with suppress(OSError):
                self._path.unlink()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take what was sent: the report is kept, and shown to others."""
        sent = report.__dict__.pop(_ATTRIBUTE, None)
        if sent is not None:
            self._tests.append(Sent(*sent))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, Any, Any]:
        """Write it, once all is on the terminal: a file that cannot be written ends the run."""
        result = yield
        if self._tests:
            try:
                write_chunks(self._path, run_chunks(self._tests))
            except InstrcountError as error:
                raise pytest.UsageError(str(error)) from None
        return result
