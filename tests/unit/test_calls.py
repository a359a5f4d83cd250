"""Call counts: their JSON, what bad files get, the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.call_records import CallChange, CallsResult
from pytest_instrcount.gate.calls import judge_calls
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit, parse_count_limit, parse_limit
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.calls import (
    CallStore,
    CallTable,
    Edges,
    parse_calls,
    render_calls,
)
from tests.schemas import complaints

NODEID = "tests/test_x.py::test_a"
FACTS = {"python": "3.11.7", "tracer": "python"}
NONE = Limit(Fraction(0), None)
DATA = Path(__file__).parents[1] / "data"
SCHEMA_PAGE = Path(__file__).parents[2] / "docs/reference/schemas/calls-2.json"


def edges(calls: dict[str, int | tuple[int, int]]) -> Edges:
    """Edges from "caller -> function" or "function": calls, or calls and resumes."""
    found = {}
    for name, uses in calls.items():
        caller, _, callee = name.rpartition(" -> ")
        found[caller, callee] = uses if isinstance(uses, tuple) else (uses, 0)
    return found


def table(facts: dict[str, str] | None = None, **calls: int) -> CallTable:
    return CallTable(NODEID, edges({**calls}), FACTS if facts is None else facts)


def judged(old: dict[str, Any], new: dict[str, Any], limit: str = "0") -> CallsResult:
    before, now = (CallTable(NODEID, edges(each), FACTS) for each in (old, new))
    return judge_calls(before, now, parse_count_limit(limit))


@pytest.mark.parametrize(
    ("limit", "old", "new", "verdict"),
    [
        ("0", {"f": 3}, {"f": 3}, Verdict.unchanged),
        ("0", {"f": 3}, {"f": 4}, Verdict.regressed),
        ("0", {"f": 3}, {"f": 2}, Verdict.improved),
        ("0", {}, {"f": 1}, Verdict.regressed),
        ("0", {}, {}, Verdict.unchanged),
        ("10%", {"f": 100}, {"f": 110}, Verdict.unchanged),
        ("10%", {"f": 100}, {"f": 111}, Verdict.regressed),
        ("5", {"f": 3}, {"f": 8}, Verdict.unchanged),
        ("5", {"f": 3}, {"f": 9}, Verdict.regressed),
        ("5", {"f": 3}, {"f": 6, "g": 3}, Verdict.regressed),  # the sum
        # the function, by two callers
        (
            "5",
            {"a -> f": 3, "b -> f": 3, "g": 9},
            {"a -> f": 6, "b -> f": 6, "g": 3},
            Verdict.regressed,
        ),
    ],
)
def test_judge(limit: str, old: dict[str, int], new: dict[str, int], verdict: Verdict) -> None:
    """The limit holds for the sum, for each function and for each edge."""
    assert judged(old, new, limit).verdict is verdict


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ({"t -> db": 1, "t -> help": 10}, {"t -> db": 10, "t -> help": 1}, Verdict.regressed),
        ({"t -> db": 1, "t -> help": 10}, {"t -> db": 2, "t -> help": 1}, Verdict.regressed),
        ({"a -> f": 1, "b -> f": 2}, {"a -> f": 2, "b -> f": 1}, Verdict.regressed),
        ({"t -> gen": (1, 3)}, {"t -> gen": (1, 453)}, Verdict.regressed),
        ({"t -> gen": (1, 453)}, {"t -> gen": (1, 3)}, Verdict.improved),
    ],
    ids=["db", "fewer in all", "callers", "resumed", "less resumed"],
)
def test_one_that_grew_is_not_made_up_for(
    old: dict[str, Any], new: dict[str, Any], verdict: Verdict
) -> None:
    """The sum of all calls, or of all calls of each function, is the same or less in all of them."""
    assert judged(old, new).verdict is verdict


@pytest.mark.parametrize(
    ("old", "new", "renamed"),
    [
        ({"t -> f": 3}, {"t -> g": 3}, {"f": "g"}),
        ({"t -> f": 3, "f -> x": 6}, {"t -> g": 3, "g -> y": 6}, {"f": "g", "x": "y"}),
        ({"t -> f": 3}, {"t -> g": 4}, {}),
        ({"t -> f": 3}, {"u -> g": 3}, {}),
        ({"t -> f": (1, 3)}, {"t -> g": (1, 4)}, {}),
        ({"t -> f": 3, "f -> f": 2}, {"t -> g": 3, "g -> g": 2}, {"f": "g"}),
        ({"t -> load": 1, "t -> save": 1}, {"t -> save_all": 1, "t -> load_all": 1}, None),
        # moved, and two of three unchanged
        ({"t -> m:f": 3, "m:f -> m:x": 6}, {"t -> n:f": 3, "n:f -> n:x": 9}, {"m:f": "n:f"}),
        ({"t -> m:f": 3, "t -> m:g": 3}, {"t -> n:g": 3, "t -> n:f": 3}, None),
    ],
)
def test_renamed_functions(
    old: dict[str, Any], new: dict[str, Any], renamed: dict[str, str] | None
) -> None:
    """Gone and new with the same callers, callees and counts: no change, and said."""
    if renamed is None:
        names = [name.partition(" -> ")[2] for name in old]
        suffix = "" if ":" in names[0] else "_all"
        renamed = {name: name.replace("m:", "n:") + suffix for name in names}
    t = {"t": 1, "u": 1}
    result = judged(t | old, t | new)
    assert dict(result.renamed) == renamed
    whole = len(renamed) == len(old) or "f -> f" in old
    assert result.verdict is (Verdict.unchanged if whole else Verdict.regressed)


L = "m:f.<lambda>"


@pytest.mark.parametrize(
    ("old", "new", "renamed", "changed"),
    [
        # one was put before, or between, or behind
        ({L: 3}, {L: 1, L + "#2": 3}, {L: L + "#2"}, {L: (0, 1)}),
        (
            {L: 3, L + "#2": 5},
            {L: 3, L + "#2": 1, L + "#3": 5},
            {L + "#2": L + "#3"},
            {L + "#2": (0, 1)},
        ),
        ({L: 3}, {L: 3, L + "#2": 1}, {}, {L + "#2": (0, 1)}),
        # one was taken away: the other has its name now
        ({L: 1, L + "#2": 3}, {L: 3}, {L + "#2": L}, {L + "#2": (1, 0)}),
        # all are called as often: none has moved
        ({L: 2, L + "#2": 2}, {L: 2, L + "#2": 2, L + "#3": 2}, {}, {L + "#3": (0, 2)}),
        # as many as before: what changed is the calls
        ({L: 1, L + "#2": 3}, {L: 3, L + "#2": 1}, {}, {L: (1, 3), L + "#2": (3, 1)}),
        # nothing is alike: each keeps its name
        ({L: 3}, {L: 4, L + "#2": 9}, {}, {L: (3, 4), L + "#2": (0, 9)}),
    ],
)
def test_functions_that_share_a_name(
    old: dict[str, int], new: dict[str, int], renamed: dict[str, str], changed: dict[str, Any]
) -> None:
    """Lambdas of one function are told apart by their calls where one was added or taken away."""
    before, now = ({f"t -> {n}": calls for n, calls in each.items()} for each in (old, new))
    result = judged({"t": 1} | before, {"t": 1} | now)
    assert dict(result.renamed) == renamed
    assert {each.name: (each.before, each.after) for each in result.changes} == changed


def test_callees_tell_lambdas_apart() -> None:
    """Called as often, but calling other functions."""
    old = {"t": 1, f"t -> {L}": 1, f"{L} -> x": 2}
    new = {"t": 1, f"t -> {L}": 1, f"t -> {L}#2": 1, f"{L}#2 -> x": 2}
    assert judged(old, new).renamed == ((L, L + "#2"),)


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
    calls = edges({"load": 1})
    old = CallTable(NODEID, calls, FACTS, {"load": 1000, "gone": 5})
    new = CallTable(NODEID, calls, FACTS, {"load": 1011, "new": 9})
    assert judge_calls(old, new, NONE).verdict is Verdict.unchanged
    assert judge_calls(old, new, NONE, (), parse_limit("2%")).verdict is Verdict.unchanged
    compared = judge_calls(old, new, NONE, (), parse_limit("1%"))
    assert compared.verdict is Verdict.regressed
    assert compared.memory == (CallChange("load", 1000, 1011),)
    renamed = CallTable(NODEID, edges({"read": 1}), FACTS, {"read": 1011})
    compared = judge_calls(old, renamed, NONE, (), parse_limit("1%"))
    assert compared.renamed == (("load", "read"),)
    assert compared.memory == (CallChange("read", 1000, 1011),)


names = st.text(st.characters())
tables = st.builds(
    CallTable,
    st.just(NODEID),
    st.dictionaries(
        st.tuples(names, names),
        st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)),
        max_size=9,
    ),
    st.dictionaries(st.text(st.characters()), st.text(st.characters()), max_size=3),
    st.dictionaries(st.text(st.characters()), st.integers(0, 2**63 - 1), max_size=3),
)


@given(tables)
def test_reads_its_own_text(stored: CallTable) -> None:
    """parse(render(x)) == x, plain, and a line for each edge."""
    text = render_calls(stored)
    assert parse_calls(text, Path("x"), NODEID) == stored
    assert text.isascii()
    assert text.count("\n") == 7 + (len(stored.edges) + 1 if stored.edges else 0)
    assert complaints(json.loads(text), json.loads(SCHEMA_PAGE.read_text())) == []


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
        (GOOD.replace('"schema": 2', '"schema": 3'), "baseline-newer"),
        (GOOD.replace('"f", 3', '"f", -3'), "baseline-damaged"),
        (GOOD.replace('"f", 3', '"f", true'), "baseline-damaged"),
        (GOOD.replace('"f", 3', '"f", 3.5'), "baseline-damaged"),
        (GOOD.replace('"f", 3', '"f"'), "baseline-damaged"),
        (GOOD.replace('"f", 3', "3, 3"), "baseline-damaged"),
        (GOOD.replace('"f", 3', '"f", 3, 4, 5'), "baseline-damaged"),
        (GOOD.replace('["", "f", 3]', "3"), "baseline-damaged"),
        (GOOD.replace('["", "f", 3]', '["", "f", 3], ["", "f", 3]'), "baseline-damaged"),
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


def test_a_table_of_the_older_schema_is_refused_and_replaced(tmp_path: Path) -> None:
    """One line for the folder, which ends in the command of an update."""
    calls = CallStore(Store(tmp_path, "cp311-linux"))
    path = calls.path(NODEID)
    path.parent.mkdir(parents=True)
    path.write_bytes((DATA / "calls1.json").read_bytes())
    with pytest.raises(InstrcountError) as caught:
        calls.read(NODEID)
    assert (caught.value.slug, caught.value.fix) == (
        "baseline-older",
        "pytest --instrcount-update-baseline    # measures all of them again",
    )
    assert caught.value.why.endswith(
        "cp311-linux are of an older format (schema 1, this release reads 2)"
    )
    assert calls.read(NODEID, updating=True) is None
    assert calls.write(table(f=3))
    assert calls.read(NODEID) == table(f=3)
