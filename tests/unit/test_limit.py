"""Limits: what users may write, what is refused, and when one is exceeded."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.limit import Limit, parse_count_limit, parse_limit

ONE_PERCENT = Limit(Fraction(1, 100), None)


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no text for me")


class LoudFloat(float):
    def __repr__(self) -> str:
        return "np.float64(0.01)"


@pytest.mark.parametrize(
    ("value", "relative", "absolute"),
    [
        (0, Fraction(0), None),
        (0.0, Fraction(0), None),
        (-0.0, Fraction(0), None),
        ("0", Fraction(0), None),
        ("0%", Fraction(0), None),
        ("0ir", None, 0),
        (0.01, Fraction(1, 100), None),
        (LoudFloat(0.01), Fraction(1, 100), None),
        (1e-05, Fraction(1, 100_000), None),
        (0.999, Fraction(999, 1000), None),
        ("0.01", Fraction(1, 100), None),
        (".5", Fraction(1, 2), None),
        ("1%", Fraction(1, 100), None),
        ("0.5 %", Fraction(1, 200), None),
        ("250%", Fraction(5, 2), None),
        ("5000ir", None, 5000),
        ("5_000 IR", None, 5000),
        ("5,000 ir", None, 5000),
        ("1%|5000ir", Fraction(1, 100), 5000),
        (" 5000ir | 1 % ", Fraction(1, 100), 5000),
        ("0.01|1ir", Fraction(1, 100), 1),
        ("+1 % | 5,000 ir", Fraction(1, 100), 5000),
    ],
)
def test_accepts_what_users_write(
    value: object, relative: Fraction | None, absolute: int | None
) -> None:
    """Every spelling gives exact numbers."""
    assert parse_limit(value) == Limit(relative, absolute)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("0,5%", "comma"),
        ("1,5%", "comma"),
        ("0,500%", "comma"),
        ("5,0000 ir", "comma"),
        ("1,,,%", "comma"),
        (1, "ambiguous"),
        ("1", "ambiguous"),
        (5000, "ambiguous"),
        (1.0, "ambiguous"),
        ("1.5", "ambiguous"),
        pytest.param(10**5000, "ambiguous", id="huge"),
        (-1, "negative"),
        pytest.param(-(10**5000), "negative", id="huge below zero"),
        (-0.01, "negative"),
        ("-1%", "negative"),
        ("-5ir", "negative"),
        (float("nan"), "not a limit"),
        (float("inf"), "not a limit"),
        ("nan", "not a limit"),
        ("inf", "not a limit"),
        (True, "not a limit"),
        (False, "not a limit"),
        (None, "not a limit"),
        (b"1%", "not a limit"),
        ([1], "not a limit"),
        (Unshowable(), "Unshowable is not a limit"),
        ("", "not a limit"),
        ("|", "not a limit"),
        ("1%|", "not a limit"),
        ("%", "not a limit"),
        ("ir", "not a limit"),
        ("one percent", "not a limit"),
        ("1%%", "not a limit"),
        ("١%", "not a limit"),
        ("1%|2%", "two relative"),
        ("1%|0.5", "two relative"),
        ("1ir|2ir", "two absolute"),
        ("1.5ir", "part of an instruction"),
        ("1e999%", "too large"),
        pytest.param("9" * 5000 + "ir", "too long", id="long text"),
    ],
)
def test_refuses_with_both_spellings(value: object, word: str) -> None:
    """What is no limit, or could be two, is refused with the two ways to write one."""
    with pytest.raises(InstrcountError, match=word) as caught:
        parse_limit(value)
    assert caught.value.slug == "limit"
    assert '%"' in caught.value.fix
    assert 'ir"' in caught.value.fix
    assert len(str(caught.value)) < 300


def test_a_bare_number_is_repeated_in_both_spellings() -> None:
    """The fix can be copied: it has the user's own number."""
    with pytest.raises(InstrcountError) as caught:
        parse_limit(5)
    assert 'write "5%"' in caught.value.fix
    assert '"5ir"' in caught.value.fix


def test_a_limit_passes_through() -> None:
    """A hook may return what another hook has parsed."""
    assert parse_limit(ONE_PERCENT) is ONE_PERCENT


@pytest.mark.parametrize(("relative", "absolute"), [(None, None), (Fraction(-1), None), (None, -1)])
def test_a_limit_has_a_part(relative: Fraction | None, absolute: int | None) -> None:
    """A limit that limits nothing cannot be made."""
    with pytest.raises(ValueError, match="a limit needs"):
        Limit(relative, absolute)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("1%", "+1 %"),
        ("0.5%", "+0.5 %"),
        ("1000%", "+1,000 %"),
        ("5000ir", "+5,000 ir"),
        ("1%|5000ir", "+1 % | 5,000 ir"),
        ("0", "+0 %"),
        ("0.0000001", "+0.00001 %"),
    ],
)
def test_text(limit: str, text: str) -> None:
    """A limit reads as in the table."""
    assert str(parse_limit(limit)) == text


def test_text_of_a_third() -> None:
    """A fraction without an end in base 10 is cut, not endless."""
    assert str(Limit(Fraction(1, 3), None)) == "+33.333333 %"


@given(
    relative=st.none() | st.decimals(0, 100, places=9).map(Fraction),
    absolute=st.none() | st.integers(0, 10**30),
)
def test_reads_its_own_text(relative: Fraction | None, absolute: int | None) -> None:
    """parse(render(x)) == x."""
    if relative is None and absolute is None:
        return
    limit = Limit(relative, absolute)
    assert parse_limit(str(limit)) == limit


@given(st.text() | st.from_regex(r"[0-9.e+%ir| -]{1,30}", fullmatch=True))
def test_any_text_is_a_limit_or_an_error(text: str) -> None:
    """No text brings another exception."""
    try:
        parse_limit(text)
    except InstrcountError as error:
        assert error.slug == "limit"


@pytest.mark.parametrize(
    ("limit", "old", "new", "exceeded", "undercut"),
    [
        ("1%", (1000, 1), (1000, 1), False, False),
        ("1%", (1000, 1), (1010, 1), False, False),
        ("1%", (1000, 1), (1011, 1), True, False),
        ("1%", (1000, 1), (990, 1), False, False),
        ("1%", (1000, 1), (989, 1), False, True),
        # per call, and exact: 1010.1 is more than 1010
        ("1%", (10_000, 10), (10_101, 10), True, False),
        ("1%", (1000, 1), (10_100, 10), False, False),
        ("1%", (10**18, 1), (10**18 + 10**16, 1), False, False),
        ("1%", (10**18, 1), (10**18 + 10**16 + 1, 1), True, False),
        ("0", (1000, 1), (1001, 1), True, False),
        ("0", (1000, 1), (999, 1), False, True),
        ("0", (1000, 1), (1000, 1), False, False),
        ("5ir", (1000, 1), (1005, 1), False, False),
        ("5ir", (1000, 1), (1006, 1), True, False),
        ("5ir", (1000, 1), (995, 1), False, False),
        ("5ir", (1000, 1), (994, 1), False, True),
        ("5ir", (1000, 10), (1051, 10), True, False),
        ("5ir", (1000, 10), (949, 10), False, True),
        ("5ir", (1000, 10), (950, 10), False, False),
        ("5%", (1000, 10), (188, 2), False, True),
        # either part trips
        ("1%|5ir", (1000, 1), (1006, 1), True, False),
        ("1%|5000ir", (1000, 1), (1011, 1), True, False),
        ("1%|5000ir", (1000, 1), (1010, 1), False, False),
        # from nothing
        ("1%", (0, 1), (0, 1), False, False),
        ("1%", (0, 1), (1, 1), True, False),
        ("5ir", (0, 1), (5, 1), False, False),
        ("5ir", (0, 1), (6, 1), True, False),
        ("1%", (1, 1), (0, 1), False, True),
        # no cheaper than nothing
        ("100%", (10, 1), (0, 1), False, False),
    ],
)
def test_exceeded_and_undercut(
    limit: str, old: tuple[int, int], new: tuple[int, int], exceeded: bool, undercut: bool
) -> None:
    """At the limit is within it; one instruction more is beyond."""
    parsed = parse_limit(limit)
    assert parsed.exceeded(*old, *new) is exceeded
    assert parsed.undercut(*old, *new) is undercut


@given(
    relative=st.integers(0, 10**4).map(lambda digits: Fraction(digits, 10**4)),
    old=st.tuples(st.integers(0, 10**12), st.integers(1, 1000)),
    new=st.tuples(st.integers(0, 10**12), st.integers(1, 1000)),
)
def test_never_both(relative: Fraction, old: tuple[int, int], new: tuple[int, int]) -> None:
    """Nothing is dearer and cheaper at once."""
    limit = Limit(relative, 10)
    assert not (limit.exceeded(*old, *new) and limit.undercut(*old, *new))


@pytest.mark.parametrize("value", [-1, "-1", "5ir", "1%|5ir", "x", True, 0.5j])
def test_wrong_limit_of_what_is_counted(value: object) -> None:
    """What is advised is not refused, as instructions would be."""
    with pytest.raises(InstrcountError) as refused:
        parse_count_limit(value)
    assert refused.value.fix == 'write 5 (more per call) or "1%"'
