"""Taking noise out of a profile: by rules, and by what moved between layouts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.callgrind.parse import parse_profile
from pytest_instrcount.callgrind.profile import Profile, Row
from pytest_instrcount.counts.noise import (
    MEASURED,
    Noise,
    Taken,
    clean,
    differing_functions,
    find_noise,
    moving_functions,
)
from pytest_instrcount.counts.rules import (
    KINDS,
    LOOKUPS,
    MEMORY,
    RULES_VERSION,
    STRINGS,
    rule_of,
)
from pytest_instrcount.counts.standardize import standardize_profile

DATA = Path(__file__).parent.parent / "data" / "callgrind"
SAMPLES = sorted(DATA.glob("*.out"))
MALLOC, INSIDE, COPY = "obmalloc.c:PyObject_Malloc", "obmalloc.c:pymalloc_alloc", "libc:memcpy"
F, G = "a.c:f", "a.c:g"


def price_of(name: str) -> int:
    rule = rule_of(name)
    assert rule is not None
    assert rule.price > 0
    return rule.price


def profile_of(rows: dict[str, Row], callers: dict[str, dict[str, Row]] | None = None) -> Profile:
    return Profile(sum(row.ir for row in rows.values()), rows, callers or {})


def noisy(malloc: int = 210, inside: int = 90, calls: int = 2) -> Profile:
    """The function f allocates, and the allocator works within itself."""
    rows = {F: Row(500, 1), MALLOC: Row(malloc, calls + 1), INSIDE: Row(inside, 3)}
    callers = {
        MALLOC: {F: Row(malloc, calls), INSIDE: Row(10, 1)},
        INSIDE: {MALLOC: Row(inside, 3)},
    }
    return profile_of(rows, callers)


def layouts(*counts: int, calls: tuple[int, ...] = ()) -> list[Profile]:
    """Profiles in which g cost so much, beside a large f that is steady."""
    made = calls or (4,) * len(counts)
    return [
        profile_of({F: Row(10_000, 1), G: Row(ir, n)}, {G: {F: Row(ir, n)}})
        for ir, n in zip(counts, made)
    ]


@pytest.mark.parametrize("profile", [noisy(), noisy(malloc=900), noisy(inside=4000)])
def test_only_calls_from_elsewhere_count(profile: Profile) -> None:
    """However dear the allocator was this time, two calls are worth two prices."""
    cleaned = clean(profile, Noise())
    assert cleaned.kept == 500
    assert cleaned.total == 500 + 2 * price_of(MALLOC)
    assert cleaned.taken[MEMORY].calls == 2
    assert cleaned.taken[MEMORY].ir == profile.total - 500
    assert cleaned.taken[MEMORY].residual == profile.total - 500 - 2 * price_of(MALLOC)


def test_one_more_allocation_counts() -> None:
    """That is what prices are for."""
    assert clean(noisy(calls=3), Noise()).total - clean(noisy(), Noise()).total == price_of(MALLOC)


def test_nothing_is_clean() -> None:
    """Without noise a profile is what it was; without rows it is nothing."""
    assert clean(Profile(0, {}), Noise()).total == 0
    cleaned = clean(profile_of({F: Row(7, 1)}), Noise())
    assert (cleaned.kept, cleaned.total) == (7, 7)
    assert set(cleaned.taken) == {*KINDS, MEASURED}
    assert set(cleaned.taken.values()) == {Taken(0, 0, 0)}


def test_copying_is_taken_by_what_callers_paid() -> None:
    """Of libc's routines, only what calls from elsewhere cost is weighed against the price."""
    callers = {COPY: {F: Row(60, 2), MALLOC: Row(940, 1)}}
    cleaned = clean(profile_of({F: Row(500, 1), COPY: Row(1000, 3)}, callers), Noise())
    assert cleaned.taken[STRINGS] == Taken(ir=60, calls=2, priced=2 * price_of(COPY))
    assert cleaned.total == 500 + 2 * price_of(COPY)


def test_measured_noise_has_the_price_of_its_test() -> None:
    """A function beyond the rules is priced like one of theirs, and calls from it do not enter."""
    rows = {F: Row(500, 1), G: Row(80, 4), MALLOC: Row(70, 1)}
    callers = {G: {F: Row(80, 4)}, MALLOC: {G: Row(70, 1)}}
    cleaned = clean(profile_of(rows, callers), Noise(functions={G: 20}))
    assert cleaned.taken[MEASURED] == Taken(80, 4, 80)
    assert cleaned.taken[MEMORY] == Taken(70, 0, 0)
    assert cleaned.total == 580


@pytest.mark.parametrize(
    ("profiles", "moving"),
    [
        (layouts(100, 100, 100), set()),
        (layouts(100, 102), {G}),
        (layouts(100), set()),
        # much, but steady within a fiftieth of itself: its movement is the spread
        (layouts(9000, 9001), set()),
        (layouts(9000, 9400), {G}),
        # small beside the test: any movement is noise
        (layouts(200, 201), {G}),
    ],
)
def test_what_moves(profiles: list[Profile], moving: set[str]) -> None:
    """Noise is what moves by much of itself, or is small and moves at all."""
    assert moving_functions(profiles) == moving


def test_a_function_may_be_missing_in_a_layout() -> None:
    """Then it moved from its count to nothing; one with a rule is not looked for."""
    with_g = profile_of({F: Row(10_000, 1), G: Row(500, 1), MALLOC: Row(10, 1)})
    without = profile_of({F: Row(10_000, 1), MALLOC: Row(900, 1)})
    assert moving_functions([with_g, without]) == moving_functions([without, with_g]) == {G}


@pytest.mark.parametrize(
    ("profiles", "price"),
    [
        (layouts(100, 120), 25),
        (layouts(103, 120), 25),
        # calls that move have no steady worth, nor has what is called only from noise
        (layouts(100, 120, calls=(4, 5)), 0),
        (layouts(100, 120, calls=(0, 0)), 0),
    ],
)
def test_prices_are_means_of_the_first_layout(profiles: list[Profile], price: int) -> None:
    """A call is worth what it was in the layout that is compared."""
    assert find_noise(profiles) == Noise(RULES_VERSION, {G: price})


def test_known_noise_is_kept() -> None:
    """What moved elsewhere is noise here, too; without a price if it was never called here."""
    assert find_noise(layouts(100), {G: 1, "b.c:h": 1}).functions == {G: 25, "b.c:h": 0}
    assert find_noise(layouts(100)).functions == {}


def test_differing_functions_are_sorted_by_what_they_moved() -> None:
    """The largest difference first, equal ones by name."""
    first = profile_of({"c": Row(5, 1), "b": Row(5, 1), F: Row(1, 1), G: Row(7, 1)})
    second = profile_of({"c": Row(6, 1), "b": Row(4, 1), F: Row(90, 1), G: Row(7, 9)})
    assert differing_functions(first, second) == (F, "b", "c")
    assert differing_functions(first, first) == ()


NAMES = st.sampled_from([F, G, MALLOC, INSIDE, COPY, "dictobject.c:lookdict", "typeobject.c:x"])
ROWS = st.builds(Row, st.integers(0, 10**12), st.integers(0, 10**9))
PROFILES = st.builds(
    profile_of,
    st.dictionaries(NAMES, ROWS),
    st.dictionaries(NAMES, st.dictionaries(NAMES, ROWS)),
)


@given(PROFILES, st.dictionaries(st.sampled_from([F, G]), st.integers(0, 1000)))
def test_nothing_gets_lost(profile: Profile, extra: dict[str, int]) -> None:
    """What is kept and what is taken are the whole, but for copying within what is noise."""
    cleaned = clean(profile, Noise(functions=extra))
    copying = cleaned.taken[STRINGS].ir
    copied = profile.rows.get(COPY, Row(0, 0)).ir
    assert cleaned.kept + sum(each.ir for each in cleaned.taken.values()) == (
        profile.total - copied + copying
    )
    assert cleaned.total >= cleaned.kept >= 0


@given(PROFILES, PROFILES)
def test_cleaning_is_linear(a: Profile, b: Profile) -> None:
    """The clean difference of two profiles is the difference of what is clean."""
    noise = Noise(functions={G: 7})
    assert clean(a - b, noise).total == clean(a, noise).total - clean(b, noise).total


@given(st.lists(PROFILES, min_size=1, max_size=4))
def test_found_noise_is_of_these_profiles(profiles: list[Profile]) -> None:
    """No rule's function, no function that is nowhere, and no price below nothing."""
    noise = find_noise(profiles)
    assert noise.functions.keys() <= {F, G, "typeobject.c:x"}
    assert all(type(price) is int and price >= 0 for price in noise.functions.values())
    assert find_noise(profiles[:1]).functions == {}


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_real_profiles(sample: Path) -> None:
    """A real count keeps most of itself, and a difference with itself is nothing."""
    profile = standardize_profile(parse_profile(sample))
    cleaned = clean(profile, Noise())
    assert 2 * cleaned.kept >= profile.total
    assert clean(profile - profile, Noise()).total == 0
    if "json" in sample.stem:
        assert cleaned.taken[MEMORY].calls > 0
        assert cleaned.taken[LOOKUPS].calls > 0
