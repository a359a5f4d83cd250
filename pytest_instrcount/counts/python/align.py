"""Two trees of one test in the same words: what was renamed, moved or merged in between.

A function that is gone and one that is new are one function if they do the same in the same place: they
have the same name in another file or class, or they have a caller in common, are called as often, and call
the same functions; if there are none, they have several callers, or cost about as much. Two that are both
in their sources are two. So a rename hides no cause behind "before never".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction

from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.moved import move
from pytest_instrcount.counts.python.source import first_lines, where_installed
from pytest_instrcount.counts.python.tree import CallTree, Path

#: Names that say nothing of what a function does; with them go all in angle brackets.
_COMMON = frozenset(
    {"__call__", "__enter__", "__exit__", "__init__", "__new__", "inner", "wrapper"}
)
_WITHIN = ".<locals>."
#: So many are looked at on each side, those that cost most.
_MOST = 200
#: The least share of what both call, and of what the dearer one costs, that two must have in common.
_ALIKE = Fraction(1, 2)
_NOT = Fraction(0)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Aligned:
    """An old tree in the words of a new one; what it costs is the same."""

    tree: CallTree
    #: name in the new tree -> names that it had in the old one
    renamed: Mapping[str, tuple[str, ...]]
    #: what stands between others now: path -> calls that it has in the tree, of no cost
    between: Mapping[Path, int]
    #: the old tree with new names, each branch where it was
    unmoved: CallTree = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Role:
    """The work of a function in a tree, per call of the test."""

    callers: frozenset[str]
    called: frozenset[str]
    calls: Fraction
    inclusive: Fraction


def align(old: CallTree, new: CallTree) -> Aligned:
    """Give what was renamed its new name, and put what was moved where it is now.

    >>> old = CallTree("trampolines", 1, {("t",): Row(9, 1), ("t", "a.py:f"): Row(70, 2)})
    >>> new = CallTree("trampolines", 1, {("t",): Row(9, 1), ("t", "b.py:f"): Row(90, 2)})
    >>> aligned = align(old, new)
    >>> aligned.tree.nodes[("t", "b.py:f")], aligned.renamed
    (Row(ir=70, calls=2), {'b.py:f': ('a.py:f',)})
    """
    before, after = _roles(old), _roles(new)
    names: dict[str, str] = {}
    if after.keys() - before.keys():
        defined = _defined(before.keys() ^ after.keys(), new)
        # who was renamed is known as a caller, and as called, from then on
        while found := dict(_pairs(_renamed_roles(before, names), after, defined)):
            names |= found
            names |= _inner(before.keys(), after.keys(), names)
        names |= _merged(before, after, names, defined)
    renamed: dict[str, tuple[str, ...]] = {}
    for gone, fresh in sorted(names.items()):
        renamed[fresh] = (*renamed.get(fresh, ()), gone)
    unmoved = _rename(old, names)
    moved = move(unmoved, new)
    return Aligned(moved.tree, renamed, moved.between, unmoved)


def _defined(names: Set[str], new: CallTree) -> Set[str]:
    """Those whose source of today still defines them: of two, none is the other with another name."""
    paths = {name.rpartition(":")[0]: path for name, (path, _) in new.places.items()}
    found = set()
    for name in names:
        file, _, qualname = name.rpartition(":")
        path = paths.get(file) or where_installed(file)
        if path and first_lines(path, qualname):
            found.add(name)
    return found


def _inner(before: Set[str], after: Set[str], names: Mapping[str, str]) -> dict[str, str]:
    """Functions within those that were renamed."""
    found: dict[str, str] = {}
    fresh = after - before
    for name in sorted(before - after - names.keys(), key=len):
        outer, _, rest = name.rpartition(_WITHIN)
        new = f"{found.get(outer, names.get(outer))}{_WITHIN}{rest}"
        if new in fresh:
            found[name] = new
    return found


def _roles(tree: CallTree) -> dict[str, _Role]:
    callers: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    for path in tree.inclusive:
        caller = () if tree.is_itself(path) else path[-2:-1]
        callers.setdefault(path[-1], set()).update(caller)
        called.setdefault(path[-1], set())
        for each in caller:
            called.setdefault(each, set()).add(path[-1])
    return {
        name: _Role(
            frozenset(callers[name]),
            frozenset(called[name]),
            Fraction(cost.calls, tree.counted),
            Fraction(cost.inclusive, tree.counted),
        )
        for name, cost in tree.functions().items()
    }


def _renamed_roles(roles: Mapping[str, _Role], names: Mapping[str, str]) -> dict[str, _Role]:
    def new(known: Collection[str]) -> frozenset[str]:
        return frozenset(names.get(name, name) for name in known)

    return {
        names.get(name, name): replace(role, callers=new(role.callers), called=new(role.called))
        for name, role in roles.items()
    }


def _pairs(
    old: Mapping[str, _Role], new: Mapping[str, _Role], defined: Set[str]
) -> Iterator[tuple[str, str]]:
    """Gone and new, where they are one; the most alike first."""
    # what is called that is gone or new itself says nothing: it may be one function, too
    both = old.keys() & new.keys()
    gone = {name: _of(old[name], both) for name in _dearest(old.keys() - both, old)}
    fresh = {name: _of(new[name], both) for name in _dearest(new.keys() - both, new)}
    alone = _alone(gone.values()) & _alone(fresh.values())
    alike = (
        (-_likeness(first, known, second, role, alone), first, second)
        for second, role in fresh.items()
        for first, known in gone.items()
        if not {first, second} <= defined
    )
    for _, first, second in sorted(each for each in alike if each[0]):
        if first in gone and second in fresh:
            yield first, second
            del gone[first], fresh[second]


def _merged(
    old: Mapping[str, _Role],
    new: Mapping[str, _Role],
    names: Mapping[str, str],
    defined: Set[str],
) -> dict[str, str]:
    """Functions that are still missing, each with the one that now does its work: two or more were merged."""
    found: dict[str, str] = {}
    now = _renamed_roles(old, names)
    left = _dearest(now.keys() - new.keys(), now)
    known = {fresh: old[gone].inclusive for gone, fresh in names.items()}
    fresh = known.keys() | (new.keys() - old.keys())
    for name in _dearest(fresh, new):
        role, cost = new[name], known.get(name, Fraction(0))
        parts = []
        callers = {*role.callers, name}
        for gone in left:
            part = now[gone]
            if (
                {gone, name} <= defined
                or part.calls != role.calls
                or callers.isdisjoint(part.callers)
            ):
                continue
            if _ratio(cost + part.inclusive, role.inclusive) > _ratio(cost, role.inclusive):
                parts.append(gone)
                cost += part.inclusive
        if _ratio(cost, role.inclusive) >= _ALIKE and len(parts) + (name in known) > 1:
            found |= dict.fromkeys(parts, name)
            left = [gone for gone in left if gone not in parts]
    return found


def _dearest(names: Collection[str], roles: Mapping[str, _Role]) -> list[str]:
    return sorted(names, key=lambda name: (-roles[name].inclusive, name))[:_MOST]


def _place(role: _Role) -> tuple[frozenset[str], Fraction]:
    """Who calls it, and how often."""
    return role.callers, role.calls


def _alone(roles: Iterable[_Role]) -> Set[object]:
    """Places where one function is called, and more than once."""
    return {each for each, n in Counter(map(_place, roles)).items() if n == 1 < each[1]}


def _of(role: _Role, known: Collection[str]) -> _Role:
    return replace(role, called=role.called.intersection(known))


def _same_body(first: str, second: str) -> bool:
    """True if both have one name, in whatever file and class, that says what they do."""
    body = _body(first)
    return body == _body(second) and body not in _COMMON and not body.startswith("<")


def _in_common(first: frozenset[str], second: frozenset[str]) -> Fraction:
    """Which share of all is in both; 1 if there is none."""
    every = first | second
    return Fraction(len(first & second), len(every)) if every else Fraction(1)


def _likeness(
    first: str, known: _Role, second: str, role: _Role, alone: Container[object]
) -> Fraction:
    """The similarity of two functions; 0 if they are unrelated."""
    same_body = _same_body(first, second)
    if same_body or known.calls == role.calls:
        taken = _place(known) == _place(role) in alone
        return _likeness_of_roles(known, role, same_body=same_body, taken=taken)
    return _NOT


def _likeness_of_roles(known: _Role, role: _Role, *, same_body: bool, taken: bool) -> Fraction:
    # the same callers, or both are where a test begins
    here = _in_common(known.callers, role.callers) > 0
    called = _in_common(known.called, role.called)
    size = _ratio(known.inclusive, role.inclusive)
    alike = called >= _ALIKE
    if same_body:
        return 3 + called + size if here or (known.called and alike) else _NOT
    if not alike or not here:
        return _NOT
    everywhere = known.callers == role.callers and len(role.callers) > 1
    some = known.called & role.called
    return called + size if everywhere or taken or some or size >= _ALIKE else _NOT


def _body(name: str) -> str:
    body = name.rpartition(":")[2].rpartition(".")[2]
    # code that is generated is often numbered
    return _NUMBER.sub("", body) if name.startswith("<") else body


def _ratio(first: Fraction, second: Fraction) -> Fraction:
    largest = max(first, second)
    return min(first, second) / largest if largest > 0 else Fraction(1)


def _rename(tree: CallTree, names: Mapping[str, str]) -> CallTree:
    nodes: dict[Path, Row] = {}
    for path, row in tree.nodes.items():
        new = tuple(names.get(name, name) for name in path)
        # what called what it was merged with makes no call of it now
        place = tuple(
            name
            for n, name in enumerate(new)
            if not n or new[n - 1] != name or path[n - 1] == path[n]
        )
        called = len(new) < 2 or new[-1] != new[-2] or path[-1] == path[-2]
        before = nodes.get(place, Row(0, 0))
        calls = row.calls if called else 0
        # of two that were merged, one is called where both were
        calls = max(before.calls, calls) if path[-1] in names else before.calls + calls
        nodes[place] = Row(before.ir + row.ir, calls)
    return CallTree(tree.how, tree.counted, nodes)
