"""Call counts: their JSON, what bad files get, the verdict."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.calls import judge_calls
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit, parse_limit
from pytest_instrcount.gate.records import CallChange
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.calls import CallStore, CallTable, parse_calls, render_calls

NODEID = "tests/test_x.py::test_a"
FACTS = {"python": "3.11.7", "tracer": "python"}
NONE = Limit(Fraction(0), None)


def table(facts: dict[str, str] | None = None, **calls: int) -> CallTable:
    return CallTable(NODEID, calls, FACTS if facts is None else facts)


@pytest.mark.parametrize(
    ("limit", "old", "new", "verdict"),
    [
        ("0", {"f": 3}, {"f": 3}, Verdict.unchanged),
        ("0", {"f": 3}, {"f": 4}, Verdict.regressed),
        ("0", {"f": 3}, {"f": 2}, Verdict.improved),
        ("0", {"f": 3}, {"g": 3}, Verdict.unchanged),
        ("0", {}, {"f": 1}, Verdict.regressed),
        ("0", {}, {}, Verdict.unchanged),
        ("10%", {"f": 100}, {"f": 110}, Verdict.unchanged),
        ("10%", {"f": 100}, {"f": 111}, Verdict.regressed),
    ],
)
def test_judge(limit: str, old: dict[str, int], new: dict[str, int], verdict: Verdict) -> None:
    """The total decides: a function that was renamed is no regression."""
    assert (
        judge_calls(
            CallTable(NODEID, old, FACTS), CallTable(NODEID, new, FACTS), parse_limit(limit)
        ).verdict
        is verdict
    )


def test_judge_without_numbers() -> None:
    """No table and another environment are verdicts of their own; a ceiling needs neither."""
    other = table({"python": "3.12.1", "tracer": "python"}, f=1)
    assert judge_calls(None, table(f=1), NONE).verdict is Verdict.new
    compared = judge_calls(other, table(f=9), NONE)
    assert compared.verdict is Verdict.incomparable
    assert compared.differences == (("python", "3.12.1", "3.11.7"),)
    assert compared.delta is None
    for old in (None, other, table(f=1)):
        ceiling = (("f", 1, 9),)
        assert judge_calls(old, table(f=9), NONE, ceiling).verdict is Verdict.regressed


def test_changes_are_sorted_by_size() -> None:
    """The largest change first, ties by name; what did not change is left out."""
    compared = judge_calls(table(a=1, b=2, c=3, d=4), table(b=5, c=3, d=3), NONE)
    assert compared.changes == (
        CallChange("b", 2, 5),
        CallChange("a", 1, 0),
        CallChange("d", 4, 3),
    )
    assert compared.delta == Fraction(1, 10)


def test_memory_is_gated_by_a_limit_of_its_own() -> None:
    """What ranges hold may grow by it; a new range is no growth, and no limit no gate."""
    old = CallTable(NODEID, {"load": 1}, FACTS, {"load": 1000, "gone": 5})
    new = CallTable(NODEID, {"load": 1}, FACTS, {"load": 1011, "new": 9})
    assert judge_calls(old, new, NONE).verdict is Verdict.unchanged
    assert judge_calls(old, new, NONE, (), parse_limit("2%")).verdict is Verdict.unchanged
    compared = judge_calls(old, new, NONE, (), parse_limit("1%"))
    assert compared.verdict is Verdict.regressed
    assert compared.memory == (CallChange("load", 1000, 1011),)


tables = st.builds(
    CallTable,
    st.just(NODEID),
    st.dictionaries(st.text(st.characters()), st.integers(0, 2**63 - 1), max_size=9),
    st.dictionaries(st.text(st.characters()), st.text(st.characters()), max_size=3),
    st.dictionaries(st.text(st.characters()), st.integers(0, 2**63 - 1), max_size=3),
)


@given(tables)
def test_reads_its_own_text(stored: CallTable) -> None:
    """parse(render(x)) == x, plain, and a line for each function."""
    text = render_calls(stored)
    assert parse_calls(text, Path("x"), NODEID) == stored
    assert text.isascii()
    assert text.count("\n") == 7 + (len(stored.calls) + 1 if stored.calls else 0)


def test_store(tmp_path: Path) -> None:
    """Tables lie beside baselines, and are none; equal text is not written again."""
    store = Store(tmp_path, "cp311")
    calls = CallStore(store)
    assert calls.read(NODEID) is None
    assert calls.write(table(f=3))
    assert calls.path(NODEID).parent == store.path(NODEID).parent
    assert calls.read(NODEID) == table(f=3)
    assert not calls.write(table(f=3))
    assert calls.write(table(f=4))
    assert list(store.list()) == []


GOOD = render_calls(table(f=3))


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("", "baseline-damaged"),
        ("[]", "baseline-damaged"),
        (GOOD[:40], "baseline-damaged"),
        ("<<<<<<< HEAD\n" + GOOD, "baseline-conflict"),
        (GOOD.replace('"schema": 1', '"schema": 2'), "baseline-newer"),
        (GOOD.replace('"f": 3', '"f": -3'), "baseline-damaged"),
        (GOOD.replace('"f": 3', '"f": true'), "baseline-damaged"),
        (GOOD.replace('"f": 3', '"f": 3.5'), "baseline-damaged"),
        (GOOD.replace('"python": "3.11.7"', '"python": 3'), "baseline-damaged"),
        (GOOD.replace('"memory": {}', '"memory": {"load": -1}'), "baseline-damaged"),
        (GOOD.replace('"memory": {}', '"memory": []'), "baseline-damaged"),
        (GOOD.replace('"nodeid"', '"node"'), "baseline-damaged"),
        (GOOD.replace("test_a", "test_b"), "baseline-mismatch"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_bad_files_are_named_and_left_alone(tmp_path: Path, text: str, slug: str) -> None:
    """Each names the file and the command, and no update overwrites it."""
    calls = CallStore(Store(tmp_path, "cp311"))
    path = calls.path(NODEID)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    uses: list[Callable[[], object]] = [lambda: calls.read(NODEID), lambda: calls.write(table(f=3))]
    for use in uses[: 1 if slug == "baseline-conflict" else 2]:  # which an update settles
        with pytest.raises(InstrcountError) as caught:
            use()
        assert caught.value.slug == slug
        assert path.name in str(caught.value)
    assert path.read_text() == text
