"""What a project brings along: plugins, conftests, settings, files. None of it moves a count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.valgrind


@pytest.mark.long
def test_pytest_inside_is_the_users(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """Fixtures and options of plugins that rest inside, conftests of each folder, one life each."""
    project.makeini("[pytest]\ntestpaths = tests\naddopts = -q --strict-markers\n")
    project.makeconftest(
        """
        import pytest
        @pytest.fixture(scope="session")
        def born():
            return set()
        """
    )
    folder = project.mkdir("tests")
    folder.joinpath("conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='module')\ndef near(born): return born\n"
    )
    folder.joinpath("test_inside.py").write_text(
        """
import os, subprocess, sys, tempfile, unittest, pytest
pytestmark = pytest.mark.instrcount

def facts(record_property, tmp_path):
    record_property("tmp", len(str(tmp_path)))
    record_property("base", str(tmp_path.parent))
    record_property("current", len(os.environ["PYTEST_CURRENT_TEST"]))
    record_property("child", os.environ["INSTRCOUNT_CHILD"])

def test_a(record_property, cache, request, worker_id, tmp_path, near):
    near.add("a")
    assert near == {"a"}  # what a session fixture holds is of this test alone
    assert request.config.getoption("keyword") == ""
    assert os.path.exists(sys.modules["__main__"].__file__)
    assert "readline" not in sys.modules  # its heap is another in the next second
    facts(record_property, tmp_path)

def test_b(record_property, tmp_path, tmp_path_factory, near):
    near.add("b")
    assert near == {"b"}
    facts(record_property, tmp_path)

def test_process(record_property, capfd):
    code = "import sys; print(sum(range(9)))"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "36" in capfd.readouterr().out

class TestCase(unittest.TestCase):
    def setUp(self):
        self.items = list(range(5000))
    def tearDown(self):
        sum(self.items * 10)
    def test_counted(self):
        pass
"""
    )
    folder.joinpath("test_native.py").write_text(
        """
import os, pytest
def test_no_child_of_pytest(near):
    near.add("native")
    assert near == {"native"}
    with pytest.raises(ChildProcessError):
        os.wait()
"""
    )
    result, _ = run("-k", "not nothing", "-n0", "-p", "no:cacheprovider")
    # The cache's fixture is gone natively, so it is gone inside: an error, as in pytest.
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(["*fixture 'cache' not found*"])
    result, tests = run("-n0", "-k", "not nothing", "--junitxml=j.xml")
    result.assert_outcomes(passed=5)
    tests = {nodeid.rpartition("::")[2]: test for nodeid, test in tests.items()}
    assert set(tests) == {"test_a", "test_b", "test_process", "test_counted"}
    assert tests["test_counted"]["ir"] < 2000  # neither setUp, nor tearDown, nor unittest itself
    properties = [
        line.split('value="')[1].split('"')[0]
        for line in project.path.joinpath("j.xml")
        .read_text()
        .replace("<property ", "\n")
        .split("\n")
        if line.startswith('name="') and "instrcount." not in line
    ]
    (tmp_a, base_a, current_a, child_a), (tmp_b, base_b, current_b, child_b) = (
        properties[:4],
        properties[4:],
    )
    assert (tmp_a, current_a, len(child_a)) == (tmp_b, current_b, len(child_b))
    assert base_a != base_b
    assert child_a != child_b


@pytest.mark.long
def test_python_inside_is_started_alike(project: pytest.Pytester) -> None:
    """What changes the code that runs; a baseline knows it, and -n changes nothing of it."""
    project.makepyfile(
        """
        import sys, pytest
        @pytest.mark.instrcount
        def test_a():
            with open("seen", "w") as seen:
                print(sys.get_int_max_str_digits(), file=seen)
        """
    )
    options = ("-Xint_max_str_digits=900", "-Xshowrefcount")
    result = project.run(
        *(sys.executable, *options, "-m", "pytest", "--instrcount-update-baseline", "-n0")
    )
    result.stdout.fnmatch_lines(["*1 new", "Python under Valgrind does not get -X showrefcount"])
    assert {*project.path.joinpath("seen").read_text().splitlines()} == {"900"}
    limit = "--instrcount-max-delta=0"
    result = project.run(*(sys.executable, *options, "-m", "pytest", "--instrcount", limit, "-n1"))
    result.stdout.fnmatch_lines(["*1 unchanged*"])
    result = project.run(sys.executable, "-m", "pytest", "--instrcount", "-n0")
    result.stdout.fnmatch_lines(["*: options -Xint_max_str_digits=900 ->"])


def test_signals_that_are_ignored_outside(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """As by nohup, and by a shell in the background: `asyncio.run` would do less."""
    project.makepyfile(
        """
        import asyncio, pytest
        async def main(): return 1
        @pytest.mark.instrcount
        def test_a(): asyncio.run(main())
        """
    )
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "os.execv(sys.executable, [sys.executable, '-m', 'pytest', *sys.argv[1:]])"
    )
    options = ("-n0", "--instrcount-blame=off")
    _, tests = run(*options)
    report = "--instrcount-report=json:ignored.json"
    project.run(sys.executable, "-c", code, "--instrcount", report, *options)
    [ignored] = json.loads((project.path / "ignored.json").read_text())["tests"]
    assert [ignored["ir"]] == [test["ir"] for test in tests.values()] != [None]


def test_nobody_need_report(project: pytest.Pytester) -> None:
    """Verbosity is an option of the plugin that does."""
    project.makepyfile("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    options = ("-p", "no:terminal", "--instrcount-report=json:report.json")
    assert project.runpytest_subprocess("--instrcount", *options).ret == 0
    [test] = json.loads((project.path / "report.json").read_text())["tests"]
    assert test["verdict"] == "new"


def test_objects_of_a_test_lie_in_an_arena_of_their_own(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """Where those of an import lie depends on all else that was imported, and so would what a free costs."""
    project.makepyfile(
        """
        import pytest
        from pytest_instrcount.callgrind.inside import places
        @pytest.mark.instrcount
        def test_a():
            made = [bytes(size) for size in range(16, 480, 16) for _ in range(5)]
            with open("opened", "w") as file:
                print(places._opened[0], file=file)
                print(sum(places._pool(each) < places._opened[0] for each in made), file=file)
        """
    )
    run("-n0", "--instrcount-blame=off")
    pool, elsewhere = map(int, project.path.joinpath("opened").read_text().split())
    assert pool and pool % 64 == 0 and elsewhere <= 3


@pytest.mark.long
def test_valgrind_takes_nothing_along(
    project: pytest.Pytester, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings of Valgrind move no count, and a crash leaves neither a core nor a pipe."""
    project.makepyfile(
        """
        import ctypes, pytest
        pytestmark = pytest.mark.instrcount
        def test_a(): assert sorted(str(n) for n in range(200))
        """
    )
    _, plain = run()
    project.path.joinpath(".valgrindrc").write_text("--callgrind:cache-sim=yes\n--time-stamp=yes\n")
    monkeypatch.setenv("VALGRIND_OPTS", "--callgrind:collect-jumps=yes --trace-children=yes")
    _, configured = run()
    assert configured == plain
    monkeypatch.setenv("TMPDIR", str(project.mkdir("tmp")))
    project.makepyfile(
        test_crash="import ctypes, pytest\n@pytest.mark.instrcount\ndef test(): ctypes.string_at(0)"
    )
    result, tests = run()
    assert [test["verdict"] for test in tests.values()] == ["failed", "new"]
    assert result.ret == 1
    left = {path.name for path in project.path.rglob("*") if "pytest" not in str(path.parent.name)}
    assert not [name for name in left if name.startswith(("vgcore", "core", "callgrind.out"))]
    assert not os.listdir(project.path / "tmp")
    assert not list(Path("/tmp").glob("vgdb-pipe-*"))


@pytest.fixture
def small_ids() -> list[str]:
    """The beginning of a command whose process ids begin at 1, as in a new container."""
    as_user = [] if os.getuid() == 0 else ["--map-current-user"]
    command = ["unshare", *as_user, "--pid", "--fork", "--mount-proc"]
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if tried.returncode:
        pytest.skip(f"no namespace: {tried.stderr.decode()}")
    return command


@pytest.mark.long
def test_process_ids_of_a_container(
    project: pytest.Pytester, run: Callable[..., Any], small_ids: list[str]
) -> None:
    """A process with one of the ids that CPython always has an int for counts the same."""
    project.makepyfile(
        """
        import collections, fractions, statistics, pytest
        pytestmark = pytest.mark.instrcount
        def test_fractions(): assert sum(fractions.Fraction(1, i) for i in range(1, 15))
        def test_statistics(): assert statistics.mean(range(100))
        def test_deque(): assert collections.deque(range(500), maxlen=10)
        def test_loop(): assert sum(i * i for i in range(300))
        """
    )
    _, here = run()
    report = project.path.parent / "contained.json"
    done = project.run(
        *small_ids,
        *(sys.executable, "-m", "pytest", "--instrcount", f"--instrcount-report=json:{report}"),
    )
    done.assert_outcomes(passed=4)
    assert {test["nodeid"]: test for test in json.loads(report.read_text())["tests"]} == here


@pytest.mark.long
def test_a_file_system_that_a_test_has_made(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """Pyfakefs replaces ``os`` in every module that it finds, ours included."""
    project.makepyfile(
        test_suite="""
        import os
        import sys
        import types
        import pytest

        def no_such_file(*args):
            raise FileNotFoundError(*args)

        @pytest.fixture
        def no_files(monkeypatch):
            fake = types.ModuleType("os")
            replaced = dict.fromkeys(("dup", "listdir", "lseek", "pread", "write"), no_such_file)
            vars(fake).update(vars(os) | replaced)
            for name, module in list(sys.modules.items()):
                if name.startswith("pytest_instrcount") and getattr(module, "os", None) is os:
                    monkeypatch.setattr(module, "os", fake)

        def test_sum(no_files, instrcount):
            instrcount(sum, range(1000))
        """
    )
    result, _ = run("--instrcount-update-baseline")
    result.assert_outcomes(passed=1)


def test_who_hears_a_test_hears_the_counted_call(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """Handlers of the log, capture, filters of warnings, hooks around the call: with a fixture or without."""
    project.makeconftest(
        """
        import pytest
        held = []

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(item, nextitem):
            held.append(item)
            try:
                return (yield)
            finally:
                held.pop()
        """
    )
    project.makepyfile(
        test_suite="""
        import logging, os, warnings, pytest
        from conftest import held

        def work():
            for number in range(20):
                logging.getLogger("mine").warning("heard %d", number)

        @pytest.mark.instrcount
        def test_alone(): work()

        @pytest.mark.instrcount
        def test_with_fixture(tmp_path): work()

        @pytest.mark.instrcount
        @pytest.mark.filterwarnings("error")
        def test_filter():
            with pytest.raises(UserWarning): warnings.warn("heard")

        @pytest.mark.instrcount
        def test_hook(): assert held and "test_hook (call)" in os.environ["PYTEST_CURRENT_TEST"]
        """
    )
    result, tests = run()
    result.assert_outcomes(passed=4)
    alone, beside = (
        tests[f"test_suite.py::test_{name}"]["ir"] for name in ("alone", "with_fixture")
    )
    assert abs(alone / beside - 1) < 0.01


def test_a_test_that_nobody_needs_to_set_up_is_called_within_its_call_phase(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """There are the handlers of the log, captured output, and a list of warnings, as for any other test."""
    project.makepyfile(
        test_suite="""
        import logging, sys, warnings, pytest

        def work():
            for _ in range(20):
                warnings.warn("old", DeprecationWarning)

        @pytest.mark.instrcount
        def test_alone(): work()

        @pytest.mark.instrcount
        def test_with_fixture(tmp_path): work()

        @pytest.mark.instrcount
        def test_heard():
            assert sys.stdout is not sys.__stdout__
            assert "LogCaptureHandler" in {type(each).__name__ for each in logging.getLogger().handlers}
        """
    )
    result, tests = run()
    result.assert_outcomes(passed=3, warnings=2)
    alone, beside = (
        tests[f"test_suite.py::test_{name}"]["ir"] for name in ("alone", "with_fixture")
    )
    assert abs(alone / beside - 1) < 0.01


def test_what_the_project_does_before_a_test_is_done(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """In hooks of which pytest takes the first answer, in a conftest of the file, too, and without a network.

    Who runs the test there as well is told so.
    """
    hooks = """
        from done import DONE

        def pytest_collection(session):
            DONE.append((__name__, "collection"))

        def pytest_runtestloop(session):
            assert session.items
            DONE.append((__name__, "loop"))
    """
    project.makepyfile(done="DONE = []", ours=hooks)
    project.makeconftest(
        hooks
        + """
        import enum, socket, ssl, subprocess  # ssl makes a class of sockets
        from _pytest.runner import runtestprotocol
        pytest_plugins = ["ours"]

        class Server(enum.Enum):
            near = "near"
            far = "far"

        def pytest_addoption(parser):
            parser.addoption("--server", type=Server, default=Server.near)

        def pytest_configure(config):
            config.server = config.getoption("--server")
            assert isinstance(config.server, Server)

        def no_network(*args, **kwargs):
            raise RuntimeError("no network")
        socket.socket = no_network
        socket.setdefaulttimeout(0.001)
        subprocess.Popen = no_network

        def pytest_runtest_protocol(item, nextitem):
            DONE.append((__name__, "protocol"))
            if "runs" in item.name:
                return bool(runtestprotocol(item, nextitem=nextitem))
        """
    )
    project.makepyfile(
        test_suite="""
        import pytest
        from done import DONE

        @pytest.mark.instrcount
        def test_marked():
            before = {(who, what) for who in ("ours", "conftest") for what in ("collection", "loop")}
            assert before | {("conftest", "protocol")} == set(DONE)

        @pytest.mark.instrcount
        def test_runs(): pass

        def test_runs_with_fixture(instrcount): instrcount(sum, range(9))
        """
    )
    folder = project.mkdir("tests")
    project.makepyfile(theirs=hooks)
    folder.joinpath("conftest.py").write_text(
        """
from done import DONE
pytest_plugins = ["theirs"]

class Size(int): pass

def pytest_addoption(parser):
    parser.addoption("--much", default=7, type=Size)

def pytest_sessionstart(session):
    DONE.append(("near", "start"))

def pytest_collection(session):
    DONE.append(("near", "collection"))
"""
    )
    folder.joinpath("test_near.py").write_text(
        """
import pytest
from done import DONE

BEFORE = [each for each in DONE if each[0] in ("near", "theirs")]

@pytest.mark.instrcount
def test_near(request):
    assert BEFORE == [("near", "start"), ("theirs", "collection"), ("near", "collection")]
    assert ("theirs", "loop") in DONE and request.config.server.name == "far"
    assert repr(request.config.option.much) == "8"
"""
    )
    result, _ = run(
        "--instrcount-update-baseline", "--instrcount-blame=off", "--much=8", "--server=far"
    )
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(
        [
            "instrcount: a pytest_runtest_protocol of the project runs it in its own way: count one call*"
        ]
    )
