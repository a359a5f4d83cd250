"""The promise: equal integers, whatever else differs between two runs."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import FEW_PLUGINS, WITHOUT_COROUTINES

pytestmark = [pytest.mark.valgrind, pytest.mark.usefixtures("all_layouts")]

SUITE = """
    import json, os, re, unittest
    import pytest

    def after_fork(kept=[]):
        if not kept:
            kept.extend([str(n) for n in range(1000)][::3])

    os.register_at_fork(after_in_parent=after_fork)  # the first fork leaves another heap
    DOCUMENT = json.dumps({str(n): [n] * 3 for n in range(40)})

    @pytest.fixture(scope="session")
    def more(request):
        return 100 * request.config.option.verbose

    @pytest.fixture
    def numbers(request, more):
        verbose = request.config.get_verbosity()
        return [(n * 7919) % 1009 for n in range(200 + 10 * verbose + more)]

    @pytest.mark.instrcount
    def test_marker():
        assert len(json.loads(DOCUMENT)) == 40

    @pytest.mark.instrcount
    @pytest.mark.parametrize("copy", range(3))
    def test_copies(copy):
        assert len(json.loads(DOCUMENT)) == 40

    @pytest.mark.instrcount
    def test_fresh_fixture(numbers, tmp_path):
        numbers.sort()
        (tmp_path / "file").write_text("text")
        assert numbers[0] == 0

    def test_fixture(instrcount):
        assert instrcount(re.sub, "a", "b", "abc" * 50)

    def test_pedantic(instrcount, numbers):
        assert instrcount.pedantic(sorted, (numbers,), rounds=2, iterations=2)[0] == 0

    class TestCase(unittest.TestCase):
        def setUp(self):
            self.document = json.loads(DOCUMENT)

        @pytest.mark.instrcount
        def test_method(self):
            self.assertTrue(json.dumps(self.document))
"""


def test_counts_do_not_depend_on_the_run(
    project: pytest.Pytester, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Order, selection, verbosity, a new file, what is installed, an update and a check: the same integers."""
    packages = project.mkdir("packages")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    project.makepyfile(test_suite=SUITE)
    result, first = run("--instrcount-update-baseline", "--instrcount-blame=off")
    result.assert_outcomes(passed=8)
    counts = {nodeid: test["ir"] for nodeid, test in first.items()}
    assert len({counts[f"test_suite.py::test_copies[{n}]"] for n in range(3)}) == 1
    assert min(counts.values()) > 1000
    project.path.joinpath("README").write_text("a file more")
    project.path.joinpath("a_folder_with_a_long_name").mkdir()
    for name in ("something", "a_plugin_left_out"):
        metadata = packages / f"{name}-1.0.dist-info"
        metadata.mkdir()
        metadata.joinpath("METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    metadata.joinpath("entry_points.txt").write_text("[pytest11]\nleft_out = nowhere\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{FEW_PLUGINS} -pno:left_out")
    for args in (
        ("-vv", "-s", "--setup-show"),
        tuple(reversed(counts)),
        ("-k", "copies or pedantic"),
        ("test_suite.py::test_fresh_fixture",),
    ):
        result, tests = run(*args)
        assert result.ret == 0
        assert {nodeid: test["ir"] for nodeid, test in tests.items()}.items() <= counts.items()
        assert {test["delta"] for test in tests.values()} == {0.0}


def test_random_numbers_are_the_same_in_each_run(
    project: pytest.Pytester, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a seed, too, and what Hypothesis draws for a conftest, before there is a test."""
    monkeypatch.setenv("PYTEST_ADDOPTS", WITHOUT_COROUTINES)
    project.makeconftest(
        """
        from hypothesis.strategies import integers, lists

        NUMBERS = lists(integers(), min_size=20).example()
        """
    )
    project.makepyfile(
        """
        import ctypes, random, uuid
        import pytest
        from conftest import NUMBERS

        OWN = random.Random()
        LIBC, BUFFER = ctypes.CDLL(None), ctypes.create_string_buffer(8)

        def native():
            LIBC.getrandom(BUFFER, 8, 0)  # as the hash maps of Rust
            return int.from_bytes(BUFFER, "little")

        @pytest.mark.instrcount
        def test_drawn():
            "".join(map(str, NUMBERS))

        @pytest.mark.parametrize("draw", [OWN.random, lambda: uuid.uuid4().int, native])
        def test_sorted(instrcount, draw):
            seen = set()

            def sort():
                numbers = sorted(draw() for _ in range(50))
                assert not seen.intersection(numbers)  # in other repetitions
                seen.update(numbers)

            instrcount(sort)
        """
    )
    # the first run fills Hypothesis's cache of the constants in modules, and so has read no file of it
    run()
    result, first = run("--instrcount-update-baseline", "--instrcount-blame=off")
    result.assert_outcomes(passed=4)
    result, second = run()
    result.assert_outcomes(passed=4)
    assert [test["ir"] for test in second.values()] == [test["ir"] for test in first.values()]


@pytest.mark.long
def test_counts_do_not_depend_on_who_writes_beside(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """Somebody writes into the folders of tests and packages while pytest starts: the same integers."""
    project.makepyfile(test_suite=SUITE)
    packages = project.mkdir("packages")
    project.makeini("[pytest]\npythonpath = packages\n")
    _, quiet = run("-k", "copies or marker")
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.05):
            for folder in (project.path, packages):
                folder.joinpath("something").mkdir()
                folder.joinpath("something").rmdir()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        _, busy = run("-k", "copies or marker")
    finally:
        stop.set()
        writer.join()
    assert len(quiet) == 4
    assert {nodeid: test["ir"] for nodeid, test in busy.items()} == {
        nodeid: test["ir"] for nodeid, test in quiet.items()
    }


@pytest.mark.long
def test_byte_code_and_company(
    project: pytest.Pytester,
    run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A fresh checkout, its byte code once written, and two runs at once: the same integers."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    # not beside the packages: the tests that run meanwhile write none, and are to find none
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("byte-code")))
    project.makeconftest("import helper")
    project.makepyfile(helper="NUMBERS = {str(n): n for n in range(300)}", work="def work(): pass")
    project.makepyfile(  # compiled under Valgrind, by the process that all others come from
        early="import sys; 'pytest_instrcount.callgrind.inside.main' in sys.modules and __import__('late')",
        late="",
    )
    project.makepyfile(test_suite=SUITE.replace("import pytest\n", "import pytest, work\n"))
    _, fresh = run("-p", "early")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "--instrcount", "-p", "early"],
        cwd=project.path,
        stdout=subprocess.DEVNULL,
    ) as company:
        _, again = run("-p", "early")
    assert company.returncode == 0
    assert len(fresh) == 8
    assert {id_: test["ir"] for id_, test in again.items()} == {
        id_: test["ir"] for id_, test in fresh.items()
    }


@pytest.mark.long
def test_one_percent_more_work_fails_one_test(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """The slower function's test fails and no other; JUnit knows; removing the work mends it."""
    body = """
        def work(items):
            total = 0
            for n in items:
                total += n * n
            {extra}
            return total
    """
    project.makepyfile(
        test_suite="""
        from package import work, other
        def test_work(instrcount):
            assert instrcount(work, range(1000))
        def test_other(instrcount):
            assert instrcount(other, range(1000))
        """
    )

    def write(extra: str) -> None:
        twin = body.replace("def work", "def other").format(extra="pass")
        project.makepyfile(package=body.format(extra=extra) + twin)

    write("pass")
    run("--instrcount-update-baseline")
    write("for n in range(8): total += n; total -= n")
    result, tests = run("--instrcount-max-delta=0.5%", "--junitxml=junit.xml")
    assert result.ret == 1
    assert tests["test_suite.py::test_work"]["verdict"] == "regressed"
    assert 0.005 < tests["test_suite.py::test_work"]["delta"] < 0.05
    assert tests["test_suite.py::test_other"]["verdict"] == "unchanged"
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["+*% (limit 0.5 %): *", "  test_work: *Ir * -> *"])
    assert 'failures="1"' in project.path.joinpath("junit.xml").read_text()
    write("pass")
    result, tests = run("--instrcount-max-delta=0.5%")
    assert result.ret == 0
    assert tests["test_suite.py::test_work"]["delta"] == 0
