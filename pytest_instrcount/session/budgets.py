"""The budgets of a run: found on its tests at collection, judged once all are counted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.config.given import markers_of
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.gate.budget import (
    Budget,
    BudgetResult,
    CeilingResult,
    RatioResult,
    ScalingResult,
    Unjudged,
    is_named,
)
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.scaling import (
    Growth,
    can_be_judged,
    default_sizes,
    find_growth,
    is_size,
    parse_growth,
    parse_sizes,
)

#: The argument of a test that is given the sizes of its marker.
SIZE = "size"


def sizes_to_give(definition: pytest.Function) -> tuple[int, ...]:
    """The sizes for the argument ``size`` of a test with ``scaling``; none if it has them already."""
    found: dict[str, object] = {}
    for mark in markers_of(definition, "instrcount"):
        for name, given in mark.kwargs.items():
            if given is not None:
                found.setdefault(name, given)
    if "scaling" not in found or SIZE in _given_together(definition, SIZE):
        return ()
    try:
        sizes = parse_sizes(found.get("sizes") or default_sizes(parse_growth(found["scaling"])))
    except Exception:  # a value can be of a class whose own code raises
        return ()  # under --instrcount the marker is said to be wrong
    return () if isinstance(sizes, str) else sizes


def _given_together(item: pytest.Item, name: str) -> set[str]:
    """The parameters that one ``parametrize`` gives values to, this one among them."""
    for mark in item.iter_markers("parametrize"):
        given = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        names = given.split(",") if isinstance(given, str) else given
        stripped = {str(each).strip() for each in names}
        if name in stripped:
            return stripped
    return set()


@dataclass(slots=True)
class _Family:
    """One test at all its sizes."""

    #: id of the test without its parameters
    function: str
    allowed: Growth
    #: size -> id
    members: dict[int, str] = field(default_factory=dict)


class _Index:
    """Tests by name, so that not all are looked through for each that names another."""

    def __init__(self, nodeids: Iterable[str]) -> None:
        self._nodeids = dict.fromkeys(nodeids)
        self._named: dict[str, list[str]] = {}
        #: in folders or files with a "[", which looks like the beginning of parameters
        self._odd = [each for each in self._nodeids if "[" in each.partition("::")[0]]
        for each in self._nodeids:
            bare, parameters = _bare(each)
            self._named.setdefault(bare, []).append(each)
            self._named.setdefault(f"{bare}[{parameters}", []).append(each)

    def find(self, name: str, nodeid: str) -> list[str]:
        """The tests that a name means: its id, else those with the parameters of ``nodeid``, else all."""
        if name in self._nodeids:
            return [name]
        bare, _ = _bare(name)
        for key in (f"{bare}[{_bare(nodeid)[1]}", bare):
            found = [each for each in self._named.get(key, ()) if is_named(each, name)]
            if found:
                return found
        return [each for each in self._odd if is_named(each, name)]


def _bare(nodeid: str) -> tuple[str, str]:
    """The name of the function, and the parameters; of the folder, where that has a "["."""
    whole, _, parameters = nodeid.partition("[")
    return whole.rpartition("::")[2], parameters


class Budgets:
    """Holds what tests were counted at against what their markers allow, baseline or none.

    ``rootpath`` is pytest's; ``command`` makes the words of a selection into what is to be typed.
    """

    def __init__(self, rootpath: Path, command: Callable[[Sequence[str]], str]) -> None:
        self._rootpath = rootpath
        self._command = command
        self._budgets: dict[str, Budget] = {}
        #: id -> id of the other test of its ratio, if it was collected
        self._others: dict[str, str] = {}
        self._families: dict[object, _Family] = {}
        self._counts: dict[str, Fraction] = {}
        #: ids of tests whose ``max_ir`` a marker of a parameter has
        self.of_parameters: set[str] = set()
        #: in the order of the tests; filled by `judge`
        self.results: list[BudgetResult] = []

    def plan(self, items: Iterable[pytest.Item], budgets: Mapping[str, Budget]) -> list[str]:
        """Take the budgets of measured tests, by id; returns what is wrong with them."""
        mistakes = []
        nodeids = {item.nodeid: item for item in items}
        index = _Index(nodeids)
        for nodeid, budget in budgets.items():
            if budget == Budget():
                continue
            self._budgets[nodeid] = budget
            marks = getattr(getattr(nodeids[nodeid], "callspec", None), "marks", ())
            ceilings = [each.kwargs.get("max_ir") for each in marks if each.name == "instrcount"]
            if any(each is not None for each in ceilings):
                self.of_parameters.add(nodeid)
            wrong = []
            if budget.max_ratio is not None:
                wrong += self._find_other(nodeid, budget.max_ratio.other, index, budgets)
            if budget.scaling is not None:
                wrong += self._add_to_family(nodeids[nodeid], budget, budget.scaling)
            elif budget.sizes is not None:
                wrong.append("sizes= says nothing without scaling=, like scaling='n log n'")
            mistakes += [f"{nodeid}: the instrcount marker: {each}" for each in wrong]
        return mistakes

    def plans(self) -> tuple[Any, ...]:
        """The result of `plan`, for `adopt` in another process."""
        families = [
            (family.function, family.allowed, family.members) for family in self._families.values()
        ]
        return self._budgets, self._others, families, self.of_parameters

    def adopt(self, plans: tuple[Any, ...]) -> None:
        """Know the budgets that another process has found."""
        self._budgets, self._others, families, self.of_parameters = plans
        self._families = dict(enumerate(_Family(*family) for family in families))

    def _find_other(
        self, nodeid: str, name: str, index: _Index, measured: Mapping[str, Budget]
    ) -> list[str]:
        found = index.find(name, nodeid)
        for nearer in (
            lambda each: each.partition("::")[0] == nodeid.partition("::")[0],
            lambda each: (
                each.partition("[")[0].rpartition("::")[0]
                == nodeid.partition("[")[0].rpartition("::")[0]
            ),
        ):
            if len(found) > 1:
                found = list(filter(nearer, found)) or found
        if not found:
            return []  # not selected, perhaps: told when it is needed
        if len(found) > 1:
            tests = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
            return [f"max_ratio: {name!r} names {len(found)} tests: {tests}; write a whole id"]
        if found == [nodeid]:
            return [f"max_ratio: {name!r} is this very test"]
        if found[0] not in measured:
            return [f"max_ratio: {found[0]} is not measured; mark it with instrcount, too"]
        self._others[nodeid] = found[0]
        return []

    def _add_to_family(self, item: Any, budget: Budget, allowed: Growth) -> list[str]:
        name = budget.sizes if isinstance(budget.sizes, str) else SIZE
        together = _given_together(item, name)
        if isinstance(budget.sizes, tuple) and together:
            return [f"sizes: {SIZE} is parametrized already; write sizes={SIZE!r}"]
        callspec = getattr(item, "callspec", None)
        if callspec is None or name not in callspec.params:
            if isinstance(budget.sizes, str):
                return [f"sizes={name!r}: the test has no parameter of that name"]
            return [f"scaling: the test takes no argument {SIZE!r}, and sizes= names no parameter"]
        value = callspec.params[name]
        if not is_size(value):
            return [f"sizes={name!r}: {value!r} is no whole number of 1 or more"]
        # each value is one object, however many tests have it; and not every value can be compared
        others = tuple(
            (each, id(other))
            for each, other in sorted(callspec.params.items(), key=lambda pair: pair[0])
            if each != name and each not in together
        )
        function = f"{item.parent.nodeid}::{item.originalname}"
        family = self._families.setdefault((function, others), _Family(function, allowed))
        family.members.setdefault(value, item.nodeid)
        return []

    def note(self, measurement: Measurement) -> None:
        """A test was counted."""
        self._counts[measurement.nodeid] = Fraction(measurement.total_ir, measurement.calls)

    def __contains__(self, nodeid: str) -> bool:
        return nodeid in self._budgets

    def judge(self, why_uncounted: Mapping[str, tuple[Cause, str]]) -> list[BudgetResult]:
        """Hold all counts against their budgets; returns the budgets that are not kept.

        ``why_uncounted``: of tests that ran, have no count, and no report that says so.
        """
        found: list[BudgetResult] = []
        for nodeid, budget in self._budgets.items():
            ir = self._counts.get(nodeid)
            if ir is not None:
                found += self._judge_test(nodeid, budget, ir)
            elif nodeid in why_uncounted:
                held = ("max_ir", budget.max_ir), ("max_ratio", budget.max_ratio)
                name = next((name for name, value in held if value is not None), "scaling")
                cause, said = why_uncounted[nodeid]
                fix = self._command([nodeid])
                if cause is Cause.skipped:
                    fix += " -o instrcount_env=NAME    # a variable it looks for"
                why = f"it was not counted: {said}"
                found.append(Unjudged(nodeid, name, "budget-uncounted", why, fix))
        for family in self._families.values():
            found += self._judge_family(family)
        self.results = found
        return [each for each in found if not each.kept]

    def _judge_test(self, nodeid: str, budget: Budget, ir: Fraction) -> Iterator[BudgetResult]:
        if budget.max_ir is not None:
            yield CeilingResult(nodeid, ir, budget.max_ir)
        if budget.max_ratio is None:
            return
        other, most = self._others.get(nodeid), budget.max_ratio.most
        other_ir = None if other is None else self._counts.get(other)
        if other is not None and other_ir is not None:
            yield RatioResult(nodeid, ir, other, other_ir, most)
            return
        name = other or budget.max_ratio.other
        why = "was not counted" if other else "was not part of this run"
        fix = self._command(self._select_both(nodeid, name))
        yield Unjudged(nodeid, "max_ratio", "ratio-unmeasured", f"{name} {why}", fix)

    def _select_both(self, nodeid: str, name: str) -> list[str]:
        file, colons, _ = name.partition("::")
        if colons and os.path.isfile(self._rootpath / file):
            return [nodeid, name]
        names = (each.partition("[")[0].rpartition("::")[2] for each in (nodeid, name))
        return ["-k", " or ".join(names)]

    def _judge_family(self, family: _Family) -> Iterator[BudgetResult]:
        counts = {
            size: self._counts[nodeid]
            for size, nodeid in sorted(family.members.items())
            if nodeid in self._counts
        }
        if not counts:
            return
        largest = family.members[max(counts)]
        if can_be_judged(counts):
            growth = find_growth(counts, family.allowed)
            yield ScalingResult(largest, counts, growth, family.allowed)
            return
        sizes = ", ".join(map(str, counts))
        why = (
            f"it needs three sizes, each at least twice the one before, and was counted at {sizes}"
        )
        fix = self._command([family.function])
        yield Unjudged(largest, "scaling", "scaling-sizes", why, fix)
