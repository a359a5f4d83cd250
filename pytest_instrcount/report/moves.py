"""Many tests that move together point at the environment, not at the code under test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from pytest_instrcount.gate.compare import Difference
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import named
from pytest_instrcount.host.text import several
from pytest_instrcount.report.main_cause import shared_cause
from pytest_instrcount.report.words import percent

_FEWEST = 5
# All deltas lie within a fifth of the median, say 0.18 to 0.22 %.
_SPREAD = Fraction(1, 5)
_MOST_PACKAGES = 5
_MOST_REASONS = 3


def moved_together(results: Sequence[TestResult]) -> tuple[str, ...]:
    """The note to print if all tests, five or more, moved by nearly the same factor; else empty.

    Tests without a delta (new, incomparable, failed, stale) are not counted. Nor is it a question where
    five or more are explained, and one Python function explains most of each.

    >>> moved_together([])
    ()
    """
    compared = [result for result in results if result.delta is not None]
    deltas = sorted(result.delta for result in compared if result.delta is not None)
    if len(deltas) < _FEWEST or not all(deltas):
        return ()
    median = (deltas[(len(deltas) - 1) // 2] + deltas[len(deltas) // 2]) / 2
    if deltas[-1] - deltas[0] > _SPREAD * abs(median) or _have_one_cause(compared):
        return ()
    note = f"all {len(deltas)} tests moved by {percent(median)}: environment change?"
    changed = sorted({change for result in compared for change in result.packages_changed})
    return (note, *changed_packages(changed))


def _have_one_cause(results: Sequence[TestResult]) -> bool:
    causes = [shared_cause(result) for result in results if result.python is not None]
    return len(causes) >= _FEWEST and causes[0] != () and len(set(causes)) == 1


def other_environments(results: Sequence[TestResult]) -> tuple[str, ...]:
    """Lines that say why baselines cannot be compared with, each for all tests of the same reason.

    >>> other_environments([])
    ()
    """
    found = Counter(result.differences for result in results if result.differences)
    lines = []
    for differences, number in found.most_common(_MOST_REASONS):
        tests = several(number, "baseline")
        facts = ", ".join(f"{fact} {old} -> {new}" for fact, old, new in differences)
        lines.append(f"{tests} of another environment or way: {facts} [baseline-incomparable]")
    if len(found) > _MOST_REASONS:
        lines.append(
            f"and {len(found) - _MOST_REASONS} more reasons why baselines are incomparable"
        )
    return tuple(lines)


def changed_packages(changes: Sequence[Difference]) -> tuple[str, ...]:
    """One line that names the packages whose versions differ, five at most; empty if none.

    >>> changed_packages([("attrs", "23.1.0", "23.2.0")])
    ('packages changed: attrs 23.1.0 -> 23.2.0',)
    """
    if not changes:
        return ()
    shown = [f"{name} {old} -> {new}" for name, old, new in changes]
    return (f"packages changed: {named(shown, _MOST_PACKAGES)}",)
