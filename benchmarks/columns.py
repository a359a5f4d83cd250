"""The shift of a count, cleaned as the gate does and in ways that it might have been."""

from __future__ import annotations

from collections.abc import Mapping

from unrelated import Counted

from pytest_instrcount.callgrind.profile import Profile
from pytest_instrcount.counts.noise import Noise, clean, find_noise, moving_functions

#: raw count; what the gate compares; noise left out and not priced; rules only, priced, without
#: other layouts; only what other layouts had shown left out, without rules
COLUMNS = ("raw", "denoised", "dropped", "rules", "layouts")


def known_noise(baseline: Mapping[str, Counted]) -> dict[str, int]:
    """What any of the tests has shown to be noise."""
    known: dict[str, int] = {}
    for counted in baseline.values():
        measured = counted.measurement
        known |= dict.fromkeys(moving_functions((measured.profile, *measured.layouts)), 0)
    return known


def shifts(old: Counted, new: Counted, known: Mapping[str, int]) -> dict[str, float]:
    """Column -> how far the count per call moved, as a fraction."""
    before, after = old.measurement, new.measurement
    profiles = (before.profile, *before.layouts)
    noise, seen = find_noise(profiles, known), _moved(profiles)
    pairs = {
        "raw": (before.total_ir, after.total_ir),
        "dropped": (clean(before.profile, noise).kept, clean(after.profile, noise).kept),
        "rules": (clean(before.profile, Noise()).total, clean(after.profile, Noise()).total),
        "layouts": (_without(before.profile, seen), _without(after.profile, seen)),
    }
    found = {
        name: now * before.calls / (max(1, then) * after.calls) - 1
        for name, (then, now) in pairs.items()
    }
    found["denoised"] = new.report["delta"] or 0.0
    return found


def _without(profile: Profile, functions: set[str]) -> int:
    return profile.total - sum(row.ir for name, row in profile.rows.items() if name in functions)


def _moved(profiles: tuple[Profile, ...]) -> set[str]:
    """Every function whose count is not the same in all layouts, known to a rule or not."""
    counts: dict[str, set[int]] = {}
    for profile in profiles:
        for name in {name for each in profiles for name in each.rows}:
            row = profile.rows.get(name)
            counts.setdefault(name, set()).add(row.ir if row else 0)
    return {name for name, seen in counts.items() if len(seen) > 1}
