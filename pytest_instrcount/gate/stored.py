"""Two baselines of one test against each other, as a measurement is held against its baseline."""

from __future__ import annotations

from dataclasses import replace

from pytest_instrcount.counts.python.blame import find_blame
from pytest_instrcount.counts.work import added_work
from pytest_instrcount.gate.cause import cause_of
from pytest_instrcount.gate.compare import (
    Gated,
    GatedCount,
    differing,
    function_deltas,
    gate_layouts,
    way_of,
)
from pytest_instrcount.gate.gate import Verdict, judge_counts
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import TestResult, ends_of
from pytest_instrcount.gate.store.baseline import Baseline


def compare_stored(old: Baseline, new: Baseline, limit: Limit) -> TestResult:
    """What became of a test between two baselines, and whose doing it is.

    Each was denoised for itself: what the one took for noise and the other did not is part of the
    growth. So no less is told apart than the coarser of the two tells.
    """
    differences = differing(old.environment, new.environment) + differing(way_of(old), way_of(new))
    known = None
    if old.denoised is not None and new.denoised is not None:
        known = old.denoised
        rules = str(known.noise.rules), str(new.denoised.noise.rules)
        differences += (("rules", *rules),) if rules[0] != rules[1] else ()
    result = TestResult(
        nodeid=new.nodeid,
        verdict=Verdict.incomparable,
        ir=new.ir,
        baseline_ir=old.ir,
        delta=None,
        limit=limit,
        calls=new.calls,
        spread=None if known is None else known.spread,
        ends=None if known is None else ends_of(known, old.calls),
        detects=None if known is None else known.detects,
        floor=None if known is None else known.floor,
        tree=old.python,
        differences=differences,
        cause=cause_of(differences) if differences else None,
        packages_changed=differing(old.packages, new.packages),
    )
    if differences:
        return result
    gated = _gated(old, new)
    trees = old.python, new.python
    blame = None
    if trees[0] is not None and trees[1] is not None and trees[0].how == trees[1].how:
        blame = find_blame(trees[0], trees[1])
    return replace(
        result,
        verdict=judge_counts(gated, limit),
        delta=gated.fraction,
        denoised_ir=None if known is None else gated.new.ir,
        denoised_baseline_ir=None if known is None else gated.old.ir,
        functions=function_deltas(old, new),
        work=(
            added_work(old.work, old.calls, new.work, new.calls)
            if old.inclusive and new.inclusive
            else ()
        ),
        python=blame,
    )


def _gated(old: Baseline, new: Baseline) -> Gated:
    """The counts that decide, of the layouts that are in the two baselines."""
    before, after = old.denoised, new.denoised
    if before is None or after is None:
        return Gated(GatedCount(old.total_ir, old.calls), GatedCount(new.total_ir, new.calls))
    gated = gate_layouts(before, old.calls, after, new.calls)
    return replace(gated, detects=max(before.floor, after.floor))
