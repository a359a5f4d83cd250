"""The denoised count of a test in several layouts of memory: what a baseline keeps and a gate compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from pytest_instrcount.callgrind.profile import Profile, Row
from pytest_instrcount.counts.noise import MEASURED, Cleaned, Noise, clean, wavering_functions
from pytest_instrcount.counts.rules import KINDS, MEMORY, METHODS, SEARCHING, STRINGS, runs_programs

#: No test is said to detect less than this: layouts that were not tried may move it a little, too.
FINEST = Fraction(1, 10_000)
#: Nor less than this where no other layout could be measured.
UNTRIED = Fraction(1, 1000)
#: What prices do not explain is noise as long as it is within the range of the layouts, widened by
#: so many times that range ...
_WIDENED = 4
#: ... and by a share of the count: more for what allocators and hashing do than for copying ...
_ALLOWED = Fraction(1, 100)
_ALLOWED_COPYING = Fraction(1, 5000)
#: ... and by a share of the price of each call: how both ends of a copy are aligned is worth little,
#: where a page ends more, whether the heap has a block at hand or has to trim and to grow, a call.
_ALLOWED_OF_PRICE = {STRINGS: Fraction(1, 200), SEARCHING: Fraction(1, 2), MEMORY: Fraction(1)}

_ALL_KINDS = (*KINDS, MEASURED)


@dataclass(frozen=True, slots=True)
class Denoised:
    """Denoised counts of one test, all over its counted calls."""

    noise: Noise
    #: in the layout that every run measures
    total: int
    #: smallest and largest of all layouts
    low: int
    high: int
    #: kind of noise -> smallest and largest of what its price does not explain; function that
    #: is counted, by name -> how far down and up layouts moved it
    residuals: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: how many layouts there were
    layouts: int = 1

    @property
    def spread(self) -> Fraction:
        """How far layouts move the denoised count, as a fraction of it, wavering functions included."""
        wavering = sum(up - down for _, down, up in self.wavering())
        return Fraction(self.high - self.low + wavering, max(1, self.total))

    @property
    def floor(self) -> Fraction:
        """Growth up to here is noise, as a fraction, once all that noise explains has been taken out."""
        least = FINEST if self.layouts > 1 else UNTRIED
        return max(least, 2 * Fraction(self.high - self.low, max(1, self.total)))

    @property
    def detects(self) -> Fraction:
        """The smallest growth that is told from noise wherever it sits, as a fraction.

        It is found sooner outside of the functions that waver.
        """
        taken = sum(up + _room(name, down, up) for name, down, up in self.wavering())
        return self.floor + Fraction(taken, max(1, self.total))

    def wavering(self) -> list[tuple[str, int, int]]:
        """Functions that are counted and that layouts moved: name, how far down, how far up."""
        return [(name, *ends) for name, ends in self.residuals.items() if name not in _ALL_KINDS]


def _room(name: str, down: int, up: int) -> int:
    """How far beyond its range a wavering function may move before it counts; the evaluation loop
    not at all, since what a program does is counted there.
    """
    return 0 if runs_programs(name) else _WIDENED * (up - down)


def denoise_layouts(profiles: Sequence[Profile], noise: Noise) -> Denoised:
    """What a baseline keeps of the profiles of one test, the one of the usual layout first.

    >>> denoise_layouts([Profile(100, {}), Profile(101, {})], Noise()).spread
    Fraction(1, 100)
    """
    cleaned = [clean(profile, noise) for profile in profiles]
    waver = wavering_functions(profiles, noise)
    own = [
        sum(profile.rows[name].ir for name in waver if name in profile.rows) for profile in profiles
    ]
    totals = [each.total - ir + own[0] for each, ir in zip(cleaned, own)]
    residuals = {
        kind: (
            min(each.taken[kind].residual for each in cleaned),
            max(each.taken[kind].residual for each in cleaned),
        )
        for kind in cleaned[0].taken
    }
    return Denoised(noise, totals[0], min(totals), max(totals), residuals | waver, len(profiles))


def wavered(
    rows: Mapping[str, Row],
    calls: int,
    old: Denoised,
    old_rows: Mapping[str, Row],
    old_calls: int,
) -> int:
    """Instructions, over ``calls`` calls, by which functions moved as layouts may move them."""
    found = Fraction(0)
    for name, down, up in old.wavering():
        if name not in old_rows:
            continue
        ir = rows[name].ir if name in rows else 0
        moved = Fraction(ir, calls) - Fraction(old_rows[name].ir, old_calls)
        room = _room(name, down, up)
        found += min(max(moved, Fraction(down - room, old_calls)), Fraction(up + room, old_calls))
    return round(found * calls)


def excess(cleaned: Cleaned, calls: int, old: Denoised, old_calls: int) -> int:
    """Instructions of noisy functions beyond all that layouts explain, over ``calls`` calls.

    A price is blind to what gets slower within a call: a hash that collides, a copy that is longer.
    What leaves the range that the baseline has seen, by a margin, is counted after all; it is
    negative for what got cheaper by as much.
    """
    found = 0
    for kind, taken in cleaned.taken.items():
        if kind == METHODS:
            continue  # two names that share a place throw each other out at every call
        low, high = old.residuals.get(kind, (0, 0))
        share = _ALLOWED_COPYING if kind in (STRINGS, SEARCHING) else _ALLOWED
        margin = (_WIDENED * (high - low) + share * old.total) / old_calls
        margin += _ALLOWED_OF_PRICE.get(kind, 0) * Fraction(taken.priced, calls)
        above = Fraction(taken.residual, calls) - Fraction(high, old_calls) - margin
        below = Fraction(low, old_calls) - margin - Fraction(taken.residual, calls)
        if above > 0:
            found += int(above * calls)
        elif below > 0:
            found -= int(below * calls)
    return found
