"""The commands that a run tells its user to type, as they are to be typed where pytest was started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pytest

from pytest_instrcount.accepting import accept_run, accept_tests, measure_tests
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.settings import load_command_line


class Commands:
    """Makes commands out of the one that this run was started with."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def typed(self, nodeid: str) -> str:
        """A test as it is to be typed."""
        config = self._config
        file, colons, test = nodeid.partition("::")
        if config.rootpath == config.invocation_params.dir:
            return nodeid
        return os.path.relpath(config.rootpath / file, config.invocation_params.dir) + colons + test

    def accept_run(self, found: Mapping[str, list[Verdict]]) -> str:
        """The command that accepts what a run has measured: typed test -> its verdicts."""
        return accept_run(load_command_line(self._config), found)

    def accept(self, nodeid: str) -> str:
        """The command that accepts one test."""
        return accept_tests(load_command_line(self._config), [self.typed(nodeid)])

    def measure(self, words: Sequence[str]) -> str:
        """The command that measures these tests, given by id or by words that select them."""
        typed = [self.typed(each) if "::" in each else each for each in words]
        return measure_tests(load_command_line(self._config), typed)
