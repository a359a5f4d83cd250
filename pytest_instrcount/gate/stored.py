"""Two baselines of one test against each other, as a measurement is held against its baseline."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from pytest_instrcount.counts.work import added_work
from pytest_instrcount.gate.blamed import blame_test
from pytest_instrcount.gate.cause import cause_of
from pytest_instrcount.gate.compare import (
    Difference,
    Gated,
    differing,
    differing_facts,
    function_deltas,
    gate_layouts,
    other_packages,
    way_of,
)
from pytest_instrcount.gate.gate import Verdict, judge_counts
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import TestResult, with_gated, with_layouts
from pytest_instrcount.gate.store.schema import Baseline


def compare_stored(old: Baseline, new: Baseline, limit: Limit) -> TestResult:
    """The change of a test between two baselines, and its cause.

    Each was denoised for itself: what the one took for noise and the other did not is part of the
    growth. So no less is told apart than the coarser of the two tells.
    """
    known = old.denoised if new.denoised is not None else None
    differences = _differences(old, new)
    lost = old.lost or new.lost
    result = TestResult(
        nodeid=new.nodeid,
        verdict=Verdict.incomparable,
        ir=new.ir,
        baseline_ir=old.ir,
        delta=None,
        limit=limit,
        calls=new.calls,
        tree=old.python,
        differences=differences,
        cause=cause_of(differences) if differences else None,
        packages_changed=() if lost else other_packages(old, new),
    )
    if known is not None:
        result = with_layouts(result, known, old.calls)
    if differences:
        return result
    gated = _gated(old, new)
    if known is not None:
        result = with_gated(result, gated)
    return replace(
        result,
        verdict=judge_counts(gated, limit),
        delta=gated.fraction,
        functions=() if lost else function_deltas(old, new),
        work=(
            added_work(old.work, old.calls, new.work, new.calls)
            if old.inclusive and new.inclusive
            else ()
        ),
        python=blame_test(new.nodeid, old, new.python, new.body),
    )


def _differences(old: Baseline, new: Baseline) -> tuple[Difference, ...]:
    """Why they cannot be compared: facts of the environment, and how they were measured."""
    rules = [
        {} if each is None else {"rules": str(each.noise.rules)}
        for each in (old.denoised, new.denoised)
    ]
    return (
        *differing_facts(old.environment, new.environment),
        *differing(way_of(old), way_of(new)),
        *(differing(*rules) if all(rules) else ()),
    )


def _gated(old: Baseline, new: Baseline) -> Gated:
    """The counts that decide, of the layouts that are in the two baselines."""
    before, after = old.denoised, new.denoised
    if before is None or after is None:
        return Gated(Fraction(old.total_ir, old.calls), Fraction(new.total_ir, new.calls))
    gated = gate_layouts(before, old.calls, after, new.calls)
    return replace(gated, floor=max(before.floor, after.floor))
