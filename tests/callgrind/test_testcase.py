"""``unittest.TestCase`` under real Valgrind: the method is counted, and nothing around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.valgrind

SUITE = """
import asyncio, unittest, pytest

def crunch(n):
    return sum(i * i for i in range(n))

@pytest.mark.instrcount
class TestPlain(unittest.TestCase):
    def setUp(self):
        self.sizes = [1000]

    def test_it(self):
        self.assertGreater(crunch(self.sizes.pop()), 0)

class TestDear(TestPlain):
    made = []

    @classmethod
    def setUpClass(cls):
        cls.made.append(crunch(20_000))

    @classmethod
    def tearDownClass(cls):
        assert len(cls.made) == 1
        crunch(20_000)

    def setUp(self):
        super().setUp()
        crunch(20_000)
        self.addCleanup(crunch, 20_000)

    def tearDown(self):
        assert not self.sizes  # made anew for each repetition
        crunch(20_000)

class TestMethods(unittest.TestCase):
    def test_unmarked(self):
        crunch(1000)

    @pytest.mark.instrcount
    def test_whole(self):
        for n in range(5):
            self.assertGreater(crunch(1000 + n), 0)

    @pytest.mark.instrcount
    def test_in_blocks(self):
        for n in range(5):
            with self.subTest(n=n):
                self.assertGreater(crunch(1000 + n), 0)

    @pytest.mark.instrcount
    def test_failing_block(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)

@pytest.mark.instrcount
class TestNoVerdict(unittest.TestCase):
    @unittest.skip("not here")
    def test_skipped(self):
        crunch(1000)

    def test_skips_itself(self):
        crunch(1000)
        self.skipTest("not now")

    @unittest.expectedFailure
    def test_expected(self):
        self.fail()

    @unittest.expectedFailure
    def test_unexpected(self):
        crunch(1000)

@pytest.mark.instrcount
class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.sizes = [1000]

    async def test_it(self):
        await asyncio.sleep(0)
        self.assertGreater(crunch(self.sizes.pop()), 0)

class TestDearAsync(TestAsync):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.addAsyncCleanup(self.asyncTearDown)
        crunch(20_000)

    async def asyncTearDown(self):
        assert not self.sizes
        crunch(20_000)
"""


@pytest.mark.long
def test_a_method_is_counted_alone(
    project: pytest.Pytester, run: Callable[..., tuple[pytest.RunResult, dict[str, Any]]]
) -> None:
    """Neither set-up, tear-down and cleanups nor ``subTest`` cost anything, whatever they do."""
    project.makepyfile(test_cases=SUITE)
    result, tests = run("-rA")
    # pytest 9 has the test of a failed block pass, and tells of the block apart
    passed = 7 + ("SUBFAILED" in result.stdout.str())
    result.assert_outcomes(passed=passed, failed=2, skipped=2, xfailed=1)
    ir = {nodeid.partition("::")[2]: test["ir"] for nodeid, test in tests.items()}
    assert ir.keys() == {
        *("TestPlain::test_it", "TestDear::test_it"),
        *("TestAsync::test_it", "TestDearAsync::test_it"),
        *("TestMethods::test_whole", "TestMethods::test_in_blocks"),
    }
    # the raw counts are of two tests: each has its own layout of memory, which the path moves
    plain, dear = (tests[f"test_cases.py::Test{kind}::test_it"] for kind in ("Plain", "Dear"))
    assert 0.98 < dear["ir"] / plain["ir"] < 1.02
    assert 0.99 < ir["TestDearAsync::test_it"] / ir["TestAsync::test_it"] < 1.01
    assert abs(ir["TestMethods::test_in_blocks"] - ir["TestMethods::test_whole"]) < 5 * 4_500
    assert 4.5 < ir["TestMethods::test_whole"] / ir["TestPlain::test_it"] < 5.5


SLOW = """
import pathlib, time, unittest, pytest

@pytest.mark.instrcount
class TestSlow(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        time.sleep(float(pathlib.Path("seconds").read_text()))

    async def test_it(self):
        sum(range(1000))
"""


@pytest.mark.long
def test_a_slow_set_up_is_not_logged(
    project: pytest.Pytester, run: Callable[..., tuple[pytest.RunResult, dict[str, Any]]]
) -> None:
    """These loops are in debug mode, in which asyncio logs a step of 0.1 s: the load would be in the count."""
    project.makepyfile(test_slow=SLOW)
    counts = []
    for seconds in ("0.0", "0.3"):
        project.path.joinpath("seconds").write_text(seconds)
        _, tests = run()
        counts.append([test["ir"] for test in tests.values()])
    assert counts[0] == counts[1]
