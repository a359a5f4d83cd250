"""The verdict: what a comparison means."""

from __future__ import annotations

from enum import StrEnum

from pytest_instrcount.counts.work import ALLOCATIONS, count_work
from pytest_instrcount.gate.compare import Comparison, Delta, Gated, Incomparable
from pytest_instrcount.gate.limit import Limit


class Verdict(StrEnum):
    """The outcome of a test; the values are the words of the JSON report."""

    #: not beyond the limit, either way
    unchanged = "unchanged"
    #: cheaper by more than the limit
    improved = "improved"
    #: dearer by more than the limit
    regressed = "regressed"
    #: no baseline yet
    new = "new"
    #: the baseline is of another environment
    incomparable = "incomparable"
    #: measured more than once, and the counts differ by more than the limit
    nondeterministic = "nondeterministic"
    #: could not be measured, or its baseline not be read
    failed = "failed"
    #: a baseline without a test
    stale = "stale"
    #: has a baseline, and nothing was counted
    uncounted = "uncounted"


#: Nothing was measured that could be stored, or not reliably.
NEVER_WRITTEN = frozenset(
    {Verdict.failed, Verdict.nondeterministic, Verdict.stale, Verdict.uncounted}
)


def judge(comparison: Comparison, limit: Limit) -> Verdict:
    """The verdict on one measured test, from the exact counts per call.

    >>> from fractions import Fraction
    >>> print(judge(None, Limit(Fraction(1, 100), None)))
    new
    """
    if comparison is None:
        return Verdict.new
    if isinstance(comparison, Incomparable) or (comparison.releases and comparison.gated.fraction):
        return Verdict.incomparable
    return judge_counts(comparison.gated, limit)


def judge_counts(counts: Gated, limit: Limit) -> Verdict:
    """Regressed or improved by more than the limit, and by more than the detection limit.

    >>> from fractions import Fraction
    >>> grown = Gated(Fraction(1000), Fraction(1030), floor=Fraction(4, 100))
    >>> print(judge_counts(grown, Limit(Fraction(1, 100), None)))
    unchanged
    """
    sides = *counts.old.as_integer_ratio(), *counts.new.as_integer_ratio()
    if counts.fraction is not None and abs(counts.fraction) <= counts.floor:
        return Verdict.unchanged
    if limit.exceeded(*sides):
        return Verdict.regressed
    if limit.undercut(*sides):
        return Verdict.improved
    return Verdict.unchanged


def too_many_allocations(delta: Delta, limit: Limit | None) -> bool:
    """True if a call of the test allocates more often than its limit allows, in every layout."""
    if limit is None or not delta.old.inclusive:  # its profile is lost
        return False
    old, new = delta.old, delta.new
    least = min(count_work(profile).get(ALLOCATIONS, 0) for profile in (new.profile, *new.layouts))
    return limit.exceeded(old.work.get(ALLOCATIONS, 0), old.calls, least, new.calls)
