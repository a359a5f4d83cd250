"""Profiles: counts per function and per caller, which can be added, subtracted and renamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar


class Row(NamedTuple):
    """The cost of one function: ``ir`` instructions of its own, in ``calls`` calls.

    A tuple, since thousands are made for each measurement.
    """

    #: exclusive: without the functions it called, with what was inlined into it
    ir: int
    #: from all call sites, recursive ones too; 0 if it was running before counting began
    calls: int


NOTHING = Row(0, 0)
_Key = TypeVar("_Key")


def add_row(rows: dict[_Key, Row], key: _Key, row: Row) -> None:
    """Add to what is in a table already.

    >>> rows = {"f": Row(3, 1)}
    >>> add_row(rows, "f", Row(2, 1))
    >>> rows
    {'f': Row(ir=5, calls=2)}
    """
    before = rows.get(key)
    rows[key] = row if before is None else Row(before.ir + row.ir, before.calls + row.calls)


@dataclass(frozen=True, slots=True)
class Profile:
    """Counts of one dump, or of a difference of two: then numbers can be negative.

    >>> rows = {"a.c:f": Row(7, 1), "b.c:g": Row(3, 1)}
    >>> (Profile(10, rows) - Profile(3, {"b.c:g": Row(3, 1)})).rows
    {'a.c:f': Row(ir=7, calls=1)}
    """

    #: sum of all rows, in instructions
    total: int
    #: ``file:function`` -> counts; ``???:function [object]`` where the source file is not known
    rows: Mapping[str, Row]
    #: called function -> calling function -> calls, and what they cost with all that they called;
    #: deeper levels of a recursion are merged
    callers: Mapping[str, Mapping[str, Row]] = field(default_factory=dict)
    #: function -> instructions of its outermost activations with all that they called
    inclusive: Mapping[str, int] = field(default_factory=dict)

    def __sub__(self, other: Profile) -> Profile:
        """Row by row; rows that become (0, 0) vanish."""
        if not isinstance(other, Profile):
            return NotImplemented
        # the other one is small, as a rule: what it has nothing of is not looked at
        callers = dict(self.callers)
        for name, made in other.callers.items():
            _put(callers, name, _less(callers.get(name, {}), made))
        inclusive = dict(self.inclusive)
        for name, cost in other.inclusive.items():
            _put(inclusive, name, inclusive.get(name, 0) - cost)
        return Profile(self.total - other.total, _less(self.rows, other.rows), callers, inclusive)


def _less(rows: Mapping[str, Row], others: Mapping[str, Row]) -> dict[str, Row]:
    left = dict(rows)
    for name, other in others.items():
        row = left.get(name, NOTHING)
        _put(left, name, Row(row.ir - other.ir, row.calls - other.calls))
    return left


def _put(table: dict[str, Any], name: str, value: Any) -> None:
    """Nothing is not kept."""
    if value and value != NOTHING:
        table[name] = value
    else:
        table.pop(name, None)


def sum_profiles(profiles: Iterable[Profile]) -> Profile:
    """Add up, row by row; nothing at all is a total of 0.

    >>> sum_profiles([Profile(7, {"a.c:f": Row(7, 1)}), Profile(5, {"a.c:f": Row(5, 1)})]).rows
    {'a.c:f': Row(ir=12, calls=2)}
    """
    found = tuple(profiles)
    return found[0] if len(found) == 1 else _added(found)


def rename_profile(profile: Profile, rename: Callable[[str], str]) -> Profile:
    """The profile under other names; functions that come to share one are added up.

    What one of them calls of the others is in its inclusive count already, and is added once.

    >>> rename_profile(Profile(3, {"a.c:f": Row(1, 1), "b.c:f": Row(2, 1)}), lambda name: "f").rows
    {'f': Row(ir=3, calls=2)}
    """
    new = {name: rename(name) for name in profile.rows.keys() | profile.inclusive.keys()}
    same = {name for name, short in new.items() if name == short}
    rows: dict[str, Row] = {}
    for name, row in profile.rows.items():
        add_row(rows, new[name], row)
    callers: dict[str, Mapping[str, Row]] = {}
    own: dict[str, dict[str, Row]] = {}
    for name, made in profile.callers.items():
        short = new.get(name) or rename(name)
        if short not in callers and made.keys() <= same:
            callers[short] = made
            continue
        if short not in own:
            callers[short] = own[short] = dict(callers.get(short, {}))
        mine = own[short]
        for caller, edge in made.items():
            add_row(mine, new.get(caller) or rename(caller), edge)
    return Profile(profile.total, rows, callers, _renamed_inclusive(profile, new))


def _renamed_inclusive(profile: Profile, new: Mapping[str, str]) -> dict[str, int]:
    if len(set(new.values())) == len(new):
        return {new[name]: ir for name, ir in profile.inclusive.items()}
    sums: dict[str, int] = {}
    largest: dict[str, int] = {}
    for name, ir in profile.inclusive.items():
        short = new[name]
        sums[short] = sums.get(short, 0) + ir
        largest[short] = max(largest.get(short, ir), ir)
    for called, made in profile.callers.items():
        for caller, edge in made.items():
            short = new.get(called, "")
            if caller != called and short in sums and new.get(caller) == short:
                # the edge may have levels of a recursion in it that the sum has not
                sums[short] = max(sums[short] - edge.ir, largest[short])
    return sums


def _added(profiles: Iterable[Profile]) -> Profile:
    total = 0
    rows: dict[str, Row] = {}
    callers: dict[str, dict[str, Row]] = {}
    inclusive: dict[str, int] = {}
    for profile in profiles:
        total += profile.total
        for name, row in profile.rows.items():
            add_row(rows, name, row)
        for name, made in profile.callers.items():
            mine = callers.setdefault(name, {})
            for caller, edge in made.items():
                add_row(mine, caller, edge)
        for name, cost in profile.inclusive.items():
            inclusive[name] = inclusive.get(name, 0) + cost
    kept = {name: _without_nothing(made) for name, made in callers.items()}
    return Profile(
        total, _without_nothing(rows), _without_nothing(kept), _without_nothing(inclusive)
    )


def _without_nothing(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value and value != NOTHING}
