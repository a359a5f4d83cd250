"""Benchmarks of other plugins under real Valgrind: counted, the same again, whatever is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

SUITE = """
import pytest

def work(n):
    return sum(i * i for i in range(n))

def test_call(benchmark):
    assert benchmark(work, 100) == 328350
    assert benchmark.stats["mean"] < 1e-9

def test_fixture(instrcount):
    assert instrcount(work, 100) == 328350

def test_pedantic(benchmark):
    benchmark.group = "pedantic"
    lists = []
    def fresh():
        lists.append([])
        return (lists[-1], 100), {}
    def fill(items, n):
        assert not items
        items.extend(range(n))
    benchmark.pedantic(fill, setup=fresh, rounds=1000, teardown=lambda items, n: items.clear())

def test_weave(benchmark):
    benchmark.weave(work)
    work(100)

def test_unused(benchmark):
    pass

@pytest.mark.benchmark(group="whole")
def test_whole():
    work(100)

@pytest.mark.benchmark
class TestClass:
    def test_whole(self, tmp_path):
        work(100)
"""


def test_adopted(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """What their fixture counts is what ours counts; a second run counts the same."""
    project.makeini("[pytest]\naddopts = --strict-markers --benchmark-skip -p no:benchmark\n")
    project.makepyfile(test_it=SUITE)
    result, first = run("-v")
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(
        ["pedantic:", "*", "whole:", "*", "*test_unused: never calls benchmark*"]
    )
    counts = {name.partition("::")[2]: test["ir"] for name, test in first.items()}
    assert set(counts) == {
        "test_call",
        "test_fixture",
        "test_pedantic",
        "test_weave",
        "test_whole",
        "TestClass::test_whole",
    }
    # other memory around it, which moves a raw count of one layout by 2.4 %, and no other difference
    assert counts["test_call"] == pytest.approx(counts["test_fixture"], rel=0.03)
    assert counts["test_weave"] == pytest.approx(counts["test_fixture"], rel=0.03)
    assert counts["test_whole"] == pytest.approx(counts["test_fixture"], rel=0.03)
    assert 500 < counts["test_pedantic"] < 20_000
    result, second = run("--instrcount-update-baseline", "--instrcount-blame=off")
    result.assert_outcomes(passed=7)
    # how often a call is repeated is known now, and not found by a pilot
    result, third = run()
    result.assert_outcomes(passed=7)
    for again in second, third:
        assert {name: test["ir"] for name, test in again.items()} == {
            name: test["ir"] for name, test in first.items()
        }
    assert {test["delta"] for test in third.values()} == {0}


def test_a_conftest_that_declares_its_markers(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """Outside, a conftest in a folder of tests can use them before; so it can inside."""
    project.makeini(
        "[pytest]\ntestpaths = tests\naddopts = --strict-markers\nfilterwarnings=error\n"
    )
    folder = project.mkdir("tests")
    folder.joinpath("conftest.py").write_text(
        "import pytest\nMARK = pytest.mark.mine\n"
        "def pytest_configure(config): config.addinivalue_line('markers', 'mine: of the conftest')\n"
    )
    folder.joinpath("test_it.py").write_text(
        "import pytest\n@pytest.mark.mine\n@pytest.mark.instrcount\ndef test_a(): pass\n"
    )
    result, counts = run()
    result.assert_outcomes(passed=1)
    assert len(counts) == 1
