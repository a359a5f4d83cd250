"""The policy: what a comparison means, whether it fails the run, whether it is stored."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Literal, TypeAlias

from pytest_instrcount.counts.work import ALLOCATIONS, count_work
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.compare import Comparison, Delta, Gated, Incomparable, New
from pytest_instrcount.gate.limit import Limit

MissingPolicy: TypeAlias = Literal["fail", "note"]
IncomparablePolicy: TypeAlias = Literal["warn", "fail"]
ImprovedPolicy: TypeAlias = Literal["note", "fail"]
UpdatePolicy: TypeAlias = Literal["all", "missing", "failing"]


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
    #: measured twice, and the counts differ
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
    """The verdict on one measured test: the whole policy, on the exact counts per call.

    >>> from fractions import Fraction
    >>> print(judge(New(), Limit(Fraction(1, 100), None)))
    new
    """
    if isinstance(comparison, New):
        return Verdict.new
    if isinstance(comparison, Incomparable):
        return Verdict.incomparable
    return judge_counts(comparison.gated, limit)


def judge_counts(counts: Gated, limit: Limit) -> Verdict:
    """Regressed or improved by more than the limit, and by more than the detection limit.

    >>> from fractions import Fraction
    >>> grown = Gated(Fraction(1000), Fraction(1030), detects=Fraction(4, 100))
    >>> print(judge_counts(grown, Limit(Fraction(1, 100), None)))
    unchanged
    """
    sides = *counts.old.as_integer_ratio(), *counts.new.as_integer_ratio()
    if counts.fraction is not None and abs(counts.fraction) <= counts.detects:
        return Verdict.unchanged
    if limit.exceeded(*sides):
        return Verdict.regressed
    if limit.undercut(*sides):
        return Verdict.improved
    return Verdict.unchanged


def too_many_allocations(delta: Delta, limit: Limit | None) -> bool:
    """True if a call of the test allocates more often than its limit allows, in every layout."""
    if limit is None or not delta.old.inclusive:  # older than schema 3
        return False
    old, new = delta.old, delta.new
    least = min(count_work(profile).get(ALLOCATIONS, 0) for profile in (new.profile, *new.layouts))
    return limit.exceeded(old.work.get(ALLOCATIONS, 0), old.calls, least, new.calls)


def fails(
    verdict: Verdict,
    *,
    missing: MissingPolicy,
    incomparable: IncomparablePolicy,
    improved: ImprovedPolicy,
    cause: Cause | None = None,
    strict: bool = False,
    allowed: Collection[Cause] = (),
) -> bool:
    """True if a verdict fails the run.

    A regression always does, and so does what could not be measured or not be measured twice the
    same: a gate that cannot tell must not pass. A test that was not compared with the baseline that
    it has, for a ``cause`` that is not ``allowed``, does where the gate is ``strict``, as in CI.

    >>> fails(Verdict.new, missing="note", incomparable="warn", improved="note")
    False
    """
    if verdict is Verdict.new:
        return missing == "fail"
    if verdict is Verdict.incomparable:
        way = cause in (Cause.warmup, Cause.isolation)
        return cause not in allowed and (incomparable == "fail" or (strict and way))
    if verdict in (Verdict.stale, Verdict.uncounted):
        return strict and cause not in allowed
    if verdict is Verdict.improved:
        return improved == "fail"
    return verdict in (Verdict.regressed, Verdict.failed, Verdict.nondeterministic)


def should_write(verdict: Verdict, policy: UpdatePolicy, has_readable_baseline: bool) -> bool:
    """True if an updating run stores this test's measurement.

    ``all``: every measured test, an unchanged one too, since its numbers may differ within the
    limit. ``missing``: only a test without a baseline. ``failing``: what is regressed, new or
    incomparable. Never where nothing could be measured, or where a file that cannot be read lies
    (not new, and yet no readable baseline).

    >>> should_write(Verdict.unchanged, "all", True), should_write(Verdict.unchanged, "failing", True)
    (True, False)
    """
    if verdict in NEVER_WRITTEN:
        return False
    is_new = verdict is Verdict.new
    if is_new == has_readable_baseline:
        return False
    if policy == "missing":
        return is_new
    if policy == "failing":
        return verdict in (Verdict.regressed, Verdict.new, Verdict.incomparable)
    return True
