"""Running pytest with --instrcount and no Valgrind: what stands behind the zygote's seam is faked.

The fake forks this process for each test, as the zygote does, so that a test finds no fixture set
up; the fork runs it natively and answers in the supervisor's words. What it would have cost is
what the test of the plugin says. What has passed is not run again for another layout: only its
profiles are made anew.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import random
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import pytest_instrcount.plugin
import pytest_instrcount.session.calls
import pytest_instrcount.session.start  # now: what a run in this process imports is forgotten after it
import pytest_instrcount.session.zygote
import pytest_instrcount.trace.ranges.ranges
from pytest_instrcount.callgrind import facts
from pytest_instrcount.callgrind.inside.reports import sendable
from pytest_instrcount.callgrind.launch import ZygoteSetup
from pytest_instrcount.callgrind.messages import Answer, Ended
from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.repetition import rounds_of
from pytest_instrcount.callgrind.scratch import Scratch, take_scratch
from pytest_instrcount.callgrind.zygote import Problem, ZygoteFailed
from pytest_instrcount.config.stash import BENCHMARK, COUNTING
from pytest_instrcount.counts.python.contexts import VALGRIND_OPTIONS
from pytest_instrcount.fixtures.first_call import FirstCall
from pytest_instrcount.fixtures.instrcount import InstrCount, remarks_of
from pytest_instrcount.fixtures.rounds import Rounds
from pytest_instrcount.host.foreign import plain
from pytest_instrcount.session import replay
from tests.baselines import read_whole

#: Which distribution a module is from: the same in all runs, and a quarter of each if it is looked up.
_distributions = functools.cache(importlib.metadata.packages_distributions)

RECORDED = Path(__file__).parents[1] / "data" / "callgrind"

#: A file of two tests that are measured.
TWO_TESTS = """
import pytest

@pytest.mark.instrcount
def test_a(): pass

@pytest.mark.instrcount
def test_b(): pass
"""
#: By Python function, a test that calls another file's function, and then calls it twice as often.
TREE = {"test_it.py:test_a": (100, 1), "test_it.py:test_a;shop.py:f": (9_900, 10)}
DEARER_TREE = {**TREE, "test_it.py:test_a;shop.py:f": (19_800, 20)}

#: Callgrind's name of a function -> instructions of its own in one call of the test.
Costs = Mapping[str, int]
Message = dict[str, Any]

#: The switch around a count, which the session subtracts.
SWITCH: Costs = {"child.c:switch": 7}
WARMUP, CALLS = 20, 3


def write_dump(
    path: Path, costs: Costs, calls: int, number: Mapping[str, int] | None = None
) -> Path:
    """A small callgrind.out in which each function was called so often and cost so much a call.

    ``number``: name -> how often in each call, if not once; what it cost is of all of them.
    """
    lines = ["version: 1", "creator: the tests", "positions: line", "events: Ir", ""]
    for name, ir in costs.items():
        file, _, function = name.partition(":")
        lines += [f"fl={file}", f"fn={function}", f"1 {ir * calls}", ""]
        lines += ["fl=main.c", "fn=main", f"cfi={file}", f"cfn={function}"]
        lines += [f"calls={calls * (number or {}).get(name, 1)} 1", f"1 {ir * calls}", ""]
    lines.append(f"totals: {sum(costs.values()) * calls}")
    path.write_text("\n".join(lines) + "\n")
    return path


@dataclass(eq=False)
class FakeValgrind:
    """What the tests of a run cost, and what befalls the zygote. Tests are named without file."""

    #: answered by ``find_valgrind``; an exception is raised
    version: str | Exception = "3.19.0"
    #: instructions of one call, for a test that is not in ``costs``
    usual: int = 10_000
    costs: dict[str, int | Costs] = field(default_factory=dict)
    #: what a test costs when it is asked for again: in the usual layout, then in the others, which
    #: come round once more where more layouts are asked for
    again: dict[str, Sequence[int | Costs]] = field(default_factory=dict)
    #: what it costs under other hash seeds, which come round as layouts do
    seeds: dict[str, Sequence[int | Costs]] = field(default_factory=dict)
    #: files of tests/data/callgrind in the place of made dumps
    recorded: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: dict[str, Problem] = field(default_factory=dict)
    #: put over the result of a test
    altered: dict[str, Message] = field(default_factory=dict)
    #: modules that every test has imported
    modules: list[str] = field(default_factory=list)
    #: calls of a traced test, of two repetitions if they differ; see `traced_rows`
    traced: dict[str, dict[str, Any] | tuple[dict[str, Any], dict[str, Any]]] = field(
        default_factory=dict
    )
    #: what a test is made of by Python function: names joined by ";" -> own instructions and calls,
    #: of one call of the test; without it a test is one function
    python: dict[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    #: why nothing can be measured through trampolines
    no_trampolines: str = ""
    #: the reason why there is no zygote
    dead: str = ""
    #: called while a result is awaited, with the test's name
    while_waiting: Callable[[str], None] = lambda name: None

    #: how often Valgrind was looked for
    looked_for: int = 0
    started: list[FakeZygote] = field(default_factory=list)
    #: zygotes that were asked by Python function
    blaming: list[FakeZygote] = field(default_factory=list)
    sessions: list[pytest.Session] = field(default_factory=list)

    @property
    def orders(self) -> dict[str, Order]:
        """What the last run asked for at first, by nodeid."""
        found: dict[str, Order] = {}
        for order in self.started[-1].orders:
            found.setdefault(order.nodeid, order)
        return found

    @property
    def layouts(self) -> dict[str, list[int]]:
        """The layouts that the last run asked for, by the name of the test."""
        found: dict[str, list[int]] = {}
        for order in self.started[-1].orders:
            found.setdefault(_test_name(order.nodeid), []).append(order.layout)
        return found

    def find(self, name: str) -> tuple[str, str]:
        """In the place of ``facts.find_valgrind``."""
        self.looked_for += 1
        if isinstance(self.version, Exception):
            raise self.version
        return name, self.version

    def cost_of(self, name: str, layout: int, *, again: bool) -> Costs:
        """Per call of the test."""
        cost = self.costs.get(name, self.usual)
        if again and name in self.again:
            usual, *others = self.again[name]
            cost = others[(layout - 1) % len(others)] if layout else usual
        if layout < 0 and name in self.seeds:
            cost = self.seeds[name][-layout % len(self.seeds[name])]
        if isinstance(cost, int):
            return {"work.c:work": cost - cost // 4, "ceval.c:eval": cost // 4}
        return cost

    def make_zygote(self, setup_in: Callable[[Path], ZygoteSetup]) -> FakeZygote:
        """In the place of the class ``Zygote``."""
        scratch = take_scratch()
        setup = setup_in(scratch.path)
        zygote = FakeZygote(self, setup, scratch)
        (self.blaming if _is_by_python(setup) else self.started).append(zygote)
        return zygote

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """The fake is a plugin of the pytest that is tested, too: it needs the items."""
        self.sessions.append(session)


class FakeZygote:
    """As ``callgrind.zygote.Zygote``, from the session's side."""

    def __init__(self, valgrind: FakeValgrind, setup: ZygoteSetup, scratch: Scratch) -> None:
        self._valgrind = valgrind
        self._scratch = scratch
        self._results: dict[int, str] = {}
        #: what was measured, by its order without a layout
        self._measured: dict[Order, Answer] = {}
        self.setup = setup
        self.orders: list[Order] = []
        self.ready = True
        self.running: set[int] = set()
        self.ended = 0

    def ask(self, orders: Sequence[Order]) -> int:
        first = len(self.orders)
        items = {item.nodeid: item for item in self._valgrind.sessions[-1].items}
        for order in orders:
            again = any(each.nodeid == order.nodeid for each in self.orders)
            child = self._child(items[order.nodeid], order, again=again)
            usual = replace(order, layout=0)
            if usual in self._measured:
                measured = self._measured[usual]
                text = json.dumps(measured | {"dumps": child.dumps(measured["counted"])})
            else:
                text = self._fork(child)
                answer: Answer = json.loads(text)
                if answer["counted"] and not (order.trace or order.by_python):
                    self._measured[usual] = answer
            self._results[len(self.orders)] = text
            self.orders.append(order)
        return first

    def wait(self, index: int, poll: Callable[[], None]) -> Answer | Problem:
        poll()
        if self._valgrind.dead:
            raise ZygoteFailed("zygote-failed", self._valgrind.dead, "valgrind --version")
        name = _test_name(self.orders[index].nodeid)
        self._valgrind.while_waiting(name)
        text = self._results.pop(index)  # as with the real one, a result can be had once
        if self._valgrind.no_trampolines and _is_by_python(self.setup):
            return Problem("process-died", self._valgrind.no_trampolines, "")
        if name in self._valgrind.problems:
            return self._valgrind.problems[name]
        answer: Answer = json.loads(text) | self._valgrind.altered.get(name, {})
        return answer

    def end(self) -> None:
        self.ended += 1
        os.close(self._scratch.lock)
        shutil.rmtree(self._scratch.path)

    def _child(self, item: pytest.Item, order: Order, *, again: bool) -> TestChild:
        cost = self._valgrind.cost_of(item.name, order.layout, again=again)
        stem = self._scratch.path / "dumps" / f"out.{len(self.orders)}"
        return TestChild(self._valgrind, item, order, stem, cost)

    def _fork(self, child: TestChild) -> str:
        reader, writer = os.pipe()
        with warnings.catch_warnings(action="ignore"):  # of the threads of pytest-xdist's workers
            pid = os.fork()
        if pid == 0:
            os.close(reader)
            try:
                text = json.dumps(child.run(), default=str)
            except BaseException:
                text = f"the fake failed\n{traceback.format_exc()}"
            with os.fdopen(writer, "w") as file:
                file.write(text)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            text = file.read()
        os.waitpid(pid, 0)
        assert text.startswith("{"), text
        return text


class TestChild:
    """One test in a process of its own, with the answer of ``inside.TestChild`` and the supervisor."""

    __test__ = False
    first: FirstCall | None = None

    def __init__(
        self,
        valgrind: FakeValgrind,
        item: pytest.Item,
        order: Order,
        stem: Path,
        cost: Costs,
    ) -> None:
        self._cost = cost
        self._valgrind = valgrind
        self._item: Any = item
        self._order = order
        self._stem = stem
        self._config = item.config
        self._reports: list[Any] = []
        self._warnings: list[Message] = []
        self._sink = StringIO()
        self._used = False
        self._fixture: InstrCount | None = None
        self._counted: list[int] | None = None

    def run(self) -> Answer:
        """Run the test as pytest does, with fixtures and output shown to nobody."""
        config, manager = self._config, self._config.pluginmanager
        manager.unregister(name="instrcount-run")
        manager.register(self)
        if not self._order.trace:
            config.stash[COUNTING] = self._make_fixture
        reporter: Any = manager.getplugin("terminalreporter")
        if reporter is not None:
            reporter._tw = type(reporter)(config, self._sink)._tw
            config.option.setupshow = True
            config.option.verbose = self._order.verbose
        capture: Any = manager.getplugin("capturemanager")
        if capture is not None:
            capture.stop_global_capturing()
            capture._method = "fd"
            capture.start_global_capturing()
            capture.suspend_global_capture()
        random.seed(0)
        ended: Ended = {}
        try:
            config.hook.pytest_runtest_protocol(item=self._item, nextitem=None)
        except pytest.exit.Exception as error:
            ended = {"ended": "exit", "why": str(error.msg), "code": error.returncode}
        except KeyboardInterrupt:
            ended = {"ended": "interrupt"}
        return {**self._result(), **ended}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        runner: Any = self._config.pluginmanager.getplugin("runner")
        phase = runner.call_and_report
        self._reports.append(phase(item, "setup", log=False))
        if self._reports[0].passed:
            used = ", ".join(sorted(getattr(item, "fixturenames", ())))
            self._sink.write(f"\n        {item.nodeid}")
            self._sink.write(f" (fixtures used: {used})" if used else "")
            self._reports.append(phase(item, "call", log=False))
        self._reports.append(phase(item, "teardown", log=False, nextitem=None))
        return True

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        self._reports.append(report)  # of a sub-test; those of phases are not logged

    @pytest.hookimpl
    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str) -> None:
        category = warning_message.category
        self._warnings.append(
            {
                "text": str(warning_message.message),
                "module": category.__module__,
                "category": category.__qualname__,
                "filename": warning_message.filename,
                "lineno": warning_message.lineno,
                "nodeid": nodeid,
                "when": when,
            }
        )

    # What the fixture asks for.

    def _make_fixture(self, request: pytest.FixtureRequest) -> InstrCount:
        self._fixture = InstrCount(request.node.nodeid, self)
        return self._fixture

    def begin_first(self) -> None:
        pass

    def end_first(self) -> None:
        pass

    async def count_awaited(
        self, target: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._count(None, None, 1)

    async def count_awaited_rounds(self, rounds: Rounds) -> None:
        self.count_rounds(rounds)

    def count_call(
        self, target: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._count(None, None, 1)

    def count_rounds(self, rounds: Rounds) -> None:
        self._count(rounds.warmup_rounds, rounds.rounds, rounds.iterations)

    def _count(self, warmup: int | None, rounds: int | None, iterations: int) -> None:
        self._used = True
        order = self._order
        ordered = rounds_of(order.calls, iterations)
        chosen = [
            next(each for each in wishes if each is not None)
            for wishes in ((warmup, order.warmup, WARMUP), (rounds, ordered, CALLS))
        ]
        self._counted = [chosen[0], chosen[1] * iterations]

    # The answer.

    def dumps(self, counted: list[int] | None) -> list[str]:
        """The paths of new profiles of so many calls."""
        return [] if counted is None else list(map(str, self._dumps(counted[1])))

    def _result(self) -> Answer:
        passed = len(replay.without_blocks(self._reports)) == 3 and replay.passed(self._reports)
        problem = ""
        benchmark = self._item.stash.get(BENCHMARK, None)
        fixture, unused = self._fixture, False
        if passed and not self._used and not self._order.trace:
            if fixture is not None:
                unused = benchmark is not None and not fixture.called
                problem = "" if unused else fixture.why_uncounted()
            else:
                self._count(None, None, 1)
        serialize = self._config.hook.pytest_report_to_serializable
        return {
            "kind": "result",
            "reports": [
                sendable(serialize(config=self._config, report=report)) for report in self._reports
            ],
            "warnings": self._warnings,
            "shown": self._sink.getvalue(),
            "problem": problem,
            "group": None if benchmark is None else benchmark.group,
            "extra_info": {} if benchmark is None else plain(benchmark.extra_info),
            "unused": unused,
            "remarks": remarks_of(benchmark),
            "offspring": None,
            "first_ir": 0,
            "expected": self._used,
            "modules": self._valgrind.modules,
            "compiled": 0,
            "dumps": self.dumps(self._counted),
            "isolation": self._order.isolation,
            "threads": [],
            "beside": [],
            "counted": self._counted,
            "traced": self._traced(),
            "seconds": 0.0,
            "once": 0.0,
            "names": [] if self._counted is None else self._names(),
        }

    def _traced(self) -> Message | None:
        if not self._order.trace:
            return None
        if self._order.by_python:
            rows = [[0, "test_it.py", 3, self._item.name, 1], [1, "shop.py", 1, "f", 4]]
            return {"rows": rows}
        found = self._valgrind.traced.get(self._item.name, {"test_it:f": 3})
        first, second = found if isinstance(found, tuple) else (found, found)
        rows = traced_rows(second)
        return {
            "first": traced_rows(first),
            "second": rows,
            "calls": {
                callee: sum(row[2] for row in rows if row[1] == callee) for _, callee, *_ in rows
            },
            "memory": {"load": 2000},
        }

    def _names(self) -> list[str]:
        """The map of what stands for a Python function."""
        if not self._order.by_python:
            return []
        path = self._stem.with_name(f"names.{os.getpid()}")
        names = {each for branch in self._python() for each in branch.split(";")}
        lines = [
            f"{_address(each):x} b py::{each.partition(':')[2]}:{self._place(each)}\n"
            for each in sorted(names)
        ]
        path.write_text("".join(lines))
        return [str(path)]

    def _python(self) -> Mapping[str, tuple[int, int]]:
        name = self._item.name
        alone = {f"{self._item.path.name}:{name}": (sum(self._cost.values()), 1)}
        return self._valgrind.python.get(name, alone)

    def _place(self, name: str) -> str:
        return str(self._config.rootpath / name.partition(":")[0])

    def _python_dump(self, path: Path, calls: int) -> Path:
        """As Callgrind has it: what was called stands before what called it."""
        costs, number = {}, {}
        for branch, (ir, times) in self._python().items():
            chain = (f"0x{_address(each):016x}" for each in reversed(branch.split(";")))
            name = f"???:{chr(39).join(chain)}"
            costs[name], number[name] = ir, times
        return write_dump(path, costs, calls, number)

    def _dumps(self, calls: int) -> list[Path]:
        stem, name = self._stem, self._item.name
        if name in self._valgrind.recorded and not self._order.by_python:
            return [
                Path(shutil.copy(RECORDED / source, f"{stem}.{number}"))
                for number, source in enumerate(self._valgrind.recorded[name], 1)
            ]
        counted = {**self._cost, **SWITCH}
        if self._order.by_python:
            return [
                self._python_dump(stem.with_name(f"{stem.name}.1"), calls),
                write_dump(stem.with_name(f"{stem.name}.2"), SWITCH, calls),
            ]
        return [
            write_dump(stem.with_name(f"{stem.name}.1"), counted, calls),
            write_dump(stem.with_name(f"{stem.name}.2"), SWITCH, calls),
        ]


def traced_rows(calls: Mapping[str, Any]) -> list[list[Any]]:
    """Rows of edges from "function" or "caller -> function": calls, or calls and resumes.

    >>> traced_rows({"m:f": 1, "m:f -> m:g": (1, 3)})
    [['', 'm:f', 1, 0], ['m:f', 'm:g', 1, 3]]
    """
    rows = []
    for name, uses in calls.items():
        caller, _, callee = name.rpartition(" -> ")
        numbers = uses if isinstance(uses, tuple) else (uses, 0)
        rows.append([caller, callee, *numbers])
    return rows


def _is_by_python(setup: ZygoteSetup) -> bool:
    """Whether a zygote is started to tell Python functions apart."""
    return set(VALGRIND_OPTIONS) <= set(setup.options_of_valgrind)


def _address(name: str) -> int:
    """Where the stub of a Python function is."""
    return 0x5487000 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") * 16


def _test_name(nodeid: str) -> str:
    return nodeid.rpartition("::")[2]


@dataclass(eq=False)
class Project:
    """A folder with tests, and pytest in this process."""

    pytester: pytest.Pytester
    valgrind: FakeValgrind
    outside: Path

    @property
    def path(self) -> Path:
        return self.pytester.path

    def write(self, *modules: str, **files: str) -> None:
        """Test files; a nameless one is test_it.py."""
        for text in modules:
            self.pytester.makepyfile(test_it=text)
        if files:
            self.pytester.makepyfile(**files)

    def run(self, *args: str | Path) -> pytest.RunResult:
        """Run pytest with these arguments alone."""
        return self.pytester.runpytest_inprocess(
            *args, plugins=[*self.pytester.plugins, self.valgrind], no_reraise_ctrlc=True
        )

    def measure(self, *args: str | Path) -> pytest.RunResult:
        return self.run("--instrcount", *args)

    def update(self, *args: str | Path) -> pytest.RunResult:
        return self.run("--instrcount-update-baseline", *args)

    def report(self, *args: str | Path) -> dict[str, Any]:
        """Measure, and read the JSON report."""
        path = self.outside / "report.json"
        path.unlink(missing_ok=True)
        self.measure(f"--instrcount-report=json:{path}", *args)
        report: dict[str, Any] = json.loads(path.read_text())
        return report

    def verdicts(self, *args: str | Path) -> dict[str, str]:
        """Measure; the verdict of each test by its name."""
        tests = self.report(*args)["tests"]
        return {_test_name(test["nodeid"]): test["verdict"] for test in tests}

    def baselines(self) -> dict[str, Path]:
        """The stored baselines by the name of the test."""
        found = {}
        for path in sorted(self.path.glob("instrcount_baselines/**/*.json")):
            name = _test_name(json.loads(path.read_text())["nodeid"])
            assert name not in found
            found[name] = path
        return found

    def baseline_ir(self) -> dict[str, int]:
        """The stored count per call by the name of the test."""
        return {name: read_whole(path)["ir"] for name, path in self.baselines().items()}

    def tree(self) -> set[str]:
        """Names of all files but Python's and pytest's caches."""
        return {
            str(path.relative_to(self.path))
            for path in self.path.rglob("*")
            if not {"__pycache__", ".pytest_cache"} & set(path.parts)
        }


@pytest.fixture
def valgrind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeValgrind:
    """No Valgrind: what tests cost is said in this object. Outside CI, with scratch in tmp_path."""
    fake = FakeValgrind()
    monkeypatch.setattr(pytest_instrcount.session.zygote, "Zygote", fake.make_zygote)
    monkeypatch.setattr(facts, "find_valgrind", fake.find)
    monkeypatch.setattr(importlib.metadata, "packages_distributions", _distributions)
    monkeypatch.delenv("CI", raising=False)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    return fake


@pytest.fixture
def project(
    pytester: pytest.Pytester,
    valgrind: FakeValgrind,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """An empty project with a fake Valgrind; of all plugins installed here, it has ours alone."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.plugins.append(pytest_instrcount.plugin)
    pytester.makeini("[pytest]\n")
    return Project(pytester, valgrind, tmp_path_factory.mktemp("outside"))


@pytest.fixture(autouse=True)
def nothing_left_behind(tmp_path: Path) -> Any:
    """Each zygote that a run started is ended by it, once, and its scratch folder is gone."""
    yield
    scratch = tmp_path / "scratch"
    if scratch.exists() and sys.exc_info()[0] is None:
        assert not list(scratch.iterdir())
