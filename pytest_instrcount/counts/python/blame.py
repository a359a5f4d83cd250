"""Two trees of one test -> which functions' doing a change is. Pure, and exact: nothing is lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from pytest_instrcount.counts.python.align import align
from pytest_instrcount.counts.python.tree import CallTree, FunctionCost, Path

_NO_COST = FunctionCost(0, 0, 0)
_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class CalledMore:
    """Calls that a function makes more, or less, often than before; per call of the test."""

    #: what is called
    name: str
    before: Fraction
    after: Fraction
    #: what they cost, with all that they call
    cost: Fraction


@dataclass(frozen=True, slots=True)
class PythonDelta:
    """One function's doing, per call of the test.

    What a function does to a count: its own code got dearer, or it calls others more often than
    it did. What is dearer within a called function is that one's doing.
    """

    name: str
    #: how much of the change is its doing; over all functions these add up to the whole change
    self_delta: Fraction
    #: how much its own code and the C functions it called grew
    own: Fraction
    #: the same with all Python functions that it called
    inclusive: Fraction
    calls_before: Fraction
    calls_after: Fraction
    #: what it calls more or less often, the largest change first
    called: tuple[CalledMore, ...] = ()
    #: its names before: one if it was renamed or moved, more if these were merged into it
    renamed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonBlame:
    """The change by Python function."""

    #: "trampolines" or "tracer"
    how: str
    #: "Ir" or "calls"
    unit: str
    #: cost of a call of the test, before and after
    before: Fraction
    after: Fraction
    #: those that did most first, and before all others what goes where the whole test went
    functions: tuple[PythonDelta, ...]
    #: both sides, small branches folded; the old one in the words of the new one, see `align`
    old: CallTree
    new: CallTree

    @property
    def change(self) -> Fraction:
        """The growth of one call of the test."""
        return self.after - self.before

    def causes(self, *, grew: bool) -> list[PythonDelta]:
        """The causes of growth or savings, the largest first.

        What got cheaper itself, with all that it calls, comes last of what made the test dearer.
        """
        sign = 1 if grew else -1
        found = [each for each in self.functions if each.self_delta * sign > 0]
        return sorted(found, key=lambda each: each.inclusive * sign < 0)

    def chain_to(self, name: str) -> Path:
        """The callers of a function from the test down, on the path where its cost changed most."""
        chains = [path for path in self.new.inclusive if path[-1] == name and name not in path[:-1]]
        old, new = _Side(self.old), _Side(self.new)
        return max(
            chains,
            key=lambda path: (abs(new.inclusive(path) - old.inclusive(path)), path),
            default=(),
        )

    def explained(self, number: int) -> Fraction:
        """The share of the change that the first `causes` are to blame for; at most 1."""
        if not self.change:
            return Fraction(0)
        same = [each.self_delta for each in self.causes(grew=self.change > 0)]
        return min(Fraction(1), sum(same[:number], Fraction(0)) / self.change)


def find_blame(old: CallTree, new: CallTree) -> PythonBlame:
    """Compare two trees that were made in the same way.

    >>> from pytest_instrcount.counts.profile import Row
    >>> old = CallTree("trampolines", 1, {("f",): Row(10, 1), ("f", "g"): Row(50, 5)})
    >>> new = CallTree("trampolines", 1, {("f",): Row(12, 1), ("f", "g"): Row(100, 10)})
    >>> [(each.name, int(each.self_delta)) for each in find_blame(old, new).functions]
    [('f', 52), ('g', 0)]
    """
    aligned, there = align(old, new.fold()), {*old.functions()}
    old, new = aligned.tree, new.fold(aligned.tree.inclusive)
    self_delta: dict[str, Fraction] = {}
    more: dict[str, dict[str, list[Fraction]]] = {}
    before, after = _Side(old), _Side(new)
    top = sorted({*old.children.get((), ()), *new.children.get((), ())})
    pending = list(top)
    while pending:
        path = pending.pop()
        name, ratio = path[-1], _ratio(before.calls(path), after.calls(path))
        _add(self_delta, name, after.own(path) - ratio * before.own(path))
        below = {*old.children.get(path, ()), *new.children.get(path, ())}
        for child in sorted(below):
            was, now = before.calls(child), after.calls(child)
            grown = after.inclusive(child) - ratio * before.inclusive(child)
            known = path in old.inclusive and child in old.inclusive
            # new, gone, or never called as far as is known: all of it is the caller's doing
            cost = grown
            # what ran before the count began is called no times on both sides
            if known and child in new.inclusive and bool(was) == bool(now):
                average = (_ratio(was, now) - ratio) * before.inclusive(child)
                # So it is if calls that were added (or left out) are just cheaper than those that
                # there were: at their average cost the one would do more than there is, and the
                # other get as much less.
                if (
                    not min(average, _NOTHING) <= grown <= max(average, _NOTHING)
                    or grown == average
                ):
                    cost = average
                    pending.append(child)
            if cost:
                _add(self_delta, name, cost)
                told = more.setdefault(name, {}).setdefault(child[-1], [Fraction(0)] * 3)
                told[0] += was
                told[1] += now
                told[2] += cost
    return PythonBlame(
        new.how,
        new.unit,
        before.total,
        after.total,
        _deltas(self_delta, more, before, after, aligned.renamed, there),
        old,
        new,
    )


def _deltas(
    self_delta: Mapping[str, Fraction],
    more: Mapping[str, Mapping[str, list[Fraction]]],
    before: _Side,
    after: _Side,
    renamed: Mapping[str, tuple[str, ...]],
    there: Collection[str],
) -> tuple[PythonDelta, ...]:
    found = []
    for name in self_delta.keys() | before.functions.keys() | after.functions.keys():
        old, new = before.functions.get(name, _NO_COST), after.functions.get(name, _NO_COST)
        called = [CalledMore(each, *numbers) for each, numbers in more.get(name, {}).items()]
        # what stands between two others now has their calls in the aligned tree, and had none
        calls_before = old.calls if name in there or name in renamed else 0
        delta = PythonDelta(
            name=name,
            self_delta=self_delta.get(name, Fraction(0)),
            own=after.per_call(new.own) - before.per_call(old.own),
            inclusive=after.per_call(new.inclusive) - before.per_call(old.inclusive),
            calls_before=before.per_call(calls_before),
            calls_after=after.per_call(new.calls),
            called=tuple(sorted(called, key=lambda each: (-abs(each.cost), each.name))),
            renamed=renamed.get(name, ()),
        )
        differs = delta.self_delta or delta.own or delta.inclusive or delta.renamed
        if differs or delta.calls_before != delta.calls_after:
            found.append(delta)
    change = after.total - before.total
    # what got cheaper does not stand first where the whole got dearer
    return tuple(
        sorted(
            found,
            key=lambda each: (
                each.self_delta * change <= 0,
                each.inclusive * change < 0,
                -abs(each.self_delta),
                each.name,
            ),
        )
    )


class _Side:
    """A tree with its numbers per call of the test."""

    def __init__(self, tree: CallTree) -> None:
        self.tree = tree
        self.functions = tree.functions()

    @property
    def total(self) -> Fraction:
        return self.per_call(self.tree.total)

    def per_call(self, number: int) -> Fraction:
        return Fraction(number, self.tree.counted)

    def own(self, path: Path) -> Fraction:
        row = self.tree.nodes.get(path)
        return self.per_call(0 if row is None else row.ir)

    def calls(self, path: Path) -> Fraction:
        row = self.tree.nodes.get(path)
        return self.per_call(0 if row is None else row.calls)

    def inclusive(self, path: Path) -> Fraction:
        return self.per_call(self.tree.inclusive.get(path, 0))


def _ratio(before: Fraction, after: Fraction) -> Fraction:
    """The ratio of calls; 1 if it cannot be known."""
    return after / before if before and after else Fraction(1)


def _add(sums: dict[str, Fraction], name: str, number: Fraction) -> None:
    sums[name] = sums.get(name, Fraction(0)) + number
