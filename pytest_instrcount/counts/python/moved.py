"""Branches of an old tree where a new one has them: below what stands between now, and above what did. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pytest_instrcount.counts.profile import Row, add_row
from pytest_instrcount.counts.python.tree import CallTree, Path

#: So many frames may stand between two that were caller and called.
_DEEPEST = 3
#: The least part of what stands between that is a branch which was there without it.
_LARGE = Fraction(1, 4)
_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Moved:
    """An old tree in the places of a new one; what it costs is the same."""

    tree: CallTree
    #: what stands between now: path -> calls that it has in the tree, of no cost
    between: Mapping[Path, int]


def move(old: CallTree, new: CallTree) -> Moved:
    """Put branches below functions that stand between now, and above those that are gone.

    >>> old = CallTree("trampolines", 1, {("t",): Row(9, 1), ("t", "f"): Row(70, 2)})
    >>> retry = {("t", "retry"): Row(8, 2), ("t", "retry", "f"): Row(70, 2)}
    >>> move(old, CallTree("trampolines", 1, {("t",): Row(9, 1), **retry})).tree.nodes
    {('t',): Row(ir=9, calls=1), ('t', 'retry', 'f'): Row(ir=70, calls=2), ('t', 'retry'): Row(ir=0, calls=2)}
    """
    before, after = old.functions(), new.functions()
    places: dict[Path, Path] = {(): ()}
    # where the children of what the new tree lacks there go, which stays below its caller
    skipped: dict[Path, Path] = {}
    nodes: dict[Path, Row] = {}
    between: dict[Path, int] = {}
    # what is called in a place that was not called there
    others: dict[Path, list[Path]] = {}
    for path in sorted(old.inclusive):
        upper, name = path[:-1], path[-1]
        above = skipped.get(upper, places[upper])
        place = (*above, name)
        row = old.nodes.get(path, Row(0, 0))
        if place not in new.inclusive:
            place = (*places[upper], name)
            if upper not in others:
                others[upper] = _others(old.children[upper], new.children.get(above, ()))
            through, large = _between(new, others[upper], name, before)
            if above and _stood_between(old, path, new, above, is_gone=name not in after) > large:
                skipped[path] = above
            elif through:
                place = (*through, name)
                for n in range(len(above), len(through)):
                    each = through[: n + 1]
                    between[each] = max(between.get(each, 0), _calls(row, new, each, place))
        places[path] = place
        add_row(nodes, place, row)
    for path, calls in between.items():
        add_row(nodes, path, Row(0, calls))
    same = nodes.keys() == old.nodes.keys()
    return Moved(old if same else CallTree(old.how, old.counted, nodes), between)


def _others(before: Sequence[Path], after: Sequence[Path]) -> list[Path]:
    known = {path[-1] for path in before}
    return [path for path in after if path[-1] not in known]


def _stood_between(
    old: CallTree, path: Path, new: CallTree, above: Path, *, is_gone: bool
) -> Fraction:
    """The share of what a function costs that its caller calls itself now, and did not; 0 if nothing."""
    for level in old.levels(old.children.get(path, ()), _DEEPEST):
        for child in level:
            known = (*path[:-1], child[-1]) in old.inclusive
            if not known and (*above, child[-1]) in new.inclusive:
                return _share(old, child, path, _NOTHING if is_gone else _LARGE)
    return _NOTHING


def _between(
    new: CallTree, first: Sequence[Path], name: str, before: Collection[str]
) -> tuple[Path, Fraction]:
    """What stands above ``name`` now, from the ``first`` on, and the share of it that ``name`` costs.

    Nothing where nobody knows, since there are several.
    """
    found: list[Path] = []
    for level in new.levels(first, _DEEPEST):
        found = found or [path for path in level if (*path, name) in new.inclusive]
    if len(found) != 1:
        return (), _NOTHING
    [path] = found
    is_new = path in first and path[-1] not in before
    whole = path[: len(first[0])]
    share = _share(new, (*path, name), whole, _NOTHING if is_new else _LARGE)
    return (path if share else ()), share


def _share(tree: CallTree, part: Path, whole: Path, least: Fraction) -> Fraction:
    """What a branch is of another; 0 below the least."""
    share = Fraction(tree.inclusive[part], tree.inclusive[whole] or 1)
    return share if share >= least else _NOTHING


def _calls(row: Row, new: CallTree, path: Path, below: Path) -> int:
    """Calls of what stands between: to those of what is below it as they are now."""
    now, here = new.nodes.get(below), new.nodes.get(path)
    if now is None or here is None or not now.calls:
        return row.calls
    return round(Fraction(row.calls * here.calls, now.calls))
