"""Splits the instructions of a test into those that every layout counts alike, and kinds of noise.

Nothing is lost: what is kept and all kinds of noise add up to the raw count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_instrcount.counts.profile import NOTHING, Profile
from pytest_instrcount.counts.rules import KINDS, LIBC, RULES_VERSION, rule_of, runs_programs

#: How many layouts there are beside the usual one: at first, and where those leave open what is noise.
OTHER_LAYOUTS, MOST_OTHER_LAYOUTS = 3, 8
#: The kind of what no rule knows and layouts have shown to move.
MEASURED = "measured"
#: The kind of what layouts move by a hair of what it is, as the evaluation loop.
WAVERING = "wavering"
#: The kind of what libc copies and clears on behalf of other noise.
INNER = "inner copying"
#: The kind of everything, where all that is known of a baseline is its totals.
UNTOLD = "not told apart"
#: All kinds, in the order in which they are shown.
ALL_KINDS = (*KINDS, INNER, MEASURED, WAVERING, UNTOLD)
#: A function that moves by more than this share of its own count between layouts is noise. What
#: moves by less may be large: it wavers.
MOVING_SHARE = 50
#: A function that moves is noise, too, if it is small beside the test.
SMALL_SHARE = 50
#: Costs are handed up to callers so often; the nesting of allocators is less deep.
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Noise:
    """The definition of noise for both sides of a comparison."""

    #: version of the rules
    rules: int = RULES_VERSION
    #: functions beyond the rules, by standard name
    functions: frozenset[str] = frozenset()
    #: functions that move by little, and are large
    wavering: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Split:
    """The instructions of one profile, over all counted calls."""

    #: of all functions that are no noise
    kept: int
    #: kind of noise -> its instructions; every kind is there
    kinds: Mapping[str, int]
    #: noisy function -> calls from functions that are no noise
    calls: Mapping[str, int]
    #: noisy function -> what those calls cost, with the noise that they called in turn
    costs: Mapping[str, int]

    @property
    def total(self) -> int:
        """All instructions: the raw count."""
        return self.kept + sum(self.kinds.values())


def kind_of(name: str, noise: Noise) -> str | None:
    """The kind of noise that a function is, None if it is none.

    >>> kind_of("obmalloc.c:PyObject_Malloc", Noise()), kind_of("_json.c:scan_once", Noise())
    ('memory', None)
    """
    rule = rule_of(name)
    if rule is not None:
        return rule.kind
    if name in noise.functions:
        return MEASURED
    return WAVERING if name in noise.wavering else None


def split(profile: Profile, noise: Noise) -> Split:
    """Split a profile with standard names into what is kept, and the kinds of noise.

    What a noisy function costs belongs to the call that came from outside of all noise: a look-up in a
    dict that the cache of methods asks for is the cache's. What libc's routines cost belongs to the
    caller: called from noise it is a kind of its own.

    >>> from pytest_instrcount.counts.profile import Row
    >>> rows = {"a.c:f": Row(500, 1), "obmalloc.c:PyObject_Malloc": Row(210, 3)}
    >>> callers = {"obmalloc.c:PyObject_Malloc": {"a.c:f": Row(210, 3)}}
    >>> found = split(Profile(710, rows, callers), Noise())
    >>> found.kept, found.kinds["memory"], found.calls, found.costs
    (500, 210, {'obmalloc.c:PyObject_Malloc': 3}, {'obmalloc.c:PyObject_Malloc': 210})
    """
    kinds = dict.fromkeys(ALL_KINDS, 0)
    kept = profile.total
    waiting: dict[str, int] = {}
    calls: dict[str, int] = {}
    costs: dict[str, int] = {}
    for name, row in profile.rows.items():
        kind = kind_of(name, noise)
        if kind is None:
            continue
        kept -= row.ir
        if kind == WAVERING:
            kinds[WAVERING] += row.ir
        elif name.startswith(LIBC):
            inner, entries = _by_caller(profile, name, row.ir, noise)
            kinds[INNER] += inner
            kinds[kind] += row.ir - inner
            calls[name], costs[name] = entries, row.ir - inner
        else:
            waiting[name] = row.ir
    for name, cost in _handed_up(profile, waiting, noise).items():
        kind = kind_of(name, noise) or MEASURED
        kinds[kind] += cost
        calls[name] = _entering(profile, name, noise)
        costs[name] = cost
    return Split(kept, kinds, calls, costs)


def _is_inner(caller: str, noise: Noise) -> bool:
    """True if a caller is noise that calls on behalf of others."""
    return not caller.startswith(LIBC) and kind_of(caller, noise) not in (None, WAVERING)


def _entering(profile: Profile, name: str, noise: Noise) -> int:
    made = profile.callers.get(name, {}).items()
    return sum(edge.calls for caller, edge in made if not _is_inner(caller, noise))


def _by_caller(profile: Profile, name: str, ir: int, noise: Noise) -> tuple[int, int]:
    """Of a routine of libc: instructions on behalf of noise, and calls from elsewhere."""
    inner = outer = 0
    for caller, edge in profile.callers.get(name, {}).items():
        if _is_inner(caller, noise):
            inner += edge.ir
        else:
            outer += edge.ir
    # it may have called something in turn, which is in the edges and not in its own count
    share = ir * inner // (inner + outer) if inner + outer else 0
    return share, _entering(profile, name, noise)


def _handed_up(profile: Profile, own: Mapping[str, int], noise: Noise) -> dict[str, int]:
    """Noisy function -> its cost and that of the noise below it, where it was called from outside."""
    weights = {name: _weights(profile, name, own, noise) for name in own}
    settled = dict.fromkeys(own, 0)
    waiting = dict(own)
    for _ in range(_ROUNDS):
        if not any(waiting.values()):
            break
        handed = dict.fromkeys(own, 0)
        for name, cost in waiting.items():
            above, whole = weights[name]
            left = cost
            for caller, weight in above:
                share = cost * weight // whole
                handed[caller] += share
                left -= share
            settled[name] += left
        waiting = handed
    return {name: settled[name] + waiting[name] for name in own}


def _weights(
    profile: Profile, name: str, own: Mapping[str, int], noise: Noise
) -> tuple[list[tuple[str, int]], int]:
    """The shares of a function's cost that belong to noisy callers; the rest is its own."""
    above, whole = [], 0
    for caller, edge in profile.callers.get(name, {}).items():
        weight = max(0, edge.ir)
        if caller == name or not weight:
            continue
        whole += weight
        if caller in own and _is_inner(caller, noise):
            above.append((caller, weight))
    return above, whole


def find_noise(profiles: Sequence[Profile], known: Collection[str] = ()) -> Noise:
    """Functions that move between profiles of one test in several layouts; ``known``: moved elsewhere.

    A known function that this test has not called yet is noise as well: what fills another page of
    the heap, say, is called now and then.
    """
    moving = moving_functions(profiles) | {name for name in known if not runs_programs(name)}
    return Noise(
        RULES_VERSION,
        frozenset(name for name in moving if rule_of(name) is None),
        frozenset(name for name in _changing(profiles) if name not in moving),
    )


def moving_functions(profiles: Sequence[Profile]) -> set[str]:
    """Functions without a rule whose own count moves by much between profiles, or that are small."""
    found = set()
    for name in _changing(profiles):
        if runs_programs(name):
            continue
        counts = [profile.rows.get(name, NOTHING).ir for profile in profiles]
        moves, most = max(counts) - min(counts), max(counts)
        if moves * MOVING_SHARE > most or most * SMALL_SHARE < max(1, profiles[0].total):
            found.add(name)
    return found


def _changing(profiles: Sequence[Profile]) -> Iterable[str]:
    """Functions without a rule whose own count is not the same in all profiles."""
    first, *others = profiles
    for name in _all_names(profiles):
        if rule_of(name) is None:
            ir = first.rows.get(name, NOTHING).ir
            if any(profile.rows.get(name, NOTHING).ir != ir for profile in others):
                yield name


def differing_functions(first: Profile, second: Profile) -> tuple[str, ...]:
    """Functions whose own count is not the same in both, the largest difference first.

    >>> from pytest_instrcount.counts.profile import Row
    >>> a, b = Profile(3, {"f": Row(2, 1), "g": Row(1, 1)}), Profile(9, {"f": Row(2, 1), "g": Row(7, 1)})
    >>> differing_functions(a, b)
    ('g',)
    """
    moved = {
        name: abs(first.rows.get(name, NOTHING).ir - second.rows.get(name, NOTHING).ir)
        for name in _all_names((first, second))
    }
    return tuple(sorted(filter(moved.get, moved), key=lambda name: (-moved[name], name)))


def _all_names(profiles: Sequence[Profile]) -> set[str]:
    return {name for profile in profiles for name in profile.rows}
