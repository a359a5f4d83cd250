"""Budgets on real counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

SUITE = """
    import random
    import pytest

    @pytest.fixture
    def numbers(size):
        found = list(range(size))
        random.Random(size).shuffle(found)
        return found

    def unique(numbers):
        found = []
        for number in numbers:
            if number not in found:
                found.append(number)
        return found

    @pytest.mark.instrcount(scaling="n log n", sizes=[128, 512, 2048])
    class TestScaling:
        def test_sort(self, numbers):
            sorted(numbers)

        def test_unique(self, numbers, instrcount):
            assert instrcount(unique, numbers) == numbers

    @pytest.mark.parametrize("n", [128, 512, 2048])
    @pytest.mark.instrcount(scaling="n", sizes="n")
    def test_sum(n, instrcount):
        instrcount(sum, list(range(n)))

    @pytest.mark.instrcount(max_ir=1_000_000, max_ratio=("test_slow", 0.5))
    def test_fast():
        sum(range(500))

    @pytest.mark.instrcount(max_ir=1_000)
    def test_slow():
        sum(range(5000))
    """


def test_budgets(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """What grows too fast, or costs too much, fails; what does not, passes. No baseline is there."""
    project.makepyfile(test_suite=SUITE)
    result, tests = run()
    result.assert_outcomes(passed=11, failed=2)
    assert {test["verdict"] for test in tests.values()} == {"new"}
    slow = tests["test_suite.py::test_slow"]["ir"]
    result.stdout.fnmatch_lines_random(
        [
            "test_unique[[]2048]: grows like n^2 with the size, worse than n log n *",
            f"test_slow: Ir {slow:,} a call, over its max_ir of 1,000 by {slow - 1000:,} *",
            "instrcount, budgets: 4 kept, 2 over",
        ]
    )
