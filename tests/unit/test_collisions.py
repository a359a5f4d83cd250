"""Growth by other collisions of keys, as other hash seeds show it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.gate.collisions import hangs_on_collisions, in_tables, settle_collisions
from pytest_instrcount.gate.compare import Delta, compare
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.store.schema import to_baseline

LOOKUP, INSERT = "dictobject.c:unicodekeys_lookup_unicode", "dictobject.c:insertdict"
SORT = "listobject.c:list_sort"


def measured(
    lookup: int, insert: int = 10_000, sort: int = 80_000, calls: int = 100
) -> Measurement:
    rows = {LOOKUP: Row(lookup, calls), INSERT: Row(insert, calls), SORT: Row(sort, 1)}
    callers = {LOOKUP: {SORT: rows[LOOKUP]}}
    total = lookup + insert + sort
    one = Measurement("t.py::test_a", total, 1, 20, "fork", rows, {}, callers)
    return replace(one, layouts=(one.profile,) * 4)


def under_seeds(new: Measurement, *lookups: int) -> Measurement:
    usual = in_tables(new.rows)
    calls = usual[LOOKUP].calls
    return replace(new, seeds=tuple(usual | {LOOKUP: Row(each, calls)} for each in lookups))


def delta(old: Measurement, new: Measurement) -> Delta:
    found = compare(new, to_baseline(old, {}), {})
    assert isinstance(found, Delta)
    return settle_collisions(found)


OLD = measured(10_000)


@pytest.mark.parametrize(
    ("new", "limit", "hangs"),
    [
        (measured(12_000), "1%", True),
        (measured(8000), "1%", True),
        (measured(12_000), "3%", False),
        # it costs more since it is asked more often
        (measured(12_000, calls=120), "1%", False),
        (measured(12_000, sort=84_000), "1%", False),
        # most of the change is not its own
        (measured(15_000, sort=82_000), "1%", True),
        # one hides the other
        (measured(8000, sort=83_000), "1%", True),
        (measured(10_000), "1%", False),
        (measured(10_000, insert=12_000), "1%", True),
    ],
)
def test_other_seeds_are_asked_where_the_verdict_hangs_on_it(
    new: Measurement, limit: str, *, hangs: bool
) -> None:
    assert hangs_on_collisions(delta(OLD, new), parse_limit(limit)) is hangs


def test_they_are_asked_once() -> None:
    new = under_seeds(measured(12_000), 12_000, 12_000)
    assert not hangs_on_collisions(delta(OLD, new), parse_limit("1%"))


@pytest.mark.parametrize(
    ("seeds", "growth", "hidden"),
    [
        ((11_000, 10_500, 9000), 0, 6000),
        ((8000, 8500, 14_000), 0, 12_000),
        # dearer under each seed: it has grown
        ((12_100, 12_000, 11_900), 2000, 0),
        ((12_000, 12_000, 12_000), 2000, 0),
    ],
)
def test_growth_within_the_range_of_seeds_is_chance(
    seeds: tuple[int, ...], growth: int, hidden: int
) -> None:
    gated = delta(OLD, under_seeds(measured(12_000), *seeds)).gated
    assert gated.new - gated.old == growth
    assert gated.noise["look-ups"] == growth
    assert gated.hidden == hidden
    assert gated.collisions == max(12_000, *seeds) - min(12_000, *seeds)


def test_what_else_has_grown_counts() -> None:
    gated = delta(OLD, under_seeds(measured(12_000, sort=82_000), 11_000, 10_500, 9000)).gated
    assert gated.fraction == Fraction(2, 100)


def test_cheaper_by_chance_hides_nothing() -> None:
    new = measured(8000, sort=83_000)
    assert delta(OLD, new).gated.fraction == Fraction(1, 100)
    gated = delta(OLD, under_seeds(new, 11_000, 10_500, 9000)).gated
    assert gated.fraction == Fraction(3, 100)


def test_more_calls_count_at_the_price_of_before() -> None:
    new = under_seeds(measured(24_000, calls=200), 22_000, 21_000, 19_000)
    gated = delta(OLD, new).gated
    assert gated.new - gated.old == 10_000


def test_probing_that_is_compiled_into_others_is_left_out_as_well() -> None:
    """It is no noise: the layouts of memory do not move it, and it has no rule."""
    new = measured(10_000, insert=12_000)
    seeds = tuple(in_tables(new.rows) | {INSERT: Row(each, 100)} for each in (11_000, 10_500, 9000))
    found = delta(OLD, replace(new, seeds=seeds))
    assert found.gated.new == found.gated.old
    assert INSERT not in {each.name for each in found.function_deltas}


def test_what_seeds_do_not_move_is_growth() -> None:
    """Integers are their own hashes."""
    new = measured(12_000, insert=15_000)
    found = delta(OLD, under_seeds(new, 11_000, 10_500, 9000))
    assert found.gated.new - found.gated.old == 5000
    assert [each.name for each in found.function_deltas] == [INSERT]


def test_calls_that_depend_on_the_seed_hide_no_growth() -> None:
    """The order of a set decides how often a dict is asked: each call is dearer, under each seed."""
    new = measured(12_000)
    rows = [in_tables(new.rows) | {LOOKUP: Row(121 * n, n)} for n in (50, 100, 150)]
    gated = delta(OLD, replace(new, seeds=tuple(rows))).gated
    assert gated.new - gated.old == 2000


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("dictobject.c:insertdict", True),
        ("setobject.c:set_lookkey [libpython3]", True),
        ("???:_Py_dict_lookup [python3.15]", True),
        ("???:_PySet_Contains [python3.15]", True),
        ("???:0x6af7d0 [python3.15]", True),
        ("???:_PyEval_EvalFrameDefault [python3.15]", False),
        ("???:PyList_Append [python3.15]", False),
        ("listobject.c:list_sort", False),
    ],
)
def test_functions_of_dicts_and_sets(name: str, *, is_one: bool) -> None:
    assert bool(in_tables({name: Row(1, 1)})) is is_one
