"""Calls per function and per edge under names that last: what baselines keep."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

from pytest_instrcount.trace.columns import Columns, Flag, Key


def lasting_names(keys: Sequence[Key]) -> tuple[str, ...]:
    """``module:qualname`` of each key, with ``#n`` for the second and later ones of that name.

    No line number is in it, so an edit above a function does not make it another one; those that
    share a name are numbered in the order in which the file has them.

    >>> keys = [Key("python", "m", "<lambda>", "m.py", 9), Key("python", "m", "<lambda>", "m.py", 4)]
    >>> lasting_names(keys)
    ('m:<lambda>#2', 'm:<lambda>')
    """
    sharing: dict[str, list[Key]] = defaultdict(list)
    for key in dict.fromkeys(keys):
        sharing[f"{key.module}:{key.qualname}"].append(key)
    names: dict[Key, str] = {}
    for name, those in sharing.items():
        those.sort(key=lambda key: (key.kind, key.file, key.firstlineno))
        for number, key in enumerate(those, 1):
            names[key] = name if number == 1 else f"{name}#{number}"
    return tuple(names[key] for key in keys)


def count_calls(columns: Columns) -> dict[str, int]:
    """Lasting name -> calls, by name; a generator's start is its call. Never called: left out."""
    sums = [0] * len(columns.keys)
    for row, key in enumerate(columns.key):
        sums[key] += columns.calls(row)
    return dict(sorted((name, n) for name, n in zip(lasting_names(columns.keys), sums) if n))


_FINALIZER = int(Flag.FINALIZER)


class Part(StrEnum):
    """Whether calls of a function are counted."""

    #: they are
    own = "own"
    #: they are not; what it calls is charged to its nearest caller that is counted
    ignored = "ignored"
    #: likewise, and what it calls of the standard library is left out with it
    pool = "pool"
    #: likewise, but what it calls of the standard library may be what it was given to do
    jobs = "jobs"
    #: functions of the standard library: counted, unless a pool calls them
    library = "library"
    builtin = "builtin"


_POOLS = (Part.pool, Part.jobs)


def count_edges(
    columns: Columns, part_of: Callable[[Key], Part]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Caller ("" if there is none) and callee -> calls and resumes, by name.

    They are summed over all threads, greenlets and tasks. How often an event loop has a coroutine go on
    depends on who was first: what it waits for may be there already.
    """
    calls: Counter[tuple[int, int]] = Counter()
    resumes: Counter[tuple[int, int]] = Counter()
    for row, caller, resumed in _counted(columns, [part_of(key) for key in columns.keys]):
        edge = caller, columns.key[row]
        calls[edge] += columns.calls(row)
        resumes[edge] += resumed
    names = (*lasting_names(columns.keys), "")  # the last is that of caller -1
    found = {(names[a], names[b]): (n, resumes[a, b]) for (a, b), n in calls.items()}
    return {edge: uses for edge, uses in sorted(found.items()) if any(uses)}


def _counted(columns: Columns, parts: Sequence[Part]) -> Iterator[tuple[int, int, int]]:
    """Rows that are counted, each with the key of its nearest caller that is, and its resumes."""
    #: of each row: the key that calls from it are charged to, its part, and whether a pool had it go on
    owners: list[int] = []
    played: list[Part] = []
    went_on: list[bool] = []
    for row, (key, parent, flags) in enumerate(zip(columns.key, columns.parent, columns.flags)):
        # finalizers run wherever memory happens to be freed
        called = parent >= 0 and (flags & _FINALIZER) <= (columns.flags[parent] & _FINALIZER)
        caller, above = (owners[parent], played[parent]) if called else (-1, Part.own)
        part = _part_below(above, parts[key])
        is_counted = part is Part.own and not flags & Flag.START_FRAME
        resumed = columns.resumes(row)
        by_pool = resumed > 0 and (above in _POOLS or (called and went_on[parent]))
        owners.append(key if is_counted else caller)
        played.append(part)
        went_on.append(by_pool)
        if is_counted:
            yield row, caller, 0 if by_pool else resumed


def _part_below(above: Part, part: Part) -> Part:
    """The part of a function in a call by another one.

    >>> str(_part_below(Part.pool, Part.library)), str(_part_below(Part.jobs, Part.library))
    ('pool', 'own')
    """
    if part not in (Part.library, Part.builtin):
        return part
    if above is Part.pool or (above is Part.jobs and part is Part.builtin):
        return above
    return Part.own
