"""Budgets end to end: ceilings, ratios and scaling, with a baseline and without."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Project
from tests.plugin.test_verdicts import SCHEMA, check_schema

CEILING = "import pytest\n@pytest.mark.instrcount(max_ir='12,000ir')\ndef test_a(): pass\n"
RATIO = """
import pytest

@pytest.mark.instrcount(max_ratio=("test_slow", 0.5))
def test_fast(): pass

@pytest.mark.instrcount
def test_slow(): pass
"""
SCALING = """
import pytest

@pytest.mark.instrcount(scaling="n log n", sizes=[100, 400, 1600])
def test_sort(size, instrcount):
    assert len(instrcount(sorted, range(size))) == size
"""


def set_costs(project: Project, name: str, counts: dict[int, int]) -> None:
    for size, count in counts.items():
        project.valgrind.costs[f"{name}[{size}]"] = count


# --- max_ir -------------------------------------------------------------------------------------


def test_a_ceiling_needs_no_baseline(project: Project) -> None:
    """One failed report of its own, whatever else is said of the test."""
    project.write(CEILING)
    project.valgrind.costs["test_a"] = 15_000
    result = project.measure()
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "test_a: Ir 15,000 a call, over its max_ir of 12,000 by 3,000 (+25 %) [[]over-budget]",
            "  a budget holds whatever the baseline is, so accepting this count does not help:",
            "test_it.py::test_a * max_ir * 15,000 * 12,000",
            "instrcount, budgets: 1 over",
        ]
    )
    project.measure("-v").stdout.fnmatch_lines(["*OVER-BUDGET*"])


def test_no_update_settles_a_budget(project: Project) -> None:
    """The count is stored, since it is the baseline of a test that works; the run fails all the same."""
    project.write(CEILING)
    project.valgrind.costs["test_a"] = 15_000
    for result in (project.update(), project.measure()):
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["instrcount, budgets: 1 over"])
        assert "accept:" not in result.stdout.str()
    assert project.baseline_ir() == {"test_a": 15_000}


def test_at_the_ceiling(project: Project) -> None:
    """Exactly at it passes, and -v shows it."""
    project.write(CEILING)
    project.valgrind.costs["test_a"] = 12_000
    assert project.measure().ret == pytest.ExitCode.OK
    project.measure("-v").stdout.fnmatch_lines(
        ["test_it.py::test_a * max_ir * 12,000 * 12,000", "instrcount, budgets: 1 kept"]
    )
    project.measure("-q").stdout.fnmatch_lines(["instrcount, budgets: 1 kept"])


def test_regressed_and_over_budget_are_two_failures(project: Project) -> None:
    """The gate against the baseline stays."""
    project.write(CEILING)
    project.update()
    project.valgrind.costs["test_a"] = 15_000
    project.measure().assert_outcomes(passed=1, failed=2)


def test_in_ci(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline is still wanted, unless it is said that none is; then a budget is a gate, too."""
    monkeypatch.setenv("CI", "1")
    project.write(CEILING)
    result = project.measure()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*[[]baseline-missing]", "instrcount, budgets: 1 kept"])
    assert project.measure("--instrcount-missing=note").ret == pytest.ExitCode.OK
    project.write(CEILING.replace("max_ir", "max_delta").replace("12,000ir", "1%"))
    assert project.measure("--instrcount-missing=note").ret == pytest.ExitCode.USAGE_ERROR


def test_a_test_that_fails_has_no_budget(project: Project) -> None:
    """Its own failure is all that is said."""
    project.write(CEILING.replace("pass", "assert False"))
    result = project.measure()
    result.assert_outcomes(failed=1)
    assert "budgets" not in result.stdout.str()


def test_one_that_was_expected_to_fail_has_a_budget(project: Project) -> None:
    """And has passed: it was counted, whatever its baseline is."""
    project.write(
        "import pytest\n"
        "@pytest.mark.xfail(reason='not yet')\n"
        "@pytest.mark.instrcount(max_ir=10)\n"
        "def test_a(): pass\n"
    )
    result = project.measure("--instrcount-missing=note")
    result.assert_outcomes(xpassed=1, failed=1)
    result.stdout.fnmatch_lines(["*over its max_ir of 10*"])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("def test_a():\n    if os.getpid() != OUTSIDE: pytest.skip('no X')", "no X; natively*"),
        ("def test_a(benchmark): pass", "it never calls benchmark*"),
    ],
)
def test_one_that_was_not_counted_has_a_budget(project: Project, body: str, why: str) -> None:
    """A gate that cannot tell must not pass; unless that cause is allowed."""
    project.write(
        f"import os, pytest\nOUTSIDE = os.getpid()\n@pytest.mark.instrcount(max_ir=10)\n{body}\n"
    )
    result = project.measure("--instrcount-missing=note")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [f"*max_ir cannot be judged: it was not counted: {why}[[]budget-uncounted]"]
    )
    # only what is skipped may look for a variable
    advised = any("instrcount_env=NAME" in line for line in result.stdout.lines)
    assert advised is ("skip" in body)
    allowed = "-o", "instrcount_allow=skipped uncounted"
    assert project.measure("--instrcount-missing=note", *allowed).ret == pytest.ExitCode.OK


def test_without_instrcount_nothing_is_judged(project: Project) -> None:
    """The marker alone starts nothing."""
    project.write(CEILING)
    result = project.run()
    result.assert_outcomes(passed=1)
    assert "instrcount:" not in result.stdout.str()
    assert not project.valgrind.looked_for


def test_json_report(project: Project) -> None:
    """It has them all, in the schema of the docs."""
    project.write(CEILING + RATIO + SCALING)
    set_costs(project, "test_sort", {100: 1_700, 400: 4_700, 1600: 16_700})
    report = project.report("--deselect=test_it.py::test_slow")
    check_schema(report, json.loads(SCHEMA.read_text()))
    assert [(each["budget"], each["kept"], each["now"]) for each in report["budgets"]] == [
        ("max_ir", True, 10_000),
        ("max_ratio", False, None),
        ("scaling", True, "n"),
    ]


# --- max_ratio ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["test_slow", "test_it.py::test_slow"])
def test_ratio(project: Project, name: str) -> None:
    """Both counted in this run; a short name will do where it is the only one."""
    project.write(RATIO.replace("test_slow", name, 1))
    project.valgrind.costs |= {"test_fast": 5_000, "test_slow": 10_000}
    assert project.measure().ret == pytest.ExitCode.OK
    project.valgrind.costs["test_fast"] = 6_000
    result = project.measure()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_fast: Ir 6,000 a call, over 0.5 of test_slow (5,000) by 1,000 (+20 %) *",
            "  it is 0.6 of test_it.py::test_slow: Ir 10,000 a call",
        ]
    )


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("test_slow", "pytest --instrcount -k 'test_fast or test_slow'"),
        (
            "test_it.py::test_slow",
            "pytest --instrcount test_it.py::test_fast test_it.py::test_slow",
        ),
    ],
)
def test_ratio_to_what_is_not_in_this_run(project: Project, name: str, fix: str) -> None:
    """It never passes unseen: the failure has the command that runs both."""
    project.write(RATIO.replace("test_slow", name, 1))
    result = project.measure("test_it.py::test_fast")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            f"test_fast: its max_ratio cannot be judged: {name} was not part of this run *",
            f"  fix: {fix}",
            "instrcount, budgets: 1 not judged",
        ]
    )
    words = fix.replace("'", "").split(" -k ")
    args = ["-k", words[1]] if len(words) > 1 else fix.split()[2:]
    assert project.measure(*args).ret == pytest.ExitCode.TESTS_FAILED  # 10,000 and 10,000
    project.valgrind.costs["test_fast"] = 1_000
    assert project.measure(*args).ret == pytest.ExitCode.OK


def test_ratio_to_a_test_that_failed(project: Project) -> None:
    """It has no count."""
    project.write(RATIO.replace("test_slow(): pass", "test_slow(): assert False"))
    result = project.measure()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*test_it.py::test_slow was not counted [[]ratio-unmeasured]"])


def test_ratio_of_parametrized_tests(project: Project) -> None:
    """A name without parameters means the test with the same ones."""
    project.write(
        """
        import pytest

        @pytest.mark.parametrize("n", [1, 2])
        @pytest.mark.instrcount(max_ratio=("test_slow", "50%"))
        def test_fast(n): pass

        @pytest.mark.parametrize("n", [1, 2])
        @pytest.mark.instrcount
        def test_slow(n): pass
        """
    )
    set_costs(project, "test_fast", {1: 400, 2: 800})
    set_costs(project, "test_slow", {1: 1000, 2: 1500})
    result = project.measure()
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["test_fast[[]2]: Ir 800 a call, over 0.5 of test_slow[[]2] (750)*"]
    )


def test_wrong_budgets_are_told_at_collection(project: Project) -> None:
    """All of them, before anything is measured."""
    project.write(
        """
        import pytest
        instrcount = pytest.mark.instrcount

        @instrcount(max_ir="2%", scaling="n!")
        def test_spelled(): pass

        @instrcount(max_ratio=("test_self", 0.5))
        def test_self(): pass

        @instrcount(max_ratio=("test_native", 0.5))
        def test_a(): pass

        @instrcount(max_ratio=("test_two", 0.5))
        def test_b(): pass

        @instrcount(sizes=[1, 10, 100])
        def test_c(size=1): pass

        @instrcount(scaling="n")
        def test_d(): pass

        @instrcount(scaling="n", sizes="m")
        def test_e(): pass

        @pytest.mark.parametrize("size", [1, 2, 4])
        @instrcount(scaling="n", sizes=[1, 10, 100])
        def test_f(size): pass

        @pytest.mark.parametrize("n", ["a"])
        @instrcount(scaling="n", sizes="n")
        def test_g(n): pass

        def test_native(): pass

        @pytest.mark.parametrize("n", [1, 2])
        @instrcount
        def test_two(n): pass
        """
    )
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for test, mistake in {
        "spelled": " max_ir='2%': write instructions per call, *",
        "self": ": max_ratio: 'test_self' is this very test",
        "a": ": max_ratio: test_it.py::test_native is not measured; mark it with instrcount, too",
        "b": ": max_ratio: 'test_two' names 2 tests: test_it.py::test_two[[]1], *; write a whole id",
        "c": ": sizes= says nothing without scaling=, like *",
        "d": ": scaling: the test takes no argument 'size', and sizes= names no parameter",
        "e": ": sizes='m': the test has no parameter of that name",
        "f[[]1]": ": sizes: size is parametrized already; write sizes='size'",
        "g[[]a]": ": sizes='n': 'a' is no whole number of 1 or more",
    }.items():
        result.stderr.fnmatch_lines([f"test_it.py::test_{test}: the instrcount marker{mistake}"])
    assert not project.valgrind.started[-1].orders


# --- scaling ------------------------------------------------------------------------------------


def test_sizes_are_given_to_the_test(project: Project) -> None:
    """With --instrcount or without; each is a test of its own."""
    project.write(SCALING)
    result = project.run("-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*test_sort[[]100] PASSED*", "*test_sort[[]1600] PASSED*"])
    project.write(SCALING.replace(", sizes=[100, 400, 1600]", ""))
    project.run("-v").stdout.fnmatch_lines(["*test_sort[[]512]*", "*[[]2048]*", "*[[]8192]*"])


def test_sizes_are_given_to_a_fixture(project: Project) -> None:
    """One that makes the input: what it does is not counted."""
    project.write(
        """
        import pytest

        @pytest.fixture
        def numbers(size):
            return range(size)

        @pytest.mark.instrcount(scaling="n", sizes=[10, 40, 160])
        def test_sum(numbers): assert sum(numbers) >= len(numbers)
        """
    )
    project.run().assert_outcomes(passed=3)
    set_costs(project, "test_sum", {10: 200, 40: 500, 160: 1700})
    assert project.measure().ret == pytest.ExitCode.OK


def test_scaling(project: Project) -> None:
    """One failure for all sizes, at the largest, with the table."""
    project.write(SCALING)
    set_costs(project, "test_sort", {100: 1_700, 400: 4_700, 1600: 16_700})
    result = project.measure("-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["test_it.py::test_sort[[]1600] * scaling * n * n log n", "instrcount, budgets: 1 kept"]
    )
    set_costs(project, "test_sort", {n: 1000 + n * n for n in (100, 400, 1600)})
    result = project.measure()
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_sort[[]1600]: grows like n^2 with the size, worse than n log n [[]over-budget]",
            "  size * Ir a call * if n log n",
            "  100 *11,000 * 11,000",
            "  400 * 161,000 * 161,000",
            "  1600 * 2,561,000 * 889,886",
        ]
    )


def test_sizes_of_a_parameter(project: Project) -> None:
    """Of each combination of the other parameters; what is parametrized with the sizes goes along."""
    project.write(
        """
        import pytest

        @pytest.mark.parametrize(("n", "text"), [(10, "a"), (40, "b"), (160, "c")])
        @pytest.mark.parametrize("kind", ["x", "y"])
        @pytest.mark.instrcount(scaling="n", sizes="n")
        def test_it(n, text, kind): pass
        """
    )
    costs = project.valgrind.costs
    for n, text in {10: "a", 40: "b", 160: "c"}.items():
        costs[f"test_it[x-{n}-{text}]"] = 1000 + 60 * n
        costs[f"test_it[y-{n}-{text}]"] = 1000 + 60 * n * n
    result = project.measure()
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it[[]y-160-c]: grows like n^2 with the size, worse than n [[]over-budget]",
            "instrcount, budgets: 1 kept, 1 over",
        ]
    )


def test_too_few_sizes_in_this_run(project: Project) -> None:
    """It does not pass, and has the command that runs them all."""
    project.write(SCALING)
    set_costs(project, "test_sort", {100: 1_700, 400: 4_700, 1600: 16_700})
    result = project.measure("-k", "400 or 1600")
    result.assert_outcomes(passed=2, failed=1, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "test_sort[[]1600]: its scaling cannot be judged: it needs three sizes, each at least "
            "twice the one before, and was counted at 400, 1600 [[]scaling-sizes]",
            "  fix: pytest --instrcount test_it.py::test_sort",
        ]
    )
    assert project.measure("test_it.py::test_sort").ret == pytest.ExitCode.OK


def test_sizes_on_a_class(project: Project) -> None:
    """A marker on the class gives sizes to its methods; the nearest marker wins."""
    project.write(
        """
        import pytest

        @pytest.mark.instrcount(scaling="n", sizes=[10, 40, 160])
        class TestIt:
            def test_a(self, size): pass

            @pytest.mark.instrcount(sizes=[1, 2, 4])
            def test_b(self, size): pass
        """
    )
    result = project.run("--collect-only", "-q")
    names = [line.partition("[")[2] for line in result.stdout.lines if "[" in line]
    assert names == ["10]", "40]", "160]", "1]", "2]", "4]"]
