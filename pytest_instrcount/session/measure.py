"""The measuring half of a run: plan, ask, wait, and tell pytest what became of each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.zygote import Zygote, ZygoteFailed
from pytest_instrcount.config.options import RAN_NATIVELY, leave_snapshots, runs_natively
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import is_traced
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.fixtures.first_call import remarks_on_first
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.host.account.current import count, timed
from pytest_instrcount.session.answers import Heartbeat, is_lost, measure_layouts, order_for
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.outcomes import Outcomes, know_why_left
from pytest_instrcount.session.plan import plan_measured
from pytest_instrcount.session.plugins import consult
from pytest_instrcount.session.progress import Estimate
from pytest_instrcount.session.replay import Place, report_of
from pytest_instrcount.session.seeds import measure_seeds
from pytest_instrcount.session.selection import Selection
from pytest_instrcount.session.teardown import end_neighbours, noting_interruption
from pytest_instrcount.session.time_limit import OtherClocks
from pytest_instrcount.session.variables import missing_variables
from pytest_instrcount.session.zygote import LaunchContext, start_zygote

if TYPE_CHECKING:
    from pytest_instrcount.session.calls import TracedTests

#: So many tests that regressed are looked into, those that grew most: the others most often have
#: the same cause.
MOST_BLAMED = 20


@dataclass(slots=True, eq=False, repr=False)
class Counting:
    """The plugin object that measures; its hooks are in the order of the story.

    ``done`` is called once all is measured, never after an interruption; ``say`` takes a line for
    people. ``dealt``: this is a worker of pytest-xdist, which learns test by test which ones are
    its own. ``prepare`` is called before the tests are planned; ``ready`` is called once the facts
    of the environment are complete.
    """

    config: pytest.Config
    settings: Settings
    valgrind: str
    context: LaunchContext
    findings: Findings
    selection: Selection
    done: Callable[[pytest.Session], None]
    say: Callable[[str], None]
    dealt: bool = False
    jobs: int = field(default_factory=facts.core_count)
    prepare: Callable[[], None] = lambda: None
    ready: Callable[[], None] = lambda: None
    _native: bool = False
    _outcomes: Outcomes = field(init=False)
    _one_done: Callable[[], None] = lambda: None
    _zygote: Zygote | None = None
    _tracing: TracedTests | None = None
    _numbers: dict[str, int] = field(default_factory=dict)
    _chosen: dict[str, Settings] = field(default_factory=dict)
    _items: dict[str, pytest.Function] = field(default_factory=dict)
    _passed: set[str] = field(default_factory=set)
    _owner: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        self._native = runs_natively(self.config)

    # Plan.

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Ask other plugins, and start the zygote; it gets ready while pytest collects."""
        rulings = self.findings.rulings
        self.settings, rulings.environment = consult(
            self.config, self.settings, rulings.environment
        )
        self._outcomes = Outcomes(self.config, self.settings, self.findings)
        self.ready()
        if self._native:
            self.findings.note(RAN_NATIVELY)
            return
        leave_snapshots(self.config)
        self._zygote = self._start_zygote(self.valgrind, layouts=rulings.needs_layouts)

    @timed("start of Valgrind")
    def _start_zygote(
        self, valgrind: str, options: Sequence[str] = (), *, layouts: bool = False
    ) -> Zygote:
        about = self.config, self.settings, valgrind, self.context, self.jobs, options
        with as_usage_errors():
            return start_zygote(*about, layouts=layouts)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Check all markers, then ask for all measurements at once."""
        if self._zygote is None:
            return
        self.prepare()
        planned = plan_measured(session.items, self.settings, self.findings)
        self._items = {nodeid: item for nodeid, (item, _) in planned.items()}
        self._chosen = {nodeid: chosen for nodeid, (_, chosen) in planned.items()}
        self._plan_traced(session.items)
        self.selection.note_measured(self._chosen)
        self.findings.find_renames(self.selection)
        self.config.pluginmanager.register(OtherClocks(self._chosen), "instrcount-clocks")
        if not self._chosen:
            self._end_counting()
            return
        if not self.dealt:
            self._ask(list(self._items.values()))
        there = (*self.settings.let_through, *self.settings.child.variables)
        for missing in missing_variables(self.config.rootpath, there):
            self.findings.note(missing)

    @timed("calls")
    def _plan_traced(self, items: Sequence[pytest.Item]) -> None:
        """The tests whose calls are counted, too; the tracers are imported only if there are some."""
        if not any(is_traced(item) for item in items):
            return
        from pytest_instrcount.session.calls import TracedTests, find_traced

        traced = find_traced(items)
        self.selection.note_traced(item.nodeid for item in traced)
        for item in traced:
            self.findings.expect_calls(Place.of(item), read=not self.dealt)
        self._tracing = TracedTests(self._start_zygote(""), traced, self.settings)
        self.config.pluginmanager.register(self._tracing.limits, "instrcount-limits")
        if not self.dealt:
            self._tracing.ask([item.nodeid for item in traced])

    def _ask(self, items: Sequence[pytest.Item]) -> None:
        assert self._zygote is not None
        first = self._zygote.ask([self._order(item) for item in items])
        count("asked", "first counts", len(items))
        self._numbers |= {item.nodeid: number for number, item in enumerate(items, first)}

    def _order(self, item: pytest.Item) -> Order:
        settings, verbose = self._chosen[item.nodeid], self.config.getoption("verbose", 0)
        with as_usage_errors():  # of an older format, as all others will be
            known = self.findings.rulings.made_with(item.nodeid)
        return order_for(item, settings, known, verbose)

    # Measure.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Around the tests: say what is coming, then measure what one count does not settle."""
        if self._numbers:
            stored = self.findings.rulings.needs_layouts
            self._one_done = Estimate(self.say, len(self._numbers), self.jobs, stored=stored)
        try:
            with noting_interruption(self.findings):
                result = yield
            if self.dealt and (session.shouldfail or session.shouldstop):
                return result  # the controller raises what pytest raises here without pytest-xdist
            if self._zygote is not None:
                about = (
                    self._zygote,
                    self.findings,
                    lambda nodeid: self._order(self._items[nodeid]),
                    self._limits_of,
                    self.say,
                )
                measure_layouts(*about, self.jobs)
                measure_seeds(*about)
            self._end_counting()
            self._attribute()
            if self._tracing is not None:
                self._count_calls(self._tracing)
        except ZygoteFailed as error:
            raise pytest.UsageError(str(error)) from None
        finally:
            self.end()
        if not self._native:
            self.done(session)
        return result

    @timed("calls")
    def _count_calls(self, tracing: TracedTests) -> None:
        if self.dealt:
            tracing.ask(sorted(self._passed))
        tracing.rule(
            self.findings,
            lambda nodeid: Heartbeat(self.say, nodeid),
            self._passed.__contains__,
        )

    def _limits_of(self, nodeid: str) -> tuple[Limit, Limit | None]:
        chosen = self._chosen[nodeid]
        return chosen.max_delta, chosen.max_allocs_delta

    @timed("by Python function")
    def _attribute(self) -> None:
        """Find out by Python function what regressed, and what is about to be stored."""
        if self.settings.blame == "off":
            return
        orders, counted = [], {}
        for each, how in self.findings.rulings.to_attribute(MOST_BLAMED):
            order = self._order(self._items[each.nodeid])
            orders.append((replace(order, warmup=each.warmup, calls=each.calls_elsewhere), how))
            counted[each.nodeid] = each.total_ir, each.calls
        if not orders:
            return
        from pytest_instrcount.session.attribute import Blaming

        blaming = Blaming(
            self._start_zygote, self.settings.blame, self.valgrind, self.config.rootpath
        )
        heartbeat = Heartbeat(self.say, total=len(orders))
        with closing(blaming.measure(orders, self.say, heartbeat.of)) as trees:
            for nodeid, tree in trees:
                self.findings.attribute(nodeid, tree.over(counted[nodeid][1]))
        for nodeid, first_ir in blaming.first_irs.items():
            total, calls = counted[nodeid]
            self.findings.remark(nodeid, remarks_on_first(first_ir, total / calls))
        for note in blaming.notes:
            self.findings.note(note)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        """Behind pytest's own: of what ran here there is a report by then."""
        return report_of(call)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """A measured test ran under Valgrind: its reports are told here. Others run as ever."""
        if item.nodeid not in self._chosen or self._zygote is None:
            return None
        soon = [item]
        if self.dealt and nextitem is not None and nextitem.nodeid in self._chosen:
            soon.append(nextitem)
        # a test that runs a second time (--keep-duplicates) is asked for again
        self._ask([each for each in soon if each.nodeid not in self._numbers])
        number = self._numbers.pop(item.nodeid)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            answer = self._zygote.wait(number, Heartbeat(self.say, item.nodeid))
            if is_lost(answer):
                again = self._zygote.ask([self._order(item)])
                answer = self._zygote.wait(again, Heartbeat(self.say, item.nodeid))
        except ZygoteFailed as error:
            self.end()
            raise pytest.UsageError(str(error)) from None
        skipped = self._outcomes.take(item, nextitem, self._chosen[item.nodeid], answer)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        self._one_done()
        if skipped is not None:
            know_why_left(self.findings, item, nextitem, skipped)
        end_neighbours(item, nextitem)
        return True

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Know which tests have passed: of others no calls are compared."""
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
        elif report.failed:
            self._passed.discard(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """A run that collected nothing has a zygote, too."""
        self.end()

    def pytest_unconfigure(self) -> None:
        """Nothing survives the run."""
        self.end()

    def end(self) -> None:
        """End everything that was started; a fork of a test ends nothing."""
        if os.getpid() != self._owner:
            return
        self._end_counting()
        if self._tracing is not None:
            self._tracing.end()

    def _end_counting(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.end()
