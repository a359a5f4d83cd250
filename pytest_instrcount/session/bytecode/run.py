"""A run that counts byte code: the tests run as ever, and those that are marked are then repeated."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.callgrind.inside.bytecode import BytecodeCounter
from pytest_instrcount.callgrind.inside.repeat import Phase, Repeater, run_phase
from pytest_instrcount.config import compat
from pytest_instrcount.config.options import RAN_NATIVELY, runs_natively
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import BENCHMARK, COUNTING, is_traced
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import differing_functions
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.fixtures.instrcount import NEVER_CALLED, InstrCount, remarks_of
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.names import own_key
from pytest_instrcount.report.words import UNIT_FACT
from pytest_instrcount.session import replay
from pytest_instrcount.session.judge import Gate, register_gate
from pytest_instrcount.session.plan import plan_measured
from pytest_instrcount.session.teardown import finalise, noting_interruption
from pytest_instrcount.session.uncompared import Left, is_tolerated

#: What is counted, in the header, tables and reports.
UNIT = "bytecodes"
#: How it is counted; to be raised when a change of the plugin moves counts.
PROTOCOL = "1"
#: A limit instead of one that is in instructions alone.
_DEFAULT_LIMIT = Limit(Fraction(1, 100), None)
#: Reports that bring units of their own: no profile of Callgrind is there to draw.
_REPORTS = ("html", "speedscope", "collapsed")


def environment_key() -> str:
    """The folder of these baselines: "cp312-linux-x86_64-bytecode"."""
    return f"{own_key()}-bytecode"


def environment_facts() -> dict[str, str]:
    """Facts that two counts must share: the compiler of the byte code, and how it is counted."""
    return {
        "python": facts.python_version(),
        "protocol": PROTOCOL,
        UNIT_FACT: UNIT,
    }


def start_counting(config: pytest.Config, settings: Settings, sys_path: Sequence[str]) -> None:
    """Register the run. Raises pytest.UsageError for what only Callgrind can do."""
    unfit = [f"--instrcount-report={kind}" for kind, _ in settings.reports if kind in _REPORTS]
    unfit += ["--instrcount-keep"] if settings.keep is not None else []
    unfit += ["--instrcount-bundle"] if settings.bundle is not None else []
    if unfit:
        raise pytest.UsageError(
            "instrcount: wrong settings [settings]\n"
            f"{', '.join(unfit)}: there is no profile of Callgrind with "
            "instrcount_backend = bytecode; leave it out"
        )
    store = Store(settings.baseline_dir, environment_key())
    header = {
        UNIT: "instead of instructions: a rough local gate",
        "CPython": facts.python_version(),
    }
    gate = register_gate(config, settings, store, environment_facts(), header, valgrind="")
    config.pluginmanager.register(gate.selection, "instrcount-selection")
    config.pluginmanager.register(BytecodeRun(gate), "instrcount-run")


class BytecodeRun:
    """The plugin object that runs and repeats; its hooks are in the order of the story."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._findings = gate.findings
        self._native = runs_natively(gate.config)
        self._chosen: dict[str, Settings] = {}
        self._left_out: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check all markers, and take out of them what is in instructions."""
        if self._native:
            self._findings.note(RAN_NATIVELY)
            return
        planned = plan_measured(
            session.items, self._gate.settings, self._findings, self._in_bytecodes
        )
        self._chosen = {nodeid: chosen for nodeid, (_, chosen) in planned.items()}
        self._gate.selection.note_measured(self._chosen)
        with as_usage_errors():  # of an older format, as all others will be
            for nodeid in self._chosen:
                self._findings.rulings.made_with(nodeid)
        if any(map(is_traced, session.items)):
            self._left_out.add("calls of traced tests")
        if self._left_out:
            what = ", ".join(sorted(self._left_out))
            self._findings.note(f"not judged by {UNIT}, which are no instructions: {what}")

    def _in_bytecodes(self, chosen: Settings) -> Settings:
        limit, budget = chosen.max_delta, chosen.budget
        if limit.absolute is not None:
            self._left_out.add("limits in ir")
            relative = limit.relative
            limit = _DEFAULT_LIMIT if relative is None else Limit(relative, None)
        if budget.max_ir is not None:
            self._left_out.add("max_ir")
            budget = replace(budget, max_ir=None)
        if chosen.max_allocs_delta is not None:
            self._left_out.add("max_allocs_delta")
        return replace(chosen, max_delta=limit, budget=budget, max_allocs_delta=None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Around the tests: then judge, unless the run was cut short."""
        with noting_interruption(self._findings):
            result = yield
        if not self._native:
            self._gate.close(session)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Function, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a measured test as pytest does, then repeat and count it; others run as ever."""
        chosen = self._chosen.get(item.nodeid)
        if chosen is None:
            return None
        known = self._findings.rulings.made_with(item.nodeid)
        counter = BytecodeCounter(
            known.warmup if chosen.warmup is None and known else chosen.warmup,
            known.calls if chosen.calls is None and known else chosen.calls,
        )
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)

        def make_fixture(request: pytest.FixtureRequest) -> InstrCount:
            return InstrCount(request.node.nodeid, counter)

        self._gate.config.stash[COUNTING] = make_fixture
        try:
            reports = self._run(item, nextitem, counter)
        finally:
            del self._gate.config.stash[COUNTING]
        remarks = remarks_of(item.stash.get(BENCHMARK, None))
        self._findings.remark(item.nodeid, [*remarks, *counter.first_remarks()])
        text, properties = self._judge(item, chosen, counter, reports)
        if text:
            reason = text.removeprefix("instrcount: ")
            self._findings.fail(item.nodeid, chosen.max_delta, reason)
            reports = replay.add_error(item, reports, text)
        replay.log_reports(item.ihook, reports, properties)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run(
        self, item: pytest.Function, nextitem: pytest.Item | None, counter: BytecodeCounter
    ) -> list[Any]:
        """All phases; between the last and the end of what is not shared, the repetitions."""
        repeater = Repeater(item)
        compat.ensure_request(item)
        reports = [self._phase(item, "setup", None)]
        if reports[0].passed:
            reports.append(self._phase(item, "call", None))
        reports.append(self._phase(item, "teardown", repeater.sibling))
        benchmark = item.stash.get(BENCHMARK, None)
        takes_fixture = benchmark is not None or "instrcount" in item.fixturenames
        if replay.passed(reports) and not counter.used and not takes_fixture:
            if repeater.has_nothing_to_renew(reports):
                repeater.count_call(counter)
            else:
                repeater.count_phases(counter)
        failed = finalise(item, nextitem)
        return reports if failed is None else [*reports[:-1], failed]

    def _phase(self, item: pytest.Function, when: Phase, nextitem: pytest.Item | None) -> Any:
        call = run_phase(item, when, nextitem)
        return item.ihook.pytest_runtest_makereport(item=item, call=call)

    def _judge(
        self,
        item: pytest.Function,
        chosen: Settings,
        counter: BytecodeCounter,
        reports: list[Any],
    ) -> tuple[str, list[tuple[str, object]]]:
        """The error text for a test without a count, or else its properties for JUnit."""
        if not replay.passed(reports) or is_tolerated(
            reports, item.nodeid, self._findings, updating=chosen.update
        ):
            self._findings.leave(item.nodeid, Left(None))  # natively: pytest reports it
            return "", []  # a test that failed or was skipped gets no verdict
        benchmark = item.stash.get(BENCHMARK, None)
        if benchmark is not None and benchmark.group is not None:
            self._findings.set_group(item.nodeid, str(benchmark.group))
        if counter.error is not None:
            what = "it passed once and failed when it was repeated"
            return f"instrcount: {what} [not-measured]\n{counter.error}".rstrip(), []
        if counter.profiles is None or counter.counted is None:
            if benchmark is not None:
                why = "never calls benchmark, so nothing was measured"
                self._findings.note(f"{item.nodeid}: {why}")
                self._findings.leave(item.nodeid, Left(Cause.uncounted, f"it {why}"))
                return "", []
            return f"instrcount: {NEVER_CALLED} [not-measured]", []
        first, second = counter.profiles
        if first.total <= 0:
            what = "no byte code of yours runs in the call: all of it is C code"
            fix = "pytest --instrcount --instrcount-backend=callgrind"
            return str(InstrcountError("no-count", what, fix)), []
        warmup, calls = counter.counted
        measurement = Measurement(
            nodeid=item.nodeid,
            total_ir=first.total,
            calls=calls,
            warmup=warmup,
            isolation=chosen.isolation,
            rows=first.rows,
            packages={},  # what other tests have imported is here, too
            layouts=(second,),
            unsteady=differing_functions(first, second),
        )
        baseline = self._findings.rulings.baseline(item.nodeid)
        if isinstance(baseline, InstrcountError):
            return str(baseline), []
        ruling = self._findings.rule(measurement, chosen.max_delta, None)
        properties: list[tuple[str, object]] = [(f"instrcount.{UNIT}", ruling.ir)]
        if ruling.delta is not None:
            properties.append(("instrcount.delta", float(ruling.delta)))
        return "", properties
