"""Budgets: what a test may cost whatever its baseline says, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from pytest_instrcount.gate.limit import LARGEST
from pytest_instrcount.gate.scaling import Growth, parse_growth, parse_sizes

_CEILING = re.compile(r"(?P<number>[0-9][0-9_,]{0,30})\s*(?:ir)?", re.ASCII | re.IGNORECASE)
_SHARE = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?P<percent>%)?", re.ASCII)
_WRITE_CEILING = 'write instructions per call, a whole number like 20_000 or "20000ir"'
_WRITE_RATIO = 'write the id of a test and a share of its count, like ("test_other", 0.5)'


@dataclass(frozen=True, slots=True)
class Ratio:
    """At most this share of what another test costs."""

    #: as the marker names it: a whole id, or an end of one
    other: str
    #: 1/2 for 0.5 or "50%"
    most: Fraction


@dataclass(frozen=True, slots=True)
class Budget:
    """The budgets in the marker of one test; None for each that it does not set."""

    #: instructions per call
    max_ir: int | None = None
    max_ratio: Ratio | None = None
    scaling: Growth | None = None
    #: the sizes of ``scaling``, or the name of the parameter that holds them
    sizes: str | tuple[int, ...] | None = None


def parse_ceiling(given: object) -> int:
    """Read a number of instructions per call, 1 or more. Raises ValueError for all else.

    >>> parse_ceiling(20_000) == parse_ceiling("20000ir") == parse_ceiling("20,000 ir") == 20000
    True
    """
    if isinstance(given, str):
        match = _CEILING.fullmatch(given.strip())
        given = int(re.sub("[_,]", "", match["number"])) if match else None
    if type(given) is not int or not 1 <= given <= LARGEST:
        raise ValueError(_WRITE_CEILING)
    return given


def parse_ratio(given: object) -> Ratio:
    """Read a test and a share of what it costs. Raises ValueError for all else.

    >>> parse_ratio(("test_slow", "50%")) == parse_ratio(["test_slow", 0.5])
    True
    """
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ValueError(_WRITE_RATIO)
    other, share = given
    if not isinstance(other, str) or not other.strip():
        raise ValueError(_WRITE_RATIO)
    if isinstance(share, bool) or not isinstance(share, (int, float, str, Fraction)):
        raise ValueError(_WRITE_RATIO)
    if isinstance(share, Fraction):
        most = share
    else:
        # float.__repr__: the digits that the user typed
        text = float.__repr__(share) if isinstance(share, float) else str(share).strip()
        match = _SHARE.fullmatch(text)
        if match is None:
            raise ValueError(_WRITE_RATIO)
        most = Fraction(match["number"]) / (100 if match["percent"] else 1)
    if most <= 0:
        raise ValueError(_WRITE_RATIO)
    return Ratio(other.strip(), most)


#: Argument of the marker -> what reads it.
BUDGET_ARGUMENTS: Mapping[str, Any] = {
    "max_ir": parse_ceiling,
    "max_ratio": parse_ratio,
    "scaling": parse_growth,
    "sizes": parse_sizes,
}


def is_named(nodeid: str, name: str) -> bool:
    """True if a name means this test: its whole id, or an end of it, with or without parameters.

    >>> [is_named("t/test_a.py::TestB::test_c[1]", each) for each in ("test_c", "TestB::test_c[1]")]
    [True, True]
    >>> [is_named("t/test_a.py::test_c[1]", each) for each in ("c", "test_c[2]", "test_a.py")]
    [False, False, False]
    """
    if name == nodeid:
        return True
    whole = nodeid if "[" in name else nodeid.partition("[")[0]
    if not whole.endswith(name):
        return False
    before = whole[: len(whole) - len(name)]
    return not before or before.endswith("::") or (before.endswith("/") and "::" in name)


# What became of them. Counts are raw, per call and exact: a test without a baseline has no others.


@dataclass(frozen=True, slots=True)
class CeilingResult:
    """One test and its ``max_ir``."""

    nodeid: str
    ir: Fraction
    most: int

    @property
    def kept(self) -> bool:
        """Exactly at the ceiling is not above it."""
        return self.ir <= self.most


@dataclass(frozen=True, slots=True)
class RatioResult:
    """One test and its ``max_ratio``, both counted in this run."""

    nodeid: str
    ir: Fraction
    #: id of the other test
    other: str
    other_ir: Fraction
    most: Fraction

    @property
    def kept(self) -> bool:
        """Exactly the share is not more."""
        return self.ir <= self.most * self.other_ir


@dataclass(frozen=True, slots=True)
class ScalingResult:
    """One test at all its sizes, and its ``scaling``."""

    #: id of the test at the largest size
    nodeid: str
    #: size -> count, the smallest first
    counts: Mapping[int, Fraction]
    growth: Growth
    allowed: Growth

    @property
    def kept(self) -> bool:
        """A better class is well."""
        return self.growth <= self.allowed


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A budget of a test that has passed, and could not be held against it."""

    nodeid: str
    #: the argument of the marker
    budget: str
    #: the word in brackets
    slug: str
    why: str
    fix: str

    @property
    def kept(self) -> bool:
        """A gate that cannot tell must not pass."""
        return False


BudgetResult: TypeAlias = CeilingResult | RatioResult | ScalingResult | Unjudged


def budget_name(result: BudgetResult) -> str:
    """The argument of the marker.

    >>> budget_name(CeilingResult("t.py::a", Fraction(10), 20))
    'max_ir'
    """
    if isinstance(result, Unjudged):
        return result.budget
    names = {CeilingResult: "max_ir", RatioResult: "max_ratio", ScalingResult: "scaling"}
    return names[type(result)]
