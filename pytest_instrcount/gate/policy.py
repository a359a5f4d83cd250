"""The user's policy for verdicts: which of them fail the run, and what is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.gate import NEVER_WRITTEN, Verdict
from pytest_instrcount.gate.records import TestResult

Result = TypeVar("Result", TestResult, CallsResult)
UpdatePolicy: TypeAlias = Literal["changed", "all", "missing", "failing"]


@dataclass(frozen=True, slots=True)
class Policy:
    """Which verdicts fail the run; ``update`` is None where nothing is to be written.

    ``strict``: each test that has a baseline is to be compared, unless the cause is ``allowed``.
    """

    missing: Literal["fail", "note"]
    incomparable: Literal["warn", "fail"]
    improved: Literal["note", "fail"]
    update: UpdatePolicy | None = None
    strict: bool = False
    allowed: frozenset[Cause] = frozenset()

    def fails(self, verdict: Verdict, cause: Cause | None = None) -> bool:
        """True if a verdict fails the run.

        A regression always does, and so does what could not be measured or not be measured twice the
        same: a gate that cannot tell must not pass. A test that was not compared with the baseline
        that it has, for a ``cause`` that is not allowed, does where the gate is strict, as in CI.

        >>> Policy("note", "warn", "note").fails(Verdict.new)
        False
        """
        if verdict is Verdict.new:
            return self.missing == "fail"
        if verdict is Verdict.incomparable:
            way = cause in (Cause.warmup, Cause.isolation)
            fails = self.incomparable == "fail" or (self.strict and way)
            return cause not in self.allowed and fails
        if verdict in (Verdict.stale, Verdict.uncounted):
            return self.strict and cause not in self.allowed
        if verdict is Verdict.improved:
            return self.improved == "fail"
        return verdict in (Verdict.regressed, Verdict.failed, Verdict.nondeterministic)

    def failing(self, results: Iterable[Result]) -> list[Result]:
        """The results that fail the run. What was stored is accepted; what was not, is not."""
        return [
            result
            for result in results
            if not result.written and self.fails(result.verdict, result.cause)
        ]

    def writes(self, result: TestResult | CallsResult, *, known: bool) -> bool:
        """True if a result is to be stored; ``known``: it has a baseline."""
        return self.update is not None and should_write(result.verdict, self.update, known)


def should_write(verdict: Verdict, policy: UpdatePolicy, has_readable_baseline: bool) -> bool:
    """True if an updating run stores this test's measurement.

    ``changed``: not what is unchanged, so that small steps add up against the old baseline.
    ``all``: that, too. ``missing``: only a test without a baseline. ``failing``: what is regressed,
    new or incomparable. Never where nothing could be measured, or where a file that cannot be read
    lies (not new, and yet no readable baseline).

    >>> should_write(Verdict.unchanged, "all", True), should_write(Verdict.unchanged, "changed", True)
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
    return policy == "all" or verdict is not Verdict.unchanged
