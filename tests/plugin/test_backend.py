"""Without Valgrind: natively under ``auto``, or byte code in the place of instructions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_instrcount.errors import InstrcountError
from tests.baselines import read_whole
from tests.plugin.conftest import Project

MARKED = """
import pytest

@pytest.mark.instrcount
def test_a():
    with open("ran", "a") as file:
        file.write("x")
"""

later = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")


@pytest.fixture
def bare(project: Project) -> Project:
    """A machine without Valgrind."""
    project.valgrind.version = InstrcountError("valgrind-missing", "there is none", "get one")
    return project


def test_auto_without_valgrind_runs_natively_once(bare: Project) -> None:
    """One line of the header says so; nothing is measured, compared or written."""
    bare.write(MARKED)
    result = bare.measure("--instrcount-backend=auto")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["instrcount: nothing is measured, tests run natively (instrcount_backend = auto): there*"]
    )
    assert "instrcount: " not in result.stdout.str().replace("instrcount: nothing is", "")
    assert bare.path.joinpath("ran").read_text() == "x"
    assert not bare.valgrind.started and not bare.baselines()


@pytest.mark.parametrize(
    "args",
    [(), *((f"--instrcount-{name}",) for name in ("update-baseline", "update-inline", "prune"))],
)
def test_auto_is_no_gate_without_valgrind(
    bare: Project, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    """In CI, and where something is to be written, it ends with exit code 4."""
    bare.write(MARKED)
    if not args:
        monkeypatch.setenv("CI", "1")
    result = bare.measure("--instrcount-backend=auto", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is none [[]valgrind-missing]", "  fix: get one"])
    result.stderr.fnmatch_lines([f"*, and {args[0]} is given" if args else "*, and CI is set"])
    assert not bare.path.joinpath("ran").exists()


def test_auto_with_valgrind_is_callgrind(project: Project) -> None:
    """From the ini, too."""
    project.pytester.makeini("[pytest]\ninstrcount_backend = auto\n")
    project.write(MARKED)
    assert project.verdicts() == {"test_a": "new"}
    assert project.valgrind.started
    assert project.valgrind.looked_for == 1


def test_callgrind_is_what_counts_unless_said_otherwise(bare: Project) -> None:
    """A machine without Valgrind is an error."""
    assert bare.measure().ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there is sys.monitoring")
def test_bytecode_needs_3_12(project: Project) -> None:
    """Exit code 4 and what to do instead."""
    result = project.measure("--instrcount-backend=bytecode")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*from 3.12 on*[[]bytecode-python]", "  fix: *callgrind*"])


WORK = """
import random
import pytest

def work(n):
    for _ in range(n):
        pass

@pytest.fixture
def size():
    print("fixture")
    return SIZE

@pytest.mark.instrcount
def test_marked():
    work(SIZE)

@pytest.mark.instrcount(max_delta="50%|7ir")
def test_with_fixture(size):
    work(size)

def test_call(instrcount):
    assert instrcount(sorted, [3, 1], key=lambda n: n) == [1, 3]

@pytest.mark.instrcount(max_ir=1)
class TestClass:
    def test_method(self):
        work(3)
"""


@later
def test_bytecode(bare: Project) -> None:
    """Stored under a key of its own, compared, gated; called bytecodes, and never Ir."""
    bare.write(WORK.replace("SIZE", "100"))
    first = bare.update("--instrcount-backend=bytecode")
    first.assert_outcomes(passed=4)
    key = (
        f"cp{sys.version_info[0]}{sys.version_info[1]}-{sys.platform}-{os.uname().machine}-bytecode"
    )
    assert {path.relative_to(bare.path).parts[1] for path in bare.baselines().values()} == {key}
    again = bare.measure("--instrcount-backend=bytecode", "-v")
    again.stdout.fnmatch_lines(
        [
            "instrcount: bytecodes instead of instructions: a rough local gate, CPython *",
            "instrcount: 4 unchanged",
            "not judged by bytecodes, which are no instructions: limits in ir, max_ir",
        ]
    )
    bare.write(WORK.replace("SIZE", "120"))
    slower = bare.measure("--instrcount-backend=bytecode", "--junitxml=j.xml")
    assert slower.ret == pytest.ExitCode.TESTS_FAILED
    slower.assert_outcomes(passed=4, failed=1)  # the other has a looser limit
    slower.stdout.fnmatch_lines(["+* (limit 1 %): *", "  test_marked: bytecodes * -> *"])
    for result in (first, again, slower):
        assert "Ir" not in result.stdout.str().split()
        assert "fixture" not in result.stdout.str().splitlines()
    assert "instrcount.bytecodes" in bare.path.joinpath("j.xml").read_text()
    report = bare.report("--instrcount-backend=bytecode")
    assert report["environment"]["unit"] == "bytecodes"


@later
def test_bytecode_of_a_test_does_not_depend_on_the_others(bare: Project) -> None:
    """Alone, with others, in another order: the same number."""
    bare.write(WORK.replace("SIZE", "10"))
    whole = {test["nodeid"]: test["ir"] for test in bare.report(*BYTECODE)["tests"]}
    for nodeid, ir in whole.items():
        assert [test["ir"] for test in bare.report(*BYTECODE, nodeid)["tests"]] == [ir]


BYTECODE = ("--instrcount-backend=bytecode",)


@later
def test_bytecode_of_a_coroutine(bare: Project) -> None:
    """Awaited on the test's own loop; ten times the work is about ten times the count."""
    bare.write(
        """
        import asyncio

        async def work(size):
            for _ in range(size):
                await asyncio.sleep(0)
            return size

        def test_ten(instrcount):
            assert asyncio.run(instrcount(work, 10)) == 10

        def test_hundred(instrcount):
            assert asyncio.run(instrcount(work, 100)) == 100
        """
    )
    ten, hundred = (test["ir"] for test in bare.report(*BYTECODE)["tests"])
    assert 8 < hundred / ten < 10


@later
def test_bytecode_repeats_as_many_calls(bare: Project) -> None:
    """Of rounds that the test says the iterations of, a check makes no more than the update did."""
    bare.write(
        """
        def work():
            with open("ran", "a") as file:
                file.write("x")

        def test_a(instrcount): instrcount.pedantic(work, iterations=10)
        """
    )
    sizes = []
    for run in (bare.update, bare.measure):
        run(*BYTECODE).assert_outcomes(passed=1)
        sizes.append(len(bare.path.joinpath("ran").read_text()))
    assert sizes[1] == 2 * sizes[0]


@later
def test_bytecode_that_differs(bare: Project) -> None:
    """Counted twice: what differs is nondeterministic, and is not stored."""
    bare.write(
        """
        import itertools, pytest
        calls = itertools.count()
        @pytest.mark.instrcount
        def test_a(): list(map(lambda n: n, range(next(calls))))
        """
    )
    result = bare.update(*BYTECODE)
    result.stdout.fnmatch_lines(["*the counts differ [[]nondeterministic]", "*twice, in this*"])
    assert not bare.baselines()


@later
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def test_a(instrcount): instrcount(sum, [1])", "no byte code of yours*[[]no-count]"),
        ("def test_a(instrcount): pass", "*never calls it in its own process [[]not-measured]"),
        (
            "left = [1, 1]\ndef test_a(instrcount): instrcount(lambda: left.pop())",
            "it passed once and failed when it was repeated [[]not-measured]",
        ),
    ],
)
def test_bytecode_that_cannot_be_counted(bare: Project, body: str, words: str) -> None:
    """An error at the end of the test, which passed."""
    bare.write(body)
    result = bare.measure(*BYTECODE)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([f"instrcount: {words}"])


@later
@pytest.mark.parametrize("option", ["report=html:r.html", "keep=d", "bundle=b.json"])
def test_bytecode_has_no_profiles(bare: Project, option: str) -> None:
    """What only Callgrind can give is refused before any test runs."""
    bare.write(MARKED)
    result = bare.measure(*BYTECODE, f"--instrcount-{option}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no profile of Callgrind with instrcount_backend = bytecode*"])
    assert not bare.path.joinpath("ran").exists()


@later
def test_bytecode_and_outcomes(bare: Project) -> None:
    """Failures, skips and expected failures are pytest's; an error in a wider fixture is told."""
    bare.write(
        """
        import pytest
        pytestmark = pytest.mark.instrcount
        @pytest.fixture(scope="module")
        def wide():
            yield
            raise ValueError("at the end")
        def test_fails(): assert 0
        def test_skips(): pytest.skip("no")
        @pytest.mark.xfail
        def test_xfails(): assert 0
        def test_wide(wide): pass
        """
    )
    result = bare.measure(*BYTECODE)
    result.assert_outcomes(passed=1, failed=1, skipped=1, xfailed=1, errors=1)
    result.stdout.fnmatch_lines(["*ValueError: at the end*"])


#: No fork, no /proc, and none of the modules that Linux alone has.
ELSEWHERE = """
import ctypes, os, socket, sys, sysconfig
import pytest  # with what it imports here
sysconfig.get_config_vars()  # of this system
import subprocess
for name in ("fcntl", "resource", "termios", "pwd", "grp", "_posixsubprocess"):
    sys.modules[name] = None
for module, names in (
    (os, ("fork", "uname", "getuid", "sched_getaffinity", "waitpid")),
    (socket, ("recv_fds", "AF_UNIX")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
real = ctypes.CDLL
ctypes.CDLL = lambda name, *args, **kwargs: real(name + "", *args, **kwargs)  # not None
sys.platform = "darwin"
"""


def run_elsewhere(folder: Path, *args: str, code: int = 0, main: str = "pytest.main") -> str:
    """What pytest, or the ``main`` of another module, prints there, ending with this code."""
    folder.joinpath("pytest.ini").write_text("[pytest]\n")
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    call = f"import {main.rpartition('.')[0]}\nsys.exit({main}(sys.argv[1:]))"
    words = list(args)
    if main == "pytest.main":
        words += ["-p", "pytest_instrcount.plugin", "--basetemp", str(folder / "b")]
    ended = subprocess.run(
        [sys.executable, "-c", ELSEWHERE + call, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_natively_elsewhere(tmp_path: Path) -> None:
    tmp_path.joinpath("test_it.py").write_text(WORK.replace("SIZE", "9"))
    said = run_elsewhere(tmp_path, "--instrcount", "--instrcount-backend=auto")
    assert "tests run natively" in said
    said = run_elsewhere(tmp_path, "--instrcount", code=4)
    assert "on Linux only, and this is darwin [not-linux]" in said


def test_commands_elsewhere(tmp_path: Path) -> None:
    """Baselines are read, and scripts traced, where nothing can be measured."""
    tmp_path.joinpath("script.py").write_text("sorted([2, 1], key=abs)\n")
    for words, code, said in (
        ("doctor", 2, "does not load the plugin here"),
        ("compare here there", 2, "[report-unreadable]"),
        ("trace script.py", 0, "__main__.<module>"),
        ("trace --children script.py", 2, "[trace-children]"),
    ):
        main = "pytest_instrcount.cli.main.main"
        assert said in run_elsewhere(tmp_path, *words.split(), code=code, main=main)


@later
def test_bytecode_elsewhere(tmp_path: Path) -> None:
    tmp_path.joinpath("test_it.py").write_text(WORK.replace("SIZE", "9"))
    run_elsewhere(tmp_path, "--instrcount-update-baseline", *BYTECODE)
    assert "instrcount: 4 unchanged" in run_elsewhere(tmp_path, "--instrcount", *BYTECODE)
    (key,) = (path.name for path in tmp_path.joinpath("instrcount_baselines").glob("cp*"))
    assert key.split("-")[1] == "darwin" and key.endswith("-bytecode")
    stored = next(tmp_path.glob("instrcount_baselines/**/test_marked*.json"))
    assert read_whole(stored)["environment"]["unit"] == "bytecodes"


@later
def test_bytecode_under_xdist(pytester: pytest.Pytester) -> None:
    """Refused, with the command that does it."""
    pytest.importorskip("xdist")
    result = pytester.runpytest_subprocess("--instrcount", *BYTECODE, "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*[[]bytecode-xdist]", "  fix: pytest --instrcount -n 0"])
