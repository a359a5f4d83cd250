"""The shift of a count, cleaned as the gate does and in ways that it might have been."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from unrelated import Counted

from pytest_instrcount.counts.noise import Noise, find_noise, moving_functions, split

#: raw count, in one layout; what the gate compares; all noise left out, whatever it grew by; what
#: the rules know left out, without measuring other layouts
COLUMNS = ("raw", "denoised", "dropped", "rules")


def known_noise(baseline: Mapping[str, Counted]) -> set[str]:
    """What any of the tests has shown to be noise."""
    known: set[str] = set()
    for counted in baseline.values():
        measured = counted.measurement
        known |= moving_functions((measured.profile, *measured.layouts))
    return known


def shifts(old: Counted, new: Counted, known: set[str]) -> dict[str, float]:
    """Column -> how far the count per call moved, as a fraction of the raw count."""
    before, after = old.measurement, new.measurement
    noise = find_noise((before.profile, *before.layouts), known)
    whole = Fraction(before.total_ir, before.calls)
    moved = {"raw": Fraction(after.total_ir, after.calls) - whole}
    for column, each in (("dropped", noise), ("rules", Noise())):
        now, then = (split(side.profile, each).kept for side in (after, before))
        moved[column] = Fraction(now, after.calls) - Fraction(then, before.calls)
    found = {column: float(move / max(Fraction(1), whole)) for column, move in moved.items()}
    return found | {"denoised": new.report["delta"] or 0.0}
