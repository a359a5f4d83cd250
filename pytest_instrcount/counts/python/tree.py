"""The cost of a test by Python function, as a tree of calls. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from pytest_instrcount.counts.profile import NOTHING, Row, add_row

#: Names from the test down to a function: who called it, and who called that.
Path: TypeAlias = tuple[str, ...]

#: How a tree was made: exact instructions through trampolines, or calls through a tracer.
TRAMPOLINES, TRACER = "trampolines", "tracer"
#: What its numbers are.
UNITS = {TRAMPOLINES: "Ir", TRACER: "calls"}

#: The file of a function and its first line.
Place: TypeAlias = tuple[str, int]

# What all paths of a tree have in functions: a file of a few bytes per row could have them deep enough
# to fill the memory. A recursion 2,800 deep has room, or 10,000 branches 400 deep.
_MOST_STEPS = 4_000_000
# Branches below 1 / _SMALL of the whole are added to what called them: a hundredth of what a limit
# of 1 % lets pass. What was folded in a baseline is not known there, and if it gets dear that is
# its caller's doing; so nothing is folded that could get so dear by an ordinary mistake.
_SMALL = 10_000


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """One function wherever it was called, over all counted calls of the test."""

    #: its own code, and the C functions that it called
    own: int
    #: with all Python functions that it called; of a recursion the outermost activation
    inclusive: int
    calls: int


@dataclass(frozen=True)
class CallTree:
    """Costs by path; immutable.

    >>> tree = CallTree("tracer", 1, {("f",): Row(3, 1), ("f", "g"): Row(4, 2)})
    >>> tree.total, tree.inclusive[("f",)], tree.functions()["g"]
    (7, 7, FunctionCost(own=4, inclusive=4, calls=2))
    """

    #: TRAMPOLINES or TRACER
    how: str
    #: over how many calls of the test the numbers are summed
    counted: int
    #: path -> own cost and calls; (..., f, f), of no cost, has the calls that f makes of itself
    nodes: Mapping[Path, Row]
    #: name -> file and first line (0: not known), where they were seen; not part of a baseline
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)

    @property
    def unit(self) -> str:
        """The unit: ``Ir`` or ``calls``."""
        return UNITS[self.how]

    @cached_property
    def total(self) -> int:
        """The cost of the whole test."""
        return sum(row.ir for row in self.nodes.values())

    def is_itself(self, path: Path) -> bool:
        """True for the place of the calls that a function makes of itself.

        >>> tree = CallTree("trampolines", 1, {("f",): Row(9, 1), ("f", "f"): Row(0, 3)})
        >>> tree.is_itself(("f",)), tree.is_itself(("f", "f"))
        (False, True)
        """
        return path[-1:] == path[-2:-1] and not self.inclusive[path]

    def runs(self, path: Path) -> int:
        """How often a function ran there: called from outside, and by itself.

        >>> CallTree("trampolines", 1, {("f",): Row(9, 1), ("f", "f"): Row(0, 3)}).runs(("f",))
        4
        """
        itself = (*path, path[-1])
        places = (path,) if self.inclusive.get(itself) else (path, itself)
        return sum(self.nodes.get(each, NOTHING).calls for each in places)

    @cached_property
    def inclusive(self) -> Mapping[Path, int]:
        """Path -> cost of the branch that begins there."""
        found: dict[Path, int] = {}
        for path in self.nodes:
            while path and path not in found:
                found[path] = 0
                path = path[:-1]
        for path, row in self.nodes.items():
            found[path] += row.ir
        for path in sorted(found, key=len, reverse=True):
            if len(path) > 1:
                found[path[:-1]] += found[path]
        return found

    @cached_property
    def children(self) -> Mapping[Path, tuple[Path, ...]]:
        """Path -> the paths right below it; those of () are where the test begins."""
        found: dict[Path, list[Path]] = {}
        for path in sorted(self.inclusive):
            found.setdefault(path[:-1], []).append(path)
        return {path: tuple(below) for path, below in found.items()}

    def levels(self, first: Sequence[Path], number: int) -> Iterator[Sequence[Path]]:
        """These paths, and what is below them, in so many levels."""
        for _ in range(number):
            yield first
            first = [child for path in first for child in self.children.get(path, ())]

    def functions(self) -> dict[str, FunctionCost]:
        """Name -> cost, added up over all places."""
        own: dict[str, int] = {}
        calls: dict[str, int] = {}
        whole: dict[str, int] = {}
        for path, row in self.nodes.items():
            name = path[-1]
            own[name] = own.get(name, 0) + row.ir
            calls[name] = calls.get(name, 0) + row.calls
        for path, ir in self.inclusive.items():
            if path[-1] not in path[:-1]:
                whole[path[-1]] = whole.get(path[-1], 0) + ir
        return {
            name: FunctionCost(own.get(name, 0), whole[name], calls.get(name, 0)) for name in whole
        }

    def fold(self, keep: Collection[Path] = ()) -> CallTree:
        """Without branches below 0.01 % of the whole: their cost becomes that of what called them.

        Paths in ``keep`` stay, however small. Calls of what is folded are forgotten. A tree that is
        too deep for `from_rows` is cut at a depth that is not: the rest is folded, too.
        """
        inclusive, least = self.inclusive, self.total
        kept: dict[Path, Row] = {}
        for path in sorted(self.inclusive):
            row = self.nodes.get(path, NOTHING)
            if row.calls and self.is_itself(path) and path[:-1] in kept:
                add_row(kept, path, row)
                continue
            while len(path) > 1 and inclusive[path] * _SMALL < least and path not in keep:
                path, row = path[:-1], Row(row.ir, 0)
            add_row(kept, path, row)
        cut = _cut(kept)
        names = {name for path in cut for name in path}
        places = {name: self.places[name] for name in names & self.places.keys()}
        return CallTree(self.how, self.counted, cut, places)

    def over(self, calls: int) -> CallTree:
        """Summed over so many calls, where one that was counted stands for all; a tracer's as it is.

        >>> CallTree("trampolines", 1, {("f",): Row(30, 2)}).over(3).nodes
        {('f',): Row(ir=90, calls=6)}
        >>> CallTree("trampolines", 5, {("f",): Row(30, 5)}).over(3).counted
        5
        """
        times = max(1, calls // self.counted) if self.how == TRAMPOLINES else 1
        nodes = {path: Row(times * row.ir, times * row.calls) for path, row in self.nodes.items()}
        return replace(self, counted=times * self.counted, nodes=nodes)

    def rows(self) -> Iterator[tuple[int, str, int, int]]:
        """Depth, name, own cost and calls, each caller before what it called: `from_rows` reads it.

        >>> list(CallTree("tracer", 1, {("f", "g"): Row(4, 2)}).rows())
        [(0, 'f', 0, 0), (1, 'g', 4, 2)]
        """
        for path in sorted(self.inclusive):
            row = self.nodes.get(path, NOTHING)
            yield len(path) - 1, path[-1], row.ir, row.calls

    @classmethod
    def from_rows(
        cls, how: str, counted: int, rows: Sequence[tuple[int, str, int, int]]
    ) -> CallTree:
        """The tree that `rows` came from. Raises ValueError for rows of none, or of one too deep."""
        if sum(max(0, row[0]) + 1 for row in rows) > _MOST_STEPS:
            raise ValueError("the tree is too deep for so many rows")
        nodes: dict[Path, Row] = {}
        path: Path = ()
        for depth, name, own, calls in rows:
            if not 0 <= depth <= len(path) or not name:
                raise ValueError(f"{name[:40]!r} stands at depth {depth} below {len(path)} others")
            path = (*path[:depth], name)
            if path in nodes:
                raise ValueError(f"{name[:40]!r} stands there twice")
            nodes[path] = Row(own, calls)
        return cls(how, counted, nodes)


def _cut(nodes: Mapping[Path, Row]) -> Mapping[Path, Row]:
    """Without what is deeper than a tree that is stored can be."""
    depths = Counter(map(len, nodes))
    steps, deepest = 0, 0
    for depth in sorted(depths):
        steps += depth * depths[depth]
        if steps > _MOST_STEPS:
            break
        deepest = depth
    else:
        return nodes
    kept: dict[Path, Row] = {}
    for path, row in nodes.items():
        place, calls = path[:deepest], row.calls if len(path) <= deepest else 0
        add_row(kept, place, Row(row.ir, calls))
    return kept
