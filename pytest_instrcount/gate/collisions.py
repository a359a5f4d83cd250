"""Growth of dicts and sets that are asked as often as before: other keys collide.

Which ones do is a matter of their hashes. Those of strings depend on the hash seed, which is fixed under
Valgrind and random elsewhere: what it makes of the names of keys is chance, and no work. Other seeds tell
that from growth.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import Noise, kind_of
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.gate.compare import Delta, Gated
from pytest_instrcount.gate.gate import Verdict, judge_counts
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.schema import Baseline

#: The hash seeds beside the usual one under which a test is measured whose verdict hangs on collisions.
OTHER_SEEDS = range(2, 9)
#: Functions of dicts and sets. Of a stripped interpreter those without a name may be some, too.
_TABLES = re.compile(
    r"(?:dictobject|setobject)\.c:.* | \?+:(?:0x|_?Py_?[Dd]ict_|_?PySet_|_?PyFrozenSet_).*",
    re.VERBOSE,
)


def hangs_on_collisions(delta: Delta, limit: Limit) -> bool:
    """True if a verdict, or most of a change beyond the limit, may be a matter of which keys collide."""
    if delta.new.seeds or delta.new.unsteady:
        return False
    gated = delta.gated
    dearer = _dearer(delta.old, delta.new, in_tables(delta.new.rows))
    without = _without(gated, dearer, delta.old)
    verdict = judge_counts(gated, limit)
    if verdict is not judge_counts(without, limit):
        return True
    mostly = 2 * abs(gated.new - without.new) > abs(gated.new - gated.old)
    return verdict is not Verdict.unchanged and mostly


def settle_collisions(delta: Delta) -> Delta:
    """The same, where other hash seeds were measured: without the growth that they explain.

    Dicts and sets have not grown where what they cost before is no farther from the mean over all seeds
    than those lie apart. Growth that may hide there is said: twice that range. All are costs of as many
    calls as there are now: their number may be another where the order of a set decides.
    """
    old, new = delta.old, delta.new
    if not new.seeds:
        return delta
    now = in_tables(new.rows)
    costs: dict[str, list[Fraction]] = {}
    for name, row in now.items():
        found = [_cost(each.get(name), row, new.calls) for each in (now, *new.seeds)]
        if set(found) != {found[0]}:
            costs[name] = found
    dearer = _dearer(old, new, costs)
    seeds = [sum(found, Fraction(0)) for found in zip(*costs.values())] or [Fraction(0)]
    apart = max(seeds) - min(seeds)
    before = seeds[0] - sum(dearer.values(), Fraction(0))
    gated = replace(delta.gated, collisions=apart)
    without = _without(gated, dearer, old)
    if abs(before - sum(seeds, Fraction(0)) / len(seeds)) <= apart and without.new != gated.new:
        shown = [each for each in delta.function_deltas if each.name not in dearer]
        delta = replace(delta, function_deltas=tuple(shown))
        gated = replace(without, hidden=2 * apart)
    return replace(delta, gated=gated)


def in_tables(rows: Mapping[str, Row]) -> dict[str, Row]:
    """The functions of dicts and sets."""
    return {name: row for name, row in rows.items() if _TABLES.fullmatch(name)}


def _dearer(old: Baseline, new: Measurement, names: Collection[str]) -> dict[str, Fraction]:
    """What as many calls of these functions as there are now cost more than before; per call of the test."""
    return {
        name: Fraction(new.rows[name].ir, new.calls)
        - _cost(old.rows.get(name), new.rows[name], new.calls)
        for name in names
    }


def _cost(row: Row | None, now: Row, calls: int) -> Fraction:
    """What as many calls of a function as there are now cost then, per call of the test; as now if unknown."""
    if row is None or row.calls <= 0:
        return Fraction(now.ir, calls)
    return Fraction(row.ir * now.calls, row.calls * calls)


def _without(gated: Gated, dearer: Mapping[str, Fraction], old: Baseline) -> Gated:
    """The counts without that, as far as it is in the growth of each kind of noise, and outside of noise."""
    known = Noise() if old.denoised is None else old.denoised.noise
    kinds: dict[str | None, Fraction] = {}
    for name, ir in dearer.items():
        kind = kind_of(name, known)
        kinds[kind] = kinds.get(kind, Fraction(0)) + ir
    noise, growth = dict(gated.noise), gated.new - gated.old
    kept = growth - sum(noise.values())
    for kind, ir in kinds.items():
        taken = _least(ir, kept if kind is None else noise.get(kind, Fraction(0)))
        growth -= taken
        if kind is not None and taken:
            noise[kind] -= taken
    growth = growth if abs(growth) > gated.floor * gated.old else Fraction(0)
    return replace(gated, new=gated.old + growth, noise=noise)


def _least(one: Fraction, other: Fraction) -> Fraction:
    """The one that is nearer to 0; 0 where their signs differ."""
    return min(one, other, key=abs) if one * other > 0 else Fraction(0)
