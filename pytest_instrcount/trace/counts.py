"""Calls per function under names that last: what baselines keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pytest_instrcount.trace.columns import Columns, Key


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


def differing(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Names whose numbers are not the same, with both; of two runs of one body: what varies.

    >>> differing({"m:f": 1, "m:g": 2}, {"m:f": 1, "m:h": 2})
    {'m:g': (2, 0), 'm:h': (0, 2)}
    """
    names = sorted(first.keys() | second.keys())
    pairs = {name: (first.get(name, 0), second.get(name, 0)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
