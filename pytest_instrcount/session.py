"""The story of a measured run: plan, measure, compare, gate, store, report."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_instrcount import facts, replay
from pytest_instrcount.accepting import accept_run, accept_tests, measure_tests
from pytest_instrcount.adopting.hooks import group_of
from pytest_instrcount.budgeting import Budgets
from pytest_instrcount.bundling import Bundler
from pytest_instrcount.callgrind.channel import Message
from pytest_instrcount.callgrind.zygote import (
    Order,
    Problem,
    Zygote,
    ZygoteFailed,
)
from pytest_instrcount.counts.work import can_count_allocations
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.baseline import Store
from pytest_instrcount.gate.calls import CallStore
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.names import env_key
from pytest_instrcount.gate.records import CallsResult, RunSummary, TestResult
from pytest_instrcount.gate.rulings import Policy, Rulings
from pytest_instrcount.keeping import Keeper
from pytest_instrcount.measuring import Heartbeat, measure_layouts, measurement_of, order_for
from pytest_instrcount.report.budgets import budget_word, render_budget_failure
from pytest_instrcount.report.calls import explain_by_calls, render_calls_failure
from pytest_instrcount.report.runner import write_reports
from pytest_instrcount.report.text import render_failure, render_header, render_summary
from pytest_instrcount.report.trees import with_notes_on_trees
from pytest_instrcount.report.words import percent
from pytest_instrcount.selection import Selection
from pytest_instrcount.settings import (
    MARKER,
    Settings,
    load_command_line,
    load_settings,
    settings_for_item,
)
from pytest_instrcount.starting import start_zygote
from pytest_instrcount.stash import is_traced
from pytest_instrcount.tracing.settings import load_trace_settings

if TYPE_CHECKING:
    from pytest_instrcount.tracing.run import TracedTests

#: So many tests that regressed are looked into, those that grew most: the others most often have
#: the same cause.
MOST_BLAMED = 20

#: Set on the report that fails a test for its count.
VERDICT_ATTRIBUTE = "instrcount_verdict"


def start_measuring(config: pytest.Config, sys_path: Sequence[str]) -> None:
    """Read the settings, find Valgrind and register the run. Raises pytest.UsageError."""
    settings = load_settings(config)
    option = config.option
    workers = getattr(option, "numprocesses", None) or getattr(option, "dist", "no") != "no"
    if workers or hasattr(config, "workerinput"):
        raise pytest.UsageError(
            "instrcount: --instrcount does not run under pytest-xdist yet; it uses all cores by "
            "itself [xdist]\n  fix: pytest --instrcount -n 0"
        )
    if getattr(option, "setuponly", False) or getattr(option, "setupplan", False):
        return
    keeper = Keeper(settings.keep, config.invocation_params.dir)
    try:
        valgrind, version = facts.find_valgrind(settings.valgrind)
        keeper.prepare()
        words = tuple(map(str, config.invocation_params.args))
        versions = {"valgrind": version, "pytest": pytest.__version__}
        bundler = Bundler(settings.bundle, config.invocation_params.dir, words, versions)
        bundler.prepare()
    except InstrcountError as error:
        raise pytest.UsageError(str(error)) from None
    tracer = load_trace_settings(config).backend_name
    run = MeasuredRun(config, settings, valgrind, version, sys_path, tracer, keeper, bundler)
    config.pluginmanager.register(run, "instrcount-run")


class MeasuredRun:
    """The plugin object of a run with ``--instrcount``; its hooks are in the order of the story."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        valgrind: str,
        version: str,
        sys_path: Sequence[str],
        tracer: str,
        keeper: Keeper,
        bundler: Bundler,
    ) -> None:
        self._tracer = tracer
        self._keeper = keeper
        self._bundler = bundler
        self._config = config
        self._settings = settings
        self._valgrind = valgrind
        self._version = version
        self._sys_path = list(sys_path)
        self._native = bool(config.option.usepdb or config.option.trace)
        self._selection = Selection(config)
        config.pluginmanager.register(self._selection, "instrcount-selection")
        self._rulings = Rulings(
            Store(
                settings.baseline_dir,
                env_key("cp", sys.version_info[:2], sys.platform, os.uname().machine),
            ),
            facts.environment_facts(version, settings.let_through),
            Policy(
                missing="fail" if settings.missing_fails else "note",
                incomparable=settings.incomparable,  # type: ignore[arg-type]
                improved=settings.improved,  # type: ignore[arg-type]
                update=settings.policy if settings.update else None,  # type: ignore[arg-type]
            ),
        )
        self._rulings.hold = settings.bundle is not None
        self._packages = facts.Packages()
        self._budgets = Budgets(config.rootpath, self._measure_command)
        self._zygote: Zygote | None = None
        self._tracing: TracedTests | None = None
        self._calls: dict[str, CallsResult] = {}
        self._numbers: dict[str, int] = {}
        self._chosen: dict[str, Settings] = {}
        self._items: dict[str, pytest.Item] = {}
        self._passed: set[str] = set()
        self._notes: list[str] = []
        self._groups: dict[str, str] = {}
        self._summary: RunSummary | None = None
        self._owner = os.getpid()

    # Plan.

    def pytest_report_header(self) -> str:
        """One line that names the tools."""
        folder = os.path.relpath(self._settings.baseline_dir, self._config.rootpath)
        python = ".".join(map(str, sys.version_info[:3]))
        return render_header(
            {
                "valgrind": self._version,
                "CPython": python,
                "tracer": self._tracer,
                "baselines": f"in {folder}",
            }
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Start the zygote; it gets ready while pytest collects."""
        if self._native:
            self._notes.append(
                "nothing is measured under --pdb and --trace: the tests ran natively"
            )
            return
        self._zygote = self._start_zygote(self._valgrind)

    def _start_zygote(self, valgrind: str, options: Sequence[str] = ()) -> Zygote:
        try:
            return start_zygote(self._config, self._settings, valgrind, self._sys_path, options)
        except InstrcountError as error:
            raise pytest.UsageError(str(error)) from None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check all markers, then ask for all measurements at once."""
        if self._zygote is None:
            return
        mistakes = []
        orders = []
        for item in session.items:
            if item.get_closest_marker(MARKER) is None:
                continue
            settings, wrong = settings_for_item(item, self._settings)
            mistakes += [f"{item.nodeid}: the instrcount marker {each}" for each in wrong]
            if not isinstance(item, pytest.Function):
                mistakes.append(f"{item.nodeid}: only Python test functions can be measured")
            elif item.nodeid not in self._chosen:
                self._chosen[item.nodeid] = settings
                self._items[item.nodeid] = item
                orders.append(self._order(item))
        mistakes += self._budgets.plan(
            session.items, {nodeid: chosen.budget for nodeid, chosen in self._chosen.items()}
        )
        if mistakes:
            raise pytest.UsageError("\n".join(["instrcount: wrong markers [marker]", *mistakes]))
        traced = self._find_traced(session.items)
        self._selection.note_measured(self._chosen)
        self._selection.note_traced(item.nodeid for item in traced)
        if traced:
            from pytest_instrcount.tracing.run import TracedTests

            self._tracing = TracedTests(
                self._start_zygote(""),
                traced,
                self._settings,
                CallStore(self._rulings.store),
                self._rulings.policy,
            )
            self._config.pluginmanager.register(self._tracing.limits, "instrcount-limits")
        if not orders:
            self._zygote.end()
            self._zygote = None
            return
        first = self._zygote.ask(orders)
        self._numbers = {order.nodeid: first + number for number, order in enumerate(orders)}

    def _find_traced(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """Tests whose calls are counted, too; the tracers are imported only if there are some."""
        if not any(is_traced(item) for item in items):
            return []
        from pytest_instrcount.tracing.run import find_traced

        return find_traced(items)

    def _order(self, item: pytest.Item) -> Order:
        settings, verbose = self._chosen[item.nodeid], self._config.getoption("verbose", 0)
        known = self._rulings.made_with(item.nodeid)
        return order_for(item.nodeid, item.path, settings, known, verbose)

    # Measure.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Around the tests: say what is coming, then gate."""
        if self._numbers:
            number, jobs = len(self._numbers), facts.core_count()
            tests = f"{number} test{'' if number == 1 else 's'}"
            self._say(f"instrcount: measuring {tests} under Valgrind, {jobs} at a time")
        try:
            result = yield
        except (session.Interrupted, session.Failed, KeyboardInterrupt, pytest.exit.Exception):
            self._notes.append("gate skipped: the run was interrupted; no baseline was written")
            self._end_zygote()
            raise
        try:
            if self._zygote is not None:
                self._notes += measure_layouts(
                    self._zygote,
                    self._rulings,
                    lambda nodeid: self._order(self._items[nodeid]),
                    self._limits_of,
                    self._say,
                )
            self._end_counting()
            self._attribute()
            if self._tracing is not None:
                self._tracing.rule(
                    lambda nodeid: Heartbeat(self._say, nodeid), self._passed.__contains__
                )
                self._notes += self._tracing.notes
        except ZygoteFailed as error:
            raise pytest.UsageError(str(error)) from None
        finally:
            self._end_zygote()
        if not self._native:
            self._gate(session)
        return result

    def _limits_of(self, nodeid: str) -> tuple[Limit, Limit | None]:
        chosen = self._chosen[nodeid]
        return chosen.max_delta, chosen.max_allocs_delta

    def _attribute(self) -> None:
        """Find out by Python function what regressed, and what is about to be stored."""
        if self._settings.blame == "off":
            return
        wanted = list(self._rulings.to_attribute(MOST_BLAMED))
        if not wanted:
            return
        from pytest_instrcount.blaming import Blaming

        blaming = Blaming(
            self._start_zygote,
            self._settings.blame,
            self._valgrind,
            self._config.rootpath,
        )
        orders = [
            (
                replace(
                    self._order(self._items[measurement.nodeid]),
                    warmup=measurement.warmup,
                    calls=measurement.calls,
                    pilot=False,
                ),
                how,
            )
            for measurement, how in wanted
        ]
        trees = blaming.measure(orders, self._say, lambda nodeid: Heartbeat(self._say, nodeid))
        for nodeid, tree in trees.items():
            self._rulings.attribute(nodeid, tree)
            self._keeper.attributed(nodeid, tree)
        self._notes += blaming.notes

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """A measured test ran under Valgrind: its reports are told here. Others run as ever."""
        if item.nodeid not in self._chosen or self._zygote is None:
            return None
        number = self._numbers.pop(item.nodeid, None)
        if number is None:  # it runs a second time (--keep-duplicates): a result can be had once
            number = self._zygote.ask([self._order(item)])
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            answer = self._zygote.wait(number, Heartbeat(self._say, item.nodeid))
        except ZygoteFailed as error:
            self._end_zygote()
            raise pytest.UsageError(str(error)) from None
        if isinstance(answer, Problem):
            self._report_problem(item, answer)
        else:
            self._report_result(item, answer)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        self._finalise_neighbours(item, nextitem)
        return True

    def _report_problem(self, item: pytest.Item, problem: Problem) -> None:
        limit = self._chosen[item.nodeid].max_delta
        self._rulings.fail(item.nodeid, limit, problem.why.partition("\n")[0])
        text = f"instrcount: {problem.why} [{problem.slug}]"
        if problem.detail:
            text += f"\n--- the last lines under Valgrind ---\n{problem.detail}"
        remedy = problem.remedy(shlex.quote(self._typed(item.nodeid)))
        if (
            problem.slug == "timeout"
            and self._chosen[item.nodeid].timeout != self._settings.timeout
        ):
            remedy += "    (timeout= in its marker wins)"
        text += f"\n  fix: {remedy}" if remedy else ""
        replay.log_reports(item, replay.error_reports(item, text), [])

    def _report_result(self, item: pytest.Item, result: Message) -> None:
        reports = replay.load_reports(self._config, result)
        replay.repeat_warnings(self._config, result["warnings"])
        properties: list[tuple[str, object]] = []
        group = result["group"] or group_of(item)
        if group is not None:
            self._groups[item.nodeid] = group
        if result["unused"]:
            self._notes.append(f"{item.nodeid}: never calls benchmark, so nothing was measured")
        # A test that failed or was skipped gets no verdict, whatever it had counted by then.
        elif replay.passed(reports) and "ended" not in result:
            problem = result["problem"]
            if not problem and result["counted"] is None:
                problem = "the process that counts it was killed"
            what, line, rest = problem.partition("\n")
            text = f"instrcount: {what} [not-measured]{line}{rest}" if problem else ""
            try:
                properties = [] if problem else self._rule(item, result)
            except InstrcountError as error:
                text = str(error)
            if text:
                limit = self._chosen[item.nodeid].max_delta
                self._rulings.fail(item.nodeid, limit, text.removeprefix("instrcount: "))
                reports = replay.add_error(item, reports, text)
        replay.show_output(self._config, reports, result["shown"])
        replay.log_reports(item, reports, properties)
        replay.end_session_as(result)

    def _rule(self, item: pytest.Item, result: Message) -> list[tuple[str, object]]:
        """Compare what was counted with the baseline; returns the properties for JUnit."""
        baseline = self._rulings.baseline(item.nodeid)
        if isinstance(baseline, InstrcountError):
            raise baseline
        self._keeper.counted(item.nodeid, result)
        measurement = measurement_of(item.nodeid, result, self._packages)
        limited = self._chosen[item.nodeid].max_allocs_delta is not None
        if limited and not can_count_allocations(measurement.profile):
            raise InstrcountError(
                "allocations",
                "this Python has no symbols, so its allocations cannot all be counted",
                "use a Python with symbols (uv, pyenv, or the package python3-dbg), or leave "
                "max_allocs_delta out",
            )
        if result["threads"]:
            self._notes.append(f"{item.nodeid}: threads were alive, so it had a process of its own")
        self._budgets.note(measurement)
        ruling = self._rulings.rule(measurement, *self._limits_of(item.nodeid))
        properties: list[tuple[str, object]] = [("instrcount.ir", ruling.ir)]
        if ruling.delta is not None:
            properties.append(("instrcount.delta", percent(ruling.delta)))
        return properties

    def _finalise_neighbours(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """End what native tests before this one have set up and the next one does not share."""
        state: Any = item.session._setupstate
        if not state.stack:
            return
        call = pytest.CallInfo.from_call(
            lambda: state.teardown_exact(nextitem),
            when="teardown",
            reraise=(pytest.exit.Exception, KeyboardInterrupt),
        )
        if call.excinfo is not None:
            report = item.ihook.pytest_runtest_makereport(item=item, call=call)
            item.ihook.pytest_runtest_logreport(report=report)

    # Gate and store.

    def _gate(self, session: pytest.Session) -> None:
        """Store what is to be stored, and fail each test that is to fail with a report of its own."""
        settings = self._settings
        stale = self._find_stale()
        if settings.update:
            try:
                self._rulings.write()
                if self._tracing is not None:
                    self._tracing.write()
            except InstrcountError as error:
                raise pytest.UsageError(str(error)) from None
        for result in self._rulings.failing():
            if result.verdict is Verdict.failed:  # told already, as an error
                self._bundle(result, render_failure(result, ""))
                continue
            calls = self._tracing.results.get(result.nodeid) if self._tracing else None
            if calls is not None:
                result = replace(result, detail=(*result.detail, *explain_by_calls(calls)))
            result = self._keeper.failed(result, self._rulings.baseline(result.nodeid))
            lines = render_failure(result, self._accept_command(result.nodeid))
            self._report_verdict(self._items[result.nodeid], result.verdict, "\n".join(lines))
            self._bundle(result, lines)
        if self._tracing is not None:
            for calls in self._tracing.failing():
                accept = self._accept_command(calls.nodeid)
                lines = render_calls_failure(calls, accept)
                item = self._tracing.items[calls.nodeid]
                self._report_verdict(item, calls.verdict, "\n".join(lines))
                self._bundler.failed_by_calls(calls.nodeid, calls.verdict, lines)
        for budget in self._budgets.judge():
            text = "\n".join(render_budget_failure(budget))
            self._report_verdict(self._items[budget.nodeid], budget_word(budget), text)
        self._notes += self._keeper.notes()
        self._notes += self._bundler.write(self._rulings.environment, self._config.rootpath)
        if settings.prune:
            self._prune(session, stale)
        if self._compared_nothing() and not session.testsfailed:
            fix = self._update_command()
            if not self._chosen and self._tracing is None:
                fix = "pytest without --instrcount: no test with a marker of it was selected"
            raise pytest.UsageError(
                "instrcount: this run compared no test with a baseline, and CI is set "
                f"[nothing-compared]\n  fix: {fix}"
            )

    def _bundle(self, result: TestResult, lines: Sequence[str]) -> None:
        found = self._rulings.baseline(result.nodeid)
        self._bundler.failed(result, lines, found, self._rulings.measured(result.nodeid))

    def _report_verdict(self, item: pytest.Item, verdict: str, text: str) -> None:
        """One more report of this test, which fails it."""
        report = replay.make_report(item, "call", "failed", text)
        report.__dict__[VERDICT_ATTRIBUTE] = str(verdict)
        self._config.hook.pytest_runtest_logreport(report=report)

    def _compared_nothing(self) -> bool:
        """Whether a gate in CI passes on nothing; an update and a prune are no gates."""
        settings = self._settings
        gate = settings.ci and not settings.update and not settings.prune
        traced = self._tracing is not None and any(
            result.delta is not None for result in self._tracing.results.values()
        )
        compared = traced or self._rulings.compared() or self._budgets.results
        return gate and not compared

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Know which tests have passed: of others nothing is compared."""
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
        elif report.failed:
            self._passed.discard(report.nodeid)

    def _find_stale(self) -> list[Path]:
        limit = self._settings.max_delta
        gone = self._rulings.stale(self._selection.is_stale, limit)
        for path, owner in CallStore(self._rulings.store).list():
            if self._selection.is_stale_table(owner):
                gone.append(path)
                self._calls[owner] = CallsResult(owner, Verdict.stale, None, None, limit)
        return gone

    def _prune(self, session: pytest.Session, stale: list[Path]) -> None:
        partial = self._selection.why_partial(session)
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
            self._notes.append(f"deleted {os.path.relpath(path, self._config.rootpath)}")

    # Report.

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Verdict reports have a letter and a word of their own, and count as failures."""
        verdict = getattr(report, VERDICT_ATTRIBUTE, None)
        return None if verdict is None else ("failed", "I", verdict.upper())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Write the reports, once all is on the terminal: one that cannot be written ends the run."""
        self._end_zygote()
        result = yield
        try:
            write_reports(self._settings.reports, self._summarise(), self._rulings.store.path)
            self._keeper.finish()
            self._bundler.finish()
        except InstrcountError as error:
            raise pytest.UsageError(str(error)) from None
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table, the notes, and the command to type next."""
        width = min(80, terminalreporter._tw.fullwidth)
        lines = render_summary(self._summarise(), self._settings.verbosity, width)
        if lines and self._settings.verbosity >= 0:
            terminalreporter.ensure_newline()  # else it comes below the title
            terminalreporter.section("instrcount", "-")
        for line in lines:
            terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Nothing survives the run."""
        self._end_zygote()

    def _summarise(self) -> RunSummary:
        if self._summary is None:
            results = tuple(self._rulings.results.values())
            self._summary = RunSummary(
                results=results,
                environment=self._rulings.environment,
                groups=self._groups,
                notes=tuple(self._notes),
                update_command=self._update_command(),
                updating=self._settings.update,
                title=self._config.rootpath.name,
                blame=self._settings.blame,
                traces=(
                    *(self._tracing.results.values() if self._tracing else ()),
                    *self._calls.values(),
                ),
                budgets=tuple(self._budgets.results),
            )
            self._summary = with_notes_on_trees(self._summary, self._settings.reports)
        return self._summary

    def _update_command(self) -> str:
        """The command that accepts what this run has measured."""
        found: dict[str, list[Verdict]] = {}
        for result in self._rulings.results.values():
            if not result.written:
                found.setdefault(self._typed(result.nodeid), []).append(result.verdict)
        for calls in self._tracing.results.values() if self._tracing else ():
            if not calls.written:  # no update settles a ceiling
                verdict = Verdict.failed if calls.too_many else calls.verdict
                found.setdefault(self._typed(calls.nodeid), []).append(verdict)
        return accept_run(load_command_line(self._config), found)

    def _accept_command(self, nodeid: str) -> str:
        """The command that accepts one test."""
        return accept_tests(load_command_line(self._config), [self._typed(nodeid)])

    def _measure_command(self, words: Sequence[str]) -> str:
        """The command that measures these tests, given by id or by words that select them."""
        typed = [self._typed(each) if "::" in each else each for each in words]
        return measure_tests(load_command_line(self._config), typed)

    def _typed(self, nodeid: str) -> str:
        """A test as it is to be typed where pytest was started."""
        config = self._config
        file, colons, test = nodeid.partition("::")
        if config.rootpath == config.invocation_params.dir:
            return nodeid
        return os.path.relpath(config.rootpath / file, config.invocation_params.dir) + colons + test

    def _say(self, line: str) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and self._settings.verbosity >= 0:
            reporter.ensure_newline()
            reporter.write_line(line)

    def _end_counting(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.end()

    def _end_zygote(self) -> None:
        if os.getpid() != self._owner:
            return
        self._end_counting()
        if self._tracing is not None:
            self._tracing.end()
