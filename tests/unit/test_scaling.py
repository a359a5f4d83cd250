"""Classes of growth: how they are spelled, and which one counts fall in."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_instrcount.gate.scaling import (
    CLASSES,
    Growth,
    can_be_judged,
    default_sizes,
    find_growth,
    parse_growth,
    parse_sizes,
)

GROWING = [each for each in CLASSES if each.exponent]
NAMES = {str(each): each for each in CLASSES}


def counts_of(growth: Growth, sizes: list[int], a: float, b: float) -> dict[int, Fraction]:
    """Whole counts, as Callgrind's are."""
    return {n: Fraction(round(a + b * growth.value(n))) for n in sizes}


def test_the_classes() -> None:
    """In order, each by the name that a marker has."""
    assert list(NAMES) == ["1", "log n", "n", "n log n", "n^1.5", "n^2", "n^2 log n", "n^3"]
    assert sorted(CLASSES) == list(CLASSES)


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("1", "1"),
        (1, "1"),
        ("O(1)", "1"),
        ("log n", "log n"),
        ("O(log(n))", "log n"),
        ("N", "n"),
        ("n*log n", "n log n"),
        ("n  LOG  n", "n log n"),
        ("n**2", "n^2"),
        ("n ^ 2 log n", "n^2 log n"),
        ("n^1.50", "n^1.5"),
        ("n^0.5 log n", "n^0.5 log n"),
        ("n^1", "n"),
    ],
)
def test_spellings(spelled: object, name: str) -> None:
    """People write the same class in many ways; what is shown can be written."""
    assert str(parse_growth(spelled)) == name
    assert parse_growth(name) == parse_growth(spelled)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "0",
        "2",
        "m",
        "n^",
        "n^0",
        "n^-1",
        "n^99",
        "log",
        "n n",
        "2^n",
        "n!",
        2,
        1.0,
        True,
        None,
        [],
    ],
)
def test_what_is_no_class(wrong: object) -> None:
    """Exponential growth is none that can be allowed."""
    with pytest.raises(ValueError, match="write a class of growth, like"):
        parse_growth(wrong)


def test_sizes() -> None:
    """In any order, in any collection; or a name."""
    assert parse_sizes([4096, 256, 1024, 256]) == (256, 1024, 4096)
    assert parse_sizes({1, 10, 100}) == (1, 10, 100)
    assert parse_sizes(range(1000, 5000, 1000)) == (1000, 2000, 3000, 4000)
    assert parse_sizes("n") == "n"


@pytest.mark.parametrize("growth", CLASSES, ids=str)
def test_default_sizes(growth: Growth) -> None:
    """They can be judged, and what is allowed takes no more than some hundred million steps."""
    sizes = default_sizes(growth)
    assert parse_sizes(sizes) == sizes
    assert growth.value(sizes[-1]) < 2e8


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "a b",
        3,
        None,
        [],
        [1, 2],
        [1, 2, 3],
        [0, 1, 2],
        [1.0, 2, 4],
        [True, 2, 4],
        ["1", 2, 4],
        [100, 199, 400],
        [1, 10, 10**13],
        iter([1, 10, 100]),
    ],
)
def test_wrong_sizes(wrong: object) -> None:
    """Three whole numbers, each at least twice the one before."""
    with pytest.raises(ValueError, match="three or more whole numbers"):
        parse_sizes(wrong)


@given(st.lists(st.integers(1, 200), max_size=12))
def test_can_be_judged_is_what_it_says(sizes: list[int]) -> None:
    """Some three of them, each at least twice the one before."""
    expected = any(2 * a <= b and 2 * b <= c for a in sizes for b in sizes for c in sizes)
    assert can_be_judged(sizes) is expected


@given(
    growth=st.sampled_from(CLASSES[1:]),
    first=st.integers(16, 1000),
    factor=st.sampled_from([4, 8, 10]),
    number=st.integers(3, 5),
    a=st.floats(0, 1e9),
    b=st.floats(20, 1e4),
)
def test_exact_counts_are_called_right(
    growth: Growth, first: int, factor: int, number: int, a: float, b: float
) -> None:
    """``a + b f(n)``: whatever a call costs beside, as long as the counts differ."""
    sizes = [first * factor**each for each in range(number)]
    counts = counts_of(growth, sizes, a, b)
    assume(max(counts.values()) > min(counts.values()) * Fraction(41, 40))
    assert find_growth(counts) == growth


@given(
    growth=st.sampled_from(GROWING),
    first=st.integers(16, 1000),
    share=st.floats(0, 1),
    b=st.floats(20, 1e4),
    noise=st.lists(st.floats(-0.0099, 0.0099), min_size=3, max_size=3),
)
def test_noise_below_one_percent_changes_nothing(
    growth: Growth, first: int, share: float, b: float, noise: list[float]
) -> None:
    """Each count off by up to 1 %, where what does not grow is no more than what does at first."""
    sizes = [first, 4 * first, 16 * first]
    a = share * b * growth.value(first)
    counts = {
        n: Fraction(round(count * (1 + off)))
        for (n, count), off in zip(counts_of(growth, sizes, a, b).items(), noise)
    }
    assert find_growth(counts) == growth


@given(
    st.floats(1e3, 1e9),
    st.lists(st.floats(-0.0099, 0.0099), min_size=3, max_size=3),
)
def test_noise_alone_is_no_growth(a: float, noise: list[float]) -> None:
    """Counts that differ by layout noise do not grow."""
    counts = {4**n: Fraction(round(a * (1 + off))) for n, off in enumerate(noise, 4)}
    assert str(find_growth(counts)) == "1"


@pytest.mark.parametrize(
    ("counts", "name"),
    [
        ((1000, 1000, 1000), "1"),
        ((0, 0, 0), "1"),
        ((1000, 1400, 1400), "1"),
        ((1000, 1400, 1500), "1"),
        ((4000, 2000, 1000), "1"),
        ((1000, 1400, 1800), "log n"),
        ((1000, 1000, 2000), "n^3"),
        ((1000, 900, 2000), "n^3"),
    ],
)
def test_counts_that_stand_still(counts: tuple[int, ...], name: str) -> None:
    """Growth towards a bound, or none, is class 1; growth out of nothing is the worst."""
    found = find_growth({4**n: Fraction(count) for n, count in enumerate(counts, 4)})
    assert str(found) == name


def test_what_the_marker_names_is_looked_at_beside_the_others() -> None:
    """sqrt(n) is called the nearest of the usual classes, unless it is allowed."""
    counts = {n: Fraction(round(1000 * math.sqrt(n))) for n in (256, 1024, 4096)}
    assert str(find_growth(counts, parse_growth("n^0.5"))) == "n^0.5"
    assert str(find_growth(counts)) in ("log n", "n")


def test_a_quadratic_part_that_begins_to_show() -> None:
    """Where n log n code has a quadratic part, it is seen before it is most of the cost."""
    counts = {n: Fraction(round(40 * n * math.log2(n) + n * n / 8)) for n in (256, 1024, 4096)}
    assert find_growth(counts) > NAMES["n log n"]


def test_one_wrong_size_of_five_does_not_decide() -> None:
    """The median of all threes."""
    counts = counts_of(NAMES["n"], [4**n for n in range(4, 9)], 500, 60)
    counts[4**5] *= Fraction(6, 5)
    assert str(find_growth(counts)) == "n"


def test_too_few_sizes() -> None:
    """Callers ask `can_be_judged` first."""
    with pytest.raises(ValueError, match="far enough apart"):
        find_growth({1: Fraction(1), 2: Fraction(2)})


def test_many_sizes_take_no_time() -> None:
    """Not all threes are looked at."""
    assert str(find_growth({n: Fraction(900 + 7 * n) for n in range(1, 400)})) == "n"
