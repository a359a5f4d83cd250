"""The judging half of a run: fail what is to fail, store what is to be stored, report."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.config.commands import Commands
from pytest_instrcount.config.compat import terminal_width
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import OTHER_SIDE
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.call_rulings import CallRulings
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import CallsResult, RunSummary, TestResult
from pytest_instrcount.gate.rulings import Policy, Rulings
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.calls import CallStore
from pytest_instrcount.gate.store.ledger import COMMIT_DIGITS
from pytest_instrcount.gate.store.shard import Shard
from pytest_instrcount.gate.store.updating import updating
from pytest_instrcount.host.account.current import count, phase, timed
from pytest_instrcount.host.text import unobeyed
from pytest_instrcount.report.accepted import missing_reason
from pytest_instrcount.report.budgets import budget_word, render_budget_failure
from pytest_instrcount.report.calls import explain_by_calls, render_calls_failure
from pytest_instrcount.report.causes import render_other_environment
from pytest_instrcount.report.runner import write_reports
from pytest_instrcount.report.text import render_failure, render_header, render_summary
from pytest_instrcount.report.trees import OF_TREES, with_notes_on_trees
from pytest_instrcount.report.words import IR, UNIT_FACT
from pytest_instrcount.session import replay
from pytest_instrcount.session.budgets import Budgets
from pytest_instrcount.session.bundle import Bundler, git_commit
from pytest_instrcount.session.drift import age_and_drift
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.plugins import tell
from pytest_instrcount.session.profiles import Keeper
from pytest_instrcount.session.progress import say
from pytest_instrcount.session.selection import Selection
from pytest_instrcount.session.uncompared import judged_by, place_of, settle_left, settle_remarks

#: In the place of the command that stores a count.
ALLOW_MORE = (
    "merge it, or allow more by max_delta= in its marker; --instrcount-against stores nothing"
)
#: Where none of the tests is in the other commit.
OTHER_REF = "pytest --instrcount-against=REF with a commit that has these tests"

#: Set on the report that fails a test for its count.
VERDICT_ATTRIBUTE = "instrcount_verdict"


def find_with(
    config: pytest.Config,
    settings: Settings,
    store: Store,
    environment: Mapping[str, str],
    keeper: Keeper,
) -> Findings:
    """Findings that are held against the baselines of a store."""
    policy = Policy(
        missing="fail" if settings.missing_fails else "note",
        incomparable="fail" if settings.incomparable_fails else "warn",
        improved=settings.improved,  # type: ignore[arg-type]
        update=settings.policy if settings.update else None,  # type: ignore[arg-type]
        strict=settings.strict,
        allowed=settings.allow,
    )
    rulings = Rulings(store, environment, policy, hold=settings.bundle is not None)
    rulings.shard = Shard() if settings.shard else None
    rulings.trees = any(kind in OF_TREES for kind, _ in settings.reports)
    rulings.reason = settings.reason
    if settings.reason:
        rulings.commit = git_commit(config.rootpath).removesuffix("+")[:COMMIT_DIGITS]
    return Findings(
        rulings,
        CallRulings(CallStore(store), policy),
        Budgets(config.rootpath, Commands(config).measure),
        keeper,
    )


class Gate:
    """The plugin object that decides and reports; ``close`` does it once all is measured.

    ``header`` is what the line at the top of the run says, as name -> value.
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        findings: Findings,
        selection: Selection,
        bundler: Bundler,
        header: Mapping[str, str],
    ) -> None:
        self._config = config
        self._settings = settings
        self._findings = findings
        self._rulings = findings.rulings
        self._calls = findings.calls
        self._selection = selection
        self._bundler = bundler
        self._header = header
        self._commands = Commands(config)
        self._summary: RunSummary | None = None
        self._errors: list[pytest.UsageError] = []
        self._failed: set[str] = set()

    def say(self, line: str) -> None:
        """A line for people, while the run goes on."""
        say(self._config, self._settings, line)

    def pytest_report_header(self) -> str:
        """One line that names the tools."""
        folder = os.path.relpath(self._settings.baseline_dir, self._config.rootpath)
        against = self._settings.against
        other = {"against": str(against)} if against else {"baselines": f"in {folder}"}
        return render_header({**self._header, **other})

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Know which tests pytest has failed: they need no verdict to fail the run."""
        if report.failed:
            self._failed.add(report.nodeid)

    # Gate and store.

    @timed("compare")
    def close(self, session: pytest.Session) -> None:
        """Store what is to be stored, and fail each test that is to fail with a report of its own."""
        settings, findings, keeper = self._settings, self._findings, self._findings.keeper
        try:
            settle_left(findings, self._selection, self._failed.__contains__, settings.max_delta)
        except InstrcountError as error:  # a baseline of an older format
            raise pytest.UsageError(str(error)) from None
        settle_remarks(findings)
        stale = self._find_stale()
        if settings.update:
            try:
                self._check_jumps()
                with phase("store", "Gate.close"), updating(settings.baseline_dir) as update:
                    stored, calls_stored = self._rulings.write(update), self._calls.write(update)
                self._rulings.results |= stored
                self._calls.results |= calls_stored
                if self._rulings.shard is not None:
                    findings.note(self._write_shard(self._rulings.shard))
            except InstrcountError as error:
                raise pytest.UsageError(str(error)) from None
        whole = self._selection.knows_all()
        tests = judged_by(self._rulings.failing(), whole=whole)
        traces = judged_by(self._calls.failing(), whole=whole)
        for result in tests:
            if result.verdict is Verdict.failed:  # told already, as an error
                self._bundle(result, render_failure(result, ""))
                continue
            if result.verdict in (Verdict.stale, Verdict.uncounted):
                lines = render_failure(result, "")
                self._report_verdict(result.nodeid, result.verdict, "\n".join(lines))
                continue
            calls = self._calls.results.get(result.nodeid)
            if calls is not None:
                result = replace(result, detail=(*result.detail, *explain_by_calls(calls)))
            result = keeper.failed(result, self._rulings.baseline(result.nodeid))
            lines = render_failure(result, self._accept(result.nodeid))
            if result.cause is not Cause.environment:
                self._report_verdict(result.nodeid, result.verdict, "\n".join(lines))
            self._bundle(result, lines)
        for calls in traces:
            lines = render_calls_failure(calls, self._accept(calls.nodeid))
            if calls.cause is not Cause.environment:
                self._report_verdict(calls.nodeid, calls.verdict, "\n".join(lines))
            if calls.verdict is not Verdict.stale:
                self._bundler.failed_by_calls(calls.nodeid, calls.verdict, lines)
        elsewhere: list[TestResult | CallsResult] = [*tests, *traces]
        elsewhere = [each for each in elsewhere if each.cause is Cause.environment]
        if elsewhere:
            number = len(self._rulings.results.keys() | self._calls.results.keys())
            lines = render_other_environment(elsewhere, number, self._update_command())
            self._report_verdict(elsewhere[0].nodeid, Verdict.incomparable, "\n".join(lines))
        for budget in findings.budgets.judge():
            text = "\n".join(render_budget_failure(budget, self._unit))
            self._report_verdict(budget.nodeid, budget_word(budget), text)
        findings.notes += keeper.notes()
        findings.notes += self._bundler.write(self._rulings.environment, self._config.rootpath)
        if not (settings.update or settings.against or OTHER_SIDE in self._config.stash):
            findings.notes += age_and_drift(self._rulings)
        if settings.prune:
            self._prune(stale)
        for result in self._rulings.results.values():
            count("verdicts", str(result.verdict))
            self._tell(self._config.hook.pytest_instrcount_result, result=result)
        if self._compared_nothing() and not session.testsfailed:
            fix = self._update_command() or OTHER_REF
            if not findings.places:
                fix = "pytest without --instrcount: no test with a marker of it was selected"
            raise pytest.UsageError(
                "instrcount: this run compared no test with a baseline, and CI is set "
                f"[nothing-compared]\n  fix: {fix}"
            )

    @property
    def _unit(self) -> str:
        return self._rulings.environment.get(UNIT_FACT, IR)

    def _check_jumps(self) -> None:
        """Raise InstrcountError "reason" where an update needs one and has none."""
        above = self._settings.reason_above
        if above is None or self._settings.reason:
            return
        jumps = self._rulings.jumps(above)
        if jumps:
            raise missing_reason(jumps, above, self._update_command())

    def _write_shard(self, shard: Shard) -> str:
        """Write what a merge is to know of this run; returns the line that says so."""
        for nodeid in self._calls.results:
            shard.tests.setdefault(nodeid, None)
        path = shard.write(self._rulings.store)
        return f"for the merge of the shards: {os.path.relpath(path, self._config.rootpath)}"

    def _tell(self, hook: Any, **told: object) -> None:
        """Tell other plugins; not of what only stands in for baselines."""
        if OTHER_SIDE not in self._config.stash:
            self._errors += tell(self._config, hook, **told)

    def _bundle(self, result: TestResult, lines: Sequence[str]) -> None:
        found = self._rulings.baseline(result.nodeid)
        self._bundler.failed(result, lines, found, self._rulings.measured(result.nodeid))

    def _report_verdict(self, nodeid: str, verdict: str, text: str) -> None:
        """One more report of this test, which fails it."""
        place = place_of(self._findings, nodeid)
        report = replay.make_report(place, "call", "failed", text)
        report.__dict__[VERDICT_ATTRIBUTE] = str(verdict)
        self._config.hook.pytest_runtest_logreport(report=report)

    def _compared_nothing(self) -> bool:
        """Whether a gate in CI passes on nothing; an update and a prune are no gates."""
        settings, findings = self._settings, self._findings
        gate = settings.ci and not settings.update and not settings.prune
        compared = (
            self._calls.compared() or self._rulings.compared() or bool(findings.budgets.results)
        )
        return gate and not compared

    def _find_stale(self) -> list[Path]:
        limit = self._settings.max_delta
        return [
            *self._rulings.stale(self._selection.stale, limit),
            *self._calls.find_stale(self._selection.stale_table, limit),
        ]

    def _prune(self, stale: list[Path]) -> None:
        partial = self._selection.why_partial()
        if partial:
            raise pytest.UsageError(
                f"instrcount: nothing was pruned, since {partial} [prune-partial]\n"
                "  fix: pytest --instrcount-prune"
            )
        for path in stale:
            try:
                self._rulings.store.delete(path)
            except InstrcountError as error:
                raise pytest.UsageError(str(error)) from None
            self._findings.note(f"deleted {os.path.relpath(path, self._config.rootpath)}")

    # Report.

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Verdict reports have a letter and a word of their own, and count as failures."""
        verdict = getattr(report, VERDICT_ATTRIBUTE, None)
        return None if verdict is None else ("failed", "I", verdict.upper())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, Any, Any]:
        """Write the reports, once all is on the terminal: one that cannot be written ends the run."""
        summary = self._summarise()
        if summary.results or summary.traces:
            self._tell(self._config.hook.pytest_instrcount_summary, summary=summary)
        result = yield
        try:
            write_reports(self._settings.reports, self._summarise(), self._rulings.store.path)
            self._findings.keeper.finish()
            self._bundler.finish()
        except InstrcountError as error:
            raise pytest.UsageError(str(error)) from None
        if self._errors:
            raise self._errors[0]
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table, the notes, and the command to type next."""
        width = min(80, terminal_width(terminalreporter))
        told = {result.nodeid for result in self._rulings.failing()}
        lines = render_summary(self._summarise(), self._settings.verbosity, width, told)
        if lines and self._settings.verbosity >= 0:
            terminalreporter.ensure_newline()  # else it comes below the title
            terminalreporter.section("instrcount", "-")
        for line in lines:
            terminalreporter.write_line(unobeyed(line))

    def _summarise(self) -> RunSummary:
        if self._summary is None:
            findings = self._findings
            results = tuple(self._rulings.results.values())
            self._summary = RunSummary(
                results=results,
                environment=self._rulings.environment,
                groups=findings.groups,
                extra_info=findings.extra_info,
                notes=tuple(findings.notes),
                update_command=self._update_command(),
                updating=self._settings.update,
                reason=self._settings.reason,
                title=self._config.rootpath.name,
                blame=self._settings.blame,
                traces=(*self._calls.results.values(), *self._calls.stale.values()),
                budgets=tuple(findings.budgets.results),
                against=self._settings.against,
            )
            self._summary = with_notes_on_trees(self._summary, self._settings.reports)
        return self._summary

    def _accept(self, nodeid: str) -> str:
        """How one test is accepted: the command, or what to do where nothing is stored."""
        return ALLOW_MORE if self._settings.against else self._commands.accept(nodeid)

    def _update_command(self) -> str:
        """The command that accepts what this run has measured; "" where nothing is stored."""
        if self._settings.against:
            return ""
        results = self._rulings.results.values(), self._calls.results.values()
        return self._commands.accept_results(*results)
