"""Measurement x Baseline -> what there is to judge. Exact: totals stay integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias

from pytest_instrcount.callgrind.parse import Row
from pytest_instrcount.gate.baseline import Baseline, Found, Missing
from pytest_instrcount.gate.measurement import Measurement, per_call
from pytest_instrcount.gate.rules import fold_rows, needed_by_rules

#: What stands for a fact or a package that one of the two sides does not have.
ABSENT = "(none)"

#: Name, value in the baseline, value now.
Difference: TypeAlias = tuple[str, str, str]


class Counted(Protocol):
    """What has a count: a Measurement or a Baseline."""

    @property
    def total_ir(self) -> int: ...
    @property
    def calls(self) -> int: ...


@dataclass(frozen=True, slots=True)
class GatedCount:
    """The count that decides: ``total`` instructions over ``calls`` calls."""

    total: int
    calls: int

    @property
    def ir(self) -> int:
        """Instructions per call, rounded half up."""
        return per_call(self.total, self.calls)

    @property
    def exact(self) -> Fraction:
        """Instructions per call, unrounded."""
        return Fraction(self.total, self.calls)


def gated(counted: Counted) -> GatedCount:
    """The count of a measurement or a baseline that the gate and all deltas use.

    It is the raw total, and the one place to change when counts are denoised.
    """
    return GatedCount(counted.total_ir, counted.calls)


@dataclass(frozen=True, slots=True)
class FunctionDelta:
    """How one function's own count and calls changed; all numbers per call of the test."""

    name: str
    #: self instructions now minus before
    ir: Fraction
    calls_before: Fraction
    calls_after: Fraction


@dataclass(frozen=True, slots=True)
class New:
    """There is no baseline."""


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
    #: growth of the gated count per call, of the old one; None: from 0 to more, no fraction says it
    fraction: Fraction | None
    #: packages whose versions differ, sorted by name
    packages_changed: tuple[Difference, ...]
    #: functions that changed, the largest change first
    function_deltas: tuple[FunctionDelta, ...]


Comparison: TypeAlias = New | Incomparable | Delta


def compare(
    measurement: Measurement, baseline: Missing | Found, environment: Mapping[str, str]
) -> Comparison:
    """Compare a measurement, made in ``environment``, with the stored baseline.

    Any fact that differs, or that one side lacks, makes them incomparable, and so does another
    warm-up or isolation. Packages never do, nor does the number of calls: counts are per call.

    >>> measurement = Measurement("t.py::test_a", 100, 1, 20, "fork", {}, {})
    >>> compare(measurement, Missing(), {"valgrind": "3.19.0"})
    New()
    """
    if isinstance(baseline, Missing):
        return New()
    old = baseline.baseline
    differences = differing(old.environment, environment) + differing(_way(old), _way(measurement))
    if differences:
        return Incomparable(differences)
    return Delta(
        old=old,
        new=measurement,
        fraction=growth(gated(old), gated(measurement)),
        packages_changed=differing(old.packages, measurement.packages),
        function_deltas=_function_deltas(old, measurement),
    )


def _way(counted: Baseline | Measurement) -> dict[str, str]:
    return {"isolation": counted.isolation, "warmup": str(counted.warmup)}


def growth(old: GatedCount, new: GatedCount) -> Fraction | None:
    """Growth per call as a fraction of the old count; None if the old count is 0 and the new not.

    >>> growth(GatedCount(1000, 10), GatedCount(1010, 10))
    Fraction(1, 100)
    """
    if not old.total:
        return None if new.total else Fraction(0)
    return new.exact / old.exact - 1


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


def _function_deltas(old: Baseline, new: Measurement) -> tuple[FunctionDelta, ...]:
    # The baseline folded its small rows, so fold here too. A row that has just become large enough
    # for a line of its own seems to grow from 0; it was below 0.01 % and "(other)" balances it.
    rows = fold_rows(new.rows, new.total_ir, lambda name: name in old.rows or needed_by_rules(name))
    absent = Row(0, 0)
    found = []
    for name in old.rows.keys() | rows.keys():
        before, after = old.rows.get(name, absent), rows.get(name, absent)
        delta = FunctionDelta(
            name=name,
            ir=Fraction(after.ir, new.calls) - Fraction(before.ir, old.calls),
            calls_before=Fraction(before.calls, old.calls),
            calls_after=Fraction(after.calls, new.calls),
        )
        if delta.ir or delta.calls_before != delta.calls_after:
            found.append(delta)
    return tuple(sorted(found, key=lambda delta: (-abs(delta.ir), delta.name)))
