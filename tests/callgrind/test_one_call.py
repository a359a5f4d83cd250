"""What one call can do but once, starts, or finds alive beside it: under real Valgrind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., tuple[pytest.RunResult, dict[str, Any]]]

ONCE = """
import subprocess, sys, pytest

def consume(it):
    total = 0
    for x in it:
        total += x
    return total

@pytest.mark.parametrize("n", [99, 999, 9999])
def test_once(benchmark, n):
    assert benchmark.pedantic(consume, args=(iter(range(n)),)) == n * (n - 1) // 2

def test_children(instrcount):
    def start():
        subprocess.run(["true"])
        subprocess.run(["true"])
    instrcount(start)

@pytest.fixture
def server():
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    yield process
    process.communicate()

@pytest.mark.instrcount
def test_server(server):
    server.stdin.write(b"a")

def test_in_place(instrcount):
    instrcount([3, 1, 2].sort)

MEMO = {}

@pytest.mark.instrcount
def test_memo():
    assert MEMO.setdefault(1, 2)
"""

THREADED = """
import pathlib, threading, pytest

HERE = pathlib.Path(__file__).parent

def wait_without_end():
    threading.Event().wait()

if (HERE / "threaded").exists():
    threading.Thread(target=wait_without_end, name="poller", daemon=True).start()

@pytest.mark.instrcount
def test_apart():
    assert sum(range(1000))

@pytest.mark.instrcount
def test_needs_it():
    assert threading.active_count() > 1 or not (HERE / "threaded").exists()
"""


CACHED = """
import functools, unittest, pytest

class Tables:
    def __init__(self):
        self.known = {}
    def find(self, number):
        if number not in self.known:
            self.known[number] = sum(each * each for each in range(number))
        return self.known[number]

class Service:
    def __init__(self):
        self.tables = Tables()
    def answer(self, number):
        return self.tables.find(number)

SERVICE = Service()

@pytest.mark.instrcount
def test_body():
    assert SERVICE.answer(3000)

def test_fixture(instrcount):
    assert instrcount(SERVICE.answer, 3001)

class TestCase(unittest.TestCase):
    @pytest.mark.instrcount
    def test_method(self):
        assert SERVICE.answer(3002)

    @pytest.mark.instrcount
    def test_blocks(self):
        for number in range(3):
            with self.subTest(number=number):
                assert sum(range(100))

def test_no_cache(instrcount):
    assert instrcount(Tables().__class__).known == {}
    assert sum(each * each for each in range(3000))
"""


def test_a_cache_far_below_is_known_by_what_the_first_call_executes(
    project: pytest.Pytester, run: Run
) -> None:
    """Nobody looks so deep, but the first call is counted where the test is counted by function."""
    project.makepyfile(test_it=CACHED)
    result, tests = run("--instrcount-update-baseline")
    result.assert_outcomes(passed=5)
    for name in ("test_body", "test_fixture", "TestCase::test_method"):
        (remark,) = tests[f"test_it.py::{name}"]["remarks"]
        assert remark.startswith("the first call executes over 1"), name
    for name in ("test_no_cache", "TestCase::test_blocks"):  # to report sub-tests is pytest's work
        assert not tests[f"test_it.py::{name}"]["remarks"]


def test_what_can_be_called_once_is_counted_once(project: pytest.Pytester, run: Run) -> None:
    """Ten times the elements cost ten times as much; what is not counted of the others is said."""
    project.makepyfile(test_it=ONCE)
    result, tests = run("--instrcount-blame=off")
    result.assert_outcomes(passed=7)
    counts = [tests[f"test_it.py::test_once[{n}]"]["ir"] for n in (99, 999, 9999)]
    assert 8 < counts[1] / counts[0] < 14
    # numbers below 1,024 need not be made, from 3.15 on
    assert 9 < counts[2] / counts[1] < (12 if sys.version_info < (3, 15) else 15)
    assert {name.partition("::test_")[2]: test["remarks"] for name, test in tests.items()} == {
        **{f"once[{n}]": [] for n in (99, 999, 9999)},
        "children": ["2 processes of its own, not counted"],
        "server": [
            "a process runs beside it, and what is done there is not counted",
            "1 process of its own, not counted",
        ],
        "in_place": ["only the first call changes list: what it does there is not counted"],
        "memo": ["only the first call changes MEMO: what it does there is not counted"],
    }


@pytest.mark.long
def test_a_file_that_gains_a_thread(
    project: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is compared all the same where it passes without the thread, else it fails in CI; both name it."""
    project.makepyfile(test_it=THREADED)
    run("--instrcount-update-baseline", "--instrcount-blame=off")
    (project.path / "threaded").touch()
    monkeypatch.setenv("CI", "1")
    result, tests = run("--instrcount-blame=off")
    result.assert_outcomes(passed=2, failed=1)
    apart, needs = (tests[f"test_it.py::{name}"] for name in ("test_apart", "test_needs_it"))
    assert (apart["verdict"], apart["delta"]) == ("unchanged", 0)
    assert (needs["verdict"], needs["cause"]) == ("incomparable", "isolation")
    for test in (apart, needs):
        assert "poller, which runs test_it.wait_without_end in test_it.py" in test["remarks"][0]
