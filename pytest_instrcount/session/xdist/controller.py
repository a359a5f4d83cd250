"""The controller of pytest-xdist: reads baselines for the workers, compares, writes, reports."""

from __future__ import annotations

import queue
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import pytest

from pytest_instrcount.callgrind.interpreter import own_options
from pytest_instrcount.config.commands import Commands
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import OTHER_LAYOUTS
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.baseline import Store, load_baseline
from pytest_instrcount.gate.store.baseline_json import render_baseline
from pytest_instrcount.gate.store.calls import CallStore
from pytest_instrcount.gate.store.names import own_key, safe_part
from pytest_instrcount.host.account.current import count, current
from pytest_instrcount.host.account.timings import PhaseTime
from pytest_instrcount.session import replay
from pytest_instrcount.session.against.sides import choose_sides, watch_sides
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.judge import Gate, register_gate
from pytest_instrcount.session.prepare import find_valgrind, make_header
from pytest_instrcount.session.renames import find_renames
from pytest_instrcount.session.replay import Place
from pytest_instrcount.session.selection import Selection
from pytest_instrcount.session.teardown import noting_interruption
from pytest_instrcount.session.timings import Accounting, start_account
from pytest_instrcount.session.xdist.environment import describe_context
from pytest_instrcount.session.xdist.messages import (
    CHANNEL,
    HANDED_ON,
    LAUNCH_CONTEXT,
    OPTIONS_OF_PYTHON,
    SYS_PATH,
    Hello,
    Planned,
    Stored,
    pack,
    unpack,
)


def start_controller(config: pytest.Config, settings: Settings, sys_path: Sequence[str]) -> None:
    """Find Valgrind, if it is here, and register the run. Raises pytest.UsageError."""
    settings = choose_sides(config, settings)
    account = start_account(config, settings)
    version, header = "?", {"tests": "measured by workers elsewhere"}
    if all(map(_is_here, config.getoption("tx"))):
        with as_usage_errors():
            version = find_valgrind(config, settings)[1]
        header = make_header(config, version)
    store = Store(settings.baseline_dir, own_key())
    gate = register_gate(config, settings, store, {}, header, version)
    watch_sides(config, settings, sys_path, gate.findings, ahead=True)
    controller = Controller(gate, list(sys_path))
    config.pluginmanager.register(controller, "instrcount-run")
    accounting = Accounting(config, settings, account, "workers")
    config.pluginmanager.register(accounting, "instrcount-account")


def _is_here(spec: str) -> bool:
    """True if a worker runs this very Python: "popen", "2*popen"."""
    return spec.rpartition("*")[2].split("//") == ["popen"]


def _taking(name: str) -> Callable[..., None]:
    return lambda self, _, *said: getattr(self._findings, name)(*said)


@dataclass(slots=True, eq=False, repr=False)
class Controller:
    """The plugin object that takes what workers send, and judges once they are done."""

    gate: Gate
    sys_path: Sequence[str]
    _post: queue.Queue[tuple[str, tuple[Any, ...]]] = field(default_factory=queue.Queue)
    _first: tuple[str, Hello] | None = None
    _order: tuple[str, ...] = ()
    #: worker -> the tests that it has begun, until all of them are settled
    _begun: dict[str, set[str]] = field(default_factory=dict)
    _passed: set[str] = field(default_factory=set)
    #: nodeid -> worker, count and calls of its first count
    _counts: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    _renamed: dict[str, str] | None = None
    #: nodeid -> what two workers do not agree on
    _disputed: dict[str, str] = field(default_factory=dict)

    @property
    def _findings(self) -> Findings:
        return self.gate.findings

    # The post.

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker a channel of its own, and where a run without it would import from."""
        channel = node.gateway.newchannel()
        worker = node.gateway.id
        channel.setcallback(partial(self._receive, channel, worker))
        node.workerinput[CHANNEL] = channel
        node.workerinput[OPTIONS_OF_PYTHON] = own_options()
        if node.gateway.spec.popen and not node.gateway.spec.chdir:
            node.workerinput[SYS_PATH] = self.sys_path
        else:
            node.workerinput[LAUNCH_CONTEXT] = describe_context(
                self.sys_path, self.gate.config.invocation_params.dir, self.gate.config.rootpath
            )

    def _receive(self, channel: Any, worker: str, data: bytes) -> None:
        """In a thread of execnet: answer questions; all else waits until pytest looks."""
        try:
            kind, *said = unpack(data)
            if kind in ("read", "find_renames"):
                channel.send(pack(getattr(self, f"_{kind}")(*said)))
            elif kind == "say":
                self.gate.reporter.say(f"{said[0]} ({worker})")
            else:
                self._post.put((worker, (kind, *said)))
        except Exception as error:
            self._post.put((worker, ("broken", str(error))))

    def _read(self, key: str, nodeid: str) -> Stored:
        store = Store(self.gate.settings.baseline_dir, safe_part(key))
        path = store.path(nodeid)
        try:
            found = load_baseline(store.keep_inside(path), nodeid)
            text = None if found is None else render_baseline(found)
            return Stored(str(path), text)
        except InstrcountError as error:
            return Stored(str(path), None, (error.slug, error.why, error.fix))

    def _find_renames(
        self, key: str, collected: Mapping[str, frozenset[str]], bodies: Mapping[str, str]
    ) -> dict[str, str]:
        """The tests that were renamed: the first worker that asks is told the same as all others."""
        if self._renamed is None:
            store = Store(self.gate.settings.baseline_dir, safe_part(key))
            selection = Selection(self.gate.config)
            selection.learn(collected)
            self._renamed = find_renames(store, selection, bodies)
            self._post.put(("", ("rename", self._renamed)))
        return self._renamed

    def _take_post(self) -> None:
        while True:
            try:
                worker, (kind, *said) = self._post.get_nowait()
            except queue.Empty:
                return
            take = self._takers.get(kind)
            if take is None:
                raise pytest.UsageError(
                    f"instrcount: worker {worker} sent what cannot be read: "
                    f"{said[0] if kind == 'broken' else kind} [xdist]\n"
                    "  fix: install the same release of pytest-instrcount for all workers"
                )
            take(self, worker, *said)

    def _hello(self, worker: str, hello: Hello) -> None:
        if self._first is None:
            self._first = worker, hello
            rulings = self._findings.rulings
            rulings.environment = hello.environment
            store = Store(self.gate.settings.baseline_dir, safe_part(hello.key))
            rulings.baselines.store = store
            self._findings.calls.store = CallStore(store)
            return
        first, known = self._first
        differing = [
            f"{name}: {known.environment.get(name)} ({first}), {hello.environment.get(name)} ({worker})"
            for name in {**known.environment, **hello.environment}
            if known.environment.get(name) != hello.environment.get(name)
        ]
        if differing:
            lines = "\n".join(differing)
            raise pytest.UsageError(
                "instrcount: the workers differ, so their counts could not be compared with one "
                f"set of baselines [workers-differ]\n{lines}\n"
                "  fix: run each machine or Python by itself, and merge what they write: "
                "python -m pytest_instrcount merge"
            )

    def _planned(self, worker: str, planned: Planned) -> None:
        self._order = planned.nodeids
        self.gate.selection.learn(planned.selection)
        self._findings.budgets.adopt(planned.budgets)

    def _started(self, worker: str, place: Place) -> None:
        self._findings.expect(place)
        self._begun.setdefault(worker, set()).add(place.nodeid)

    def _counted(
        self, worker: str, measurement: Measurement, limit: Limit, allocs: Limit | None
    ) -> None:
        nodeid, count = measurement.nodeid, (measurement.total_ir, measurement.calls)
        other, *known = self._counts.setdefault(nodeid, (worker, *count))
        if other != worker and tuple(known) != count:
            counts = [f"{total} of {calls} calls" for total, calls in (known, count)]
            self._disputed[nodeid] = f"{other} counted {counts[0]}, {worker} {counts[1]}"
        self._findings.rule(measurement, limit, allocs)

    def _account(
        self, worker: str, rows: tuple[PhaseTime, ...], counters: Mapping[str, Mapping[str, int]]
    ) -> None:
        account = current()
        assert account is not None
        account.elsewhere[worker] = rows
        for category, found in counters.items():
            for what, number in found.items():
                count(category, what, number)

    _takers: ClassVar[Mapping[str, Callable[..., None]]] = {
        "hello": _hello,
        "planned": _planned,
        "started": _started,
        "counted": _counted,
        "settled": lambda self, worker: self._begun.pop(worker, None),
        "kept": lambda self, _, *said: self._findings.keeper.keep(*said),
        "account": _account,
        **{name: _taking(name) for name in ("fail", "rename", *HANDED_ON)},
    }

    # The run.

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """A worker may have told what ends the run."""
        self._take_post()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Know what became of each test."""
        self._take_post()
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self) -> None:
        """Take the messages that a worker sent before it ended."""
        self._take_post()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Judge when all workers are done."""
        with noting_interruption(self._findings):
            try:
                result = yield
            finally:
                self._take_post()
        self._report_lost()
        self._sort()
        self.gate.close(session)
        return result

    def _report_lost(self) -> None:
        """Fail each test whose worker was lost before its count was settled: it has no verdict."""
        rulings, calls = self._findings.rulings, self._findings.calls
        unsettled = {
            measurement.nodeid
            for layouts in (0, OTHER_LAYOUTS + 1)
            for measurement in rulings.unsettled(layouts)
        }
        why = dict(self._disputed)
        for worker, begun in self._begun.items():
            for nodeid in begun:
                known = nodeid in rulings.results or nodeid in calls.results
                if nodeid in unsettled or (not known and nodeid in self._passed):
                    why[nodeid] = f"worker {worker} was lost before its count was settled"
                elif not known:  # pytest-xdist fails the test that a worker was at
                    rulings.fail(nodeid, self.gate.settings.max_delta, f"worker {worker} was lost")
        for nodeid, reason in why.items():
            slug = "workers-disagree" if nodeid in self._disputed else "worker-lost"
            rulings.fail(nodeid, self.gate.settings.max_delta, reason)
            text = f"instrcount: {reason} [{slug}]\n  fix: {Commands(self.gate.config).measure([nodeid])}"
            replay.log_reports(
                self.gate.config.hook, replay.error_reports(self._findings.places[nodeid], text), []
            )

    def _sort(self) -> None:
        """Results in the order of the tests, as without pytest-xdist."""
        place = {nodeid: number for number, nodeid in enumerate(self._order)}

        def sort(results: dict[str, Any]) -> None:
            for nodeid in sorted(results, key=lambda nodeid: place.get(nodeid, len(place))):
                results[nodeid] = results.pop(nodeid)

        sort(self._findings.rulings.results)
        sort(self._findings.calls.results)
