"""The rulings of a run: each measurement against its baseline, then what is stored and what is stale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.baseline import Baseline, Found, Missing, Store
from pytest_instrcount.gate.compare import compare
from pytest_instrcount.gate.gate import (
    ImprovedPolicy,
    IncomparablePolicy,
    MissingPolicy,
    UpdatePolicy,
    Verdict,
    fails,
    judge,
    should_write,
)
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.measurement import Measurement
from pytest_instrcount.gate.records import TestResult, measured_result


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user wants of verdicts; ``update`` is None where nothing is to be written."""

    missing: MissingPolicy
    incomparable: IncomparablePolicy
    improved: ImprovedPolicy
    update: UpdatePolicy | None


@dataclass(slots=True)
class Rulings:
    """Collects one result per test. Reads baselines at once and writes them only when told to."""

    store: Store
    environment: Mapping[str, str]
    policy: Policy
    results: dict[str, TestResult] = field(default_factory=dict)
    _read: dict[str, Missing | Found | InstrcountError] = field(default_factory=dict)
    _measured: dict[str, Measurement] = field(default_factory=dict)

    def baseline(self, nodeid: str) -> Missing | Found | InstrcountError:
        """The baseline of a test, read once; an error where its file cannot be read."""
        if nodeid not in self._read:
            try:
                self._read[nodeid] = self.store.read(nodeid)
            except InstrcountError as error:
                self._read[nodeid] = error
        return self._read[nodeid]

    def made_with(self, nodeid: str) -> Baseline | None:
        """The baseline whose repetition is to be used again: one of this very environment."""
        found = self.baseline(nodeid)
        if isinstance(found, Found) and found.baseline.environment == dict(self.environment):
            return found.baseline
        return None

    def rule(self, measurement: Measurement, limit: Limit) -> TestResult:
        """Judge one measurement."""
        nodeid = measurement.nodeid
        found = self.baseline(nodeid)
        if isinstance(found, InstrcountError):
            return self.fail(nodeid, limit, str(found).removeprefix("instrcount: "))
        comparison = compare(measurement, found, self.environment)
        verdict = judge(comparison, limit)
        result = measured_result(measurement, found, comparison, verdict, limit)
        if isinstance(found, Missing):
            others = self.store.other_environments(nodeid)
            if others:
                line = f"other environments have one: {', '.join(others)}"
                result = replace(result, detail=(line,))
        self._measured[nodeid] = measurement
        self.results[nodeid] = result
        return result

    def fail(self, nodeid: str, limit: Limit, reason: str) -> TestResult:
        """Record a test without a count, and why."""
        result = TestResult(nodeid, Verdict.failed, None, None, None, limit, reason=reason)
        self.results[nodeid] = result
        return result

    def write(self) -> int:
        """Store what the policy says; returns how many files changed. Raises as ``Store.write``."""
        if self.policy.update is None:
            return 0
        changed = 0
        for nodeid, measurement in self._measured.items():
            result = self.results[nodeid]
            readable = isinstance(self._read[nodeid], Found)
            if should_write(result.verdict, self.policy.update, readable):
                written = self.store.write(measurement, self.environment)
                changed += written
                self.results[nodeid] = replace(result, written=written)
        return changed

    def failing(self) -> list[TestResult]:
        """The results that fail the run. What was stored is accepted; what was not, is not."""
        return [
            result
            for result in self.results.values()
            if not result.written
            and fails(
                result.verdict,
                missing=self.policy.missing,
                incomparable=self.policy.incomparable,
                improved=self.policy.improved,
            )
        ]

    def compared(self) -> int:
        """How many tests were compared with a baseline of this environment."""
        return sum(
            result.delta is not None or (result.baseline_ir is not None and not result.differences)
            for result in self.results.values()
        )

    def stale(self, is_stale: Callable[[str], bool], limit: Limit) -> list[Path]:
        """Record baselines whose test is gone; returns their files."""
        gone = []
        for path, owner in self.store.list():
            if isinstance(owner, str) and is_stale(owner):
                gone.append(path)
                self.results[owner] = TestResult(owner, Verdict.stale, None, None, None, limit)
        return gone
