"""The layouts of memory in a baseline, and how much of a change is beyond their noise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import add, sub

from pytest_instrcount.counts.noise import ALL_KINDS, INNER, MEASURED, Noise, Split, split
from pytest_instrcount.counts.profile import Profile
from pytest_instrcount.counts.rules import LOOKUPS, SEARCHING, rule_of

#: No test is said to detect less than this: layouts that were not tried may move it a little, too.
FINEST = Fraction(1, 10_000)
#: Nor less than this where no other layout could be measured.
UNTRIED = Fraction(1, 1000)
#: How far beyond the range of the layouts a kind of noise must be, as a fraction of the test, ...
_MARGIN = Fraction(1, 10_000)
#: ... and in widths of that range: few layouts do not show all of it.
_WIDTHS = Fraction(1, 4)
#: A test that changed by so much outside of noise did change, and noise changes with it: ...
_CHANGED = Fraction(1, 1000)
#: ... a kind that moved alike in so many layouts or more, by so many standard errors, is believed.
_FEWEST_PAIRS, _ERRORS = 4, 3
#: From so many widths on, and so much of the test, no more layouts are needed to believe it.
CLEAR_WIDTHS, CLEAR = Fraction(2), Fraction(1, 100)
#: Instructions that a call of libc's comparing and searching may cost more where constants lie
#: otherwise (glibc does not read a vector that may reach into the next page), and which share of what it costs.
_ALIGNED, _ALIGNED_SHARE = 8, Fraction(1, 4)
#: Where that cost is: of what compares by itself, and of what a look-up compares.
_COMPARED = frozenset((SEARCHING, INNER))


@dataclass(frozen=True, slots=True)
class Denoised:
    """Counts of one test in several layouts of memory, all over its counted calls; the usual one first."""

    noise: Noise
    #: instructions outside of noise, in each layout
    kept: tuple[int, ...]
    #: kind of noise -> its instructions in each layout; kinds of which there is nothing are left out
    kinds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: noisy function -> calls from outside of noise, in each layout
    calls: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: noisy function -> what those calls cost, in all layouts together
    costs: Mapping[str, int] = field(default_factory=dict)

    @property
    def layouts(self) -> int:
        """The number of layouts."""
        return len(self.kept)

    @property
    def totals(self) -> tuple[int, ...]:
        """The raw count in each layout."""
        return tuple(map(sum, zip(self.kept, *self.kinds.values())))

    @property
    def low(self) -> int:
        """The smallest raw count."""
        return min(self.totals)

    @property
    def high(self) -> int:
        """The largest raw count."""
        return max(self.totals)

    @property
    def mean(self) -> Fraction:
        """The mean of the raw counts, unrounded."""
        return Fraction(sum(self.totals), self.layouts)

    @property
    def spread(self) -> Fraction:
        """The range of the raw count over the layouts, as a fraction of it."""
        return (self.high - self.low) / max(Fraction(1), self.mean)

    @property
    def floor(self) -> Fraction:
        """The detection limit outside of noise, as a fraction."""
        return FINEST if self.layouts > 1 else UNTRIED

    @property
    def detects(self) -> Fraction:
        """The smallest growth that is found wherever it sits, as a fraction.

        Growth beyond the range of all noise together counts in full, wherever in it that is.
        """
        noise = tuple(map(sum, zip(*self.kinds.values()))) or (0,)
        needed = max(noise) - min(noise) + self.margin(noise, ALL_KINDS)
        return self.floor + needed / max(Fraction(1), self.mean)

    def margin(
        self,
        values: Sequence[int | Fraction],
        kinds: Collection[str],
        widths: Fraction = _WIDTHS,
    ) -> Fraction:
        """The margin beyond the range of some kinds of noise from which on a change is growth."""
        margin = (max(values) - min(values)) * widths + _MARGIN * self.mean
        return margin + self._by_alignment() if _COMPARED.intersection(kinds) else margin

    def _by_alignment(self) -> Fraction:
        """The variation of libc's comparing with the addresses of constants, which no layout moves."""
        calls = sum(sum(made) for name, made in self.calls.items() if _compares(name))
        share = _ALIGNED_SHARE * sum(sum(self.kinds.get(kind, ())) for kind in _COMPARED)
        return min(Fraction(_ALIGNED * calls), share) / self.layouts

    def per_call(self, kind: str, calls: int) -> list[Fraction]:
        """The cost of a kind of noise in each layout, per call of the test."""
        return _divided(self.kinds.get(kind, (0,) * self.layouts), calls)

    def price(self, name: str) -> Fraction | None:
        """Instructions that a call of a noisy function costs in this test, None where none is known."""
        calls = sum(self.calls.get(name, ()))
        return Fraction(self.costs[name], calls) if calls > 0 else None


def denoise_layouts(profiles: Iterable[Profile], noise: Noise) -> Denoised:
    """The part of a test's profiles that a baseline keeps, the usual layout first.

    >>> denoise_layouts([Profile(100, {}), Profile(101, {})], Noise()).spread
    Fraction(2, 201)
    """
    parts = [_without_negative(split(profile, noise)) for profile in profiles]
    called = sorted({name for part in parts for name in part.calls})
    calls = _of_each(called, [part.calls for part in parts])
    return Denoised(
        noise,
        tuple(part.kept for part in parts),
        _of_each(ALL_KINDS, [part.kinds for part in parts]),
        calls,
        {name: sum(part.costs.get(name, 0) for part in parts) for name in calls},
    )


def _of_each(
    names: Iterable[str], tables: Sequence[Mapping[str, int]]
) -> dict[str, tuple[int, ...]]:
    """Name -> its number in each table; names that have none are left out."""
    found = {name: tuple(table.get(name, 0) for table in tables) for name in names}
    return {name: numbers for name, numbers in found.items() if any(numbers)}


def _without_negative(part: Split) -> Split:
    """The same sum without what is below nothing, an artefact of subtracting: the others are so much less."""
    if (
        part.kept >= 0
        and min(0, *part.kinds.values(), *part.calls.values(), *part.costs.values()) >= 0
    ):
        return part
    kinds = {kind: max(0, ir) for kind, ir in part.kinds.items()}
    kept = part.total - sum(kinds.values())
    for kind in sorted(kinds, key=lambda kind: -kinds[kind]):
        if kept >= 0:
            break
        taken = min(-kept, kinds[kind])
        kinds[kind] -= taken
        kept += taken
    return Split(
        kept,
        kinds,
        {name: max(0, calls) for name, calls in part.calls.items()},
        {name: max(0, cost) for name, cost in part.costs.items()},
    )


@dataclass(frozen=True, slots=True)
class Grown:
    """By how many instructions a call has grown, and where; negative for what got cheaper."""

    #: outside of noise
    kept: Fraction
    #: kind of noise -> what of its growth layouts do not explain
    kinds: Mapping[str, Fraction]
    #: of noise, all kinds together
    noise: Fraction

    @property
    def total(self) -> Fraction:
        """The growth that the gate compares with the limit."""
        return self.kept + self.noise


def grown(
    old: Denoised, old_calls: int, new: Denoised, new_calls: int, widths: Fraction = _WIDTHS
) -> Grown:
    """The growth per call, in as many layouts as the new side has.

    A kind of noise that stays within the range of the old layouts has not grown. One that leaves it, by
    so many ``widths`` of it, has grown by the difference of the means, all of it. What more calls from
    outside of noise cost is no noise: it is taken from the range first, and counts in any case.

    A test that changed outside of noise did change. Of its noise, what moved alike in every layout counts,
    within the range as well: or one half of a refactoring would be gated without the other.
    """
    worth = _worth_of_calls(old, old_calls, new, new_calls)
    names = [kind for kind in ALL_KINDS if kind in old.kinds or kind in new.kinds or kind in worth]
    called = {kind: _mean(worth.get(kind, [Fraction(0)])) for kind in names}
    kept = _beyond(_divided(old.kept, old_calls), _divided(new.kept, new_calls), Fraction(0))
    changed = sum(map(abs, called.values()), abs(kept)) * old_calls > _CHANGED * old.mean
    beyond = {}
    before_all = [Fraction(0)] * old.layouts
    now_all = [Fraction(0)] * new.layouts
    for kind in names:
        more = worth.get(kind, [Fraction(0)] * new.layouts)
        before = old.per_call(kind, old_calls)
        now = [*map(sub, new.per_call(kind, new_calls), more)]
        margin = old.margin(old.kinds.get(kind, (0,)), [kind], widths) / old_calls
        beyond[kind] = _beyond(before, now, margin, paired=changed)
        before_all = [*map(add, before_all, before)]
        now_all = [*map(add, now_all, now)]
    margin = old.margin([each * old_calls for each in before_all], ALL_KINDS, widths) / old_calls
    together = _beyond(before_all, now_all, margin, paired=changed)
    noise = max(sum(beyond.values(), Fraction(0)), together, key=abs)
    kinds = {kind: called[kind] + beyond[kind] for kind in names}
    return Grown(kept, kinds, sum(called.values(), Fraction(0)) + noise)


def ends_of_growth(
    old: Denoised, old_calls: int, new: Denoised, new_calls: int
) -> tuple[Fraction, Fraction]:
    """The least and the most that a call may have grown by, if layouts happened to hide it."""
    before, now = _divided(old.totals, old_calls), _divided(new.totals, new_calls)
    return _mean(now) - max(before), _mean(now) - min(before)


def _compares(name: str) -> bool:
    """True if a noisy function compares, or looks up in a dict: one key, if it is equal and another object."""
    rule = rule_of(name)
    if rule is None:
        return False
    return rule.kind == SEARCHING or (rule.kind == LOOKUPS and "look" in name)


def _divided(values: Iterable[int], calls: int) -> list[Fraction]:
    return [Fraction(ir, calls) for ir in values]


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _beyond(
    before: Sequence[Fraction], now: Sequence[Fraction], margin: Fraction, *, paired: bool = False
) -> Fraction:
    """The difference of the means, where the ranges lie apart by more than ``margin``; else 0.

    ``paired``: or where the layouts, one by one, moved alike.
    """
    if min(now) - max(before) > margin or min(before) - max(now) > margin:
        return _mean(now) - _mean(before)
    if paired and _move_alike([*map(sub, now, before)]):
        return _mean(now) - _mean(before)
    return Fraction(0)


def _move_alike(moves: Sequence[Fraction]) -> bool:
    """True if all differences have one sign, and their mean is several standard errors from 0."""
    pairs = len(moves)
    if pairs < _FEWEST_PAIRS or min(moves) <= 0 <= max(moves):
        return False
    mean = _mean(moves)
    squares = sum(((each - mean) ** 2 for each in moves), Fraction(0))
    return mean**2 * pairs * (pairs - 1) > _ERRORS**2 * squares


def _worth_of_calls(
    old: Denoised, old_calls: int, new: Denoised, new_calls: int
) -> dict[str, list[Fraction]]:
    """Kind of noise -> what the calls cost that were added, per call of the test, in each new layout.

    A call costs what it costs in this test. Where the number of calls depends on the layout, what they
    cost stays in the range of its kind.
    """
    found: dict[str, list[Fraction]] = {}
    for name in old.calls.keys() | new.calls.keys():
        before = old.calls.get(name, (0,) * old.layouts)
        now = new.calls.get(name, (0,) * new.layouts)
        low, high = Fraction(min(before), old_calls), Fraction(max(before), old_calls)
        counts = [Fraction(calls, new_calls) for calls in now]
        if low != high or min(counts) <= low <= max(counts):
            continue
        price = old.price(name)
        if price is None:
            price = new.price(name) or Fraction(0)
        rule = rule_of(name)
        kind = MEASURED if rule is None else rule.kind
        each = found.setdefault(kind, [Fraction(0)] * new.layouts)
        found[kind] = [one + (count - low) * price for one, count in zip(each, counts)]
    return found
