"""The `denoised` part of a baseline's JSON: the counts of each layout of memory."""

from __future__ import annotations

from pytest_instrcount.counts.denoised import Denoised
from pytest_instrcount.counts.noise import ALL_KINDS, Noise
from pytest_instrcount.gate.store.values import (
    Invalid,
    count_of,
    list_of,
    object_of,
    text_of,
)

#: Layouts that are read of a test.
MOST_LAYOUTS = 100
_KEYS = frozenset(("rules", "noisy", "wavering", "kept", "kinds", "calls"))


def denoised_values(denoised: Denoised) -> dict[str, object]:
    """Its JSON form."""
    return {
        "rules": denoised.noise.rules,
        "noisy": sorted(denoised.noise.functions),
        "wavering": sorted(denoised.noise.wavering),
        "kept": list(denoised.kept),
        "kinds": {kind: list(ir) for kind, ir in denoised.kinds.items()},
        # what they cost, then how often; most are called as often in every layout: that is said once
        "calls": {
            name: [denoised.costs[name], *(calls if len(set(calls)) > 1 else calls[:1])]
            for name, calls in denoised.calls.items()
        },
    }


def parse_denoised(found: object, total_ir: int) -> Denoised:
    """Read it from JSON, for a test whose count is ``total_ir``. Raises Invalid."""
    parts = object_of(found, "denoised", _KEYS)
    kinds, calls = (object_of(parts[key], f"denoised: {key}") for key in ("kinds", "calls"))
    numbers = {
        name: list_of(each, "denoised: calls", 1 + MOST_LAYOUTS) for name, each in calls.items()
    }
    costs = {name: count_of(each[0], "denoised: a cost") for name, each in numbers.items()}
    kept = _counts(parts["kept"])
    layouts = len(kept)
    if not kinds.keys() <= set(ALL_KINDS):
        raise Invalid("denoised: an unknown kind")
    known = Denoised(
        noise=Noise(
            count_of(parts["rules"], "denoised: rules", least=1),
            *(_names(parts[key], f"denoised: {key}") for key in ("noisy", "wavering")),
        ),
        kept=kept,
        kinds={kind: _counts(kinds[kind], layouts) for kind in ALL_KINDS if kind in kinds},
        calls={
            name: _counts(each[1:] * layouts if len(each) == 2 else each[1:], layouts)
            for name, each in numbers.items()
        },
        costs=costs,
    )
    if known.totals[0] != total_ir:
        raise Invalid("denoised: the usual layout is not total_ir")
    if sum(known.costs.values()) > sum(known.totals):
        raise Invalid("denoised: calls cost more than all")
    return known


def _names(found: object, what: str) -> frozenset[str]:
    return frozenset(text_of(name, what) for name in list_of(found, what))


def _counts(found: object, layouts: int = 0) -> tuple[int, ...]:
    """A count for each layout."""
    counts = list_of(found, "denoised: counts", MOST_LAYOUTS)
    if layouts and len(counts) != layouts:
        raise Invalid("denoised: not a count for each layout")
    return tuple(count_of(each, "denoised: a count") for each in counts)
