"""A plugin for pytest-instrcount that uses each of its hooks.

    pip install ./examples/plugin
    pytest --instrcount

Imports of pytest_instrcount are within functions: without --instrcount they cost nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_instrcount import ChildSpec, Limit, RunSummary, TestResult

#: Where it is said which tests were slower than before, a line for each.
JOURNAL = "slower.jsonl"

SUMMARY = pytest.StashKey["RunSummary"]()


def pytest_configure(config: pytest.Config) -> None:
    """Declare a marker of our own, that the limit below is made from."""
    config.addinivalue_line("markers", "io: this test reads files, and may waver by 5 %.")


@pytest.hookimpl(optionalhook=True)
def pytest_instrcount_environment(config: pytest.Config) -> Mapping[str, str]:
    """Counts with another SQLite are not compared."""
    return {"sqlite": sqlite3.sqlite_version}


@pytest.hookimpl(optionalhook=True)
def pytest_instrcount_child(config: pytest.Config) -> ChildSpec:
    """Tests under Valgrind find our library in its quiet mode, and are told who they are."""
    from pytest_instrcount import ChildSpec

    return ChildSpec(let_through=("EXAMPLE_KEY",), variables={"EXAMPLE_MODE": "quiet"})


@pytest.hookimpl(optionalhook=True)
def pytest_instrcount_limit(item: pytest.Item, limit: Limit) -> str | None:
    """Tests with the marker ``io`` have a limit of their own."""
    return "5%" if item.get_closest_marker("io") else None


@pytest.hookimpl(optionalhook=True)
def pytest_instrcount_result(config: pytest.Config, result: TestResult) -> None:
    """Note each test that became slower."""
    if result.verdict == "regressed":
        line = {"nodeid": result.nodeid, "before": result.baseline_ir, "now": result.ir}
        with (config.rootpath / JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(line) + "\n")


@pytest.hookimpl(optionalhook=True)
def pytest_instrcount_summary(config: pytest.Config, summary: RunSummary) -> None:
    """Keep it for the end of the terminal's output."""
    config.stash[SUMMARY] = summary


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what the counts of this run are counts of."""
    summary = config.stash.get(SUMMARY, None)
    if summary is not None:
        number, sqlite = len(summary.results), summary.environment["sqlite"]
        terminalreporter.write_line(f"example: {number} counts with SQLite {sqlite}")
