"""What moves by little is judged within the range that layouts have shown."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pytest_instrcount.callgrind.profile import Profile, Row
from pytest_instrcount.counts.noise import find_noise, wavering_functions
from pytest_instrcount.gate.baseline import Baseline
from pytest_instrcount.gate.compare import gate_counts
from pytest_instrcount.gate.denoised import FINEST, denoise_layouts, wavered
from pytest_instrcount.gate.measurement import Measurement

LOOP = "ceval.c:_PyEval_EvalFrameDefault"
SEARCH = "_module.c:search"


def profile(search: int, loop: int = 5000, more: int = 0) -> Profile:
    """A large function that moves, the evaluation loop, and work that does not move."""
    rows = {SEARCH: Row(search, 10), LOOP: Row(loop, 1), "_module.c:work": Row(5000 + more, 1)}
    return Profile(search + loop + 5000 + more, rows)


LAYOUTS = [profile(2000), profile(1990), profile(2010)]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        pytest.param(2000, 0, id="equal"),
        pytest.param(2010, 10, id="as far as in a layout"),
        pytest.param(2090, 90, id="four ranges more"),
        pytest.param(2500, 90, id="beyond: only what layouts explain"),
        pytest.param(1500, -90, id="beyond, below"),
    ],
)
def test_moves_within_the_widened_range_do_not_count(search: int, expected: int) -> None:
    noise = find_noise(LAYOUTS)
    assert not noise.functions
    old = denoise_layouts(LAYOUTS, noise)
    assert wavered(profile(search).rows, 1, old, LAYOUTS[0].rows, 1) == expected


def test_wavering_is_per_call() -> None:
    old = denoise_layouts(LAYOUTS, find_noise(LAYOUTS))
    three = {name: Row(3 * row.ir, 3 * row.calls) for name, row in profile(2010).rows.items()}
    assert wavered(three, 3, old, LAYOUTS[0].rows, 1) == 30


def test_what_wavers_is_spread_and_hides_growth_of_its_own() -> None:
    old = denoise_layouts(LAYOUTS, find_noise(LAYOUTS))
    assert (old.low, old.high) == (12_000, 12_000)
    assert old.floor == FINEST
    assert old.spread == Fraction(20, 12_000)
    assert old.detects == FINEST + Fraction(90, 12_000)


def test_the_evaluation_loop_is_never_noise() -> None:
    profiles = [profile(2000, loop=100), profile(2000, loop=150)]
    noise = find_noise(profiles, {LOOP: 0})
    assert LOOP not in noise.functions
    assert wavering_functions(profiles, noise) == {LOOP: (0, 50)}


def test_known_noise_that_was_never_called_here_is_noise() -> None:
    assert find_noise(LAYOUTS, {"???:0x4fb540": 7}).functions == {"???:0x4fb540": 0}


def delta(*profiles: Profile) -> Fraction | None:
    """What the gate compares, with a baseline in which nothing moved."""
    first = profile(2000)
    layouts = (profile(2000), profile(2000))
    noise = find_noise([first])
    old = Baseline(
        nodeid="t.py::test_a",
        total_ir=first.total,
        calls=1,
        warmup=1,
        isolation="fork",
        rows=first.rows,
        environment={},
        packages={},
        denoised=denoise_layouts([first, *layouts], noise),
    )
    usual, *others = profiles
    measurement = Measurement(
        nodeid="t.py::test_a",
        total_ir=usual.total,
        calls=1,
        warmup=1,
        isolation="fork",
        rows=usual.rows,
        packages={},
        layouts=tuple(others),
    )
    return gate_counts(old, measurement).fraction


def test_of_several_layouts_the_one_that_says_least_decides() -> None:
    grown = [profile(2000, more=more) for more in (300, 200, 500)]
    assert delta(*grown) == Fraction(200, 12_000)


def test_layouts_that_disagree_about_the_direction_say_nothing() -> None:
    assert delta(*(profile(2000, more=more) for more in (-300, -300, 5000))) == 0
