"""What a run asks and says by Python function, without Valgrind."""

from __future__ import annotations

import pytest

import pytest_instrcount.session.measure
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.gate.rulings import Rulings
from tests.baselines import read_whole, tree_values
from tests.plugin.conftest import DEARER_TREE, TREE, TWO_TESTS, Project


@pytest.fixture
def suite(project: Project) -> Project:
    """Two tests with baselines."""
    project.write(TWO_TESTS)
    project.write(shop="def f(): pass")
    project.valgrind.python["test_a"] = TREE
    project.update().assert_outcomes(passed=2)
    return project


def asked(project: Project) -> list[str]:
    """What the last run asked by Python function."""
    found = [order.nodeid for zygote in project.valgrind.blaming for order in zygote.orders]
    project.valgrind.blaming.clear()
    return found


def test_a_baseline_has_a_tree(suite: Project) -> None:
    """Of the calls that were counted; and an update that stores nothing new asks for none."""
    assert asked(suite) == ["test_it.py::test_a", "test_it.py::test_b"]
    stored = read_whole(suite.baselines()["test_a"])
    rows = [[0, "test_it.py:test_a", 300, 3], [1, "shop.py:f", 29_700, 30]]
    assert stored["python"] == tree_values("trampolines", 3, rows)
    suite.update()
    assert asked(suite) == []


def test_a_green_run_asks_nothing(suite: Project) -> None:
    """No process is started for it."""
    asked(suite)
    suite.measure().assert_outcomes(passed=2)
    assert asked(suite) == []


def test_the_caller_is_named(suite: Project) -> None:
    """With its place; and the same repetition is measured as counted, but for calls that are alike."""
    suite.valgrind.python["test_a"] = DEARER_TREE
    suite.valgrind.costs["test_a"] = 20_000
    asked(suite)
    result = suite.measure()
    (zygote,) = suite.valgrind.blaming
    (order,) = zygote.orders
    assert (order.warmup, order.calls, order.pilot, order.by_python) == (20, 1, False, True)
    assert zygote.ended == 1
    result.stdout.fnmatch_lines(
        [
            "  by Python function (trampolines), share of the change:",
            "    100 %  test_it.py:3 test_a",
            "      calls f 10 -> 20 times",
        ]
    )


def test_an_improvement_is_explained(suite: Project) -> None:
    """Below the totals, or in the failure where an improvement fails; as a growth is."""
    suite.valgrind.python["test_a"] = {**TREE, "test_it.py:test_a;shop.py:f": (4_950, 5)}
    suite.valgrind.costs["test_a"] = 5_000
    asked(suite)
    told = [
        "*-50 % (limit 1 %): test_a test_it.py:3 calls f 10 -> 5 times*",
        "  by Python function (trampolines), share of the change:",
        "    100 %  test_it.py:3 test_a",
        "      calls f 10 -> 5 times",
    ]
    result = suite.measure()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(told)
    assert asked(suite) == ["test_it.py::test_a"]
    result = suite.measure("--instrcount-improved=fail")
    result.assert_outcomes(passed=2, failed=1)
    assert str(result.stdout).count("by Python function (trampolines), ") == 1


def test_a_cause_that_tests_share_is_told_once(suite: Project) -> None:
    """The second failure names it in its first line, and who tells the rest; each says what to type."""
    suite.valgrind.python["test_b"] = {
        name.replace("test_a", "test_b"): r for name, r in TREE.items()
    }
    for path in suite.baselines().values():
        path.unlink()
    suite.update()
    for test in ("test_a", "test_b"):
        suite.valgrind.costs[test] = 20_000
        dearer = {f"test_it.py:{test}": (100, 1), f"test_it.py:{test};shop.py:f": (19_900, 10)}
        suite.valgrind.python[test] = dearer
    result = suite.measure()
    result.assert_outcomes(passed=2, failed=2)
    text = str(result.stdout)
    assert text.count("by Python function (trampolines), ") == 1
    result.stdout.fnmatch_lines(
        [
            "  test_b: Ir 10,000 -> 20,000",
            "  for the same cause as test_a, see there",
            "  accept: *test_b*",
        ],
        consecutive=True,
    )


def test_what_got_cheaper_has_another_cause(suite: Project) -> None:
    """Though the same function is behind it, by its own code."""
    suite.valgrind.python["test_b"] = {
        name.replace("test_a", "test_b"): r for name, r in TREE.items()
    }
    for path in suite.baselines().values():
        path.unlink()
    suite.update()
    for test, ir in (("test_a", 20_000), ("test_b", 5_000)):
        suite.valgrind.costs[test] = ir
        rows = {f"test_it.py:{test}": (100, 1), f"test_it.py:{test};shop.py:f": (ir - 100, 10)}
        suite.valgrind.python[test] = rows
    result = suite.measure("--instrcount-improved=fail")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.no_fnmatch_line("*for the same cause as*")


def test_what_got_cheaper_is_told_whole(suite: Project) -> None:
    """In lines of the terminal's width, not cut at its end."""
    function = "shop.py:" + "calls_" * 9
    suite.valgrind.costs["test_a"] = 20_000
    before = {"test_it.py:test_a": (100, 1), f"test_it.py:test_a;{function}": (19_900, 12_345)}
    suite.valgrind.python["test_a"] = before
    suite.update()
    suite.valgrind.costs["test_a"] = 15_000
    now = {f"test_it.py:test_a;{function}": (14_900, 1_234)}
    suite.valgrind.python["test_a"] = before | now
    lines = suite.measure().outlines
    first = next(at for at, line in enumerate(lines) if line.startswith("test_a: "))
    assert max(map(len, lines[first : first + 3])) <= 80
    told = " ".join(line.strip() for line in lines[first : first + 3])
    where = "test_a test_it.py:3 calls"
    assert f"test_a: -25 % (limit 1 %): {where} {function[8:]} 12,345 -> 1,234 times" in told


def test_off(suite: Project) -> None:
    """Nothing is measured; an update leaves no tree."""
    asked(suite)
    suite.valgrind.costs["test_a"] = 20_000
    result = suite.measure("--instrcount-blame=off")
    result.stdout.no_fnmatch_line("*by Python function*")
    suite.update("--instrcount-blame=off")
    assert asked(suite) == []
    assert read_whole(suite.baselines()["test_a"])["python"] is None


def test_the_tracer_is_asked_where_trampolines_fail(suite: Project) -> None:
    """Quietly, for a baseline; a tree of one kind is not compared with one of the other."""
    suite.valgrind.no_trampolines = "its process was killed"
    suite.valgrind.costs |= {"test_a": 20_000, "test_b": 10_001}
    suite.measure().stdout.fnmatch_lines(
        ["*test_a: no Python function is named: its process was killed*"]
    )
    for path in suite.baselines().values():
        path.unlink()
    suite.update()
    assert suite.valgrind.started[-1].orders[0].trace
    rows = [[0, "test_it.py:test_a", 1, 1], [1, "shop.py:f", 4, 4]]
    assert read_whole(suite.baselines()["test_a"])["python"] == tree_values("tracer", 1, rows)


def test_trampolines_or_nothing(suite: Project) -> None:
    """Whoever wants them alone is told why there are none; the verdict stands."""
    suite.valgrind.costs["test_a"] = 20_000
    suite.valgrind.no_trampolines = "its process was killed"
    result = suite.measure("--instrcount-blame=trampolines")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*test_a: no Python function is named: its process was killed*"])


def test_the_kind_of_the_baseline_decides(suite: Project) -> None:
    """What was stored by the tracer is compared by the tracer."""
    suite.valgrind.costs["test_a"] = 20_000
    suite.update("--instrcount-blame=tracer")
    asked(suite)
    suite.valgrind.costs["test_a"] = 40_000
    suite.measure()
    assert asked(suite) == []
    assert [order.by_python for order in suite.valgrind.started[-1].orders] == [True]


def test_trees_are_taken_one_at_a_time(suite: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the next is waited for: as they come, those of thousands of tests fill memory."""
    told: list[str] = []
    attribute = Rulings.attribute

    def noted(self: Rulings, nodeid: str, tree: CallTree, body: str) -> None:
        told.append(f"attributed {nodeid[-1]}")
        attribute(self, nodeid, tree, body)

    monkeypatch.setattr(Rulings, "attribute", noted)
    suite.valgrind.costs |= {"test_a": 11_000, "test_b": 12_000}
    suite.valgrind.while_waiting = lambda name: told.append(f"asked for {name[-1]}")
    suite.update()
    assert told[-4:] == ["asked for a", "attributed a", "asked for b", "attributed b"]


def test_only_so_many_are_looked_into(suite: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that grew most; what is stored is measured however many there are."""
    monkeypatch.setattr(pytest_instrcount.session.measure, "MOST_BLAMED", 1)
    suite.valgrind.costs |= {"test_a": 11_000, "test_b": 12_000}
    asked(suite)
    suite.measure().assert_outcomes(passed=2, failed=2)
    assert asked(suite) == ["test_it.py::test_b"]
    suite.update()
    assert asked(suite) == ["test_it.py::test_a", "test_it.py::test_b"]


def test_what_is_stored_takes_no_place(suite: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a test that grew, and is stored, one that shrank, and is not, is explained."""
    monkeypatch.setattr(pytest_instrcount.session.measure, "MOST_BLAMED", 1)
    suite.valgrind.costs |= {"test_a": 11_000, "test_b": 9000}
    asked(suite)
    suite.update("--instrcount-update-policy=failing")
    assert asked(suite) == ["test_it.py::test_a", "test_it.py::test_b"]


@pytest.mark.parametrize(
    ("body", "first"),
    [("pass", "f shop.py:1"), ("assert 1", "test_a test_it.py:3")],
)
def test_a_test_that_is_as_it_was_is_named_last(suite: Project, body: str, first: str) -> None:
    """What it does more is what others gave it to do, as objects to free; one that was changed may do it."""
    suite.write(TWO_TESTS.replace("pass", body))
    suite.valgrind.python["test_a"] = {
        "test_it.py:test_a": (600, 1),
        "test_it.py:test_a;shop.py:f": (10_300, 10),
    }
    suite.valgrind.costs["test_a"] = 10_900
    suite.measure().stdout.fnmatch_lines([f"+9 % (limit 1 %): {first}, its own code"])
