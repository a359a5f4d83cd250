"""The commands that a run tells its user to type, as they are to be typed where pytest was started."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import pytest

from pytest_instrcount.config.command_line import accept_run, accept_tests, measure_tests, prune_run
from pytest_instrcount.config.settings import load_command_line
from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult


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

    def accept_results(self, tests: Iterable[TestResult], traces: Iterable[CallsResult]) -> str:
        """The command that accepts what is not stored of these results."""
        found: dict[str, list[Verdict]] = {}
        for result in tests:
            if not result.written:
                found.setdefault(self.typed(result.nodeid), []).append(result.verdict)
        for calls in traces:
            if not calls.written:  # no update settles a ceiling
                verdict = Verdict.failed if calls.too_many else calls.verdict
                found.setdefault(self.typed(calls.nodeid), []).append(verdict)
        return accept_run(load_command_line(self._config), found)

    def accept(self, nodeid: str) -> str:
        """The command that accepts one test."""
        return accept_tests(load_command_line(self._config), [self.typed(nodeid)])

    def prune(self) -> str:
        """The command that deletes the baselines of tests that are gone."""
        return prune_run(load_command_line(self._config))

    def measure(self, words: Sequence[str]) -> str:
        """The command that measures these tests, given by id or by words that select them."""
        typed = [self.typed(each) if "::" in each else each for each in words]
        return measure_tests(load_command_line(self._config), typed)
