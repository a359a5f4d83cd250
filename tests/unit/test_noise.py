"""Splitting a profile into what is kept and kinds of noise: by rules, and by what moved between layouts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.noise import (
    ALL_KINDS,
    INNER,
    MEASURED,
    WAVERING,
    Noise,
    differing_functions,
    find_noise,
    moving_functions,
    split,
)
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.rules import LOOKUPS, MEMORY, METHODS, STRINGS
from pytest_instrcount.counts.standardize import standardize_profile

DATA = Path(__file__).parent.parent / "data" / "callgrind"
SAMPLES = sorted(DATA.glob("*.out"))
MALLOC, INSIDE, COPY = "obmalloc.c:PyObject_Malloc", "obmalloc.c:pymalloc_alloc", "libc:memcpy"
F, G = "a.c:f", "a.c:g"


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
def test_what_the_allocator_does_within_itself_belongs_to_the_call(profile: Profile) -> None:
    """Two calls came from elsewhere; they cost all that is the allocator's."""
    found = split(profile, Noise())
    assert (found.kept, found.total) == (500, profile.total)
    assert found.kinds[MEMORY] == profile.total - 500
    assert found.calls[MALLOC] == 2
    assert found.costs[MALLOC] + found.costs[INSIDE] == profile.total - 500
    assert found.calls[INSIDE] == 0


def test_nothing_is_kept_whole() -> None:
    """Without noise a profile is what it was; without rows it is nothing."""
    assert split(Profile(0, {}), Noise()).total == 0
    found = split(profile_of({F: Row(7, 1)}), Noise())
    assert (found.kept, found.calls) == (7, {})
    assert found.kinds == dict.fromkeys(ALL_KINDS, 0)


def test_copying_belongs_to_the_caller() -> None:
    """What libc copies for the allocator is a kind of its own, the rest is the program's copying."""
    callers = {COPY: {F: Row(60, 2), MALLOC: Row(940, 1)}}
    found = split(profile_of({F: Row(500, 1), COPY: Row(1000, 3)}, callers), Noise())
    assert (found.kinds[STRINGS], found.kinds[INNER], found.calls[COPY]) == (60, 940, 2)
    assert found.costs[COPY] == 60


def test_a_lookup_belongs_to_the_cache_that_asked() -> None:
    """A dict that the cache of methods asks is the cache's affair, one that the program asks is not."""
    lookup, cache = "dictobject.c:_Py_dict_lookup", "typeobject.c:_PyType_Lookup"
    rows = {F: Row(500, 1), cache: Row(40, 2), lookup: Row(90, 3)}
    callers = {cache: {F: Row(100, 2)}, lookup: {F: Row(30, 1), cache: Row(60, 2)}}
    found = split(profile_of(rows, callers), Noise())
    assert (found.kinds[METHODS], found.kinds[LOOKUPS]) == (100, 30)
    assert found.calls == {cache: 2, lookup: 1}


def test_measured_noise_and_what_wavers() -> None:
    """Calls from measured noise do not enter; those from what wavers, as the evaluation loop, do."""
    rows = {F: Row(500, 1), G: Row(80, 4), MALLOC: Row(70, 2)}
    callers = {G: {F: Row(80, 4)}, MALLOC: {G: Row(30, 1), F: Row(40, 1)}}
    found = split(profile_of(rows, callers), Noise(functions=frozenset({G})))
    assert (found.kinds[MEASURED], found.kinds[MEMORY], found.calls[MALLOC]) == (110, 40, 1)
    found = split(profile_of(rows, callers), Noise(wavering=frozenset({G})))
    assert (found.kinds[WAVERING], found.kinds[MEMORY], found.calls[MALLOC]) == (80, 70, 2)


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


def test_known_noise_is_kept() -> None:
    """What moved elsewhere is noise here, too, though it was never called here; programs never are."""
    loop = "ceval.c:_PyEval_EvalFrameDefault"
    assert find_noise(layouts(100), {G, "b.c:h", loop}).functions == {G, "b.c:h"}
    assert find_noise(layouts(100)) == Noise()


def test_what_moves_by_little_wavers() -> None:
    """It is large: to take it for noise as a whole would make the gate blind."""
    assert find_noise(layouts(9000, 9001)) == Noise(wavering=frozenset({G}))


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


@given(PROFILES, st.frozensets(st.sampled_from([F, G])))
def test_nothing_gets_lost(profile: Profile, extra: frozenset[str]) -> None:
    """What is kept and all kinds are the whole, and costs of calls are those kinds'."""
    found = split(profile, Noise(functions=extra))
    assert found.total == profile.total
    assert found.kept >= 0
    assert min(found.kinds.values()) >= 0
    kinds = sum(ir for kind, ir in found.kinds.items() if kind != INNER)
    assert sum(found.costs.values()) == kinds


@given(st.lists(PROFILES, min_size=1, max_size=4))
def test_found_noise_is_of_these_profiles(profiles: list[Profile]) -> None:
    """No rule's function, and no function that is nowhere."""
    noise = find_noise(profiles)
    assert noise.functions | noise.wavering <= {F, G, "typeobject.c:x"}
    assert not noise.functions & noise.wavering
    assert find_noise(profiles[:1]) == Noise()


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_real_profiles(sample: Path) -> None:
    """A real count keeps most of itself."""
    profile = standardize_profile(parse_profile(sample))
    found = split(profile, Noise())
    assert found.total == profile.total
    assert 2 * found.kept >= profile.total
    if "json" in sample.stem:
        assert sum(found.calls.values()) > 0
        assert found.kinds[MEMORY] > 0
        assert found.kinds[LOOKUPS] > 0
