"""The `denoised` part of a baseline's JSON: the counts of each layout of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from pytest_instrcount.counts.denoised import Denoised
from pytest_instrcount.counts.noise import ALL_KINDS, Noise
from pytest_instrcount.gate.store.values import LARGEST_COUNT, Invalid, count_in

_MOST_LAYOUTS = 100
_KEYS = frozenset(("rules", "noisy", "wavering", "kept", "kinds", "calls", "costs"))


def denoised_values(denoised: Denoised) -> dict[str, object]:
    """What of it is in the file."""
    return {
        "rules": denoised.noise.rules,
        "noisy": sorted(denoised.noise.functions),
        "wavering": sorted(denoised.noise.wavering),
        "kept": list(denoised.kept),
        "kinds": {kind: list(ir) for kind, ir in denoised.kinds.items()},
        # most are called as often in every layout: that is said once
        "calls": {
            name: list(calls if len(set(calls)) > 1 else calls[:1])
            for name, calls in denoised.calls.items()
        },
        "costs": dict(denoised.costs),
    }


def parse_denoised(found: object, total_ir: int) -> Denoised:
    """What is in the file, if it is of a test whose count is ``total_ir``. Raises Invalid."""
    if not isinstance(found, dict) or found.keys() != _KEYS:
        raise Invalid("denoised is not an object with the right keys")
    noisy, wavering = (_names(found, key) for key in ("noisy", "wavering"))
    kinds, calls, costs = (found[key] for key in ("kinds", "calls", "costs"))
    if not all(isinstance(each, dict) for each in (kinds, calls, costs)):
        raise Invalid("denoised: kinds, calls or costs is not an object")
    kept = _counts(found["kept"])
    layouts = len(kept)
    if not kinds.keys() <= set(ALL_KINDS) or calls.keys() != costs.keys():
        raise Invalid("denoised: an unknown kind, or calls without a cost")
    known = Denoised(
        noise=Noise(count_in(found, "rules", least=1), noisy, wavering),
        kept=kept,
        kinds={str(kind): _counts(kinds[kind], layouts) for kind in ALL_KINDS if kind in kinds},
        calls={
            str(name): _counts(each * layouts if _is_single(each) else each, layouts)
            for name, each in calls.items()
        },
        costs={str(name): count_in(costs, name) for name in costs},
    )
    if known.totals[0] != total_ir:
        raise Invalid("denoised: the usual layout is not total_ir")
    if sum(known.costs.values()) > sum(known.totals):
        raise Invalid("denoised: calls cost more than all")
    return known


def _is_single(found: object) -> TypeGuard[list[object]]:
    return isinstance(found, list) and len(found) == 1


def _names(found: Mapping[str, object], key: str) -> frozenset[str]:
    value = found[key]
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Invalid(f"denoised: {key} is not a list of names")
    return frozenset(value)


def _counts(found: object, layouts: int = 0) -> tuple[int, ...]:
    """A count for each layout."""
    if not isinstance(found, list) or not 0 < len(found) <= _MOST_LAYOUTS:
        raise Invalid("denoised: no list of counts")
    if layouts and len(found) != layouts:
        raise Invalid("denoised: not a count for each layout")
    if not all(type(each) is int and 0 <= each <= LARGEST_COUNT for each in found):
        raise Invalid("denoised: a count is no integer from 0 to 2^63")
    return tuple(found)
