"""Budgets without pytest: how they are spelled, what keeps them, and what is said of them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pytest_instrcount.gate.budget import (
    BudgetResult,
    CeilingResult,
    RatioResult,
    ScalingResult,
    Unjudged,
    is_named,
    parse_ceiling,
    parse_ratio,
)
from pytest_instrcount.gate.scaling import parse_growth
from pytest_instrcount.report.budgets import budget_word, render_budget_failure, render_budgets

HALF = Fraction(1, 2)
CEILING = CeilingResult("t.py::test_a", Fraction(25_001, 2), 12_500)
RATIO = RatioResult("t.py::test_a", Fraction(15_000), "t.py::test_b", Fraction(20_000), HALF)
SCALING = ScalingResult(
    "t.py::test_a[4096]",
    {n: Fraction(1000 + n * n) for n in (256, 1024, 4096)},
    parse_growth("n^2"),
    parse_growth("n"),
)
UNJUDGED = Unjudged(
    "t.py::test_a", "max_ratio", "ratio-unmeasured", "b was not counted", "pytest b"
)


@pytest.mark.parametrize("given", [20_000, "20000", "20_000", "20,000", "20000ir", " 20,000 Ir "])
def test_ceilings(given: object) -> None:
    """With or without the unit; a bare number is one of instructions here."""
    assert parse_ceiling(given) == 20_000


@pytest.mark.parametrize(
    "wrong", [0, -1, 1.0, True, None, "", "ir", "2%", "-3", "1e4", "9" * 99, "²"]
)
def test_wrong_ceilings(wrong: object) -> None:
    """Whole numbers of 1 or more."""
    with pytest.raises(ValueError, match="write instructions per call, a whole number"):
        parse_ceiling(wrong)


@pytest.mark.parametrize(
    ("given", "most"),
    [
        (("b", 0.5), HALF),
        (["b", "0.5"], HALF),
        (("b", "50 %"), HALF),
        (("b", Fraction(1, 2)), HALF),
        ((" b ", 0.1), Fraction(1, 10)),
        (("b", 3), Fraction(3)),
    ],
)
def test_ratios(given: object, most: Fraction) -> None:
    """The share is exactly what was typed, and may be above 1."""
    ratio = parse_ratio(given)
    assert (ratio.other, ratio.most) == ("b", most)


@pytest.mark.parametrize(
    "wrong",
    [
        "b",
        ("b",),
        ("b", 0),
        ("b", -0.5),
        ("b", True),
        ("b", "half"),
        ("", 1),
        (1, 1),
        ("b", None),
        ("b", float("nan")),
        ("b", float("inf")),
        ("b", 0.5, 1),
        {"b": 0.5},
        None,
    ],
)
def test_wrong_ratios(wrong: object) -> None:
    """A pair of a name and a number above 0."""
    with pytest.raises(ValueError, match="write the id of a test and a share"):
        parse_ratio(wrong)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("tests/test_x.py::TestA::test_b[1-x]", True),
        ("tests/test_x.py::TestA::test_b", True),
        ("test_x.py::TestA::test_b", True),
        ("TestA::test_b[1-x]", True),
        ("test_b", True),
        ("test_b[1]", False),
        ("_x.py::TestA::test_b", False),
        ("b", False),
        ("TestA", False),
        ("x]", False),
        ("test_x.py", False),
    ],
)
def test_names_of_a_test(name: str, named: bool) -> None:
    """Its id, or an end of it that begins with a whole name."""
    assert is_named("tests/test_x.py::TestA::test_b[1-x]", name) is named


def test_exactly_at_the_budget_is_kept() -> None:
    """Nothing is rounded: half an instruction more is more."""
    assert not CEILING.kept
    assert CeilingResult("a", Fraction(12_500), 12_500).kept
    assert RatioResult("a", Fraction(10), "b", Fraction(20), HALF).kept
    assert not RatioResult("a", Fraction(21, 2), "b", Fraction(20), HALF).kept
    assert not SCALING.kept
    assert not UNJUDGED.kept


def test_a_better_class_is_kept() -> None:
    """The allowed one is the worst that passes."""
    for name, kept in {"log n": True, "n": True, "n log n": False}.items():
        result = ScalingResult("a", {}, parse_growth(name), parse_growth("n"))
        assert result.kept is kept


def test_failure_of_a_ceiling() -> None:
    """The number, the budget, by how much; and that no baseline helps."""
    assert render_budget_failure(CEILING) == [
        "test_a: Ir 12,500.5 a call, over its max_ir of 12,500 by 0.5 (+0.004 %) [over-budget]",
        "  a budget holds whatever the baseline is, so accepting this count does not help:",
        "  make the test cheaper, or raise max_ir in its marker",
    ]


def test_failure_of_a_ratio() -> None:
    """Both counts, and the share they make."""
    assert render_budget_failure(RATIO) == [
        "test_a: Ir 15,000 a call, over 0.5 of test_b (10,000) by 5,000 (+50 %) [over-budget]",
        "  it is 0.75 of t.py::test_b: Ir 20,000 a call",
        "  a budget holds whatever the baseline is, so accepting this count does not help:",
        "  make the test cheaper, or raise max_ratio in its marker",
    ]


def test_failure_of_a_scaling() -> None:
    """The class, the counts, and what they would be in the class that is allowed."""
    assert render_budget_failure(SCALING) == [
        "test_a[4096]: grows like n^2 with the size, worse than n [over-budget]",
        "  size      Ir a call       if n",
        "  ------  -----------  ---------",
        "  256          66,536     66,536",
        "  1024      1,049,576  1,049,576",
        "  4096     16,778,216  4,981,736",
        "  a budget holds whatever the baseline is, so accepting this count does not help:",
        "  make the code scale better, or allow more with scaling= in its marker",
    ]


def test_failure_of_what_cannot_be_judged() -> None:
    """Why, and the command to type."""
    assert render_budget_failure(UNJUDGED) == [
        "test_a: its max_ratio cannot be judged: b was not counted [ratio-unmeasured]",
        "  fix: pytest b",
    ]
    assert [budget_word(each) for each in (CEILING, UNJUDGED)] == ["over-budget", "failed"]


def test_table() -> None:
    """What is not kept; all with -v; the totals alone with -q."""
    kept: list[BudgetResult] = [CeilingResult("t.py::test_k", Fraction(9), 10)]
    results = [*kept, CEILING, RATIO, SCALING, UNJUDGED]
    assert render_budgets(results, 0, 80) == [
        "test                   budget         now    allowed",
        "------------------  ---------  ----------  ---------",
        "t.py::test_a           max_ir    12,500.5     12,500",
        "t.py::test_a        max_ratio        0.75        0.5",
        "t.py::test_a[4096]    scaling         n^2          n",
        "t.py::test_a        max_ratio  not judged          -",
        "instrcount, budgets: 1 kept, 3 over, 1 not judged",
    ]
    assert "t.py::test_k" in "\n".join(render_budgets(results, 1, 80))
    assert render_budgets(kept, 0, 80) == ["instrcount, budgets: 1 kept"]
    assert render_budgets([], 2, 80) == []
