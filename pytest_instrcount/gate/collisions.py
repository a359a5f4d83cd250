"""Growth of dicts and sets that are asked as often as before: other keys collide.

Which ones do is a matter of their hashes. Those of strings depend on the hash seed, which is fixed under
Valgrind and random elsewhere: what it makes of the names of keys is chance, and no work. Other seeds tell
that from growth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.rules import LOOKUPS, rule_of
from pytest_instrcount.gate.compare import Delta, Gated
from pytest_instrcount.gate.gate import Verdict, judge_counts
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.baseline import Baseline

#: The hash seeds beside the usual one under which a test is measured whose verdict hangs on collisions.
OTHER_SEEDS = range(2, 9)
#: What the standard names of the functions of dicts and sets begin with.
TABLES = ("dictobject.c:", "setobject.c:")


def hangs_on_collisions(delta: Delta, limit: Limit) -> bool:
    """True if a verdict, or most of a change beyond the limit, may be a matter of which keys collide."""
    if delta.new.seeds:
        return False
    gated = delta.gated
    without = _without(gated, _dearer(delta.old, delta.new, in_tables(delta.new.rows)))
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
    without = _without(gated, dearer)
    if abs(before - sum(seeds, Fraction(0)) / len(seeds)) <= apart and without.new != gated.new:
        shown = [each for each in delta.function_deltas if each.name not in dearer]
        delta = replace(delta, function_deltas=tuple(shown))
        gated = replace(without, hidden=2 * apart)
    return replace(delta, gated=gated)


def in_tables(rows: Mapping[str, Row]) -> dict[str, Row]:
    """The functions of dicts and sets."""
    return {name: row for name, row in rows.items() if name.startswith(TABLES)}


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


def _without(gated: Gated, dearer: Mapping[str, Fraction]) -> Gated:
    """The counts without that, as far as it is in the growth: of look-ups, and outside of noise."""
    of_noise = sum((ir for name, ir in dearer.items() if rule_of(name)), Fraction(0))
    others = sum(dearer.values(), Fraction(0)) - of_noise
    noise = dict(gated.noise)
    kept = _least(others, gated.new - gated.old - sum(noise.values()))
    looked_up = _least(of_noise, noise.get(LOOKUPS, Fraction(0)))
    if looked_up:
        noise[LOOKUPS] -= looked_up
    rest = gated.new - gated.old - kept - looked_up
    rest = rest if abs(rest) > gated.floor * gated.old else Fraction(0)
    return replace(gated, new=gated.old + rest, noise=noise)


def _least(one: Fraction, other: Fraction) -> Fraction:
    """The one that is nearer to 0; 0 where their signs differ."""
    return min(one, other, key=abs) if one * other > 0 else Fraction(0)
