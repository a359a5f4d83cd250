"""Tests whose limit is below what they detect, and tests that are not deterministic: a line each."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import named
from pytest_instrcount.report.words import detects, short_name


def blind_limits(results: Sequence[TestResult]) -> tuple[str, ...]:
    """One line that names the tests whose limit is below what they detect, worst first; empty if none.

    >>> blind_limits([])
    ()
    """
    blind = sorted(filter(_is_blind, results), key=lambda each: each.detects or 0, reverse=True)
    return _line(
        "limit is below the detection limit",
        [
            f"{short_name(each.nodeid)} ({each.limit}, "
            f"detects {detects(each.detects, beyond=each.limit.relative)})"
            for each in blind
        ],
    )


def _is_blind(result: TestResult) -> bool:
    seen, limit = result.detects, result.limit
    compared = result.denoised_baseline_ir or result.denoised_ir
    if seen is None or compared is None:
        return False
    if limit.relative is not None and limit.relative < seen:
        return True
    return limit.absolute is not None and limit.absolute < seen * compared


def unsteady_tests(results: Sequence[TestResult]) -> tuple[str, ...]:
    """One line that names tests whose counts differ, within the limit, between equal processes.

    >>> unsteady_tests([])
    ()
    """
    return _line(
        "not deterministic, by less than the limit",
        [
            f"{short_name(result.nodeid)} ({result.unsteady[0]})"
            for result in results
            if result.unsteady and result.verdict is not Verdict.nondeterministic
        ],
    )


def _line(title: str, tests: list[str]) -> tuple[str, ...]:
    return (f"{title}: {named(tests)}",) if tests else ()
