"""Lines for people while a run goes on: at once, and now and then what is waited for."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest

from pytest_instrcount.config.settings import Settings
from pytest_instrcount.host.text import escape_controls

#: A line is written so often while something is awaited: a silent CI job looks like a hung one.
_PULSE_SECONDS = 30.0


def say(config: pytest.Config, settings: Settings, line: str) -> None:
    """Write a line on the terminal, if there is one and the user wants to know."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and settings.verbosity >= 0:
        reporter.ensure_newline()
        reporter.write_line(escape_controls(line))
        reporter.flush()  # a log in CI is a file: it would be shown at the end of the run


class Pulse:
    """Called again and again while something is awaited; says every half minute what, and how long."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._start = self._said = monotonic()

    def __call__(self, what: str) -> None:
        now = monotonic()
        if now - self._said >= _PULSE_SECONDS:
            self._said = now
            self._say(f"instrcount: {what} ({now - self._start:.0f} s)")
