"""Tests that were not compared with the baseline they have: in one line for each cause, and as failures."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.cause import MEANINGS, PRUNE, Cause
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import named, printable
from pytest_instrcount.host.text import escape_unprintable

_MOST_REASONS = 3

#: Of one, and of several; what is incomparable has lines of its own, see `moves`.
_LINES = {
    Cause.gone: (
        "1 baseline without its test, which is gone",
        "{} baselines without their tests, which are gone",
    ),
    Cause.uncollected: (
        "1 baseline whose test's file was not collected",
        "{} baselines whose tests' files were not collected",
    ),
    Cause.unmarked: (
        "1 baseline whose test is not measured any more",
        "{} baselines whose tests are not measured any more",
    ),
    Cause.skipped: (
        "1 test not compared, since it has not passed under Valgrind",
        "{} tests not compared, since they have not passed under Valgrind",
    ),
    Cause.uncounted: (
        "1 test not compared, since nothing of it was counted",
        "{} tests not compared, since nothing of them was counted",
    ),
}


def uncompared_lines(results: Sequence[TestResult]) -> tuple[str, ...]:
    """One line for each cause.

    >>> uncompared_lines([])
    ()
    """
    lines = []
    for cause, (one, many) in _LINES.items():
        found = [result.nodeid for result in results if result.cause is cause]
        if found:
            what = one if len(found) == 1 else many.format(len(found))
            lines.append(f"{what}: {named(found)}")
    return tuple(lines)


def what_became(cause: Cause | None) -> str:
    """The first line of a failure, behind the name of the test."""
    return MEANINGS[cause][0] if cause in MEANINGS else "it was not compared"


def ways_out(cause: Cause | None, prune: str) -> list[str]:
    """The last lines of a failure; ``prune`` is the command that deletes baselines, if it has options."""
    fix = (
        MEANINGS[cause][1].replace(PRUNE, escape_unprintable(prune) or PRUNE)
        if cause in MEANINGS
        else ""
    )
    lines = [f"  fix: {fix}"] if fix else []
    if cause not in (None, Cause.environment):
        lines.append(f"  or allow it: instrcount_allow = {cause}, in the ini file")
    return lines


def render_other_environment(
    found: Sequence[TestResult | CallsResult], number: int, update_command: str
) -> list[str]:
    """The text of the one failure for all baselines of another environment; ``number``: of how many."""
    what = "test has a baseline" if number == 1 else "tests have baselines"
    lines = [f"{len(found)} of {number} {what} of another environment [baseline-incomparable]"]
    reasons = list(dict.fromkeys(result.differences for result in found))
    for reason in reasons[:_MOST_REASONS]:
        lines += [printable(f"  {fact}: {old} -> {new}") for fact, old, new in reason]
    if len(reasons) > _MOST_REASONS:
        lines.append(f"  and {len(reasons) - _MOST_REASONS} more")
    lines.append(f"  accept: {escape_unprintable(update_command)}")
    return [*lines, "  or measure both sides: pytest --instrcount-against=REF"]
