"""The user's policy for verdicts: which of them fail the run, and what is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.gate import (
    ImprovedPolicy,
    IncomparablePolicy,
    MissingPolicy,
    UpdatePolicy,
    fails,
    should_write,
)
from pytest_instrcount.gate.records import CallsResult, TestResult

Result = TypeVar("Result", TestResult, CallsResult)


@dataclass(frozen=True, slots=True)
class Policy:
    """Which verdicts fail the run; ``update`` is None where nothing is to be written.

    ``strict``: each test that has a baseline is to be compared, unless the cause is ``allowed``.
    """

    missing: MissingPolicy
    incomparable: IncomparablePolicy
    improved: ImprovedPolicy
    update: UpdatePolicy | None
    strict: bool = False
    allowed: frozenset[Cause] = frozenset()

    def failing(self, results: Iterable[Result]) -> list[Result]:
        """The results that fail the run. What was stored is accepted; what was not, is not."""
        return [
            result
            for result in results
            if not result.written
            and fails(
                result.verdict,
                missing=self.missing,
                incomparable=self.incomparable,
                improved=self.improved,
                cause=result.cause,
                strict=self.strict,
                allowed=self.allowed,
            )
        ]

    def writes(self, result: TestResult | CallsResult, *, known: bool) -> bool:
        """True if a result is to be stored; ``known``: it has a baseline."""
        return self.update is not None and should_write(result.verdict, self.update, known)
