"""Functions of a traced test that were renamed: gone and new, with the same place among the others. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from difflib import SequenceMatcher
from itertools import count
from typing import TypeAlias

from pytest_instrcount.gate.store.calls import Edges, Uses

#: Whom a function calls and is called by: direction, the other, calls and resumes.
_Side: TypeAlias = tuple[str, str, Uses]
_Role: TypeAlias = tuple[_Side, ...]
#: A function among all others, and among its callers alone.
_Roles: TypeAlias = tuple[_Role, _Role]
#: So many of equal choices are looked at.
_MOST = 50
#: Of the second function of a name, and of later ones; they are in the order of their lines.
_NUMBER = re.compile(r"#[0-9]+$")
#: Behind an old name that may stand for another function now.
_OLD = "\0"
#: In the place of a function that is gone or new itself, and of the function that is looked at.
_SOME, _ITSELF = "?", "="


def find_renames(old: Edges, new: Edges) -> dict[str, str]:
    """Name in the old table -> name in the new one, of functions that were renamed or moved.

    Those that share a name, as lambdas do, are looked at anew where there are more or fewer of them
    now. Of a pair callers, callees and counts are the same; of one that was moved to another module
    under its own name, callers and their counts are enough.

    >>> old = {("", "t"): (1, 0), ("t", "m:f"): (3, 0)}
    >>> find_renames(old, {("", "t"): (1, 0), ("t", "m:g"): (3, 0)})
    {'m:f': 'm:g'}
    """
    after = _sides(new)
    shared = _renumbered(_sides(old), after)
    before = _sides(renamed_edges(old, {name: name + _OLD for name in shared}))
    gone, fresh = before.keys() - after.keys(), after.keys() - before.keys()
    found: dict[str, str] = {}
    # who was renamed is known as a caller, and as called, from then on
    while len(found) < min(len(gone), len(fresh)):
        words = {name: name for name in before.keys() & after.keys()} | found
        known = {name: name for name in words.values()}
        left = {name: _roles(name, before[name], words) for name in gone - found.keys()}
        taken = set(found.values())
        right = {name: _roles(name, after[name], known) for name in fresh - taken}
        pairs = _matches(left, right)
        if not pairs:
            break
        found |= pairs
    return _with_places(found, shared, after)


def _renumbered(before: Iterable[str], after: Iterable[str]) -> set[str]:
    """Old names that functions share of which there are more or fewer now."""
    was, is_ = (Counter(_NUMBER.sub("", name) for name in names) for names in (before, after))
    more = {name for name in was if is_[name] not in (0, was[name])}
    return {name for name in before if _NUMBER.sub("", name) in more}


def _with_places(
    found: Mapping[str, str], shared: Set[str], after: Iterable[str]
) -> dict[str, str]:
    """The pairs by their old names; what was left keeps its name, or gets one that is free."""
    pairs = {name.removesuffix(_OLD): other for name, other in found.items()}
    left = shared - pairs.keys()
    taken = {*pairs.values(), *left, *after}
    for name in sorted(left & set(pairs.values())):
        numbers = (f"{_NUMBER.sub('', name)}#{n}" for n in count(2))
        pairs[name] = next(each for each in numbers if each not in taken)
        taken.add(pairs[name])
    return dict(sorted((name, other) for name, other in pairs.items() if name != other))


def renamed_edges(edges: Edges, names: Mapping[str, str]) -> Edges:
    """The edges under new names.

    >>> renamed_edges({("t", "m:f"): (3, 0)}, {"m:f": "m:g"})
    {('t', 'm:g'): (3, 0)}
    """
    return {
        (names.get(caller, caller), names.get(callee, callee)): uses
        for (caller, callee), uses in edges.items()
    }


def _sides(edges: Edges) -> dict[str, list[_Side]]:
    found: dict[str, list[_Side]] = defaultdict(list)
    for (caller, callee), uses in edges.items():
        found[callee].append(("by", caller, uses))
        if caller:
            found[caller].append(("of", callee, uses))
    return found


def _roles(name: str, sides: Collection[_Side], words: Mapping[str, str]) -> _Roles:
    """The function among the others, and what its callers alone say of it."""

    def word(other: str) -> str:
        return _ITSELF if other == name else words.get(other, _SOME if other else "")

    whole = tuple(sorted((way, word(other), uses) for way, other, uses in sides))
    return whole, tuple(side for side in whole if side[0] == "by")


def _matches(left: Mapping[str, _Roles], right: Mapping[str, _Roles]) -> dict[str, str]:
    """The surest pairs that there are: first those of one name, at last those whose names are alike."""
    choices: dict[object, list[str]] = defaultdict(list)
    for name in sorted(right):
        whole, by = right[name]
        for place in (whole, (_body(name), whole), (_body(name), by)):
            choices[place].append(name)
    rivals = Counter(whole for whole, _ in left.values())

    def nearest(name: str, place: object) -> str:
        return max(choices[place][:_MOST], key=lambda other: _likeness(name, other))

    def single(name: str) -> object:
        whole = left[name][0]
        return whole if rivals[whole] == len(choices.get(whole, ())) == 1 else None

    places: tuple[Callable[[str], object], ...] = (
        lambda name: (_body(name), left[name][0]),
        single,
        lambda name: (_body(name), left[name][1]),
        lambda name: left[name][0],
    )
    for find in places:
        pairs = {n: nearest(n, find(n)) for n in sorted(left, reverse=True) if find(n) in choices}
        if pairs:
            # where two have chosen one, the first has it
            return {name: other for other, name in {b: a for a, b in pairs.items()}.items()}
    return {}


def _likeness(name: str, other: str) -> float:
    return SequenceMatcher(None, name, other, autojunk=False).ratio()


def _body(name: str) -> str:
    return _NUMBER.sub("", name.removesuffix(_OLD).partition(":")[2])
