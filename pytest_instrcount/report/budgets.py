"""Budgets as lines for a terminal. Pure: nothing is printed here."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pytest_instrcount.gate.budget import (
    BudgetResult,
    CeilingResult,
    RatioResult,
    ScalingResult,
    Unjudged,
)
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.text import escape_unprintable
from pytest_instrcount.report.table import fit_table
from pytest_instrcount.report.words import IR, count, percent, quotient, short_name

#: The word of a failure, instead of a verdict; where nothing could be judged, the other.
OVER_BUDGET = "over-budget"
UNJUDGED = "failed"

_HEADERS = ("test", "budget", "now", "allowed")
_STANDS = "a budget holds whatever the baseline is, so accepting this count does not help:"


def budget_word(result: BudgetResult) -> str:
    """The word of its failure."""
    return UNJUDGED if isinstance(result, Unjudged) else OVER_BUDGET


def render_budgets(results: Sequence[BudgetResult], verbosity: int, width: int) -> list[str]:
    """The table of budgets, and how many are kept; see ``render_summary``.

    >>> render_budgets([CeilingResult("t.py::a", Fraction(10), 20)], 0, 80)
    ['instrcount, budgets: 1 kept']
    """
    if not results:
        return []
    shown = [each for each in results if verbosity > 0 or not each.kept]
    lines = fit_table(_HEADERS, [budget_cells(each) for each in shown], width)
    numbers = {
        "kept": sum(each.kept for each in results),
        "over": sum(not each.kept and not isinstance(each, Unjudged) for each in results),
        "not judged": sum(isinstance(each, Unjudged) for each in results),
    }
    totals = ", ".join(f"{number} {word}" for word, number in numbers.items() if number)
    return [*lines, f"instrcount, budgets: {totals}"]


def budget_cells(result: BudgetResult) -> tuple[str, str, str, str]:
    """Test, argument of the marker, what was found and what is allowed.

    >>> budget_cells(CeilingResult("t.py::a", Fraction(10), 20))
    ('t.py::a', 'max_ir', '10', '20')
    """
    if isinstance(result, CeilingResult):
        return result.nodeid, "max_ir", quotient(result.ir), count(result.most)
    if isinstance(result, RatioResult):
        share = _share(result.ir / result.other_ir, result.most)
        return result.nodeid, "max_ratio", share, _share(result.most)
    if isinstance(result, ScalingResult):
        return result.nodeid, "scaling", str(result.growth), str(result.allowed)
    return result.nodeid, result.budget, "not judged", "-"


def render_budget_failure(result: BudgetResult, unit: str = IR) -> list[str]:
    """The text of the failed report of a budget; the first line says it all. ``unit``: what is counted.

    >>> render_budget_failure(CeilingResult("t.py::test_a", Fraction(25), 20))[0]
    'test_a: Ir 25 a call, over its max_ir of 20 by 5 (+25 %) [over-budget]'
    """
    name = short_name(result.nodeid)
    if isinstance(result, Unjudged):
        why = f"{name}: its {result.budget} cannot be judged: {result.why} [{result.slug}]"
        return [printable(why), f"  fix: {escape_unprintable(result.fix)}"]
    return [
        f"{name}: {_what(result, unit)} [{OVER_BUDGET}]",
        *(f"  {each}" for each in _why(result, unit)),
    ]


def _what(result: CeilingResult | RatioResult | ScalingResult, unit: str) -> str:
    if isinstance(result, ScalingResult):
        return f"grows like {result.growth} with the size, worse than {result.allowed}"
    ir = f"{unit} {quotient(result.ir)} a call"
    if isinstance(result, CeilingResult):
        return f"{ir}, over its max_ir of {count(result.most)} by {_over(result.ir, result.most)}"
    most = result.most * result.other_ir
    other = f"{_share(result.most)} of {short_name(result.other)}"
    return f"{ir}, over {other} ({quotient(most)}) by {_over(result.ir, most)}"


def _why(result: CeilingResult | RatioResult | ScalingResult, unit: str) -> list[str]:
    if isinstance(result, CeilingResult):
        return [_STANDS, "make the test cheaper, or raise max_ir in its marker"]
    if isinstance(result, RatioResult):
        share = _share(result.ir / result.other_ir, result.most)
        other = f"{printable(result.other)}: {unit} {quotient(result.other_ir)} a call"
        change = "make the test cheaper, or raise max_ratio in its marker"
        return [f"it is {share} of {other}", _STANDS, change]
    rows = [
        (str(size), quotient(ir), quotient(expected))
        for (size, ir), expected in zip(result.counts.items(), _expected(result))
    ]
    lines = fit_table(("size", f"{unit} a call", f"if {result.allowed}"), rows, 60)
    return [
        *lines,
        _STANDS,
        "make the code scale better, or allow more with scaling= in its marker",
    ]


def _expected(result: ScalingResult) -> list[Fraction]:
    """The counts that the allowed class predicts from the two smallest sizes."""
    (first, low), (second, high) = list(result.counts.items())[:2]
    start, step = result.allowed.value(first), result.allowed.value(second)
    per_unit = (high - low) / Fraction(step - start)
    found = [low + per_unit * Fraction(result.allowed.value(n) - start) for n in result.counts]
    return [Fraction(round(each)) for each in found]


def _over(ir: Fraction, most: Fraction | int) -> str:
    return f"{quotient(ir - most)} ({percent(ir / most - 1)})"


def _share(share: Fraction, beyond: Fraction | None = None) -> str:
    """A share with three digits, or so many that it differs from what it is beyond.

    >>> _share(Fraction(1, 3)), _share(Fraction(50001, 100_000), Fraction(1, 2))
    ('0.333', '0.50001')
    """
    text = ""
    for digits in range(3, 13):
        text = f"{float(share):.{digits}g}"
        if beyond is None or share == beyond or text != f"{float(beyond):.{digits}g}":
            break
    return text
