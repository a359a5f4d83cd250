"""A worker of pytest-xdist: measures the tests that it is dealt, and sends what it finds."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.config.compat import keep_nodeid
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import MISTAKES
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.fixtures.trace.settings import load_trace_settings
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.baseline import Store, checked
from pytest_instrcount.gate.store.baseline_json import parse_baseline
from pytest_instrcount.gate.store.names import own_key
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.account.current import current, get_counters
from pytest_instrcount.session.findings import Findings, find_with
from pytest_instrcount.session.measure import Counting
from pytest_instrcount.session.profiles import Keeper, joined_dumps
from pytest_instrcount.session.selection import Selection
from pytest_instrcount.session.timings import Accounting, start_account
from pytest_instrcount.session.xdist.environment import restore_context
from pytest_instrcount.session.xdist.messages import (
    CHANNEL,
    LAUNCH_CONTEXT,
    OPTIONS_OF_PYTHON,
    SYS_PATH,
    Hello,
    Planned,
    Stored,
    pack,
    unpack,
)
from pytest_instrcount.session.zygote import LaunchContext

Send = Callable[..., None]


def start_worker(config: Any, settings: Settings, sys_path: Sequence[str]) -> None:
    """Register what measures in this worker. What is wrong is told once it can be: see `Worker`."""
    channel = config.workerinput[CHANNEL]

    def send(*message: object) -> None:
        channel.send(pack(*message))

    def ask(*message: object) -> Any:
        channel.send(pack(*message))
        return unpack(channel.receive())[0]

    worker = Worker(config, send)
    try:
        account = start_account(config, settings)
        valgrind, version = facts.find_valgrind(settings.valgrind)
        load_trace_settings(config)  # a wrong one is said before a test runs
    except (InstrcountError, pytest.UsageError) as error:
        worker.mistake = str(error)
        config.pluginmanager.register(worker, "instrcount-worker")
        return
    key = own_key()
    options = config.workerinput[OPTIONS_OF_PYTHON]
    environment = facts.environment_facts(version, settings.let_through, options)
    worker.hello = Hello(environment, key)
    store = MailedStore(settings.baseline_dir, key, ask)
    ruled = find_with(config, settings, store, environment, Keeper(None, Path()))
    worker.findings = findings = SentFindings(
        ruled.rulings, ruled.calls, ruled.budgets, ruled.keeper, send=send, ask=ask
    )
    findings.keeps = settings.keep is not None
    worker.selection = selection = Selection(config)
    counting = Counting(
        config,
        settings,
        valgrind,
        replace(_context(config, sys_path), options_of_python=options),
        findings,
        selection,
        worker.settle,
        say=lambda line: send("say", line),
        dealt=True,
        jobs=max(1, facts.core_count() // config.workerinput["workercount"]),
        prepare=worker.restore_ids,
        ready=worker.greet,
    )
    config.pluginmanager.register(selection, "instrcount-selection")
    config.pluginmanager.register(counting, "instrcount-run")
    config.pluginmanager.register(worker, "instrcount-worker")
    accounting = Accounting(config, replace(settings, timings_csv=None), account)
    config.pluginmanager.register(accounting, "instrcount-account")


def _context(config: Any, sys_path: Sequence[str]) -> LaunchContext:
    told = config.workerinput.get(LAUNCH_CONTEXT)
    if told is None:
        return LaunchContext.here(config, config.workerinput[SYS_PATH])
    here = config.invocation_params.dir
    return restore_context(told, sys_path, config.rootpath, here, os.environ)


@dataclass(frozen=True, slots=True)
class MailedStore(Store):
    """Baselines that the controller reads; nothing is written here."""

    ask: Callable[..., Any]

    def read(self, nodeid: str, *, updating: bool = False) -> Baseline | None:
        """The baseline of a test; raises InstrcountError as the controller's store does."""
        stored: Stored = self.ask("read", self.folder.name, nodeid)
        path = Path(stored.path)

        def load() -> Baseline | None:
            if stored.error is not None:
                raise InstrcountError(*stored.error)
            text = stored.text
            return None if text is None else parse_baseline(text, path, nodeid)

        return checked(load, path, nodeid, updating=updating)

    def other_environments(self, nodeid: str) -> tuple[str, ...]:
        """The controller tells of them."""
        return ()


def _sending(name: str) -> Callable[..., None]:
    def send(self: SentFindings, *said: object) -> None:
        self.send(name, *said)

    return send


@dataclass(slots=True)
class SentFindings(Findings):
    """Sends all that is found, at once: a worker can be killed. What is in `HANDED_ON` is only sent."""

    send: Send = field(kw_only=True)
    ask: Callable[..., Any] = field(kw_only=True)
    keeps: bool = False

    def find_renames(self, selection: Selection) -> None:
        """As the controller finds them, once for all workers."""
        key = self.rulings.baselines.store.folder.name
        renamed = self.ask("find_renames", key, selection.facts(), self.bodies(selection))
        self.rulings.baselines.renamed |= renamed

    def fail(self, nodeid: str, limit: Limit, reason: str) -> None:
        """As ever, and send it."""
        Findings.fail(self, nodeid, limit, reason)
        self.send("fail", nodeid, limit, reason)

    def rule(self, measurement: Measurement, limit: Limit, allocs: Limit | None) -> TestResult:
        """As ever, and send it."""
        self.send("counted", measurement, limit, allocs)
        return Findings.rule(self, measurement, limit, allocs)

    def keep(self, nodeid: str, answer: Mapping[str, Any]) -> None:
        """Send the profile."""
        data = joined_dumps(nodeid, answer) if self.keeps else None
        if data is not None:
            self.send("kept", nodeid, data)

    leave = _sending("leave")
    remark = _sending("remark")
    attribute = _sending("attribute")
    rule_calls = _sending("rule_calls")
    fail_calls = _sending("fail_calls")
    set_group = _sending("set_group")
    set_extra_info = _sending("set_extra_info")
    note = _sending("note")


class Worker:
    """The plugin object that speaks with the controller.

    What is wrong with settings, markers or Valgrind is shown to nobody here: it is handed to the
    controller, which ends the run with it.
    """

    def __init__(self, config: Any, send: Send) -> None:
        self._config = config
        self._send = send
        #: Of each test: it, its id, and what gives it back. Before pytest 9.2 a test is hashed by its id.
        self._ids: list[tuple[pytest.Item, str, Callable[[], None]]] = []
        self.mistake = ""
        self.hello: Hello | None = None
        self.findings: SentFindings | None = None
        self.selection: Selection | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """End this worker if it cannot measure; else tell what goes wrong."""
        if self.mistake:
            self._config.workeroutput[MISTAKES] = self.mistake
            raise pytest.UsageError(self.mistake)
        return (yield from self._telling())

    def greet(self) -> None:
        """Say what this worker is, once other plugins have added to it."""
        assert self.hello is not None
        assert self.findings is not None
        self._send("hello", replace(self.hello, environment=self.findings.rulings.environment))

    def _telling(self) -> Generator[None, Any, Any]:
        try:
            return (yield)
        except pytest.UsageError as error:
            text = str(error).encode(errors="backslashreplace").decode()
            self._config.workeroutput[MISTAKES] = text
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Before ``--dist=loadgroup`` adds groups to the ids of tests."""
        self._ids = [(item, item.nodeid, keep_nodeid(item)) for item in items]

    def restore_ids(self) -> None:
        """Once the controller knows them: a test has one baseline, however tests are dealt out."""
        for item, known, restore in self._ids:
            if item.nodeid != known:
                restore()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Send what was collected."""
        result = yield from self._telling()
        if self.findings is not None and self.selection is not None:
            nodeids = tuple(item.nodeid for item in session.items)
            plans = self.findings.budgets.plans()
            self._send("planned", Planned(nodeids, self.selection.facts(), plans))
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        """Hand over what ends the run."""
        return (yield from self._telling())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """The controller must know what this worker has begun."""
        if self.findings is not None and nodeid in self.findings.places:
            self._send("started", self.findings.places[nodeid])

    def settle(self, session: pytest.Session) -> None:
        """All that this worker began is measured, in all layouts that it takes."""
        self._send("settled")
        account = current()
        if account is not None:
            self._send("account", tuple(account.timings.rows(by_function=True)), get_counters())
