"""The rulings of a run: each measurement against its baseline, then what is stored and what is stale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import moving_functions
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.baselines import Baselines, packed, unpacked
from pytest_instrcount.gate.blamed import blame_test
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.collisions import hangs_on_collisions, settle_collisions
from pytest_instrcount.gate.compare import Delta, compare, may_compare
from pytest_instrcount.gate.gate import NEVER_WRITTEN, Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.policy import Policy
from pytest_instrcount.gate.records import TestResult, measured_result, stored_result
from pytest_instrcount.gate.store.baseline import Store, changed_meanwhile
from pytest_instrcount.gate.store.ledger import Entry, add_entry
from pytest_instrcount.gate.store.parts import ledger_beside
from pytest_instrcount.gate.store.schema import Baseline, to_baseline
from pytest_instrcount.gate.store.shard import Shard
from pytest_instrcount.gate.store.updating import Update
from pytest_instrcount.gate.suspicion import may_have_moved, verdict_on


@dataclass(slots=True)
class Rulings:
    """Collects one result per test. Reads baselines at once and writes them only when told to."""

    baselines: Baselines
    environment: Mapping[str, str]
    policy: Policy
    results: dict[str, TestResult] = field(default_factory=dict)
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
    #: what may turn out to be collisions of keys under other hash seeds
    _hanging: set[str] = field(default_factory=set)
    #: functions that moved between layouts, in any test
    _moving: set[str] = field(default_factory=set)
    #: why this run changes baselines, and what is checked out; "" if nobody said
    reason: str = ""
    commit: str = ""
    #: nodeid -> a hash of what the test does, for its baseline
    bodies: Mapping[str, str] = field(default_factory=dict)
    #: what a merge is to know of this run; None unless it is one of several
    shard: Shard | None = None

    @property
    def store(self) -> Store:
        """The folder of the baselines."""
        return self.baselines.store

    def baseline(self, nodeid: str) -> Baseline | InstrcountError | None:
        """The baseline of a test, as `Baselines.get` finds it."""
        return self.baselines.get(nodeid)

    def made_with(self, nodeid: str) -> Baseline | None:
        """The baseline whose repetition is to be used again: one that may be comparable."""
        found = self.baseline(nodeid)
        if isinstance(found, Baseline) and may_compare(found.environment, self.environment):
            return found
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
        if isinstance(comparison, Delta):
            comparison = settle_collisions(comparison)
        verdict, allocates = verdict_on(measurement, comparison, limit, allocs)
        result = measured_result(measurement, found, comparison, verdict, limit)
        result = replace(
            result,
            unit=self.environment.get("unit", result.unit),
            allocs_limit=allocs if allocates else None,
            tree=result.tree if self.trees else None,
            detail=self._elsewhere(nodeid) if found is None else (),
        )
        delta = comparison if isinstance(comparison, Delta) else None
        if self.first_look and not measurement.layouts and delta is not None:
            # of a single layout: it is the limit that is compared with noise
            result = replace(result, spread=None, ends=None, detects=None, floor=None)
        self.results[nodeid] = result
        if measurement.layouts and not measurement.unsteady:
            self._moving |= moving_functions((measurement.profile, *measurement.layouts))
        self._keep(measurement, delta, limit)
        return result

    def _elsewhere(self, nodeid: str) -> tuple[str, ...]:
        """The line on baselines that a test without one has in other environments."""
        others = self.store.other_environments(nodeid)
        return (f"other environments have one: {', '.join(others)}",) if others else ()

    def _keep(self, measurement: Measurement, delta: Delta | None, limit: Limit) -> None:
        """Keep what was counted for as long as it may be measured again, stored or exported."""
        nodeid = measurement.nodeid
        result = self.results[nodeid]
        self._open.pop(nodeid, None)
        self._held.pop(nodeid, None)
        if self.hold and result.verdict is not Verdict.unchanged:
            self._held[nodeid] = packed(measurement)
        self._close.discard(nodeid)
        self._hanging.discard(nodeid)
        suspected = result.verdict in (Verdict.regressed, Verdict.improved)
        if delta is not None:
            suspected |= result.verdict is Verdict.incomparable or may_have_moved(delta, limit)
            if delta.gated.is_close:
                self._close.add(nodeid)
            if suspected and hangs_on_collisions(delta, limit):
                self._hanging.add(nodeid)
        if (suspected or self._writes(result)) and not self.baselines.hold(
            measurement, self.environment
        ):
            self._open[nodeid] = packed(measurement)

    def _writes(self, result: TestResult) -> bool:
        if self.policy.update is not None and self.baselines.is_outdated(result.nodeid):
            return result.verdict not in NEVER_WRITTEN
        return self.policy.writes(result, known=self.baselines.has(result.nodeid))

    def _measurement(self, nodeid: str) -> Measurement:
        return unpacked(self._open[nodeid], Measurement)

    def measured(self, nodeid: str) -> Measurement | None:
        """The measurement of a test that is not unchanged; None if it is not kept."""
        return unpacked(self._held[nodeid], Measurement) if nodeid in self._held else None

    @property
    def needs_layouts(self) -> bool:
        """True if what is to be stored will be measured in other layouts, whatever is counted."""
        return self.policy.update is not None and not self.first_look

    def unsettled(self, layouts: int = 0) -> Iterator[Measurement]:
        """Measurements that need more than this many layouts: suspicious ones, and those to be stored."""
        if self.first_look and self.policy.update is not None:
            return
        for nodeid in list(self._open):
            measurement, result = self._measurement(nodeid), self.results[nodeid]
            if len(measurement.layouts) != layouts or measurement.unsteady:
                continue
            comparable = self._writes(result) or result.denoised_ir is not None
            if nodeid in self._close if layouts else comparable:
                yield measurement

    def colliding(self) -> list[Measurement]:
        """Measurements whose verdict hangs on which keys collide, of what is not to be stored."""
        hanging = [each for each in self._open if each in self._hanging]
        return [self._measurement(each) for each in hanging if not self._writes(self.results[each])]

    def to_attribute(self, most: int) -> Iterator[tuple[Measurement, str | None]]:
        """Tests that need a tree by Python function: those about to be stored, and those that changed.

        Of what is not stored, the ``most`` that grew most. With each, how its baseline's tree was made.
        """
        if self.first_look and self.policy.update is not None:
            return
        stored = {nodeid for nodeid in self._open if self._writes(self.results[nodeid])}
        blamed = [each for each in self._open if each not in stored and self._blamed_with(each)]
        blamed.sort(key=lambda nodeid: _urgency(self.results[nodeid]), reverse=True)
        chosen = stored.union(blamed[:most])
        for nodeid in [each for each in self._open if each in chosen]:
            yield self._measurement(nodeid), self._blamed_with(nodeid)

    def _blamed_with(self, nodeid: str) -> str | None:
        """The method that made the baseline's tree; None if there is none."""
        if self.results[nodeid].verdict not in (Verdict.regressed, Verdict.improved):
            return None
        found = self.baseline(nodeid)
        known = found.python if isinstance(found, Baseline) else None
        return None if known is None else known.how

    def attribute(self, nodeid: str, tree: CallTree, body: str) -> None:
        """Know what a test is made of by Python function: to say what changed, and to store it."""
        found, folded = self.baseline(nodeid), tree.fold()
        self._trees[nodeid] = folded
        result = replace(self.results[nodeid], tree=folded, tree_is_new=True)
        if isinstance(found, Baseline) and result.delta is not None:
            blame = blame_test(nodeid, found, tree, body)
            result = replace(result, python=blame)
        self.results[nodeid] = result

    def _ledger(self, baseline: Baseline) -> tuple[Entry, ...]:
        """That of the baseline before, and this run's reason."""
        found = self.baseline(baseline.nodeid)
        old = found if isinstance(found, Baseline) else None
        path = self.store.path(baseline.nodeid)
        ledger = ledger_beside(path, baseline.nodeid) if old is None else old.ledger
        if not self.reason:
            return ledger
        before = None if old is None else old.compared_ir
        return add_entry(ledger, Entry(before, baseline.compared_ir, self.reason, self.commit))

    def jumps(self, above: Fraction) -> list[TestResult]:
        """Baselines to be stored that move a count by more than this share, the largest first."""
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
        # what any test of this run has shown to be noise, now or when its baseline was made
        known = self.baselines.noise | self._moving
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
                baseline = to_baseline(measurement, self.environment, known)
                ledger = self._ledger(baseline)
                tree, body = self._trees.get(nodeid), self.bodies.get(nodeid, "")
                baseline = replace(
                    baseline, python=tree, ledger=ledger, body=body, formerly=result.formerly
                )
                if self.shard is not None:
                    self.shard.add(measurement)
                written = self.store.write(baseline, update.add, update.remove)
                if written and self.baselines.have_changed(nodeid):
                    raise changed_meanwhile(self.store.path(nodeid))
                # not written, and yet not what it was: another update of the same code has stored it
                written = written or result.verdict is not Verdict.unchanged
                stored[nodeid] = replace(stored_result(result, baseline), written=written)
        if any(result.written for result in stored.values()):
            self.store.mark_profiles(update.add)
        return stored

    def failing(self) -> list[TestResult]:
        """The results that fail the run."""
        return self.policy.failing(self.results.values())

    def compared(self) -> int:
        """The number of tests compared with a baseline of this environment."""
        return sum(
            result.delta is not None or (result.baseline_ir is not None and not result.differences)
            for result in self.results.values()
        )

    def stale(self, cause_of: Callable[[str], Cause | None], limit: Limit) -> list[Path]:
        """Record baselines whose test is gone, or not measured any more; returns their files."""
        gone = []
        for path, owner in self.store.list(self.baselines.paths()):  # of what was read, it is there
            cause = cause_of(owner) if isinstance(owner, str) else None
            if isinstance(owner, str) and cause is not None:
                if cause is not Cause.uncollected:
                    gone.append(path)
                stale = TestResult(owner, Verdict.stale, None, None, None, limit, cause=cause)
                self.results[owner] = stale
        return gone


def _urgency(result: TestResult) -> tuple[bool, Fraction]:
    """Sort key: regressed tests first, then by the size of the change."""
    return result.verdict is Verdict.regressed, abs(result.delta or Fraction(0))
