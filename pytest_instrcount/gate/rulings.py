"""The rulings of a run: each measurement against its baseline, then what is stored and what is stale."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import moving_functions
from pytest_instrcount.counts.profile import NOTHING
from pytest_instrcount.counts.python.blame import find_blame
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.counts.rules import rule_of
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.cause import Cause
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
from pytest_instrcount.gate.records import CallsResult, TestResult, measured_result, stored_result
from pytest_instrcount.gate.store.baseline import (
    Baseline,
    Found,
    Missing,
    Store,
    changed_meanwhile,
    to_baseline,
)
from pytest_instrcount.gate.store.ledger import Entry, add_entry
from pytest_instrcount.gate.store.schema import OLDER, raw_baseline
from pytest_instrcount.gate.store.shard import Shard
from pytest_instrcount.gate.store.updating import Update
from pytest_instrcount.gate.suspicion import may_have_moved

Result = TypeVar("Result", TestResult, CallsResult)
Record = TypeVar("Record", Measurement, Baseline)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user wants of verdicts; ``update`` is None where nothing is to be written.

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


@dataclass(slots=True)
class Rulings:
    """Collects one result per test. Reads baselines at once and writes them only when told to."""

    store: Store
    environment: Mapping[str, str]
    policy: Policy
    results: dict[str, TestResult] = field(default_factory=dict)
    #: packed as well: all are read before the first test is measured
    _read: dict[str, Missing | bytes | InstrcountError] = field(default_factory=dict)
    #: the baseline that was asked for last
    _last: tuple[str, Found] | None = None
    #: functions that are noise, by what baselines say that were read
    _noise: set[str] = field(default_factory=set)
    #: what may be stored or measured again; packed, since a suite can have thousands of tests
    _open: dict[str, bytes] = field(default_factory=dict)
    #: what tests are made of by Python function, as measured now
    _trees: dict[str, CallTree] = field(default_factory=dict)
    #: whether `measured` is to know what was counted
    hold: bool = False
    #: whether results keep the trees of baselines, for reports that show them
    trees: bool = False
    #: what was counted of tests that are not unchanged; packed
    _held: dict[str, bytes] = field(default_factory=dict)
    #: whether one layout is to do for now, as what may have moved will be looked at again
    first_look: bool = False
    #: what may turn out to be noise in more layouts
    _close: set[str] = field(default_factory=set)
    #: functions that moved between layouts, in any test
    _moving: set[str] = field(default_factory=set)
    #: why this run changes baselines, and what is checked out; "" if nobody said
    reason: str = ""
    commit: str = ""
    #: what a merge is to know of this run; None unless it is one of several
    shard: Shard | None = None

    def baseline(self, nodeid: str) -> Missing | Found | InstrcountError:
        """The baseline of a test, read once; an error where its file cannot be read."""
        if self._last is not None and self._last[0] == nodeid:
            return self._last[1]
        if nodeid in self._read:
            known = self._read[nodeid]
            found = Found(_unpacked(known, Baseline)) if isinstance(known, bytes) else known
        else:
            try:
                found = self.store.read(nodeid, updating=self.policy.update is not None)
            except InstrcountError as error:
                if error.slug == OLDER:  # so are all others: said once
                    raise
                found = error
            if isinstance(found, Found) and found.baseline.denoised is not None:
                self._noise.update(found.baseline.denoised.noise.functions)
            self._read[nodeid] = _packed(found.baseline) if isinstance(found, Found) else found
        if isinstance(found, Found):
            self._last = nodeid, found
        return found

    def read_again(self, nodeids: Iterable[str]) -> None:
        """Read baselines that others have written anew."""
        self._last = None
        for nodeid in nodeids:
            del self._read[nodeid]
            self.baseline(nodeid)

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
        result = replace(result, unit=self.environment.get("unit", result.unit))
        if passed:
            result = replace(result, allocs_limit=allocs)
        if not self.trees:
            result = replace(result, tree=None)
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
        self._close.discard(nodeid)
        if isinstance(comparison, Delta):
            if comparison.gated.is_close:
                self._close.add(nodeid)
            suspected = suspected or may_have_moved(comparison, limit)
        if self.first_look and not measurement.layouts and isinstance(comparison, Delta):
            # of a single layout: it is the limit that was told from noise
            result = replace(result, spread=None, ends=None, detects=None, floor=None)
        if (suspected or self._writes(result)) and not self._is_stored(found, measurement):
            self._open[nodeid] = _packed(measurement)
        self.results[nodeid] = result
        return result

    def _writes(self, result: TestResult) -> bool:
        update, has_baseline = self.policy.update, isinstance(self._read[result.nodeid], bytes)
        return update is not None and should_write(result.verdict, update, has_baseline)

    def _measurement(self, nodeid: str) -> Measurement:
        return _unpacked(self._open[nodeid], Measurement)

    def measured(self, nodeid: str) -> Measurement | None:
        """What was counted of a test that is not unchanged; None unless it is held."""
        return _unpacked(self._held[nodeid], Measurement) if nodeid in self._held else None

    def unsettled(self, layouts: int = 0) -> Iterator[Measurement]:
        """What has to be measured in more layouts than so many: suspicions, and what is to be stored."""
        if self.first_look and self.policy.update is not None:
            return
        for nodeid in list(self._open):
            measurement, result = self._measurement(nodeid), self.results[nodeid]
            if len(measurement.layouts) != layouts or measurement.unsteady:
                continue
            if self._writes(result):
                if not layouts:
                    yield measurement
            elif result.denoised_ir is not None and (not layouts or nodeid in self._close):
                yield measurement

    def to_attribute(self, most: int) -> Iterator[tuple[Measurement, str | None]]:
        """What is to be known by Python function: what is about to be stored, and what changed.

        With each, how the tree in its baseline was made, None if there is none to compare with. Of
        what is not stored, the ``most`` that grew most, then those that shrank most.
        """
        if self.first_look and self.policy.update is not None:
            return
        blamed = [nodeid for nodeid in self._open if self._blamed_with(nodeid) is not None]
        blamed.sort(key=lambda nodeid: _urgency(self.results[nodeid]), reverse=True)
        for nodeid in list(self._open):
            if nodeid in blamed[:most] or self._writes(self.results[nodeid]):
                yield self._measurement(nodeid), self._blamed_with(nodeid)

    def _blamed_with(self, nodeid: str) -> str | None:
        """How the tree was made that a change is held against; None if there is none."""
        if self.results[nodeid].verdict not in (Verdict.regressed, Verdict.improved):
            return None
        found = self.baseline(nodeid)
        known = found.baseline.python if isinstance(found, Found) else None
        return None if known is None else known.how

    def attribute(self, nodeid: str, tree: CallTree) -> None:
        """Know what a test is made of by Python function: to say what changed, and to store it."""
        found, folded = self.baseline(nodeid), tree.fold()
        self._trees[nodeid] = folded
        result = replace(self.results[nodeid], tree=folded, tree_is_new=True)
        old = found.baseline.python if isinstance(found, Found) else None
        if old is not None and old.how == tree.how and result.delta is not None:
            result = replace(result, python=find_blame(old, tree))
        self.results[nodeid] = result

    def _is_stored(
        self, found: Missing | Found | InstrcountError, measurement: Measurement
    ) -> bool:
        """Whether the baseline holds this very count, and more layouts of it."""
        if not isinstance(found, Found) or found.baseline.denoised is None:
            return False
        if found.baseline.denoised.layouts == 1:
            return False
        old = found.baseline
        raw = replace(old, denoised=None, python=None, ledger=())
        return raw == raw_baseline(measurement, self.environment)

    def _known_noise(self) -> set[str]:
        """What any test of this run has shown to be noise, now or when its baseline was made."""
        return self._noise | self._moving

    def _ledger(self, baseline: Baseline) -> tuple[Entry, ...]:
        """That of the baseline before, and this run's reason."""
        found = self.baseline(baseline.nodeid)
        old = found.baseline if isinstance(found, Found) else None
        ledger = () if old is None else old.ledger
        if not self.reason:
            return ledger
        before = None if old is None else old.compared_ir
        return add_entry(ledger, Entry(before, baseline.compared_ir, self.reason, self.commit))

    def jumps(self, above: Fraction) -> list[TestResult]:
        """What would be stored and moves a count by more than this share, the largest move first."""
        found = [
            result
            for nodeid, result in self.results.items()
            if nodeid in self._open and result.delta is not None
            if abs(result.delta) > above and self._writes(result)
        ]
        return sorted(found, key=lambda result: -abs(result.delta or Fraction(0)))

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
        if self.shard is not None:
            self.shard.noisy |= known
            self.shard.tests |= dict.fromkeys(
                nodeid for nodeid, result in self.results.items() if result.ir is not None
            )
        for nodeid in self._open:
            result = self.results[nodeid]
            if self._writes(result):
                update.begin()
                measurement = self._measurement(nodeid)
                baseline = replace(
                    to_baseline(measurement, self.environment, known),
                    python=self._trees.get(nodeid),
                )
                baseline = replace(baseline, ledger=self._ledger(baseline))
                if self.shard is not None:
                    self.shard.add(measurement)
                written = self.store.write(baseline, update.add)
                if written and self.store.read(nodeid, updating=True) != self.baseline(nodeid):
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

    def stale(self, cause_of: Callable[[str], Cause | None], limit: Limit) -> list[Path]:
        """Record baselines whose test is gone, or not measured any more; returns their files."""
        gone = []
        # of what was read, the test is there
        read = {self.store.path(nodeid) for nodeid in self._read}
        for path, owner in self.store.list(read):
            cause = cause_of(owner) if isinstance(owner, str) else None
            if isinstance(owner, str) and cause is not None:
                gone.append(path)
                stale = TestResult(owner, Verdict.stale, None, None, None, limit, cause=cause)
                self.results[owner] = stale
        return gone


def _urgency(result: TestResult) -> tuple[bool, Fraction]:
    """What regressed is looked into first, then what changed most."""
    return result.verdict is Verdict.regressed, abs(result.delta or Fraction(0))


def _packed(record: Measurement | Baseline) -> bytes:
    return zlib.compress(pickle.dumps(record, pickle.HIGHEST_PROTOCOL), 1)


def _unpacked(packed: bytes, kind: type[Record]) -> Record:
    record = pickle.loads(zlib.decompress(packed))
    assert isinstance(record, kind)
    return record


def _is_steady(measurement: Measurement, limit: Limit) -> bool:
    """Whether all counts of a test that is not deterministic are the same within the limit.

    What differs between equal processes, in one layout, is no layout noise; nor is it in others.
    """
    profiles = (measurement.profile, *measurement.layouts)
    unsteady = [name for name in measurement.unsteady if rule_of(name) is None]
    own = [sum(each.rows.get(name, NOTHING).ir for name in unsteady) for each in profiles]
    totals = [each.total for each in profiles[:2]]
    totals += [profiles[0].total - own[0] + ir for ir in own]
    least, most = (GatedCount(total, measurement.calls) for total in (min(totals), max(totals)))
    return judge_counts(Gated(least, most), limit) is Verdict.unchanged
