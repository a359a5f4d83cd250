"""Counts without layout noise: by rules, and by what was seen to move in other layouts of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_instrcount.callgrind.profile import NOTHING, Profile, Row
from pytest_instrcount.counts.rules import (
    KINDS,
    LIBC,
    LOOKUPS,
    METHODS,
    RULES_VERSION,
    rule_of,
    runs_programs,
)

#: The kind of what no rule knows and layouts have shown.
MEASURED = "measured"
#: A function that moves by more than this share of its own count between layouts is noise. What
#: moves by less may be large, as the evaluation loop is: its movement is the spread of the test.
MOVING_SHARE = 50
#: Unless it is small beside the test: then to leave it out makes nobody blind.
SMALL_SHARE = 50


@dataclass(frozen=True, slots=True)
class Noise:
    """What is taken out of a count, and what it is worth; the same on both sides of a comparison."""

    #: version of the rules
    rules: int = RULES_VERSION
    #: functions beyond the rules, by standard name -> price of a call, in instructions
    functions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Taken:
    """What one kind of noise did to a count: ``ir`` were taken out, ``calls`` came to ``priced``."""

    ir: int
    calls: int
    priced: int

    @property
    def residual(self) -> int:
        """What its price does not explain."""
        return self.ir - self.priced


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A count without its noise, and what became of that; all numbers over all counted calls."""

    #: instructions of all functions that are no noise
    kept: int
    #: kind -> what was taken
    taken: Mapping[str, Taken]

    @property
    def total(self) -> int:
        """The denoised count: what is no noise, and the price of what is."""
        return self.kept + sum(each.priced for each in self.taken.values())


def clean(profile: Profile, noise: Noise) -> Cleaned:
    """Take the noise out of a profile with standard names.

    A call has its price only where it comes from a function that is no noise: what the allocator
    calls within itself is the allocator's affair.

    >>> rows = {"a.c:f": Row(500, 1), "obmalloc.c:PyObject_Malloc": Row(210, 3)}
    >>> callers = {"obmalloc.c:PyObject_Malloc": {"a.c:f": Row(210, 3)}}
    >>> clean(Profile(710, rows, callers), Noise()).total
    770
    """
    extra = noise.functions
    kept = profile.total
    ir = dict.fromkeys((*KINDS, MEASURED), 0)
    calls, priced = dict(ir), dict(ir)
    # in a difference, a row can vanish whose calls come from elsewhere now
    for name in profile.rows.keys() | profile.callers.keys():
        rule = rule_of(name)
        if rule is None and name not in extra:
            continue
        row = profile.rows.get(name, NOTHING)
        kind = MEASURED if rule is None else rule.kind
        kept -= row.ir
        entering = _entering(profile, name, extra)
        price = extra[name] if rule is None else rule.price
        calls[kind] += entering.calls
        priced[kind] += entering.calls * price
        # libc's routines call nothing: what calls from outside cost is known, and less noisy
        # than what an allocator copies when it cannot grow a block where it is
        ir[kind] += entering.ir if name.startswith(LIBC) else row.ir
        if kind == LOOKUPS:
            # what a name costs that has lost its place in the cache of methods is the cache's affair
            missed = _missed(profile, name)
            ir[LOOKUPS] -= missed
            ir[METHODS] += missed
    taken = {kind: Taken(ir[kind], calls[kind], priced[kind]) for kind in ir}
    return Cleaned(kept, taken)


def _missed(profile: Profile, name: str) -> int:
    callers = profile.callers.get(name, {}).items()
    rules = ((rule_of(caller), edge) for caller, edge in callers)
    return sum(edge.ir for rule, edge in rules if rule is not None and rule.kind == METHODS)


def _entering(profile: Profile, name: str, extra: Mapping[str, int]) -> Row:
    ir = calls = 0
    for caller, edge in profile.callers.get(name, {}).items():
        if rule_of(caller) is None and caller not in extra:
            ir += edge.ir
            calls += edge.calls
    return Row(ir, calls)


def find_noise(profiles: Sequence[Profile], known: Mapping[str, int] | None = None) -> Noise:
    """What moves between profiles of one test in several layouts; ``known``: moved elsewhere.

    A known function that this test has not called yet is noise as well: what fills another page of
    the heap, say, is called now and then.
    The first profile is the one that is compared; the price of a call is its mean there, and 0
    where even the number of calls moves.
    """
    first = profiles[0]
    moving = moving_functions(profiles) | {name for name in known or {} if not runs_programs(name)}
    names = dict.fromkeys(sorted(moving), 0)
    prices = {}
    for name in names:
        entering = {_entering(profile, name, names).calls for profile in profiles}
        calls = max(entering)
        steady = len(entering) == 1 and calls > 0
        prices[name] = max(0, first.rows.get(name, NOTHING).ir // calls) if steady else 0
    return Noise(RULES_VERSION, prices)


def moving_functions(profiles: Sequence[Profile]) -> set[str]:
    """Functions without a rule whose own count is not the same in all profiles."""
    found = set()
    for name in _all_names(profiles):
        counts = [profile.rows.get(name, NOTHING).ir for profile in profiles]
        moves, most = max(counts) - min(counts), max(counts)
        if not moves or rule_of(name) is not None or runs_programs(name):
            continue
        if moves * MOVING_SHARE > most or most * SMALL_SHARE < max(1, profiles[0].total):
            found.add(name)
    return found


def wavering_functions(profiles: Sequence[Profile], noise: Noise) -> dict[str, tuple[int, int]]:
    """Functions that are counted and moved all the same -> how far down and up from the first profile.

    They are large and move by little, as what has a search by address inlined into it.

    >>> rows = [{"f": Row(ir, 1), "g": Row(500, 1)} for ir in (500, 498, 503)]
    >>> wavering_functions([Profile(1000, each) for each in rows], Noise())
    {'f': (-2, 3)}
    """
    found = {}
    for name, row in profiles[0].rows.items():
        if name in noise.functions or rule_of(name) is not None:
            continue
        moves = [profile.rows.get(name, NOTHING).ir - row.ir for profile in profiles]
        if any(moves):
            found[name] = min(moves), max(moves)
    return found


def differing_functions(first: Profile, second: Profile) -> tuple[str, ...]:
    """Functions whose own count is not the same in both, the largest difference first.

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
