"""The gate: which verdict, whether it fails, whether it is stored."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.compare import Comparison, Incomparable, compare
from pytest_instrcount.gate.gate import Verdict, judge
from pytest_instrcount.gate.limit import Limit, parse_limit
from pytest_instrcount.gate.policy import Policy, UpdatePolicy, should_write
from pytest_instrcount.gate.store.schema import to_baseline


def compared(old: tuple[int, int], new: tuple[int, int]) -> Comparison:
    then, now = (Measurement("t.py::a", *one, 20, "fork", {}, {}) for one in (old, new))
    return compare(now, to_baseline(then, {}), {})


def test_the_words_of_the_report() -> None:
    """A verdict is its word, in text, in JSON and in f-strings of every Python."""
    words = "unchanged improved regressed new incomparable nondeterministic failed stale uncounted"
    assert " ".join(Verdict) == words
    assert [f"{verdict}" for verdict in Verdict] == words.split()


@pytest.mark.parametrize(
    ("limit", "old", "new", "verdict"),
    [
        ("1%", (1000, 1), (1000, 1), Verdict.unchanged),
        ("1%", (1000, 1), (1010, 1), Verdict.unchanged),
        ("1%", (1000, 1), (1011, 1), Verdict.regressed),
        ("1%", (1000, 1), (990, 1), Verdict.unchanged),
        ("1%", (1000, 1), (989, 1), Verdict.improved),
        ("1%", (1000, 1), (10_101, 10), Verdict.regressed),
        ("1%", (10_000, 10), (1000, 1), Verdict.unchanged),
        ("0", (1000, 1), (1002, 1), Verdict.regressed),
        ("0", (1000, 1), (998, 1), Verdict.improved),
        ("0", (1000, 1), (1001, 1), Verdict.unchanged),  # not told from noise
        ("5ir", (1000, 1), (1005, 1), Verdict.unchanged),
        ("50%|5ir", (1000, 1), (1006, 1), Verdict.regressed),
        ("1%", (0, 1), (0, 1), Verdict.unchanged),
        ("1%", (0, 1), (1, 1), Verdict.regressed),
        ("1%", (1, 1), (0, 1), Verdict.improved),
        ("1%", (10**18, 1), (10**18 + 10**16 + 1, 1), Verdict.regressed),
    ],
)
def test_judge(limit: str, old: tuple[int, int], new: tuple[int, int], verdict: Verdict) -> None:
    """Beyond the limit either way is a verdict; at it, and within, is unchanged."""
    assert judge(compared(old, new), parse_limit(limit)) is verdict


def test_judge_without_numbers() -> None:
    """No baseline and another environment are verdicts of their own, at any limit."""
    limit = Limit(None, 0)
    assert judge(None, limit) is Verdict.new
    assert judge(Incomparable((("glibc", "1", "2"),)), limit) is Verdict.incomparable


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_regressed_back_is_never_regressed(one: int, two: int) -> None:
    """What got dearer one way does not get dearer the other way."""
    limit = parse_limit("1%|1000ir")
    forth = judge(compared((one, 1), (two, 1)), limit)
    back = judge(compared((two, 1), (one, 1)), limit)
    assert not forth == back == Verdict.regressed
    assert not forth == back == Verdict.improved


ALWAYS = {Verdict.regressed, Verdict.failed, Verdict.nondeterministic}
NEVER = {Verdict.unchanged, Verdict.stale, Verdict.uncounted}


@pytest.mark.parametrize("verdict", Verdict)
def test_fails(verdict: Verdict) -> None:
    """Three verdicts follow their option and no other's; the rest have one answer."""
    for missing, incomparable, improved in itertools.product((False, True), repeat=3):
        expected = {
            Verdict.new: missing,
            Verdict.incomparable: incomparable,
            Verdict.improved: improved,
            **dict.fromkeys(ALWAYS, True),
            **dict.fromkeys(NEVER, False),
        }[verdict]
        policy = Policy(
            missing="fail" if missing else "note",
            incomparable="fail" if incomparable else "warn",
            improved="fail" if improved else "note",
        )
        assert policy.fails(verdict) is expected


@pytest.mark.parametrize("allowed", Cause)
@pytest.mark.parametrize(
    ("verdict", "cause", "fails_in_ci"),
    [
        (Verdict.unchanged, None, False),
        (Verdict.regressed, None, True),
        (Verdict.stale, Cause.gone, True),
        (Verdict.stale, Cause.unmarked, True),
        (Verdict.uncounted, Cause.skipped, True),
        (Verdict.uncounted, Cause.uncounted, True),
        (Verdict.incomparable, Cause.warmup, True),
        (Verdict.incomparable, Cause.isolation, True),
        (Verdict.incomparable, Cause.environment, False),  # --instrcount-incomparable decides
    ],
)
def test_a_strict_gate(
    verdict: Verdict, cause: Cause | None, fails_in_ci: bool, allowed: Cause
) -> None:
    """A test that misses the comparison with its baseline fails, but for a cause that is allowed."""

    def answer(*, strict: bool) -> bool:
        policy = Policy("note", "warn", "note", strict=strict, allowed=frozenset([allowed]))
        return policy.fails(verdict, cause)

    assert answer(strict=True) is (fails_in_ci and cause is not allowed)
    assert answer(strict=False) is (verdict is Verdict.regressed)


@pytest.mark.parametrize(
    ("verdict", "policies"),
    [
        (Verdict.unchanged, {"all"}),
        (Verdict.improved, {"changed", "all"}),
        (Verdict.regressed, {"changed", "all", "failing"}),
        (Verdict.new, {"changed", "all", "missing", "failing"}),
        (Verdict.incomparable, {"changed", "all", "failing"}),
        (Verdict.nondeterministic, set()),
        (Verdict.failed, set()),
        (Verdict.stale, set()),
        (Verdict.uncounted, set()),
    ],
)
@pytest.mark.parametrize("policy", ["changed", "all", "missing", "failing"])
def test_should_write(verdict: Verdict, policies: set[str], policy: UpdatePolicy) -> None:
    """Each policy stores what its word says."""
    has_baseline = verdict is not Verdict.new
    assert should_write(verdict, policy, has_baseline) is (policy in policies)


@pytest.mark.parametrize("policy", ["changed", "all", "missing", "failing"])
@pytest.mark.parametrize("verdict", Verdict)
def test_nothing_is_written_over_what_cannot_be_read(
    verdict: Verdict, policy: UpdatePolicy
) -> None:
    """Not new, and no readable baseline: something lies there. New, and readable: a mistake."""
    assert not should_write(verdict, policy, verdict is Verdict.new)
