"""The judging half of a run: fail what is to fail, and store what is to be stored."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind.interpreter import dropped_options, untried_version
from pytest_instrcount.config.commands import Commands
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.shards import shard_of
from pytest_instrcount.config.stash import OTHER_SIDE
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.gate.budget import CeilingResult
from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.rulings import Rulings
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.shard import Shard
from pytest_instrcount.gate.store.updating import updating
from pytest_instrcount.host.account.current import count, phase, timed
from pytest_instrcount.report.accepted import missing_reason
from pytest_instrcount.report.budgets import budget_word, render_budget_failure
from pytest_instrcount.report.calls import explain_by_calls, render_calls_failure
from pytest_instrcount.report.causes import render_other_environment
from pytest_instrcount.report.failure import render_failure
from pytest_instrcount.report.main_cause import shared_cause
from pytest_instrcount.report.words import IR, UNIT_FACT
from pytest_instrcount.session import replay
from pytest_instrcount.session.bundle import Bundler
from pytest_instrcount.session.drift import age_and_drift
from pytest_instrcount.session.findings import Findings, find_with
from pytest_instrcount.session.inline import write_ceilings
from pytest_instrcount.session.profiles import Keeper
from pytest_instrcount.session.report import Reporter
from pytest_instrcount.session.selection import Selection
from pytest_instrcount.session.uncompared import (
    check_compared,
    judged_by,
    place_of,
    settle_left,
    settle_remarks,
)

#: Set on the report that fails a test for its count.
VERDICT_ATTRIBUTE = "instrcount_verdict"


def register_gate(
    config: pytest.Config,
    settings: Settings,
    store: Store,
    environment: Mapping[str, str],
    header: Mapping[str, str],
    valgrind: str,
) -> Gate:
    """Register who judges and who reports; ``header`` is the line at the top of the run, name -> value.

    Raises pytest.UsageError where a file or folder that the user wants cannot be written.
    """
    start, words = config.invocation_params.dir, tuple(map(str, config.invocation_params.args))
    keeper = Keeper(settings.keep, start)
    versions = {"valgrind": valgrind, "pytest": pytest.__version__}
    bundler = Bundler(settings.bundle, start, words, versions)
    with as_usage_errors():
        keeper.prepare()
        bundler.prepare()
    findings = find_with(config, settings, store, environment, keeper)
    if untried := untried_version():
        findings.note(untried)
    for option in dropped_options():
        findings.note(f"Python under Valgrind does not get {option}")
    reporter = Reporter(config, settings, findings, bundler, header)
    gate = Gate(config, settings, findings, Selection(config), bundler, reporter)
    config.pluginmanager.register(gate, "instrcount-gate")
    config.pluginmanager.register(reporter, "instrcount-report")
    return gate


@dataclass(slots=True, eq=False, repr=False)
class Gate:
    """The plugin object that judges; ``close`` does it once all is measured."""

    config: pytest.Config
    settings: Settings
    findings: Findings
    selection: Selection
    bundler: Bundler
    reporter: Reporter
    #: tests that pytest has failed
    _failed: set[str] = field(default_factory=set)
    _closed: bool = False

    @property
    def _rulings(self) -> Rulings:
        return self.findings.rulings

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Know which tests pytest has failed: they need no verdict to fail the run."""
        if report.failed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> Generator[None, Any, Any]:
        """A gate in CI that was ended before it judged is no success, whatever exit code that asked for."""
        result = yield
        if exitstatus == 0 and not self._closed and self.settings.strict:
            raise pytest.UsageError(
                "instrcount: the run was ended before its counts were judged, and "
                f"{self.settings.ci} is set [not-judged]\n  fix: let all tests run: pytest --instrcount"
            )
        return result

    # Gate and store.

    @timed("compare")
    def close(self, session: pytest.Session) -> None:
        """Store what is to be stored, and fail each test that is to fail with a report of its own."""
        self._closed = True
        settings, findings, keeper = self.settings, self.findings, self.findings.keeper
        with as_usage_errors():  # a baseline of an older format
            failed = self._failed.__contains__
            uncounted = settle_left(findings, self.selection, failed, settings.max_delta)
        settle_remarks(findings)
        stale = self._find_stale()
        if settings.update:
            self._store()
        self._fail_tests()
        written = self._write_inline() if settings.inline else set()
        for budget in findings.budgets.judge(uncounted):
            if isinstance(budget, CeilingResult) and budget.nodeid in written:
                continue
            lines = render_budget_failure(budget, self._unit)
            self._report_and_bundle(budget.nodeid, budget_word(budget), lines)
        findings.notes += keeper.notes()
        findings.notes += self.bundler.write(self._rulings.environment, self.config.rootpath)
        if not (settings.update or settings.against or OTHER_SIDE in self.config.stash):
            findings.notes += age_and_drift(self._rulings)
        if settings.prune:
            self._prune(stale)
        for result in self._rulings.results.values():
            count("verdicts", str(result.verdict))
            self.reporter.tell_others(self.config.hook.pytest_instrcount_result, result=result)
        if not session.testsfailed:
            self._check_compared()

    def _store(self) -> None:
        """Store the baselines that the policy says, and what a merge is to know."""
        rulings, calls = self._rulings, self.findings.calls
        rulings.bodies = {nodeid: each.body for nodeid, each in self.findings.places.items()}
        with as_usage_errors():
            self._check_jumps()
            with (
                phase("store", "Gate.close"),
                updating(self.settings.baseline_dir) as update,
            ):
                stored, calls_stored = rulings.write(update), calls.write(update)
            for new, old in rulings.baselines.renamed.items():
                if new in stored:
                    rulings.store.delete(rulings.store.path(old))
            rulings.results |= stored
            calls.results |= calls_stored
            if rulings.shard is not None:
                self.findings.note(self._write_shard(rulings.shard))

    def _write_inline(self) -> set[str]:
        """Write what tests may cost into their markers; returns the tests whose markers have it."""
        passed = [
            result
            for nodeid, result in self._rulings.results.items()
            if nodeid not in self._failed and self._unit == IR
        ]
        with as_usage_errors():
            written, notes = write_ceilings(
                self.config.rootpath, passed, self.findings.budgets.of_parameters
            )
        self.findings.notes += notes
        return written

    def _fail_tests(self) -> None:
        """One report for each test that is to fail, and one for all of another environment."""
        tests = judged_by(self._rulings.failing(), self.selection)
        traces = judged_by(self.findings.calls.failing(), self.selection)
        told: dict[tuple[str, ...], str] = {}
        for result in tests:
            if result.verdict in (Verdict.failed, Verdict.stale, Verdict.uncounted):
                self._fail_uncounted(result)
            else:
                self._fail_counted(result, told)
        for calls in traces:
            lines = render_calls_failure(calls, self.reporter.accept(calls))
            elsewhere = calls.cause is Cause.environment
            tell = self.bundler.failed_otherwise if elsewhere else self._report_and_bundle
            tell(calls.nodeid, str(calls.verdict), lines)
        failing: list[TestResult | CallsResult] = [*tests, *traces]
        others = [each for each in failing if each.cause is Cause.environment]
        if others:
            number = len(self._rulings.results.keys() | self.findings.calls.results.keys())
            lines = render_other_environment(others, number, self.reporter.update_command())
            self._report_verdict(others[0].nodeid, Verdict.incomparable, "\n".join(lines))

    def _fail_uncounted(self, result: TestResult) -> None:
        lines = render_failure(result, self.reporter.accept(result))
        if result.verdict is Verdict.failed:  # reported already, as an error
            self._bundle(result, lines)
        else:
            self._report_and_bundle(result.nodeid, str(result.verdict), lines)

    def _fail_counted(self, result: TestResult, told: dict[tuple[str, ...], str]) -> None:
        """Report a test, and bundle it; ``told``: cause -> the first test that tells it, whole."""
        calls = self.findings.calls.results.get(result.nodeid)
        if calls is not None:
            result = replace(result, detail=(*result.detail, *explain_by_calls(calls)))
        result = self.findings.keeper.failed(result, self._rulings.baseline(result.nodeid))
        accept, cause = self.reporter.accept(result), shared_cause(result)
        lines = render_failure(result, accept)
        if result.cause is not Cause.environment:
            first = told.setdefault(cause, result.nodeid) if cause else result.nodeid
            shown = lines if first == result.nodeid else render_failure(result, accept, like=first)
            self._report_verdict(result.nodeid, result.verdict, "\n".join(shown))
        self._bundle(result, lines)

    @property
    def _unit(self) -> str:
        return self._rulings.environment.get(UNIT_FACT, IR)

    def _check_jumps(self) -> None:
        """Raise InstrcountError "reason" where an update needs one and has none."""
        above = self.settings.reason_above
        if above is None or self.settings.reason:
            return
        jumps = self._rulings.jumps(above)
        if jumps:
            raise missing_reason(jumps, above, self.reporter.update_command())

    def _write_shard(self, shard: Shard) -> str:
        """Write what a merge is to know of this run; returns the line that says so."""
        for nodeid in self.findings.calls.results:
            shard.tests.setdefault(nodeid, None)
        path = shard.write(self._rulings.store)
        return f"for the merge of the shards: {os.path.relpath(path, self.config.rootpath)}"

    def _bundle(self, result: TestResult, lines: Sequence[str]) -> None:
        found = self._rulings.baseline(result.nodeid)
        self.bundler.failed(result, lines, found, self._rulings.measured(result.nodeid))

    def _report_and_bundle(self, nodeid: str, word: str, lines: Sequence[str]) -> None:
        self._report_verdict(nodeid, word, "\n".join(lines))
        self.bundler.failed_otherwise(nodeid, word, lines)

    def _report_verdict(self, nodeid: str, verdict: str, text: str) -> None:
        """One more report of this test, which fails it."""
        if not self.selection.is_selected(nodeid):  # else pytest's progress goes beyond 100 %
            session: Any = self.config.pluginmanager.get_plugin("session")
            session.testscollected += 1
        place = place_of(self.findings, nodeid)
        report = replay.make_report(place, "call", "failed", text)
        report.__dict__[VERDICT_ATTRIBUTE] = str(verdict)
        self.config.hook.pytest_runtest_logreport(report=report)

    def _check_compared(self) -> None:
        if self.settings.strict:  # an update is no gate
            shard, update = shard_of(self.config), self.reporter.update_command()
            check_compared(self.findings, self.selection, shard, update, self.settings.ci)

    def _find_stale(self) -> list[Path]:
        limit = self.settings.max_delta
        return [
            *self._rulings.stale(self.selection.stale, limit),
            *self.findings.calls.find_stale(self.selection.stale_table, limit),
        ]

    def _prune(self, stale: list[Path]) -> None:
        partial = self.selection.why_partial()
        if partial:
            raise pytest.UsageError(
                f"instrcount: nothing was pruned, since {partial} [prune-partial]\n"
                f"  fix: {Commands(self.config).prune()}"
            )
        for path in (*stale, *self._rulings.store.unnamed_profiles()):
            with as_usage_errors():
                self._rulings.store.delete(path)
            self.findings.note(f"deleted {os.path.relpath(path, self.config.rootpath)}")

    # Report.

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Verdict reports have a letter and a word of their own, and count as failures."""
        verdict = getattr(report, VERDICT_ATTRIBUTE, None)
        return None if verdict is None else ("failed", "I", verdict.upper())
