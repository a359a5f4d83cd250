"""Traces under pytest-xdist: the same files as without, what is wrong is said once, nobody is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.perfetto import load
from tests.plugin.conftest import TWO_TESTS, Project

pytest.importorskip("xdist")

HERE = "-n0"
SPREAD = "-n2"
BOTH = pytest.mark.parametrize("processes", [HERE, SPREAD])


class Spread:
    """A project whose runs are processes of their own, with pytest-xdist."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.path = project.path
        self.folder = project.outside / "traces"

    def write(self, text: str, **files: str) -> None:
        self.project.write(text, **files)

    def run(self, *args: str) -> pytest.RunResult:
        given = [f"-p{name}" for name in ("xdist.plugin", "pytest_instrcount.plugin")]
        return self.project.pytester.runpytest_subprocess(*given, "-pno:cacheprovider", *args)

    def trace(self, *args: str) -> pytest.RunResult:
        return self.run(f"--trace-profile={self.folder}", *args)

    def files(self) -> list[str]:
        """All there is below the folder."""
        return sorted(
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if not path.is_dir()
        )

    def rows(self) -> dict[str, list[str]]:
        """The trace of the run: name of each process -> what is in its row, in order of start."""
        path = self.folder / "run.trace.json"
        loaded = load(path)
        assert not loaded.dropped
        found = events_in(path)
        processes: dict[int, str] = {}
        for event in found:
            if event["name"] == "process_name":
                name = event["args"]["name"]
                assert processes.setdefault(event["pid"], name) == name
        assert len(set(processes.values())) == len(processes)
        rows: dict[str, list[str]] = {name: [] for name in processes.values()}
        for event in sorted(found, key=lambda event: event.get("ts", 0)):
            if event["ph"] in "Xbi":
                rows[processes[event["pid"]]].append(event["name"])
        return rows

    def names(self, pattern: str) -> list[str]:
        """What was called or named in the one trace whose file matches; in order."""
        (path,) = self.folder.rglob(pattern)
        return [event["name"] for event in events_in(path) if event["ph"] in "Xb"]


def events_in(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


@pytest.fixture
def spread(project: Project, monkeypatch: pytest.MonkeyPatch) -> Spread:
    package = Path(__file__).parents[2]
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), *([path] if path else [])]))
    project.pytester.plugins.clear()  # they are named on the command line
    return Spread(project)


# --- a file per test ------------------------------------------------------------------------------

MANY = """
    import asyncio, json, unittest
    import pytest
    from pytest_instrcount import record_function

    def helper(n):
        return n + 1

    @pytest.mark.trace_profile
    @pytest.mark.parametrize("text", ["a/b", "../up", "\u00e9\u4e2d", "", "x" * 90, "a b", "a_b"])
    def test_ids(text):
        helper(1)

    @pytest.mark.trace_profile
    def test_asyncio():
        async def work(n):
            await asyncio.sleep(0)
            return helper(n)
        async def main():
            return await asyncio.gather(work(1), work(2))
        assert asyncio.run(main()) == [2, 3]

    @pytest.mark.trace_profile(tracer="legacy")
    def test_asyncio_ranges():
        @record_function("task")
        async def work():
            await asyncio.sleep(0)
        async def main():
            await asyncio.gather(work(), work())
        asyncio.run(main())

    @pytest.mark.trace_profile
    class TestUnit(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.one = 1

        def test_unit(self):
            assert helper(self.one) == 2

    @pytest.mark.trace_profile
    class TestAsyncUnit(unittest.IsolatedAsyncioTestCase):
        async def test_unit(self):
            await asyncio.sleep(0)
            helper(1)

    @pytest.mark.trace_profile(phases=("setup", "call", "teardown"), max_calls={"conftest:*": 3})
    def test_phases(made):
        helper(1)

    def test_fixture(made, trace_profile):
        with trace_profile:
            helper(made)

    def test_other():
        helper(1)
    """
CONFTEST = """
    import pytest

    def build(n):
        return n

    @pytest.fixture
    def made():
        yield build(1)
        build(2)
    """


@BOTH
def test_every_traced_test_has_its_file(spread: Spread, processes: str) -> None:
    """Coroutines, unittest, fixtures of a conftest, any id; with workers the very same names."""
    spread.write(MANY, conftest=CONFTEST)
    spread.trace(processes).assert_outcomes(passed=14)
    names = [path.rpartition("-")[0] for path in spread.files() if path.startswith("test_it/")]
    assert sorted(names) == sorted(
        [
            "test_it/TestAsyncUnit.test_unit",
            "test_it/TestUnit.test_unit",
            "test_it/test_asyncio",
            "test_it/test_asyncio_ranges",
            "test_it/test_fixture",
            "test_it/test_phases",
            "test_it/test_ids",
            "test_it/test_ids_a_b",
            "test_it/test_ids_a_b",
            "test_it/test_ids_a_b",
            "test_it/test_ids_.._up",
            "test_it/test_ids_xe9_u4e2d",
            "test_it/test_ids_" + "x" * 51,
        ]
    )
    assert spread.names("test_asyncio-*").count("test_it.helper") == 2
    assert spread.names("test_asyncio_ranges-*") == ["task", "task"]
    for name in ("TestUnit*", "TestAsyncUnit*", "test_ids_xx*", "test_fixture-*"):
        assert spread.names(name).count("test_it.helper") == 1, name


@BOTH
def test_an_empty_trace_is_no_file(spread: Spread, processes: str) -> None:
    """Nor is it the end of the run; and the file of an earlier run does not stand for it."""
    text = """
        import pytest
        from pytest_instrcount import record_function

        @pytest.mark.trace_profile(tracer="legacy")
        def test_a():
            BODY

        def test_z(): pass
        """
    spread.write(text.replace("BODY", "record_function('load').__enter__()"))
    spread.trace(processes).assert_outcomes(passed=2)
    assert spread.names("test_a-*") == ["load"]
    spread.write(text.replace("BODY", "pass"))
    spread.trace(processes).assert_outcomes(passed=2)
    assert not list(spread.folder.rglob("test_a-*"))


@BOTH
def test_a_trace_that_cannot_be_written_is_an_error_of_its_test(
    spread: Spread, processes: str
) -> None:
    """The other tests go on, and theirs are written."""
    spread.write(
        """
        import pytest

        @pytest.mark.trace_profile
        @pytest.mark.parametrize("n", range(4))
        def test_a(n): str(n)
        """
    )
    spread.trace(processes).assert_outcomes(passed=4)
    (path,) = spread.folder.rglob("test_a_2-*")
    path.unlink()
    path.mkdir()
    result = spread.trace(processes)
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_a[[]2]*", "*[[]profile-write]"])
    assert len(list(spread.folder.rglob("test_a_*"))) == 4


@BOTH
def test_a_folder_that_cannot_be_made(spread: Spread, processes: str) -> None:
    """Before any test runs: exit 4, and what to type."""
    spread.write(MANY, conftest=CONFTEST)
    spread.folder.write_text("a file")
    result = spread.trace(processes)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert text.count("traces cannot be written") == 1, text
    assert "[trace-write]" in text
    assert "INTERNALERROR" not in text
    assert "passed" not in text


@BOTH
def test_wrong_markers(spread: Spread, processes: str) -> None:
    """Named as without workers: once, before any test runs."""
    spread.write(
        """
        import pytest

        @pytest.mark.trace_profile(speed="\\ud800")
        def test_a(): pass
        def test_b(): pass
        """
    )
    result = spread.run(processes)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert text.count("test_a: the trace_profile marker has no argument 'speed'") == 1, text
    assert "INTERNALERROR" not in text
    assert "passed" not in text


@BOTH
def test_a_passed_ceiling_is_told_once(spread: Spread, processes: str) -> None:
    """In the summary of the controller, with the calls."""
    spread.write(
        """
        import pytest

        def helper(): pass

        @pytest.mark.trace_profile(max_calls={"test_it:helper": 1})
        @pytest.mark.parametrize("n", range(4))
        def test_a(n):
            for _ in range(n): helper()
        """
    )
    result = spread.run(processes)
    result.assert_outcomes(passed=2, failed=2)
    text = result.stdout.str()
    for calls in (2, 3):
        line = f"\ntest_it:helper: {calls} calls, at most 1 allowed\n"
        assert text.count(line) == 1, text


# --- the trace of the run -------------------------------------------------------------------------

RANGES = """
    import os, threading, time
    import pytest
    from pytest_instrcount import mark, record_function

    legacy = pytest.mark.trace_profile(tracer="legacy")

    @legacy
    @pytest.mark.parametrize("n", range(6))
    def test_load(n):
        with record_function(f"load {n}"):
            mark(f"half {n}")
            thread = threading.Thread(target=record_function(f"beside {n}")(lambda: None))
            thread.start()
            thread.join()
        record_function(f"open {n}").__enter__()

    @pytest.mark.trace_profile
    def test_calls():
        str(1)

    def test_other():
        pass
    """


def in_one(n: int) -> list[str]:
    return [f"test_it.py::test_load[{n}]", f"load {n}", f"half {n}", f"beside {n}", f"open {n}"]


@BOTH
def test_the_run_is_one_trace(spread: Spread, processes: str) -> None:
    """A row per worker, in which each traced test is a slice around its ranges and marks."""
    spread.write(RANGES)
    spread.trace(processes).assert_outcomes(passed=8)
    rows = spread.rows()
    assert list(rows) == ["pytest"] if processes == HERE else set(rows) == {"gw0", "gw1"}
    found = [name for row in rows.values() for name in row]
    expected = [*(name for n in range(6) for name in in_one(n)), "test_it.py::test_calls"]
    assert sorted(found) == sorted(expected)
    for n in range(6):
        (row,) = (row for row in rows.values() if in_one(n)[0] in row)
        at = row.index(in_one(n)[0])
        assert row[at : at + 5] == in_one(n)
    nodes = {event["pid"] - 1 for event in events_in(spread.folder / "run.trace.json")}
    assert nodes == ({0} if processes == HERE else {1, 2})


def test_a_worker_that_has_traced_nothing_is_no_row(spread: Spread) -> None:
    """Nor has a run without traced tests a trace; that of an earlier run is taken away."""
    spread.write(
        """
        import pytest

        @pytest.mark.trace_profile
        def test_a(): pass
        @pytest.mark.parametrize("n", range(9))
        def test_b(n): pass
        """
    )
    spread.trace(SPREAD).assert_outcomes(passed=10)
    assert list(spread.rows().values()) == [["test_it.py::test_a"]]
    spread.trace(SPREAD, "--collect-only")
    assert spread.rows()
    spread.trace(SPREAD, "-k", "test_b").assert_outcomes(passed=9)
    assert spread.files() == ["test_it/" + path.name for path in spread.folder.glob("test_it/*")]


def test_a_worker_that_crashes(spread: Spread) -> None:
    """All but its last test is there, and what its successor has traced."""
    text = RANGES.replace("def test_load(n):", "def test_load(n):\n        if n == 3: os._exit(1)")
    spread.write(text)
    result = spread.trace(SPREAD)
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["*worker 'gw?' crashed while running *test_load[[]3]*"])
    rows = spread.rows()
    found = {name for row in rows.values() for name in row if name.startswith("test_it")}
    assert found == {"test_it.py::test_calls", *(in_one(n)[0] for n in (0, 1, 2, 4, 5))}
    assert "gw2" in rows or set(rows) <= {"gw0", "gw1"}
    assert len(spread.files()) == 7
    assert not [name for name in spread.files() if not name.endswith(".trace.json")]


@pytest.mark.parametrize("processes", [HERE, SPREAD])
def test_an_interrupted_run(spread: Spread, processes: str) -> None:
    """What was traced until then is there."""
    spread.write(
        RANGES.replace("def test_other():", "def test_z():\n        raise KeyboardInterrupt")
    )
    result = spread.trace(processes)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert spread.rows()


def test_a_controller_that_is_killed(spread: Spread) -> None:
    """No trace of the run then, and nothing half-written; not the one of an earlier run either."""
    wait = 'open("here", "w"); parent = os.getppid()\n        while os.getppid() == parent: time.sleep(0.05)'
    spread.write(RANGES.replace("pass", wait))
    spread.folder.mkdir()
    (spread.folder / "run.trace.json").write_text("earlier")
    plugins = ("-pxdist.plugin", "-ppytest_instrcount.plugin", "-pno:cacheprovider")
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", *plugins, SPREAD, f"--trace-profile={spread.folder}"],
        cwd=spread.path,
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 30
        while len(spread.files()) < 7 or not (spread.path / "here").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    names = [path.rpartition("-")[0] for path in spread.files()]
    assert names == ["test_it/test_calls", *(f"test_it/test_load_{n}" for n in range(6))]


@BOTH
def test_a_run_whose_trace_cannot_be_written(spread: Spread, processes: str) -> None:
    """The tests are told first; then exit 4, and why."""
    spread.write(RANGES)
    (spread.folder / "run.trace.json").mkdir(parents=True)
    result = spread.trace(processes)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(passed=8)
    assert "[profile-write]" in result.stderr.str()


@BOTH
def test_reports_keep_nothing(spread: Spread, processes: str) -> None:
    """What was sent with a report is taken out before others see it."""
    spread.write(
        RANGES,
        conftest="""
        def pytest_runtest_logreport(report):
            import os
            if "PYTEST_XDIST_WORKER" not in os.environ:
                assert "instrcount_events" not in vars(report)
        """,
    )
    spread.trace(processes).assert_outcomes(passed=8)
    assert spread.rows()


# --- processes that a test starts -----------------------------------------------------------------

WORK = """
    import json, sys
    from pytest_instrcount import record_function
    from pytest_instrcount.trace.ranges.remote import pack_events
    from pytest_instrcount.trace.ranges.session import start, stop

    start()
    with record_function("in the child"):
        sum(range(1000))
    with open(sys.argv[1], "w") as file:
        json.dump(pack_events(stop()), file)
    """

TEST_WORK = """
    import json, subprocess, sys
    import pytest
    from pytest_instrcount import record_function
    from pytest_instrcount.trace.ranges.remote import unpack_events
    from pytest_instrcount.trace.ranges.session import add_events


    @pytest.mark.trace_profile(tracer="legacy")
    def test_work(tmp_path):
        path = tmp_path / "events.json"
        with record_function("wait"):
            subprocess.run([sys.executable, "work.py", path], check=True)
        add_events(unpack_events(json.loads(path.read_text())))
    """

LOOK = """
    import pytest

    @pytest.fixture(autouse=True)
    def look(trace_profile):
        yield
        counts = trace_profile.call_counts()
        found = sorted((event.name, event.node_id) for event in trace_profile.events)
        assert (counts, found) == (COUNTS, FOUND)
    """


@BOTH
def test_a_subprocess_hands_its_events_over(spread: Spread, processes: str) -> None:
    """They are the test's, with a node id, and a row of their own."""
    counts, found = {"in the child": 1, "wait": 1}, [("in the child", 1), ("wait", 0)]
    look = LOOK.replace("COUNTS", repr(counts)).replace("FOUND", repr(found))
    spread.write(
        TEST_WORK.replace("test_work", "test_again"), test_work=TEST_WORK, work=WORK, conftest=look
    )
    spread.trace(processes).assert_outcomes(passed=2)
    rows = spread.rows()
    workers = {name: row for name, row in rows.items() if "process 1 of" not in name}
    assert set(workers) == ({"pytest"} if processes == HERE else {"gw0", "gw1"})
    names = {"test_it.py::test_again", "test_work.py::test_work"}
    assert {row[at] for row in workers.values() for at in range(0, len(row), 2)} == names
    children = {
        name.partition(" of ")[2]: row for name, row in rows.items() if "process 1 of" in name
    }
    assert children == {name: ["in the child"] for name in names}
    (path,) = spread.folder.rglob("test_work-*")
    assert not load(path).dropped
    pids = {e["name"]: e["pid"] for e in events_in(path) if e["ph"] == "X"}
    assert pids == {"wait": pids["wait"], "in the child": pids["wait"] * 256 + 2}


@BOTH
def test_processes_of_multiprocessing(spread: Spread, processes: str) -> None:
    """Forked or spawned, two at a time, by a pipe; one is killed, and hands nothing over."""
    spread.write(
        """
        import multiprocessing, os
        import pytest
        from pytest_instrcount import record_function
        from pytest_instrcount.trace.ranges.remote import pack_events, unpack_events
        from pytest_instrcount.trace.ranges.session import add_events, start, stop

        def work(pipe, name):
            start()
            with record_function(name):
                if name == "dies":
                    os._exit(1)
            pipe.send(pack_events(stop()))

        @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
        @pytest.mark.trace_profile(tracer="legacy")
        @pytest.mark.parametrize("how", ["fork", "spawn"])
        def test_pool(how, trace_profile):
            context = multiprocessing.get_context(how)
            children = []
            with record_function("parent"):
                for name in ("one", "dies", "two"):
                    reader, writer = context.Pipe(duplex=False)
                    child = context.Process(target=work, args=(writer, name))
                    child.start()
                    writer.close()
                    children.append((reader, child))
                for reader, child in children:
                    try:
                        add_events(unpack_events(reader.recv()))
                    except EOFError:
                        pass
                    child.join()

        @pytest.fixture(autouse=True)
        def look(trace_profile):
            yield
            found = sorted((event.name, event.node_id) for event in trace_profile.events)
            assert found == [("one", 1), ("parent", 0), ("two", 2)]
        """
    )
    spread.trace(processes).assert_outcomes(passed=2)
    rows = spread.rows()
    for how in ("fork", "spawn"):
        found = [
            row for name, row in rows.items() if name.endswith(f"of test_it.py::test_pool[{how}]")
        ]
        assert sorted(found) == [["one"], ["two"]]


@pytest.mark.valgrind
@BOTH
def test_a_collected_file_is_not_written_over(spread: Spread, processes: str) -> None:
    """Of any kind; whoever collects it, it is refused before a test has run."""
    text = ">>> open('ran', 'w').close()\n"
    spread.write("import pytest\n@pytest.mark.instrcount\ndef test_it(): pass\n")
    (spread.path / "data.txt").write_text(text)
    for option in ("--instrcount-report=json:data.txt", "--instrcount-timings-csv=data.txt"):
        result = spread.run(processes, "--doctest-glob=data.txt", "--instrcount", option)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, result.stdout.str()
        assert "this run reads that file; write another path" in result.stderr.str()
        assert (spread.path / "data.txt").read_text() == text
    assert not (spread.path / "ran").exists()


def test_an_option_of_the_same_name(project: Project) -> None:
    """Without pytest-xdist ``--dist`` may be the project's own: nothing deals out tests."""
    project.write(TWO_TESTS)
    own = "def pytest_addoption(parser):\n    parser.addoption('--dist', default='wheel')\n"
    (project.path / "conftest.py").write_text(own)
    result = project.update("-p", "no:xdist", "-p", "no:xdist.looponfail")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["instrcount: 2 baselines written to *"])
