"""The pure parts of settings: numbers and words as users write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_instrcount.config.given import (
    parse_calls,
    parse_isolation,
    parse_seconds,
    parse_warmup,
)
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.gate.budget import Budget
from pytest_instrcount.gate.limit import parse_limit


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(1, 1.0), (0.5, 0.5), ("60", 60.0), (" 2.5 ", 2.5), ("1e3", 1000.0), (10**8, 1e8)],
)
def test_seconds(given: object, seconds: float) -> None:
    """Whole or not, as number or text."""
    assert parse_seconds(given) == seconds


@pytest.mark.parametrize(
    "given",
    [0, -1, "0", "-0.1", "nan", "inf", "", "1m", "1 s", None, True, [1], 10**9, 10**400, "1e400"],
)
def test_wrong_seconds(given: object) -> None:
    """Nothing, less, no number, no end."""
    with pytest.raises(ValueError, match="write seconds"):
        parse_seconds(given)


@pytest.mark.parametrize(
    ("given", "count"), [(0, 0), (7, 7), ("0", 0), (" 12 ", 12), (10**9, 10**9)]
)
def test_warmup(given: object, count: int) -> None:
    """None at all is a choice."""
    assert parse_warmup(given) == count


@pytest.mark.parametrize("given", [-1, "-1", 1.0, "1.0", True, None, "", "many", "²", [1]])
def test_wrong_counts(given: object) -> None:
    """Only whole numbers; True is none."""
    with pytest.raises(ValueError, match="write a whole number, 0 or more"):
        parse_warmup(given)
    with pytest.raises(ValueError, match="write a whole number, 1 or more"):
        parse_calls(given)


@pytest.mark.parametrize("given", [10**9 + 1, 10**30, "9" * 25])
def test_counts_that_no_run_would_end_with(given: object) -> None:
    """Nor could the process that counts be told them."""
    for parse in (parse_warmup, parse_calls):
        with pytest.raises(ValueError, match="write a whole number, at most 1,000,000,000"):
            parse(given)


def test_one_call_at_least() -> None:
    """A count of no calls is no count."""
    assert parse_calls("1") == 1
    with pytest.raises(ValueError, match="1 or more"):
        parse_calls(0)


def test_isolation() -> None:
    """One of two words."""
    assert [parse_isolation(word) for word in ("fork", "process")] == ["fork", "process"]
    for wrong in ("thread", "", None, 1):
        with pytest.raises(ValueError, match="choose one of fork, process"):
            parse_isolation(wrong)


def settings(*, missing: str, ci: str) -> Settings:
    return Settings(
        active=True,
        update=False,
        inline=False,
        policy="all",
        prune=False,
        shard=False,
        reason="",
        reason_above=None,
        max_delta=parse_limit("1%"),
        missing=missing,
        incomparable="warn",
        improved="note",
        baseline_dir=Path("b"),
        reports=(),
        keep=None,
        bundle=None,
        timings=False,
        timings_csv=None,
        debug=None,
        backend="callgrind",
        valgrind="valgrind",
        timeout=1.0,
        warmup=None,
        calls=None,
        isolation="fork",
        blame="auto",
        max_allocs_delta=None,
        budget=Budget(),
        let_through=(),
        verbosity=0,
        ci=ci,
    )


@pytest.mark.parametrize(
    ("missing", "ci", "fails"),
    [
        ("auto", False, False),
        ("auto", True, True),
        ("fail", False, True),
        ("fail", True, True),
        ("note", False, False),
        ("note", True, False),
    ],
)
def test_missing_fails(missing: str, ci: bool, fails: bool) -> None:
    """Only the default depends on CI."""
    assert settings(missing=missing, ci="CI" if ci else "").missing_fails is fails
