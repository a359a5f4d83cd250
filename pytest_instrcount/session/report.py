"""The reporting half of a run: the line at the top, the summary, and the files."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_instrcount.config.commands import Commands
from pytest_instrcount.config.compat import terminal_width
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.shards import shard_of
from pytest_instrcount.config.stash import OTHER_SIDE
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.host.text import escape_controls
from pytest_instrcount.report.runner import write_reports
from pytest_instrcount.report.summary import render_header, render_summary
from pytest_instrcount.report.trees import with_notes_on_trees
from pytest_instrcount.session.bundle import Bundler
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.plugins import tell
from pytest_instrcount.session.progress import say

#: In the place of the command that stores a count.
ALLOW_MORE = (
    "merge it, or allow more by max_delta= in its marker; --instrcount-against stores nothing"
)


@dataclass(slots=True, eq=False, repr=False)
class Reporter:
    """The plugin object that reports.

    ``header`` is what the line at the top of the run says, as name -> value.
    """

    config: pytest.Config
    settings: Settings
    findings: Findings
    bundler: Bundler
    header: Mapping[str, str]
    _summary: RunSummary | None = None
    _errors: list[pytest.UsageError] = field(default_factory=list)

    def say(self, line: str) -> None:
        """A line for people, while the run goes on."""
        say(self.config, self.settings, line)

    def pytest_report_header(self) -> str:
        """One line that names the tools."""
        folder = os.path.relpath(self.settings.baseline_dir, self.config.rootpath)
        against = self.settings.against
        other = {"against": str(against)} if against else {"baselines": f"in {folder}"}
        return render_header({**self.header, **other})

    def tell_others(self, hook: Any, **told: object) -> None:
        """Tell other plugins; not of what only stands in for baselines."""
        if OTHER_SIDE not in self.config.stash:
            self._errors += tell(self.config, hook, **told)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, Any, Any]:
        """Write the reports, once all is on the terminal: one that cannot be written ends the run."""
        summary = self._summarise()
        if summary.results or summary.traces:
            self.tell_others(self.config.hook.pytest_instrcount_summary, summary=summary)
        result = yield
        with as_usage_errors():
            findings = self.findings
            write_reports(self.settings.reports, self._summarise(), findings.rulings.store.path)
            findings.keeper.finish()
            self.bundler.finish()
        if self._errors:
            raise self._errors[0]
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table, the notes, and the command to type next."""
        width = min(80, terminal_width(terminalreporter))
        summary = self._summarise()
        lines = render_summary(summary, self.settings.verbosity, width, summary.failing)
        if lines and self.settings.verbosity >= 0:
            terminalreporter.ensure_newline()  # else it comes below the title
            terminalreporter.section("instrcount", "-")
        for line in lines:
            terminalreporter.write_line(escape_controls(line))

    def _summarise(self) -> RunSummary:
        if self._summary is None:
            findings, rulings, calls = self.findings, self.findings.rulings, self.findings.calls
            self._summary = RunSummary(
                results=tuple(rulings.results.values()),
                failing=frozenset(each.nodeid for each in rulings.failing()),
                environment=rulings.environment,
                groups=findings.groups,
                extra_info=findings.extra_info,
                notes=tuple(findings.notes),
                update_command=self.update_command(),
                prune_command=self._prune_command(),
                updating=self.settings.update,
                reason=self.settings.reason,
                title=self.config.rootpath.name,
                blame=self.settings.blame,
                traces=(*calls.results.values(), *calls.stale.values()),
                budgets=tuple(findings.budgets.results),
                against=self.settings.against,
                baselines="" if self.settings.against else os.path.relpath(rulings.store.folder),
                shard=shard_of(self.config),
            )
            self._summary = with_notes_on_trees(self._summary, self.settings.reports)
        return self._summary

    def accept(self, result: TestResult | CallsResult) -> str:
        """The command that accepts what became of one test, or the advice if nothing is stored."""
        commands = Commands(self.config)
        if result.verdict is Verdict.stale:
            return commands.prune()
        return ALLOW_MORE if self.settings.against else commands.accept(result.nodeid)

    def _prune_command(self) -> str:
        """The command that deletes stale baselines; "" where none are read, and where this run does."""
        pruning = self.settings.prune or self.settings.against
        return "" if pruning else Commands(self.config).prune()

    def update_command(self) -> str:
        """The command that accepts what this run has measured; "" where nothing is stored."""
        if self.settings.against:
            return ""
        results = self.findings.rulings.results.values(), self.findings.calls.results.values()
        return Commands(self.config).accept_results(*results)
