"""Tests of Hypothesis, as they are set up to be counted."""

from __future__ import annotations

import subprocess
import sys
import time

import hypothesis.core
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import FailedHealthCheck

from pytest_instrcount.callgrind.inside.seeding import steady_hypothesis


def make_test(*, steady: bool, drawn: list[int]) -> type:
    """A class with a test of Hypothesis, made as if its file were imported."""

    class TestDraw:
        @settings(max_examples=5, suppress_health_check=[HealthCheck.data_too_large])
        @given(st.integers())
        def test_draw(self, number: int) -> None:
            drawn.append(number)

    if steady:
        steady_hypothesis(TestDraw().test_draw)
    return TestDraw


def test_examples_are_the_same_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed seed, as an import sets it, and no database, which would begin with what failed before."""
    monkeypatch.setattr(hypothesis.core, "global_force_seed", 0)
    first: list[int] = []
    second: list[int] = []
    make_test(steady=True, drawn=first)().test_draw()
    make_test(steady=True, drawn=second)().test_draw()
    assert first == second
    assert len(first) == 5


def test_a_method_is_repeated_with_another_instance() -> None:
    """Each repetition has fresh fixtures, and so an instance of its own."""
    steady, plain = make_test(steady=True, drawn=[]), make_test(steady=False, drawn=[])
    for _ in range(2):
        steady().test_draw()
    plain().test_draw()
    with pytest.raises(FailedHealthCheck, match="different executors"):
        plain().test_draw()


def test_no_example_is_too_slow() -> None:
    """Under Valgrind all take 50 times as long, which is no fault of the test."""

    @settings(max_examples=3, deadline=1)
    @given(st.integers())
    def test_slow(number: int) -> None:
        time.sleep(0.01)

    steady_hypothesis(test_slow)
    test_slow()


def test_a_seed_of_the_user_is_kept() -> None:
    """``@seed`` says which examples are wanted."""
    drawn: dict[int, list[int]] = {1: [], 2: []}
    for number, numbers in drawn.items():
        test = make_test(steady=False, drawn=numbers)
        seed(number)(vars(test)["test_draw"])
        steady_hypothesis(test().test_draw)
        test().test_draw()
    assert drawn[1] != drawn[2]


def test_examples_take_no_time() -> None:
    """Hypothesis adds and sorts what they take; the test's own clock goes on."""
    code = """
import time
from hypothesis import given, settings, strategies as st
from hypothesis.statistics import collector
from pytest_instrcount.callgrind.inside.seeding import stop_hypothesis_clock
stop_hypothesis_clock()
seen, took = [], []

@settings(database=None)
@given(st.integers(), st.text())
def test_it(number, text):
    took.append(time.perf_counter())

with collector.with_value(seen.append):
    test_it()
cases = seen[0]["generate-phase"]["test-cases"]
assert len(cases) > 9 and {(each["runtime"], each["drawtime"]) for each in cases} == {(0, 0)}
assert took == sorted(set(took))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_other_tests_are_left_alone() -> None:
    """What is not Hypothesis's gets no attribute."""

    def test_plain() -> None: ...

    steady_hypothesis(test_plain)
    assert not vars(test_plain)
