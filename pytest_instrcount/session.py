"""The story of a measured run: plan, measure, compare, gate, store, report."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount import facts, replay
from pytest_instrcount.callgrind.canonical import (
    canonical_args,
    canonical_options,
    presentation,
)
from pytest_instrcount.callgrind.channel import Message
from pytest_instrcount.callgrind.command import child_environment
from pytest_instrcount.callgrind.layout import OTHER_LAYOUTS
from pytest_instrcount.callgrind.parse import Profile, parse_profile, sum_profiles
from pytest_instrcount.callgrind.scratch import take_scratch
from pytest_instrcount.callgrind.zygote import (
    Order,
    Problem,
    Zygote,
    ZygoteFailed,
    ZygoteSetup,
)
from pytest_instrcount.counts.noise import differing_functions
from pytest_instrcount.counts.standardize import standardize_profile
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.baseline import Store
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.measurement import Measurement
from pytest_instrcount.gate.names import env_key
from pytest_instrcount.gate.records import RunSummary
from pytest_instrcount.gate.rulings import Policy, Rulings
from pytest_instrcount.report.json import write_report
from pytest_instrcount.report.text import render_failure, render_header, render_summary
from pytest_instrcount.report.words import percent
from pytest_instrcount.selection import Selection
from pytest_instrcount.settings import MARKER, Settings, load_settings, settings_for_item

#: A line is written so often while one result is awaited: a silent CI job looks like a hung one.
_HEARTBEAT_SECONDS = 30.0

_UPDATE = "--instrcount-update-baseline"

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
    try:
        valgrind, version = facts.find_valgrind(settings.valgrind)
    except InstrcountError as error:
        raise pytest.UsageError(str(error)) from None
    run = MeasuredRun(config, settings, valgrind, version, sys_path)
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
    ) -> None:
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
        self._packages = facts.Packages()
        self._zygote: Zygote | None = None
        self._numbers: dict[str, int] = {}
        self._chosen: dict[str, Settings] = {}
        self._items: dict[str, pytest.Item] = {}
        self._notes: list[str] = []
        self._summary: RunSummary | None = None
        self._owner = os.getpid()

    # Plan.

    def pytest_report_header(self) -> str:
        """One line that names the tools."""
        folder = os.path.relpath(self._settings.baseline_dir, self._config.rootpath)
        python = ".".join(map(str, sys.version_info[:3]))
        return render_header(
            {"valgrind": self._version, "CPython": python, "baselines": f"in {folder}"}
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Start the zygote; it gets ready while pytest collects."""
        if self._native:
            self._notes.append(
                "nothing is measured under --pdb and --trace: the tests ran natively"
            )
            return
        try:
            scratch = take_scratch()
        except InstrcountError as error:
            raise pytest.UsageError(str(error)) from None
        config, settings = self._config, self._settings
        option = vars(config.option)
        setup = ZygoteSetup(
            valgrind=self._valgrind,
            environment=child_environment(
                os.environ, settings.let_through, sys.executable, scratch.path
            ),
            folder=str(config.invocation_params.dir),
            options=canonical_options(
                option,
                config.rootpath,
                config.inipath,
                scratch.path,
                lambda name: has_ini(config, name),
            ),
            args=canonical_args(list(config.option.plugins), config.rootpath),
            sys_path=self._sys_path,
            presentation=presentation(option),
            timeout=settings.timeout,
            jobs=facts.core_count(),
        )
        self._zygote = Zygote(setup, scratch)

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
                orders.append(self._order(item, settings))
        if mistakes:
            raise pytest.UsageError("\n".join(["instrcount: wrong markers [marker]", *mistakes]))
        self._selection.note_measured(self._chosen)
        if not orders:
            self._end_zygote()
            return
        first = self._zygote.ask(orders)
        self._numbers = {order.nodeid: first + number for number, order in enumerate(orders)}

    def _order(self, item: pytest.Item, settings: Settings) -> Order:
        """The order for the usual layout."""
        known = self._rulings.made_with(item.nodeid)
        warmup, calls = settings.warmup, settings.calls
        if known is not None:
            warmup = known.warmup if warmup is None else warmup
            calls = known.calls if calls is None else calls
        pilot = warmup is None or calls is None
        return Order(
            nodeid=item.nodeid,
            path=str(item.path),
            isolation=settings.isolation,
            timeout=settings.timeout,
            warmup=warmup,
            calls=calls,
            pilot=pilot,
            verbose=self._config.getoption("verbose", 0),
        )

    # Measure.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Around the tests: say what is coming, then gate."""
        if self._numbers:
            number, jobs = len(self._numbers), facts.core_count()
            self._say(f"instrcount: measuring {number} tests under Valgrind, {jobs} at a time")
        try:
            result = yield
        except (session.Interrupted, session.Failed, KeyboardInterrupt, pytest.exit.Exception):
            self._notes.append("gate skipped: the run was interrupted; no baseline was written")
            self._end_zygote()
            raise
        try:
            self._measure_layouts()
        except ZygoteFailed as error:
            raise pytest.UsageError(str(error)) from None
        finally:
            self._end_zygote()
        if not self._native:
            self._gate(session)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """A measured test ran under Valgrind: its reports are told here. Others run as ever."""
        if item.nodeid not in self._chosen or self._zygote is None:
            return None
        number = self._numbers.pop(item.nodeid, None)
        if number is None:  # it runs a second time (--keep-duplicates): a result can be had once
            number = self._zygote.ask([self._order(item, self._chosen[item.nodeid])])
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
        replay.log_reports(item, replay.error_reports(item, text), [])

    def _report_result(self, item: pytest.Item, result: Message) -> None:
        reports = replay.load_reports(self._config, result)
        replay.repeat_warnings(self._config, result["warnings"])
        properties: list[tuple[str, object]] = []
        # A test that failed or was skipped gets no verdict, whatever it had counted by then.
        if replay.passed(reports) and "ended" not in result:
            problem = result["problem"]
            if not problem and result["counted"] is None:
                problem = "the process that counts it was killed"
            text = f"instrcount: {problem} [not-measured]" if problem else ""
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
        measurement = self._measurement(item.nodeid, result)
        ruling = self._rulings.rule(measurement, self._chosen[item.nodeid].max_delta)
        properties: list[tuple[str, object]] = [("instrcount.ir", ruling.ir)]
        if ruling.delta is not None:
            properties.append(("instrcount.delta", percent(ruling.delta)))
        return properties

    def _measurement(self, nodeid: str, result: Message) -> Measurement:
        dumps = len(result["dumps"])
        if dumps < 2:
            raise InstrcountError(
                "no-dump",
                f"Callgrind left {dumps} dumps of the test",
                "pytest --instrcount --instrcount-isolation=process",
            )
        profile = self._profile(result)
        warmup, calls = result["counted"]
        if profile.total <= 0:
            raise InstrcountError(
                "no-count",
                "Callgrind counted nothing between the start and the end of the call",
                "pytest --instrcount --instrcount-isolation=process",
            )
        if result["threads"]:
            self._notes.append(f"{nodeid}: threads were alive, so it had a process of its own")
        return Measurement(
            nodeid=nodeid,
            total_ir=profile.total,
            calls=calls,
            warmup=warmup,
            isolation=result["isolation"],
            rows=profile.rows,
            packages=self._packages.imported(result["modules"]),
            callers=profile.callers,
        )

    def _measure_layouts(self) -> None:
        """Measure once more, and in other layouts of memory, what one count does not settle."""
        repetition = {each.nodeid: (each.warmup, each.calls) for each in self._rulings.unsettled()}
        if not repetition or self._zygote is None:
            return
        tests = f"{len(repetition)} test{'' if len(repetition) == 1 else 's'}"
        self._say(f"instrcount: measuring {tests} again, and in {OTHER_LAYOUTS} other layouts")
        orders = [
            replace(
                self._order(self._items[nodeid], self._chosen[nodeid]),
                # adaptive code has no steady state: its count depends on how often it ran before;
                # but where the user said how often, that is what is to be counted
                warmup=warmup + (layout if self._chosen[nodeid].warmup is None else 0),
                calls=calls,
                pilot=False,
                layout=layout,
            )
            for nodeid, (warmup, calls) in repetition.items()
            for layout in range(OTHER_LAYOUTS + 1)
        ]
        number = self._zygote.ask(orders)
        for first in self._rulings.unsettled():
            profiles = []
            for _ in range(OTHER_LAYOUTS + 1):
                answer = self._zygote.wait(number, Heartbeat(self._say, first.nodeid))
                number += 1
                if not isinstance(answer, Problem) and answer["counted"] and answer["dumps"]:
                    profiles.append(self._profile(answer))
            if len(profiles) <= OTHER_LAYOUTS:
                self._notes.append(
                    f"{first.nodeid}: {OTHER_LAYOUTS + 1 - len(profiles)} of the repeated "
                    "measurements failed"
                )
                continue
            settled = replace(
                first,
                layouts=tuple(profiles),
                unsteady=differing_functions(first.profile, profiles[0]),
            )
            self._rulings.rule(settled, self._chosen[first.nodeid].max_delta)

    def _profile(self, result: Message) -> Profile:
        """The counts of one answer, without the switch, under standard names."""
        dumps = [Path(path) for path in result["dumps"]]
        *counted, switch = map(parse_profile, dumps)
        profile = sum_profiles(each - switch for each in counted)
        for dump in dumps:
            dump.unlink(missing_ok=True)
        return standardize_profile(profile)

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
            except InstrcountError as error:
                raise pytest.UsageError(str(error)) from None
        for result in self._rulings.failing():
            if result.verdict is Verdict.failed:
                continue  # told already, as an error
            text = "\n".join(render_failure(result, self._update_command()))
            report = replay.make_report(self._items[result.nodeid], "call", "failed", text)
            report.__dict__[VERDICT_ATTRIBUTE] = result.verdict.value
            self._config.hook.pytest_runtest_logreport(report=report)
        if settings.prune:
            self._prune(session, stale)
        if self._compared_nothing() and not session.testsfailed:
            raise pytest.UsageError(
                "instrcount: this run compared no test with a baseline, and CI is set "
                f"[nothing-compared]\n  fix: {self._update_command()}"
            )

    def _compared_nothing(self) -> bool:
        """Whether a gate in CI passes on nothing; an update and a prune are no gates."""
        settings = self._settings
        gate = settings.ci and not settings.update and not settings.prune
        return gate and not self._rulings.compared()

    def _find_stale(self) -> list[Path]:
        limit = self._settings.max_delta
        return self._rulings.stale(self._selection.is_stale, limit)

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
            for _, path in self._settings.reports:
                write_report(path, self._summarise())
        except InstrcountError as error:
            raise pytest.UsageError(str(error)) from None
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table, the notes, and the command to type next."""
        width = min(80, terminalreporter._tw.fullwidth)
        lines = render_summary(self._summarise(), self._settings.verbosity, width)
        if lines and self._settings.verbosity >= 0:
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
                notes=tuple(self._notes),
                update_command=self._update_command(),
                updating=self._settings.update,
            )
        return self._summary

    def _update_command(self) -> str:
        given = map(str, self._config.invocation_params.args)
        args = [arg for arg in given if arg not in ("--instrcount", _UPDATE)]
        if self._settings.policy != "all":  # the last one given wins; it may be the ini's, too
            args.append("--instrcount-update-policy=all")
        return shlex.join(["pytest", _UPDATE, *args])

    def _say(self, line: str) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and self._settings.verbosity >= 0:
            reporter.ensure_newline()
            reporter.write_line(line)

    def _end_zygote(self) -> None:
        if self._zygote is not None and os.getpid() == self._owner:
            zygote, self._zygote = self._zygote, None
            zygote.end()


def has_ini(config: pytest.Config, name: str) -> bool:
    """Whether pytest or a plugin declares an ini setting of this name."""
    try:
        config.getini(name)
    except (ValueError, KeyError):
        return False
    return True


class Heartbeat:
    """Called while a result is awaited; says so every half minute."""

    def __init__(self, say: Any, nodeid: str) -> None:
        self._say = say
        self._nodeid = nodeid
        self._start = self._next = time.monotonic()

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._next >= _HEARTBEAT_SECONDS:
            self._next = now
            self._say(f"instrcount: waiting for {self._nodeid} ({now - self._start:.0f} s)")
