"""What a run holds of its tests: thousands of baselines are read before the first is measured."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.python.tree import TRAMPOLINES, CallTree
from pytest_instrcount.gate.baselines import Baselines
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.policy import Policy
from pytest_instrcount.gate.rulings import Rulings
from pytest_instrcount.gate.store import textfile as files
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.schema import Baseline, to_baseline
from pytest_instrcount.gate.store.updating import updating

LIMIT = parse_limit("1%")
NAMES = [f"test_x.py::test_{number}" for number in range(20)]
TREE = CallTree(TRAMPOLINES, 1, {("x.py:f",): Row(900, 1)})


def measured(nodeid: str) -> Measurement:
    return Measurement(nodeid, 1000, 1, 20, "fork", {"a.c:f": Row(1000, 1)}, {})


@pytest.fixture
def rulings(tmp_path: Path) -> Rulings:
    """Twenty tests have baselines, with trees; nothing was read."""
    store = Store(tmp_path, "cp")
    for nodeid in NAMES:
        made = to_baseline(measured(nodeid), {})
        store.write(replace(made, python=TREE))
    return Rulings(Baselines(store, False), {}, Policy("note", "warn", "note", None))


def alive(kind: type) -> int:
    gc.collect()
    return sum(type(each) is kind for each in gc.get_objects())


def test_baselines_are_held_packed(rulings: Rulings) -> None:
    """As objects, 5,000 of them would take most of a gigabyte."""
    before = alive(Baseline)
    assert [rulings.made_with(nodeid) is None for nodeid in NAMES] == [False] * len(NAMES)
    assert alive(Baseline) <= before + 1
    found = rulings.baseline(NAMES[0])
    assert isinstance(found, Baseline)
    assert (found.nodeid, found.python) == (NAMES[0], TREE)


def test_a_baseline_is_read_once(rulings: Rulings, monkeypatch: pytest.MonkeyPatch) -> None:
    """To plan, to compare, and to find out which are stale."""
    reads: list[Path] = []
    read = files._read_bytes

    def noted(path: Path) -> object:
        reads.append(path)
        return read(path)

    monkeypatch.setattr(files, "_read_bytes", noted)
    for nodeid in NAMES[:-1]:
        rulings.made_with(nodeid)
    for nodeid in NAMES[:-1]:
        rulings.rule(measured(nodeid), LIMIT)
    (stale,) = rulings.stale(lambda nodeid: Cause.gone, LIMIT)
    assert stale == rulings.store.path(NAMES[-1])
    assert rulings.results[NAMES[-1]].verdict is Verdict.stale
    assert sorted(reads) == sorted(map(rulings.store.path, NAMES))


@pytest.mark.parametrize("trees", [True, False])
def test_trees_are_kept_for_reports_that_show_them(rulings: Rulings, *, trees: bool) -> None:
    """In the results of tests that did not change; without such a report they would fill memory."""
    rulings.trees = trees
    result = rulings.rule(measured(NAMES[0]), LIMIT)
    assert result.verdict is Verdict.unchanged
    assert result.tree == (TREE if trees else None)


def test_a_first_update_stores_what_the_next_one_finds(tmp_path: Path) -> None:
    """Callgrind counts the calls of a pilot, too, which only the first count of a test has."""
    piloted, usual = ({"a.c:f": Row(1000, calls)} for calls in (4, 3))
    first = Measurement("t", 1000, 3, 20, "fork", piloted, {}, layouts=(Profile(1000, usual),) * 4)
    again = Measurement("t", 1000, 3, 20, "fork", usual, {})
    baseline = to_baseline(first, {})
    assert baseline.rows == usual
    store = Store(tmp_path, "cp")
    store.write(baseline)
    rulings = Rulings(Baselines(store, True), {}, Policy("note", "warn", "note", "all"))
    rulings.rule(again, LIMIT)
    assert not list(rulings.unsettled())


@pytest.mark.parametrize("judged", [NAMES[:1], NAMES[:3]])
def test_baselines_that_were_stored_anew_are_read_again(
    rulings: Rulings, judged: list[str]
) -> None:
    """That of the test that was judged last, too: the other commit is measured again where it moved."""
    rulings.policy = Policy("note", "warn", "note", "all")
    for nodeid in judged:
        rulings.rule(measured(nodeid), LIMIT)
    other = to_baseline(
        replace(measured(judged[-1]), total_ir=2000, rows={"a.c:f": Row(2000, 1)}), {}
    )
    rulings.store.write(other)
    rulings.baselines.read_again(judged)
    result = rulings.rule(measured(judged[-1]), LIMIT)
    assert (result.verdict, result.baseline_ir) == (Verdict.improved, 2000)


def test_what_another_update_of_the_same_code_has_stored_is_accepted(tmp_path: Path) -> None:
    """Since this run has read its baselines: what is there is what it would store."""
    store = Store(tmp_path, "cp")
    store.write(to_baseline(measured(NAMES[0]), {}))
    policy = Policy("fail", "warn", "fail", "changed")
    both = [Rulings(Baselines(store, True), {}, policy) for _ in range(2)]
    for rulings in both:
        for nodeid in NAMES[:2]:  # the second one has no baseline yet
            grown = {"a.c:f": Row(2000, 1)}
            rulings.rule(replace(measured(nodeid), total_ir=2000, rows=grown), LIMIT)
        assert len(rulings.failing()) == 2
    for rulings in both:
        with updating(tmp_path) as update:
            rulings.results |= rulings.write(update)
        assert not rulings.failing()
