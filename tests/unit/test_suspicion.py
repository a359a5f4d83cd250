"""What is measured again after one look at both sides."""

from __future__ import annotations

import pytest

from pytest_instrcount.callgrind.profile import Row
from pytest_instrcount.gate.baseline import Found
from pytest_instrcount.gate.compare import Delta, compare
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.measurement import Measurement
from pytest_instrcount.gate.schema import to_baseline
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
    found = compare(new, Found(to_baseline(old, {})), {})
    assert isinstance(found, Delta)
    return found


@pytest.mark.parametrize(
    ("a", "b", "limit", "suspected"),
    [
        (50_000, 50_000, "0%", False),
        (50_400, 50_000, "1%", False),
        (51_500, 50_000, "1%", True),
        (48_500, 50_000, "1%", True),
        # what one function has lost hides what another has gained: seen all the same
        (51_500, 48_500, "1%", True),
        (50_001, 50_000, "0%", True),
        (50_300, 50_000, "200ir", True),
        (50_100, 50_000, "200ir", False),
    ],
)
def test_functions(a: int, b: int, limit: str, suspected: bool) -> None:
    old, new = measured(a=50_000, b=50_000), measured(a=a, b=b)
    assert may_have_moved(delta(old, new), parse_limit(limit)) is suspected


def test_calls_of_what_is_noise_have_their_price() -> None:
    """Ten more allocations of 90 each are 0.9 % of 100,000; what they cost this time is nothing."""
    old = measured(a=50_000, b=50_000)
    assert not may_have_moved(
        delta(old, measured(mallocs=20, a=50_000, b=50_000)), parse_limit("1%")
    )
    assert may_have_moved(delta(old, measured(mallocs=30, a=50_000, b=50_000)), parse_limit("1%"))


def test_counts_are_per_call() -> None:
    old, new = measured(a=50_000), measured(calls=7, a=50_000)
    assert not may_have_moved(delta(old, new), parse_limit("0%"))
