"""What of a change is beyond the noise of layouts, and what a test is said to detect."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.denoised import (
    FINEST,
    UNTRIED,
    Denoised,
    denoise_layouts,
)
from pytest_instrcount.counts.growth import ends_of_growth, grown
from pytest_instrcount.counts.noise import find_noise
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.gate.compare import gate_layouts

MALLOC, COPY, LOOP = "obmalloc.c:PyObject_Malloc", "libc:memcpy", "ceval.c:_PyEval_EvalFrameDefault"
F = "_module.c:work"


def profile(
    memory: int = 2000, calls: int = 20, copying: int = 1000, work: int = 90_000, loop: int = 7000
) -> Profile:
    """A test that works, allocates, copies, and runs a program."""
    rows = {
        F: Row(work, 1),
        MALLOC: Row(memory, calls),
        COPY: Row(copying, 5),
        LOOP: Row(loop, 1),
    }
    callers = {MALLOC: {F: Row(memory, calls)}, COPY: {F: Row(copying, 5)}}
    return Profile(sum(row.ir for row in rows.values()), rows, callers)


def baseline(*profiles: Profile) -> Denoised:
    return denoise_layouts(profiles, find_noise(profiles))


#: Memory costs 1,990 to 2,030, all else the same.
OLD = baseline(*(profile(memory) for memory in (2000, 1990, 2030, 2010)))


def change(old: Denoised, *now: Profile) -> Fraction:
    return grown(old, 1, denoise_layouts(now, old.noise), 1).total


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param((profile(2000),), 0, id="equal"),
        pytest.param((profile(2030),), 0, id="as far as in a layout"),
        pytest.param((profile(2040),), 0, id="within the room beside the range"),
        pytest.param((profile(4000),), Fraction(3985, 2), id="beyond: all of it, from the mean"),
        pytest.param((profile(200),), Fraction(-3615, 2), id="beyond, below"),
        pytest.param((profile(4000), profile(2010)), 0, id="layouts that do not agree"),
        pytest.param(
            (*map(profile, (4000, 3990, 4030, 4010)), profile(5000)),
            2000,
            id="beyond, in one layout more than the old side has",
        ),
        pytest.param((profile(work=90_011),), 11, id="outside of noise"),
        pytest.param((profile(work=90_010),), 0, id="below 0.01 %, and few"),
        pytest.param((profile(work=90_500), profile(work=89_500)), 0, id="up and down"),
        pytest.param((profile(copying=2000),), 1000, id="a longer copy"),
    ],
)
def test_growth(now: tuple[Profile, ...], expected: Fraction | int) -> None:
    assert change(OLD, *now) == expected


@pytest.mark.parametrize(("more", "growth"), [(100, 0), (-100, 0), (101, 101), (-101, -101)])
def test_few_instructions_of_many_are_no_growth(more: int, growth: int) -> None:
    """So many may be what pytest has thrown out of caches between two calls."""
    old = baseline(*[profile(work=90_000_000)] * 4)
    assert change(old, profile(work=90_000_000 + more)) == growth


def test_more_calls_cost_what_such_calls_cost_in_this_test() -> None:
    """Two more allocations, of a mean of 100.375 each; that they cost 10 more in all is noise."""
    price = Fraction(1990 + 2000 + 2010 + 2030, 80)
    assert OLD.price(MALLOC) == price
    assert change(OLD, profile(2210, calls=22)) == 2 * price


def test_a_call_that_layouts_make_or_leave_is_noise() -> None:
    old = baseline(profile(2000, calls=20), profile(2100, calls=21), profile(2000, calls=20))
    assert change(old, profile(2100, calls=21)) == 0


def test_counts_are_per_call_of_the_test() -> None:
    tripled = Profile(
        300_000,
        {name: Row(3 * row.ir, 3 * row.calls) for name, row in profile().rows.items()},
        {
            name: {by: Row(3 * edge.ir, 3 * edge.calls) for by, edge in made.items()}
            for name, made in profile().callers.items()
        },
    )
    assert grown(OLD, 1, denoise_layouts([tripled], OLD.noise), 3).total == 0


def test_growth_spread_over_kinds_counts_once_all_together_is_beyond() -> None:
    """Each by itself is within its range."""
    old = baseline(
        profile(2000, copying=1000), profile(2100, copying=900), profile(1900, copying=1100)
    )
    assert old.low == old.high  # what one kind gives the other takes
    found = grown(old, 1, denoise_layouts([profile(2090, copying=1090)], old.noise), 1)
    assert found.total == 180
    assert not any(found.kinds.values())


@pytest.mark.parametrize(
    ("work", "memory", "expected"),
    [
        pytest.param(400, (1976, 1965, 2003, 1984), 400 - 25.5, id="alike: a part of the change"),
        pytest.param(-400, (2024, 2016, 2053, 2033), -400 + 24, id="alike, the other way"),
        pytest.param(400, (1976, 1992, 2003, 1984), 400, id="one goes another way: noise"),
        pytest.param(400, (1999, 1900, 2029, 1950), 400, id="not alike by far: noise"),
        pytest.param(400, (1990, 1981, 2020, 2001), 400, id="alike, by little: code that moves"),
        pytest.param(400, (1976, 1965, 2003), 400, id="of few layouts nothing is believed"),
        pytest.param(50, (1976, 1965, 2003, 1984), 50, id="too small to say that the test changed"),
        pytest.param(0, (1976, 1965, 2003, 1984), 0, id="nothing changed outside of noise"),
    ],
)
def test_noise_that_moves_with_the_test_is_a_part_of_its_change(
    work: int, memory: tuple[int, ...], expected: float
) -> None:
    """All within the range of the old layouts and the room beside it, which are 2000, 1990, 2030, 2010."""
    now = [profile(each, work=90_000 + work) for each in memory]
    assert change(OLD, *now) == Fraction(expected)


def test_one_kind_of_noise_is_traded_for_another() -> None:
    """That copying got dearer is sure; memory got cheaper in each layout, by less than its margin."""
    now = [profile(each, copying=1400) for each in (1976, 1965, 2003, 1984)]
    assert change(OLD, *now) == 400 - Fraction(51, 2)


def test_what_wavers_counts_in_full_beyond_its_range() -> None:
    """The evaluation loop moves by a hair; what a program does more is all counted."""
    old = baseline(profile(loop=7000), profile(loop=7002), profile(loop=7001))
    assert old.noise.wavering == {LOOP}
    assert change(old, profile(loop=7003)) == 0
    assert change(old, profile(loop=8000)) == 999


def test_what_is_known_of_one_layout_only_detects_less() -> None:
    assert OLD.floor == FINEST
    assert baseline(profile()).floor == UNTRIED


def test_a_range_is_in_what_is_detected() -> None:
    """The range of 40, a quarter of it since four layouts do not show all, and the least room."""
    least = OLD.mean / 10_000
    assert OLD.detects == FINEST + (40 + 10 + least) / OLD.mean
    many = baseline(*(profile(memory) for memory in (2000, 1990, 2030, *[2010] * 6)))
    assert many.detects < OLD.detects


@pytest.mark.parametrize(
    ("cost", "calls", "grown_by"),
    [
        pytest.param(3480, 100, 0, id="as near the end of a page"),
        pytest.param(4000, 100, 1000, id="more than each call may cost there"),
        pytest.param(3000, 200, 0, id="calls that cost nothing more"),
    ],
)
def test_constants_that_lie_otherwise_are_compared_otherwise(
    cost: int, calls: int, grown_by: int
) -> None:
    """No layout moves constants: eight instructions a call are no growth, up to a quarter of all."""

    def comparing(cost: int) -> Profile:
        rows = {F: Row(97_000, 1), "libc:memcmp": Row(cost, calls)}
        return Profile(97_000 + cost, rows, {"libc:memcmp": {F: Row(cost, calls)}})

    old = baseline(*[comparing(3000)] * 4)
    assert change(old, *[comparing(cost)] * 4) == grown_by
    assert old.detects == FINEST + (min(8 * calls, 750) + old.mean / 10_000) / old.mean


@pytest.mark.parametrize(
    ("memory", "widths", "is_close"),
    [
        pytest.param(2040, (1, 1), True, id="small"),
        pytest.param(2600, (1, 1), True, id="small, and far beyond the range of its kind"),
        pytest.param(4000, (1, 1), False, id="large"),
        pytest.param(4000, (1, 1000), True, id="large, and wide by now"),
        pytest.param(4000, (1000, 1), True, id="large, and wide before"),
    ],
)
def test_growth_of_noise_that_may_be_none_is_close(
    memory: int, widths: tuple[int, int], is_close: bool
) -> None:
    """Four layouts of either side may have shown its range too narrow."""
    old, now = (
        [profile(least + width * n // 3, copying=900 + 100 * n) for n in range(4)]
        for least, width in zip((2000, memory), widths)
    )
    known = baseline(*old)
    gated = gate_layouts(known, 1, denoise_layouts(now, known.noise), 1)
    assert gated.fraction
    assert gated.is_close is is_close


@pytest.mark.parametrize(
    ("now", "told", "hidden"),
    [
        pytest.param(
            [profile(work=each) for each in (89_990, 96_000, 99_000, 93_000)], 0, True, id="work"
        ),
        pytest.param([profile(each) for each in (2010, 4000, 5000, 6000)], 0, True, id="noise"),
        pytest.param(
            [profile(each) for each in (2030, 2040, 2020, 2000)], 0, False, id="its range"
        ),
        pytest.param([profile(work=91_000)] * 4, 1000, False, id="all of it is told"),
    ],
)
def test_growth_that_layouts_do_not_agree_on_is_not_said_to_be_found(
    now: list[Profile], told: int, *, hidden: bool
) -> None:
    after = denoise_layouts(now, OLD.noise)
    gated = gate_layouts(OLD, 1, after, 1)
    assert gated.new - gated.old == told
    assert gated.left_open == (after.mean - OLD.mean if hidden else 0)


def test_ends_hold_what_layouts_may_hide() -> None:
    least, most = ends_of_growth(OLD, 1, denoise_layouts([profile(2020)], OLD.noise), 1)
    assert [least, most] == [-10, 30]


COUNTS = st.integers(0, 3000)
LAYOUTS = st.lists(
    st.builds(profile, memory=COUNTS, copying=COUNTS, loop=st.integers(7000, 7100)),
    min_size=2,
    max_size=6,
)


@given(LAYOUTS, st.lists(st.integers(0, 3), min_size=4, max_size=4), st.integers(1, 3))
def test_growth_of_what_is_detected_is_found(
    layouts: list[Profile], shares: list[int], more: int
) -> None:
    """Wherever it sits, in one function or spread over several, in the layouts of the baseline."""
    old = baseline(*layouts)
    needed = int(old.detects * old.mean) + more
    parts = [needed * share // max(1, sum(shares)) for share in shares]
    parts[-1] += needed - sum(parts)
    rows = dict(zip((MALLOC, COPY, LOOP, F), parts))
    now = []
    for each in layouts:
        added = {name: Row(row.ir + rows[name], row.calls) for name, row in each.rows.items()}
        callers = {
            name: {by: Row(edge.ir + rows[name], edge.calls) for by, edge in made.items()}
            for name, made in each.callers.items()
        }
        now.append(Profile(each.total + needed, added, callers))
    assert change(old, *now) > 0


@given(LAYOUTS)
def test_the_same_again_is_exactly_nothing(layouts: list[Profile]) -> None:
    """In all layouts, or in the usual one alone."""
    old = baseline(*layouts)
    assert change(old, *layouts) == change(old, layouts[0]) == 0
