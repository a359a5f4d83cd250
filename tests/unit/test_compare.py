"""Comparing: new, incomparable, or a delta in exact fractions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import Noise
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.rules import RULES_VERSION
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.compare import (
    Delta,
    FunctionDelta,
    Gated,
    Incomparable,
    compare,
    differing,
)
from pytest_instrcount.gate.gate import Verdict, judge
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import measured_result
from pytest_instrcount.gate.store.schema import Baseline, to_baseline

FACTS = {"valgrind": "3.19.0", "glibc": "2.36"}


def measurement(
    total_ir: int = 1000,
    calls: int = 1,
    rows: Mapping[str, Row] | None = None,
    packages: Mapping[str, str] | None = None,
) -> Measurement:
    return Measurement("t.py::a", total_ir, calls, 20, "fork", rows or {}, packages or {})


def found(old: Measurement, facts: Mapping[str, str] = FACTS) -> Baseline:
    return to_baseline(old, facts)


def delta(old: Measurement, new: Measurement) -> Delta:
    comparison = compare(new, found(old), FACTS)
    assert isinstance(comparison, Delta)
    return comparison


def test_missing_is_new() -> None:
    """Without a baseline there is nothing to compare, not a growth from zero."""
    assert compare(measurement(), None, FACTS) is None


@pytest.mark.parametrize(
    ("then", "now", "differences"),
    [
        ({}, {"a": "1"}, (("a", "(none)", "1"),)),
        ({"a": "1"}, {}, (("a", "1", "(none)"),)),
        ({"a": "1", "b": "2"}, {"a": "1", "b": "3"}, (("b", "2", "3"),)),
        ({"b": "1", "a": "1"}, {"b": "2", "a": "2"}, (("a", "1", "2"), ("b", "1", "2"))),
        ({"a": ""}, {}, (("a", "", "(none)"),)),
        ({"a": "(none)"}, {}, (("a", "(none)", "(none)"),)),
    ],
)
def test_any_fact_makes_incomparable(
    then: dict[str, str], now: dict[str, str], differences: tuple[tuple[str, str, str], ...]
) -> None:
    """Another value, a fact more, a fact less: named, sorted, and never a regression."""
    huge = measurement(10**9)
    assert compare(huge, found(measurement(), then), now) == Incomparable(differences)


def test_another_way_of_measuring_is_incomparable() -> None:
    """Warm-up and isolation are named; the number of calls is divided out."""
    old = Measurement("t.py::a", 1000, 1, 20, "fork", {}, {})
    other = Measurement("t.py::a", 1000, 1, 1, "process", {}, {})
    assert compare(other, found(old), FACTS) == Incomparable(
        (("isolation", "fork", "process"), ("warmup", "20", "1"))
    )
    assert delta(old, Measurement("t.py::a", 5000, 5, 20, "fork", {}, {})).gated.fraction == 0


def test_no_facts_are_the_same_facts() -> None:
    """Two empty environments are equal."""
    assert isinstance(compare(measurement(), found(measurement(), {}), {}), Delta)


def test_packages_explain_and_never_prevent() -> None:
    """Versions that differ ride on the delta."""
    old = measurement(packages={"attrs": "23.1", "Babel": "2.14", "gone": "1", "the_same": "1"})
    new = measurement(packages={"attrs": "23.2", "babel": "2.16", "come": "2", "The-Same": "1"})
    assert delta(old, new).packages_changed == (
        ("attrs", "23.1", "23.2"),
        ("babel", "2.14", "2.16"),
        ("come", "(none)", "2"),
        ("gone", "1", "(none)"),
    )


@pytest.mark.parametrize(
    ("old", "new", "fraction"),
    [
        ((1000, 1), (1000, 1), Fraction(0)),
        ((1000, 1), (10_000, 10), Fraction(0)),
        ((1000, 1), (1010, 1), Fraction(1, 100)),
        ((1000, 1), (990, 1), Fraction(-1, 100)),
        ((1000, 3), (1001, 3), Fraction(1, 1000)),
        ((10**18, 1), (10**18 + 200, 1), Fraction(200, 10**18)),
        ((1000, 1), (0, 1), Fraction(-1)),
        ((0, 1), (0, 5), Fraction(0)),
        ((0, 1), (5, 1), None),
    ],
)
def test_growth_is_exact(
    old: tuple[int, int], new: tuple[int, int], fraction: Fraction | None
) -> None:
    """Per call, unrounded; from zero there is no fraction."""
    assert Gated(Fraction(*old), Fraction(*new)).fraction == fraction
    assert delta(measurement(*old), measurement(*new)).gated.fraction == fraction


def profile(allocations: int, price: int, rest: int = 10_000) -> Profile:
    """So many allocations of this price, called by a function that costs the rest."""
    ir = allocations * price
    rows = {"a.c:f": Row(rest, 1), "obmalloc.c:PyObject_Malloc": Row(ir, allocations)}
    return Profile(rest + ir, rows, {"obmalloc.c:PyObject_Malloc": {"a.c:f": Row(ir, allocations)}})


def measured(first: Profile, *layouts: Profile) -> Measurement:
    return Measurement(
        "t.py::a", first.total, 1, 20, "fork", first.rows, {}, first.callers, layouts
    )


def test_the_denominator_is_the_mean_raw_count() -> None:
    """The numbers that a line shows divide to its percentage."""
    old = measured(profile(10, 70), profile(10, 70), profile(10, 85))
    assert delta(old, measured(profile(10, 80))).gated.fraction == 0
    gated = delta(old, measured(profile(12, 80))).gated
    price = Fraction(70 + 85, 2)
    assert gated.old == 10_000 + 10 * price
    assert gated.fraction == 2 * price / (10_000 + 10 * price)
    assert gated.new == gated.old + 2 * price
    assert gated.noise == {"memory": 2 * price}


def test_a_test_detects_no_less_than_what_its_layouts_leave_open() -> None:
    """Of four, one is cheaper than before and three dearer: on average by 1 %, which is no growth."""
    before, limit = found(measured(*[profile(0, 0)] * 5)), Limit(Fraction(1, 100), None)
    now = measured(*[profile(0, 0, rest) for rest in (9900, 9900, 10_100, 10_200, 10_200)])
    comparison = compare(now, before, FACTS)
    verdict = judge(comparison, limit)
    result = measured_result(now, before, comparison, verdict, limit)
    assert verdict is Verdict.unchanged
    assert result.detects == Fraction(1, 100)


def test_old_and_new_are_cleaned_alike() -> None:
    """Allocations that cost ten times as much are not noise: all of it counts, nothing is taken off."""
    old = measured(profile(10, 80), profile(10, 80), profile(10, 80))
    assert delta(old, measured(profile(10, 800))).gated.new == 10_000 + 10 * 800


def test_a_baseline_without_layouts_is_compared_as_it_was_counted() -> None:
    """Nothing is known of its noise."""
    old = replace(to_baseline(measured(profile(10, 70)), FACTS), denoised=None)
    comparison = compare(measured(profile(10, 80)), old, FACTS)
    assert isinstance(comparison, Delta)
    assert comparison.gated.fraction == Fraction(100, 10_700)
    assert comparison.gated.floor == 0


def test_other_rules_are_incomparable() -> None:
    """A count that was cleaned by other rules says nothing about this one."""
    old = to_baseline(measured(profile(10, 70)), FACTS)
    assert old.denoised is not None
    old = replace(old, denoised=replace(old.denoised, noise=Noise(RULES_VERSION + 1)))
    new = measured(profile(10, 70))
    assert compare(new, old, FACTS) == Incomparable(
        (("rules", str(RULES_VERSION + 1), str(RULES_VERSION)),)
    )


def test_function_deltas_are_per_call_and_sorted_by_size() -> None:
    """The largest change first, whichever way; what did not change is left out."""
    old = measurement(
        1000, 1, {"same": Row(100, 1), "up": Row(100, 1), "down": Row(500, 5), "gone": Row(9, 1)}
    )
    new = measurement(
        2000, 2, {"same": Row(200, 2), "up": Row(300, 3), "down": Row(800, 8), "come": Row(9, 4)}
    )
    assert delta(old, new).function_deltas == (
        FunctionDelta("down", Fraction(-100), Fraction(5), Fraction(4)),
        FunctionDelta("up", Fraction(50), Fraction(1), Fraction(3, 2)),
        FunctionDelta("gone", Fraction(-9), Fraction(1), Fraction(0)),
        FunctionDelta("come", Fraction(9, 2), Fraction(0), Fraction(2)),
    )


def test_calls_alone_are_a_change() -> None:
    """The same cost in more calls is shown, ties by name."""
    old = measurement(rows={"b": Row(500, 1), "a": Row(500, 1)})
    new = measurement(rows={"b": Row(500, 2), "a": Row(500, 2)})
    assert [one.name for one in delta(old, new).function_deltas] == ["a", "b"]


def test_equal_runs_have_no_function_deltas() -> None:
    """Small rows, which the baseline does not name, are no change."""
    rows = {"big": Row(10**6, 1), "tiny": Row(1, 1), "malloc.c:free": Row(1, 1)}
    same = measurement(10**6 + 2, 1, rows)
    assert delta(same, same).function_deltas == ()


def test_a_row_named_then_is_compared_though_small_now() -> None:
    """A function that shrank below 0.01 % did not vanish."""
    old = measurement(10**6, 1, {"big": Row(10**6, 1), "f": Row(500, 9)})
    new = measurement(10**6, 1, {"big": Row(10**6, 1), "f": Row(1, 9)})
    assert delta(old, new).function_deltas == (
        FunctionDelta("f", Fraction(-499), Fraction(9), Fraction(9)),
    )


row_maps = st.dictionaries(
    st.sampled_from(["a", "b", "malloc.c:free", "c", "(other)"]),
    st.builds(Row, st.integers(-5, 10**6), st.integers(0, 100)),
)


@given(row_maps, row_maps)
def test_function_deltas_sum_to_the_change(old: dict[str, Row], new: dict[str, Row]) -> None:
    """Folding loses nothing: before + deltas = after."""
    before, after = (sum(row.ir for row in rows.values()) for rows in (old, new))
    assume(before >= 0 and after >= 0)  # no measurement is less than nothing
    deltas = delta(measurement(10**6, 1, old), measurement(10**6, 1, new)).function_deltas
    assert before + sum(one.ir for one in deltas) == after


facts = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"))


@given(facts, facts)
def test_differing_is_empty_for_equals_only(old: dict[str, str], new: dict[str, str]) -> None:
    """Nothing differs exactly if the two are equal; the mirror has the same keys."""
    assert (differing(old, new) == ()) == (old == new)
    assert [one[0] for one in differing(old, new)] == [one[0] for one in differing(new, old)]


@pytest.mark.parametrize(
    ("now", "verdict"), [(1000, Verdict.unchanged), (1001, Verdict.incomparable)]
)
def test_another_release_is_comparable_where_it_counts_the_same(now: int, verdict: Verdict) -> None:
    """Of CPython. A difference may be its own, and so says nothing of the test."""
    old = {"python": "3.13.1 (main)", "valgrind": "3.24.0", "machine": "x86_64"}
    new = old | {"python": "3.13.2 (main)"}
    before, limit = found(measurement(), old), Limit(Fraction(1, 100), None)
    comparison = compare(measurement(now), before, new)
    assert judge(comparison, limit) is verdict
    result = measured_result(measurement(now), before, comparison, verdict, limit)
    if verdict is Verdict.incomparable:
        assert result.cause is Cause.environment and result.delta is None
        assert [fact for fact, *_ in result.differences] == ["python"]
    else:
        assert result.cause is None and result.delta == 0 and not result.differences


def test_other_releases_with_another_fact_are_incomparable() -> None:
    """However they count."""
    old = {"python": "3.13.1", "simd": "avx"}
    assert compare(
        measurement(), found(measurement(), old), {"python": "3.13.2", "simd": "avx2"}
    ) == Incomparable((("python", "3.13.1", "3.13.2"), ("simd", "avx", "avx2")))
