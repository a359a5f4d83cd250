"""How much of a change is beyond the noise of layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import sub

from pytest_instrcount.counts.denoised import FINEST, Denoised
from pytest_instrcount.counts.noise import ALL_KINDS, MEASURED
from pytest_instrcount.counts.rules import rule_of

#: A test that surely changed by so much did change, and its noise with it: ...
_CHANGED = Fraction(1, 1000)
#: ... a kind that moved alike in so many layouts or more is believed, by so many standard errors and
#: widths of its range: code that moves shifts noise a little, too, alike in all layouts.
_FEWEST_PAIRS, _ERRORS, _SHIFT = 4, 3, Fraction(1, 2)
#: So few instructions a call are no growth where they are less than `FINEST` of it.
_FEW = Fraction(100)
#: What a call cost in each layout, before and now.
_Side = tuple[list[Fraction], list[Fraction]]


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


_NOTHING = Grown(Fraction(0), {}, Fraction(0))


def grown(old: Denoised, old_calls: int, new: Denoised, new_calls: int) -> Grown:
    """The growth per call, in as many layouts as the new side has.

    A kind of noise that stays within the range of the old layouts has not grown. One that leaves it, by
    more than a margin, has grown by the difference of the means, all of it. What more calls from
    outside of noise cost is no noise: it is taken from the range first, and counts in any case. A few
    instructions of many are nothing: what pytest does between two calls moves a test by as much.

    Once that shows that the test changed, what else of its noise moved alike in every layout counts, within
    the range as well: or one half of a refactoring would be gated without the other.
    """
    worth = _worth_of_calls(old, old_calls, new, new_calls)
    names = [kind for kind in ALL_KINDS if kind in old.kinds or kind in new.kinds or kind in worth]
    called = {kind: _mean(worth.get(kind, [Fraction(0)])) for kind in names}
    kept = _beyond(_divided(old.kept, old_calls), _divided(new.kept, new_calls), Fraction(0))
    nothing = [Fraction(0)] * new.layouts
    sides = {
        kind: (
            old.per_call(kind, old_calls),
            [*map(sub, new.per_call(kind, new_calls), worth.get(kind, nothing))],
        )
        for kind in names
    }
    margins = {kind: old.margin(old.kinds.get(kind, (0,)), [kind]) / old_calls for kind in names}
    noises = tuple(map(sum, zip(*old.kinds.values()))) or (0,)
    margin = old.margin(noises, ALL_KINDS) / old_calls
    sure = sum(map(abs, called.values()), abs(kept)) - _CHANGED * old.mean / old_calls
    beyond, together = _grown_noise(sides, margins, margin, sure)
    noise = max(_sum(beyond.values()), together, key=abs)
    kinds = {kind: called[kind] + beyond[kind] for kind in names}
    found = Grown(kept, kinds, _sum(called.values()) + noise)
    return _NOTHING if abs(found.total) <= min(_FEW, FINEST * old.mean / old_calls) else found


def _grown_noise(
    sides: Mapping[str, _Side], margins: Mapping[str, Fraction], margin: Fraction, sure: Fraction
) -> tuple[dict[str, Fraction], Fraction]:
    """The growth of each kind of noise, and of all together, beyond their margins.

    ``sure``: by how much the rest shows that the test has changed; negative where it does not.
    """
    if not sides:
        return {}, Fraction(0)
    beyond = {kind: _beyond(*side, margins[kind]) for kind, side in sides.items()}
    before, now = ([*map(_sum, zip(*side))] for side in zip(*sides.values()))
    together = _beyond(before, now, margin)
    if sure + max(_sum(map(abs, beyond.values())), abs(together)) > 0:
        beyond = {kind: beyond[kind] or _moved_alike(*side) for kind, side in sides.items()}
        together = together or _moved_alike(before, now)
    return beyond, together


def ends_of_growth(
    old: Denoised, old_calls: int, new: Denoised, new_calls: int
) -> tuple[Fraction, Fraction]:
    """The least and the most that a call may have grown by, if layouts happened to hide it."""
    before, now = _divided(old.totals, old_calls), _divided(new.totals, new_calls)
    return _mean(now) - max(before), _mean(now) - min(before)


def left_open(
    old: Denoised, old_calls: int, new: Denoised, new_calls: int, told: Fraction
) -> Fraction:
    """How far the raw means of a call, in the layouts of both sides, moved otherwise than is ``told``.

    0 within what the test detects; beyond it, layouts do not agree.
    """
    pairs = min(old.layouts, new.layouts)
    before, now = _divided(old.totals, old_calls), _divided(new.totals, new_calls)
    apart = abs(_mean(now[:pairs]) - _mean(before[:pairs]) - told)
    return apart if apart > old.detects * _mean(before) else Fraction(0)


def _sum(values: Iterable[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


def _divided(values: Iterable[int], calls: int) -> list[Fraction]:
    return [Fraction(ir, calls) for ir in values]


def _mean(values: Sequence[Fraction]) -> Fraction:
    return _sum(values) / len(values)


def _beyond(before: Sequence[Fraction], now: Sequence[Fraction], margin: Fraction) -> Fraction:
    """The difference of the means, where the ranges lie apart by more than ``margin``; else 0.

    Layouts that the old side lacks are for the range: what noise costs in them is not known of that side.
    """
    if min(now) - max(before) > margin or min(before) - max(now) > margin:
        return _mean(now[: len(before)]) - _mean(before)
    return Fraction(0)


def _moved_alike(before: Sequence[Fraction], now: Sequence[Fraction]) -> Fraction:
    """The mean of the differences, layout by layout, if they have one sign and it is far from 0; else 0."""
    moves = [*map(sub, now, before)]
    pairs = len(moves)
    if pairs < _FEWEST_PAIRS or min(moves) <= 0 <= max(moves):
        return Fraction(0)
    mean = _mean(moves)
    squares = _sum((each - mean) ** 2 for each in moves)
    steady = mean**2 * pairs * (pairs - 1) > _ERRORS**2 * squares
    return mean if steady and abs(mean) > _SHIFT * (max(before) - min(before)) else Fraction(0)


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
