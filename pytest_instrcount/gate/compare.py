"""Measurement x Baseline -> what there is to judge. Exact: totals stay integers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from pytest_instrcount.counts.denoised import Denoised, denoise_layouts
from pytest_instrcount.counts.fold import fold_rows, has_rule
from pytest_instrcount.counts.growth import ends_of_growth, grown, left_open
from pytest_instrcount.counts.measurement import Counted, Measurement
from pytest_instrcount.counts.noise import UNTOLD
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.rules import RULES_VERSION
from pytest_instrcount.counts.work import added_work
from pytest_instrcount.gate.store.schema import HASHED, Baseline, hashed

#: What stands for a fact or a package that one of the two sides does not have.
ABSENT = "(none)"

#: From so much of the test on, and so many widths of the range of either side, no more layouts are
#: needed to believe that noise has grown.
_CLEAR, _CLEAR_WIDTHS = Fraction(1, 100), 3

#: Name, value in the baseline, value now.
Difference: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Gated:
    """The two numbers that the gate compares: the baseline's mean raw count, without and with the growth."""

    #: instructions per call, unrounded
    old: Fraction
    new: Fraction
    #: growth up to this fraction is no change; 0 where raw counts are compared
    floor: Fraction = Fraction(0)
    #: kind of noise -> what it has grown by, in instructions per call
    noise: Mapping[str, Fraction] = field(default_factory=dict)
    #: the least and the most that may have grown per call, were nothing of it noise
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    #: whether more layouts may show that what noise seems to have grown by is noise
    is_close: bool = False
    #: how far hash seeds move dicts and sets, per call; None where no others were measured
    collisions: Fraction | None = None
    #: growth per call that may hide there, since as much was taken for none
    hidden: Fraction = Fraction(0)
    #: how far the mean moved otherwise, per call, where layouts do not agree on a change
    left_open: Fraction = Fraction(0)

    @property
    def fraction(self) -> Fraction | None:
        """Growth per call as a fraction of the old count; None if the old count is 0, the new not.

        >>> Gated(Fraction(1000, 10), Fraction(1010, 10)).fraction
        Fraction(1, 100)
        """
        if not self.old:
            return None if self.new else Fraction(0)
        return self.new / self.old - 1


def gate_counts(old: Baseline, new: Measurement) -> Gated:
    """The counts that decide; what is noise says the baseline, for both sides.

    Where the usual layout is all there is of the new side, it is held against the range of the old ones.
    """
    before = old.denoised
    if before is None:  # of a backend that has no layouts
        return Gated(Fraction(old.total_ir, old.calls), Fraction(new.total_ir, new.calls))
    profiles = new.layouts or (new.profile,)
    if new.unsteady:
        profiles = (new.profile, *new.layouts)
    return gate_layouts(before, old.calls, denoise_layouts(profiles, before.noise), new.calls)


def gate_layouts(before: Denoised, old_calls: int, after: Denoised, new_calls: int) -> Gated:
    """The counts that decide, of what is known of the layouts of both sides."""
    if UNTOLD in before.kinds or UNTOLD in after.kinds:
        before, after = before.in_total(), after.in_total()
    sides = before, old_calls, after, new_calls
    found = grown(*sides)
    mean = before.mean / old_calls
    # a range that four layouts of either side show too narrow is left by far, too
    widest = max(before.spread * mean, after.spread * after.mean / new_calls)
    unclear = max(before.detects * mean, _CLEAR * mean, _CLEAR_WIDTHS * widest)
    return Gated(
        mean,
        max(Fraction(0), mean + found.total),
        before.floor,
        found.kinds,
        ends_of_growth(*sides),
        0 < abs(found.noise) <= unclear,
        left_open=left_open(*sides, found.total),
    )


@dataclass(frozen=True, slots=True)
class FunctionDelta:
    """The change of one function's own count and calls; all numbers per call of the test."""

    name: str
    #: self instructions now minus before
    ir: Fraction
    calls_before: Fraction
    calls_after: Fraction
    #: the same with all that it called; None where the baseline does not say
    inclusive: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Incomparable:
    """The baseline is of another environment, or was made in another way."""

    #: facts that differ, then ways of measuring that do; each sorted; together never empty
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Delta:
    """Baseline and measurement of the same environment, and how they differ."""

    old: Baseline
    new: Measurement
    #: the counts that decide, and what they tell apart
    gated: Gated
    #: packages whose versions differ, sorted by name
    packages_changed: tuple[Difference, ...]
    #: functions that changed, the largest change first
    function_deltas: tuple[FunctionDelta, ...]
    #: releases and builds of CPython that differ: they are comparable if nothing has grown or shrunk
    releases: tuple[Difference, ...] = ()
    #: allocations and the like: kind, before and after per call, of what changed
    work: tuple[tuple[str, Fraction, Fraction], ...] = ()


#: None without a baseline.
Comparison: TypeAlias = "Incomparable | Delta | None"


def compare(
    measurement: Measurement, old: Baseline | None, environment: Mapping[str, str]
) -> Comparison:
    """Compare a measurement, made in ``environment``, with the stored baseline.

    Any fact that differs, or that one side lacks, makes them incomparable, and so does another
    warm-up or isolation; but for another release of CPython, if both count alike. Packages never
    do, nor does the number of calls: counts are per call.

    >>> measurement = Measurement("t.py::test_a", 100, 1, 20, "fork", {}, {})
    >>> compare(measurement, None, {"valgrind": "3.19.0"}) is None
    True
    """
    if old is None:
        return None
    elsewhere = differing_facts(old.environment, environment)
    releases = elsewhere if may_compare(old.environment, environment) else ()
    differences = () if releases else elsewhere
    differences += differing(way_of(old), way_of(measurement))
    if old.denoised is not None and old.denoised.noise.rules != RULES_VERSION:
        differences += (("rules", str(old.denoised.noise.rules), str(RULES_VERSION)),)
    if differences:
        return Incomparable((*releases, *differences))
    return Delta(
        old=old,
        new=measurement,
        gated=gate_counts(old, measurement),
        packages_changed=() if old.lost else other_packages(old, measurement),
        function_deltas=() if old.lost else function_deltas(old, measurement),
        releases=releases,
        work=(
            added_work(old.work, old.calls, measurement.work, measurement.calls)
            if old.inclusive
            else ()
        ),
    )


def way_of(counted: Counted) -> dict[str, str]:
    """The settings of a measurement that counts depend on."""
    return {"isolation": counted.isolation, "warmup": str(counted.warmup)}


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Difference, ...]:
    """The keys with other values, or on one side only, sorted.

    >>> differing({"a": "1", "b": "2"}, {"a": "1", "c": "3"})
    (('b', '2', '(none)'), ('c', '(none)', '3'))
    """
    return tuple(
        (key, old.get(key, ABSENT), new.get(key, ABSENT))
        for key in sorted(old.keys() | new.keys())
        if key not in old or key not in new or old[key] != new[key]
    )


def other_packages(
    old: Baseline | Measurement, new: Baseline | Measurement
) -> tuple[Difference, ...]:
    """Distributions of other versions, whatever letters and marks a release writes its name in."""

    def standard(packages: Mapping[str, str]) -> dict[str, str]:
        return {re.sub("[-_.]+", "-", name).lower(): packages[name] for name in packages}

    return differing(standard(old.packages), standard(new.packages))


def differing_facts(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Difference, ...]:
    """The facts of two environments that differ; of one that is known by its hash, the hash."""
    if HASHED in old or HASHED in new:
        old, new = hashed(old), hashed(new)
    return differing(old, new)


def may_compare(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """True if all that differs in two environments, if anything, is the release or the build of CPython.

    Another series of CPython, as 3.13 and 3.14, has another folder of baselines.

    >>> may_compare({"python": "3.13.1", "simd": "avx2"}, {"python": "3.13.2", "simd": "avx2"})
    True
    """
    return {name for name, _, _ in differing_facts(old, new)} <= {"python"}


def _inclusive(name: str, old: Baseline, new: Measurement | Baseline) -> Fraction | None:
    if name not in old.inclusive or not new.inclusive:
        return None
    own = new.rows[name].ir if name in new.rows else 0
    now = Fraction(new.inclusive.get(name, own), new.calls)
    return now - Fraction(old.inclusive[name], old.calls)


def function_deltas(old: Baseline, new: Measurement | Baseline) -> tuple[FunctionDelta, ...]:
    """Functions that changed, the largest change first."""
    known = old.rows
    # The baseline folded its small rows, so fold here too. A row that has just become large enough
    # for a line of its own seems to grow from 0; it was below 0.01 % and "(other)" balances it.
    rows = fold_rows(new.rows, new.total_ir, lambda name: name in known or has_rule(name))
    absent = Row(0, 0)
    found = []
    for name in known.keys() | rows.keys():
        before, after = known.get(name, absent), rows.get(name, absent)
        if (
            after.ir * old.calls == before.ir * new.calls
            and after.calls * old.calls == before.calls * new.calls
        ):
            continue
        delta = FunctionDelta(
            name=name,
            ir=Fraction(after.ir, new.calls) - Fraction(before.ir, old.calls),
            calls_before=Fraction(before.calls, old.calls),
            calls_after=Fraction(after.calls, new.calls),
            inclusive=_inclusive(name, old, new),
        )
        found.append(delta)
    return tuple(sorted(found, key=lambda delta: (-abs(delta.ir), delta.name)))
