"""What is measured in more layouts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.gate.compare import Delta, compare
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.store.schema import to_baseline
from pytest_instrcount.gate.suspicion import may_have_moved

MALLOC = "malloc.c:malloc"


def measured(calls: int = 1, mallocs: int = 10, **own: int) -> Measurement:
    rows = {f"{name}.c:{name}": Row(ir * calls, calls) for name, ir in own.items()}
    rows[MALLOC] = Row(50 * mallocs * calls, mallocs * calls)
    return Measurement(
        "t.py::test_a",
        sum(row.ir for row in rows.values()),
        calls,
        20,
        "fork",
        rows,
        {},
        callers={MALLOC: {"a.c:a": rows[MALLOC]}},
    )


def delta(old: Measurement, new: Measurement) -> Delta:
    found = compare(new, to_baseline(old, {}), {})
    assert isinstance(found, Delta)
    return found


@pytest.mark.parametrize(
    ("a", "b", "limit", "suspected"),
    [
        (50_000, 50_000, "0%", False),
        (50_400, 50_000, "1%", False),
        (51_500, 50_000, "1%", True),
        (48_500, 50_000, "1%", True),
        # what is outside of noise is exact: what one function lost and another gained is no change
        (51_500, 48_500, "1%", False),
        (50_001, 50_000, "0%", True),
        (50_300, 50_000, "200ir", True),
        (50_100, 50_000, "200ir", False),
    ],
)
def test_functions(a: int, b: int, limit: str, suspected: bool) -> None:
    old, new = measured(a=50_000, b=50_000), measured(a=a, b=b)
    assert may_have_moved(delta(old, new), parse_limit(limit)) is suspected


def test_counts_are_per_call() -> None:
    old, new = measured(a=50_000), measured(calls=7, a=50_000)
    assert not may_have_moved(delta(old, new), parse_limit("0%"))


@pytest.mark.parametrize(
    ("mallocs", "limit", "suspected"),
    [(500, "1%", False), (500, "0.1%", True), (1500, "1%", True)],
)
def test_what_layouts_may_hide_is_suspected(mallocs: int, limit: str, suspected: bool) -> None:
    """The usual layout is the dearest of the baseline: growth of 500 would not be seen in it."""
    old = measured(a=99_000)
    cheap = Profile(
        old.total_ir - mallocs, {**old.rows, MALLOC: Row(500 - mallocs, 10)}, old.callers
    )
    old = replace(old, layouts=(old.profile, cheap))
    assert may_have_moved(delta(old, measured(a=99_000)), parse_limit(limit)) is suspected


def test_noise_that_looks_like_a_change_is_suspected() -> None:
    """Though far below the limit: the next layouts tell whether anything has changed at all."""
    old = measured(a=99_000)
    dearer = replace(old, layouts=(old.profile, old.profile))
    new = measured(a=99_000)
    new = replace(new, total_ir=new.total_ir + 40, rows={**new.rows, MALLOC: Row(540, 10)})
    new = replace(new, callers={MALLOC: {"a.c:a": Row(540, 10)}})
    assert may_have_moved(delta(dearer, new), parse_limit("1%"))
    assert not may_have_moved(delta(dearer, old), parse_limit("1%"))
