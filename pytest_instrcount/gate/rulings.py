"""The rulings of a run: each measurement against its baseline, then what is stored and what is stale."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pytest_instrcount.blame.blame import find_blame
from pytest_instrcount.blame.tree import CallTree
from pytest_instrcount.counts.noise import Noise, clean, moving_functions
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.baseline import (
    Baseline,
    Found,
    Missing,
    Store,
    changed_meanwhile,
    to_baseline,
)
from pytest_instrcount.gate.compare import Delta, Gated, GatedCount, compare
from pytest_instrcount.gate.gate import (
    ImprovedPolicy,
    IncomparablePolicy,
    MissingPolicy,
    UpdatePolicy,
    Verdict,
    fails,
    judge,
    judge_counts,
    should_write,
    too_many_allocations,
)
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.measurement import Measurement
from pytest_instrcount.gate.records import CallsResult, TestResult, measured_result, stored_result
from pytest_instrcount.gate.schema import raw_baseline
from pytest_instrcount.gate.updating import Update

Result = TypeVar("Result", TestResult, CallsResult)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user wants of verdicts; ``update`` is None where nothing is to be written."""

    missing: MissingPolicy
    incomparable: IncomparablePolicy
    improved: ImprovedPolicy
    update: UpdatePolicy | None

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
            )
        ]


@dataclass(slots=True)
class Rulings:
    """Collects one result per test. Reads baselines at once and writes them only when told to."""

    store: Store
    environment: Mapping[str, str]
    policy: Policy
    results: dict[str, TestResult] = field(default_factory=dict)
    _read: dict[str, Missing | Found | InstrcountError] = field(default_factory=dict)
    #: what may be stored or measured again; packed, since a suite can have thousands of tests
    _open: dict[str, bytes] = field(default_factory=dict)
    #: what tests are made of by Python function, as measured now
    _trees: dict[str, CallTree] = field(default_factory=dict)
    #: whether `measured` is to know what was counted
    hold: bool = False
    #: what was counted of tests that are not unchanged; packed
    _held: dict[str, bytes] = field(default_factory=dict)
    #: functions that moved between layouts, in any test
    _moving: set[str] = field(default_factory=set)

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

    def rule(
        self, measurement: Measurement, limit: Limit, allocs: Limit | None = None
    ) -> TestResult:
        """Judge one measurement; again, if more is known of it now. ``allocs`` limits allocations."""
        nodeid = measurement.nodeid
        found = self.baseline(nodeid)
        if isinstance(found, InstrcountError):
            return self.fail(nodeid, limit, str(found).removeprefix("instrcount: "))
        comparison = compare(measurement, found, self.environment)
        verdict = judge(comparison, limit)
        if measurement.unsteady and not _is_steady(measurement, limit):
            verdict = Verdict.nondeterministic
        passed = isinstance(comparison, Delta) and too_many_allocations(comparison, allocs)
        if passed and verdict in (Verdict.unchanged, Verdict.improved):
            verdict = Verdict.regressed
        result = measured_result(measurement, found, comparison, verdict, limit)
        if passed:
            result = replace(result, allocs_limit=allocs)
        if isinstance(found, Missing):
            others = self.store.other_environments(nodeid)
            if others:
                line = f"other environments have one: {', '.join(others)}"
                result = replace(result, detail=(line,))
        if measurement.layouts and not measurement.unsteady:
            self._moving |= moving_functions((measurement.profile, *measurement.layouts))
        self._open.pop(nodeid, None)
        self._held.pop(nodeid, None)
        if self.hold and verdict is not Verdict.unchanged:
            self._held[nodeid] = _packed(measurement)
        suspected = verdict in (Verdict.regressed, Verdict.improved)
        if (suspected or self._writes(result)) and not self._is_stored(found, measurement):
            self._open[nodeid] = _packed(measurement)
        self.results[nodeid] = result
        return result

    def _writes(self, result: TestResult) -> bool:
        update, has_baseline = self.policy.update, isinstance(self._read[result.nodeid], Found)
        return update is not None and should_write(result.verdict, update, has_baseline)

    def _measurement(self, nodeid: str) -> Measurement:
        return _unpacked(self._open[nodeid])

    def measured(self, nodeid: str) -> Measurement | None:
        """What was counted of a test that is not unchanged; None unless it is held."""
        return _unpacked(self._held[nodeid]) if nodeid in self._held else None

    def unsettled(self) -> Iterator[Measurement]:
        """What has to be measured in more layouts: suspicions, and what is about to be stored."""
        for nodeid in list(self._open):
            measurement = self._measurement(nodeid)
            if not measurement.layouts and (
                self._writes(self.results[nodeid]) or self.results[nodeid].denoised_ir is not None
            ):
                yield measurement

    def to_attribute(self, most: int) -> Iterator[tuple[Measurement, str | None]]:
        """What is to be known by Python function: what is about to be stored, and what regressed.

        With each, how the tree in its baseline was made, None if there is none to compare with. Of
        what regressed and is not stored, the ``most`` that grew most.
        """
        blamed = [nodeid for nodeid in self._open if self._blamed_with(nodeid) is not None]
        blamed.sort(key=lambda nodeid: self.results[nodeid].delta or 0, reverse=True)
        for nodeid in list(self._open):
            if nodeid in blamed[:most] or self._writes(self.results[nodeid]):
                yield self._measurement(nodeid), self._blamed_with(nodeid)

    def _blamed_with(self, nodeid: str) -> str | None:
        """How the tree was made that a regression is held against; None if there is none."""
        found = self._read[nodeid]
        known = found.baseline.python if isinstance(found, Found) else None
        regressed = self.results[nodeid].verdict is Verdict.regressed
        return known.how if regressed and known is not None else None

    def attribute(self, nodeid: str, tree: CallTree) -> None:
        """Know what a test is made of by Python function: to say what changed, and to store it."""
        found, folded = self._read[nodeid], tree.fold()
        self._trees[nodeid] = folded
        result = replace(self.results[nodeid], tree=folded, tree_is_new=True)
        old = found.baseline.python if isinstance(found, Found) else None
        if old is not None and old.how == tree.how and result.delta is not None:
            result = replace(result, python=find_blame(old, tree))
        self.results[nodeid] = result

    def _is_stored(
        self, found: Missing | Found | InstrcountError, measurement: Measurement
    ) -> bool:
        """Whether the baseline holds this very count."""
        if not isinstance(found, Found) or found.baseline.denoised is None:
            return False
        old = found.baseline
        raw = replace(old, denoised=None, python=None)
        return raw == raw_baseline(measurement, self.environment)

    def _known_noise(self) -> dict[str, int]:
        """What any test of this run has shown to be noise, now or when its baseline was made."""
        known: dict[str, int] = {}
        for found in self._read.values():
            if isinstance(found, Found) and found.baseline.denoised is not None:
                known |= found.baseline.denoised.noise.functions
        return known | dict.fromkeys(self._moving, 0)

    def fail(self, nodeid: str, limit: Limit, reason: str) -> TestResult:
        """Record a test without a count, and why."""
        result = TestResult(nodeid, Verdict.failed, None, None, None, limit, reason=reason)
        self.results[nodeid] = result
        return result

    def write(self, update: Update) -> dict[str, TestResult]:
        """Have stored what the policy says; returns the results that then hold.

        Raises as ``Store.write``, and InstrcountError ``baseline-changed`` if another run has stored
        other counts since this one read them: those would be lost.
        """
        stored: dict[str, TestResult] = {}
        known = self._known_noise()
        for nodeid in self._open:
            result = self.results[nodeid]
            if self._writes(result):
                update.begin()
                measurement = self._measurement(nodeid)
                baseline = replace(
                    to_baseline(measurement, self.environment, known),
                    python=self._trees.get(nodeid),
                )
                written = self.store.write(baseline, update.add)
                if written and self.store.read(nodeid) != self._read[nodeid]:
                    raise changed_meanwhile(self.store.path(nodeid))
                stored[nodeid] = replace(stored_result(result, baseline), written=written)
        return stored

    def failing(self) -> list[TestResult]:
        """The results that fail the run."""
        return self.policy.failing(self.results.values())

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


def _packed(measurement: Measurement) -> bytes:
    return zlib.compress(pickle.dumps(measurement), 1)


def _unpacked(packed: bytes) -> Measurement:
    measurement = pickle.loads(zlib.decompress(packed))
    assert isinstance(measurement, Measurement)
    return measurement


def _is_steady(measurement: Measurement, limit: Limit) -> bool:
    """Whether all counts of a test that is not deterministic are the same within the limit.

    What differs between equal processes is no layout noise, so only the rules are applied.
    """
    profiles = (measurement.profile, *measurement.layouts)
    totals = [clean(profile, Noise()).total for profile in profiles]
    least, most = (GatedCount(total, measurement.calls) for total in (min(totals), max(totals)))
    return judge_counts(Gated(least, most), limit) is Verdict.unchanged
