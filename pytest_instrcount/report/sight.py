"""What single tests cannot see: said with every result, not discovered as a flaky gate."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.report.words import detects, short_name

_MOST_NAMED = 3
_WIDTH = 80


def blind_limits(results: Sequence[TestResult]) -> tuple[str, ...]:
    """Lines that name the tests whose limit is below what they detect; empty if none.

    >>> blind_limits([])
    ()
    """
    return _lines(
        "limit is below the detection limit:",
        [
            f"{short_name(result.nodeid)} ({result.limit}, detects {detects(result.detects)})"
            for result in results
            if _is_blind(result)
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
    """Lines that name tests whose counts differ, within the limit, between equal processes.

    >>> unsteady_tests([])
    ()
    """
    return _lines(
        "not deterministic, though within the limit:",
        [
            f"{short_name(result.nodeid)} ({result.unsteady[0]})"
            for result in results
            if result.unsteady and result.verdict is not Verdict.nondeterministic
        ],
    )


def _lines(title: str, named: list[str]) -> tuple[str, ...]:
    """A title with what it names: in its line if there is room, else below it."""
    if not named:
        return ()
    more = [f"and {len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    shown = named[:_MOST_NAMED] + more
    line = f"{title} {', '.join(shown)}"
    return (line,) if len(line) <= _WIDTH else (title, *(f"  {each}" for each in shown))
