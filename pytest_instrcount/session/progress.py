"""Lines for people while a run goes on: at once, and now and then what is waited for."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest

from pytest_instrcount.config.compat import end_line
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.counts.noise import OTHER_LAYOUTS
from pytest_instrcount.host.text import duration, escape_controls, several

#: A line is written so often while something is awaited: a silent CI job looks like a hung one.
_PULSE_SECONDS = 30.0
#: How long all will take is told from the tests that were done in this time, after the first.
_SAMPLE_SECONDS = 10.0
#: What is stored is counted once, again, in other layouts, and by function.
_PASSES_OF_UPDATE = 1 + (1 + OTHER_LAYOUTS) + 1


def say(config: pytest.Config, settings: Settings, line: str) -> None:
    """Write a line on the terminal, if there is one and the user wants to know."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and settings.verbosity >= 0:
        end_line(reporter)
        reporter.write_line(escape_controls(line))
        # a log in CI is a file: it would be shown at the end of the run
        if hasattr(reporter, "flush"):  # not so that of pytest-tldr
            reporter.flush()


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


class Estimate:
    """Says how many tests are measured; called after each, it says how long all will take, once.

    What is to be ``stored`` is measured several times.
    """

    def __init__(self, say: Callable[[str], None], tests: int, jobs: int, *, stored: bool) -> None:
        self._say = say
        self._tests = several(tests, "test")
        self._size = tests * (_PASSES_OF_UPDATE if stored else 1)
        self._done = 0
        self._start = 0.0
        say(f"instrcount: measuring {self._tests} under Valgrind, {jobs} at a time")

    def __call__(self) -> None:
        if not self._start:  # until then Valgrind has started, too
            self._start = monotonic()
            return
        self._done += 1
        spent = monotonic() - self._start
        if self._size and spent >= _SAMPLE_SECONDS:
            whole = spent / self._done * self._size
            if whole - spent >= _PULSE_SECONDS:
                self._say(f"instrcount: all {self._tests}{duration(whole)}")
            self._size = 0
