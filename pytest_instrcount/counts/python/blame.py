"""Two trees of one test -> which functions' doing a change is. Pure, and exact: nothing is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction

from pytest_instrcount.counts.python.align import Aligned, align
from pytest_instrcount.counts.python.side import Side
from pytest_instrcount.counts.python.tree import CallTree, FunctionCost, Path

_NO_COST = FunctionCost(0, 0, 0)
_NOTHING = Fraction(0)
#: Of a change: what one in so many parts is, explains it.
_LARGE = 4
_NEARLY_ALL = Fraction(9, 10)


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
    #: a function that is as it was, with all that it names: what it does, others have it do
    kept: str = ""

    @property
    def change(self) -> Fraction:
        """The growth of one call of the test."""
        return self.after - self.before

    def causes(self, *, grew: bool) -> list[PythonDelta]:
        """The causes of growth or savings, the largest first.

        What got cheaper itself, with all that it calls, comes last of what made the test dearer. What is as it
        was stands behind others that make up a quarter of the change.
        """
        sign = 1 if grew else -1
        found = [each for each in self.functions if each.self_delta * sign > 0]
        large = any(
            each.name != self.kept and each.self_delta * sign * _LARGE >= abs(self.change)
            for each in found
        )
        kept = self.kept if large else ""
        return sorted(found, key=lambda each: (each.inclusive * sign < 0, each.name == kept))

    def chain_to(self, name: str) -> Path:
        """The callers of a function from the test down, on the path where its cost changed most."""
        chains = [path for path in self.new.inclusive if path[-1] == name and name not in path[:-1]]
        old, new = Side(self.old), Side(self.new)
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
    doings = _Doings(aligned, new.fold(aligned.tree.inclusive), there)
    before, after = doings.before, doings.after
    pending = sorted({*before.below(()), *after.below(())})
    for path in pending:
        # a thread that is started more often, by whom is not known
        often = _ratio(before.calls(path), after.calls(path))
        doings.add_own(path, (often - 1) * before.inclusive(path))
    while pending:
        pending += doings.divide(pending.pop())
    doings.settle_moved()
    return PythonBlame(
        new.how,
        new.unit,
        before.total,
        after.total,
        doings.deltas(),
        before.tree,
        after.tree,
    )


class _Doings:
    """What each function does to a count, added up over all paths."""

    def __init__(self, aligned: Aligned, new: CallTree, there: Collection[str]) -> None:
        self.before = Side(aligned.tree)
        self.after = Side(new)
        self._renamed = aligned.renamed
        self._unmoved = Side(aligned.unmoved)
        self._put_between = aligned.between
        #: of those that are not new, or a comprehension: path -> the outermost of them there, whose call it is
        self._blamed_on: dict[Path, Path] = {}
        for path in sorted(aligned.between):
            if len(path) > 1 and (
                path[-1] in there
                or path[-1] in aligned.renamed
                or path[-1].startswith(f"{path[-2]}.<locals>.<")
            ):
                self._blamed_on[path] = self._blamed_on.get(path[:-1], path)
        self._self_delta: dict[str, Fraction] = {}
        #: caller -> callee -> cost of calls, and on which paths
        self._called: dict[str, dict[str, tuple[Fraction, frozenset[Path]]]] = {}

    def add_own(self, path: Path, cost: Fraction) -> None:
        """The code of a function; if that only stands between now, its caller calls it."""
        if path in self._blamed_on:
            self.add_calls(path[:-1], path, cost)
        else:
            self._add(path[-1], cost)

    def add_calls(self, path: Path, child: Path, cost: Fraction) -> None:
        """Calls that are made more, or less, often than before."""
        if cost:
            child = self._blamed_on.get(path, self._blamed_on.get(child, child))
            *_, caller, callee = child
            self._add(caller, cost)
            called = self._called.setdefault(caller, {})
            known, paths = called.get(callee, (_NOTHING, frozenset()))
            called[callee] = known + cost, paths | {child}

    def _add(self, name: str, cost: Fraction) -> None:
        self._self_delta[name] = self._self_delta.get(name, _NOTHING) + cost

    def divide(self, path: Path) -> Iterator[Path]:
        """Divide what a function costs more into its code and calls; those that cost more themselves."""
        before, after = self.before, self.after
        ratio = _ratio(before.calls(path), after.calls(path))
        itself, below = (*path, path[-1]), {*before.below(path), *after.below(path)}
        if not (before.inclusive(itself) or after.inclusive(itself)):
            often = _ratio(before.runs(path), after.runs(path))
            grown = after.inclusive(path) - ratio * before.inclusive(path)
            cost = _cost_of_calls((often - ratio) * before.inclusive(path), grown)
            self.add_calls(path, itself, grown if cost is None else cost)
            if cost is None:
                return
            ratio, below = often, below - {itself}
        self.add_own(path, after.own(path) - ratio * before.own(path))
        for child in sorted(below):
            was, now = before.calls(child), after.calls(child)
            grown = after.inclusive(child) - ratio * before.inclusive(child)
            known = path in before and child in before and child in after
            # new, gone, or never called as far as is known: all of it is the caller's doing;
            # what ran before the count began is called no times on both sides
            cost = None
            if known and bool(was) == bool(now):
                cost = _cost_of_calls((_ratio(was, now) - ratio) * before.inclusive(child), grown)
                if cost is not None:
                    yield child
            self.add_calls(path, child, grown if cost is None else cost)

    def settle_moved(self) -> None:
        """What a function did in one place, and does in another now, is its own: a list became a generator.

        It is still called where it was, and does next to nothing there.
        """
        for caller, called in self._called.items():
            for callee, (cost, _) in list(called.items()):
                was = self.before.per_call(self.before.functions.get(callee, _NO_COST).inclusive)
                lost = -self._self_delta.get(callee, _NOTHING)
                is_new = (caller, callee) not in self._unmoved.edges
                if is_new and cost > 0 and was and lost >= was * _NEARLY_ALL:
                    del called[callee]
                    self._add(caller, -cost)
                    self._add(callee, cost)

    def deltas(self) -> tuple[PythonDelta, ...]:
        """All functions that differ, in the order of `PythonBlame.functions`."""
        there = self._unmoved.functions
        old, new = self.before.functions, self.after.functions
        found = []
        for name in self._self_delta.keys() | old.keys() | new.keys():
            was, now = old.get(name, _NO_COST), new.get(name, _NO_COST)
            called = [
                self._called_more(name, callee, cost, paths)
                for callee, (cost, paths) in self._called.get(name, {}).items()
            ]
            delta = PythonDelta(
                name=name,
                self_delta=self._self_delta.get(name, _NOTHING),
                own=self.after.per_call(now.own) - self.before.per_call(was.own),
                inclusive=self.after.per_call(now.inclusive) - self.before.per_call(was.inclusive),
                calls_before=self.before.per_call(there.get(name, _NO_COST).calls),
                calls_after=self.after.per_call(now.calls),
                called=tuple(sorted(called, key=lambda each: (-abs(each.cost), each.name))),
                renamed=self._renamed.get(name, ()),
            )
            differs = delta.self_delta or delta.own or delta.inclusive or delta.renamed
            if differs or delta.calls_before != delta.calls_after:
                found.append(delta)
        change = self.after.total - self.before.total
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

    def _called_more(
        self, caller: str, callee: str, cost: Fraction, paths: Collection[Path]
    ) -> CalledMore:
        """Calls on the paths where they cost more, or less; on all where there were none, or are none."""
        put = self.before.per_call(sum(self._put_between.get(path, 0) for path in paths))
        before = sum(map(self.before.calls, paths), _NOTHING) - put
        after = sum(map(self.after.calls, paths), _NOTHING)
        if not (before and after):
            before = self._unmoved.per_call(self._unmoved.edges.get((caller, callee), 0))
            after = self.after.per_call(self.after.edges.get((caller, callee), 0))
        return CalledMore(callee, before, after, cost)


def _cost_of_calls(average: Fraction, grown: Fraction) -> Fraction | None:
    """The part of a growth that calls at their ``average`` cost are; None if it is all of it.

    So it is if calls that were added, or left out, are just cheaper than those that there were.
    """
    is_all = min(average, _NOTHING) <= grown <= max(average, _NOTHING) and grown != average
    return None if is_all else average


def _ratio(before: Fraction, after: Fraction) -> Fraction:
    """The ratio of calls; 1 if it cannot be known."""
    return after / before if before and after else Fraction(1)
