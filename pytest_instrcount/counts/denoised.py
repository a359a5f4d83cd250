"""The layouts of memory in a baseline, and what a test detects beyond their noise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from pytest_instrcount.counts.noise import ALL_KINDS, INNER, UNTOLD, Noise, Split, split
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

    def in_total(self) -> Denoised:
        """The same counts where nobody knows what of them is noise: any of it may be."""
        return Denoised(Noise(), (0,) * self.layouts, {UNTOLD: self.totals})

    def margin(self, values: Sequence[int | Fraction], kinds: Collection[str]) -> Fraction:
        """The margin beyond the range of some kinds of noise from which on a change is growth."""
        margin = (max(values) - min(values)) * _WIDTHS + _MARGIN * self.mean
        return margin + self._by_alignment() if _COMPARED.intersection(kinds) else margin

    def _by_alignment(self) -> Fraction:
        """The variation of libc's comparing with the addresses of constants, which no layout moves."""
        calls = sum(sum(made) for name, made in self.calls.items() if _compares(name))
        share = _ALIGNED_SHARE * sum(sum(self.kinds.get(kind, ())) for kind in _COMPARED)
        return min(Fraction(_ALIGNED * calls), share) / self.layouts

    def per_call(self, kind: str, calls: int) -> list[Fraction]:
        """The cost of a kind of noise in each layout, per call of the test."""
        return [Fraction(ir, calls) for ir in self.kinds.get(kind, (0,) * self.layouts)]

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


def _compares(name: str) -> bool:
    """True if a noisy function compares, or looks up in a dict: one key, if it is equal and another object."""
    rule = rule_of(name)
    if rule is None:
        return False
    return rule.kind == SEARCHING or (rule.kind == LOOKUPS and "look" in name)
