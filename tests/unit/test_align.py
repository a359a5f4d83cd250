"""Functions that were renamed, moved or merged between two trees, and are found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given

from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.align import align
from pytest_instrcount.counts.python.blame import PythonBlame, find_blame
from pytest_instrcount.counts.python.tree import TRAMPOLINES, CallTree, Path
from tests.unit.test_blame import trees

Rows = dict[Path, tuple[int, int]]

#: A test that calls ``f`` ten times, which calls ``g`` and a function of the standard library.
BEFORE: Rows = {
    ("t",): (100, 1),
    ("t", "shop.py:f"): (200, 10),
    ("t", "shop.py:f", "shop.py:g"): (3000, 30),
    ("t", "shop.py:f", "json.py:dumps"): (500, 10),
}


def tree(rows: Rows) -> CallTree:
    return CallTree(TRAMPOLINES, 1, {path: Row(*row) for path, row in rows.items()})


def renamed(rows: Rows, **names: str) -> Rows:
    """The same with other names; ``f="core.py:h"``."""
    new = {f"shop.py:{name}": other for name, other in names.items()}
    return {tuple(new.get(each, each) for each in path): row for path, row in rows.items()}


def doings(blame: PythonBlame) -> dict[str, int]:
    return {each.name: int(each.self_delta) for each in blame.functions if each.self_delta}


@pytest.mark.parametrize(
    ("names", "cause"),
    [
        pytest.param({"g": "shop.py:gather"}, "shop.py:gather", id="another name"),
        pytest.param({"g": "core.py:g"}, "core.py:g", id="another file"),
        pytest.param({"g": "shop.py:Order.g"}, "shop.py:Order.g", id="into a class"),
        pytest.param({"f": "core.py:h", "g": "core.py:k"}, "core.py:k", id="its caller, too"),
    ],
)
def test_a_renamed_function_is_known(names: dict[str, str], cause: str) -> None:
    """It is blamed for what it does, and not its caller for calling what it never called."""
    after = renamed({**BEFORE, ("t", "shop.py:f", "shop.py:g"): (3600, 30)}, **names)
    blame = find_blame(tree(BEFORE), tree(after))
    assert doings(blame) == {cause: 600}
    assert blame.functions[0].renamed == ("shop.py:g",)
    assert blame.functions[0].calls_before == 30


def test_what_only_has_another_name_does_nothing() -> None:
    blame = find_blame(tree(BEFORE), tree(renamed(BEFORE, f="shop.py:h", g="core.py:g")))
    assert doings(blame) == {}
    assert {each.name: each.renamed for each in blame.functions} == {
        "shop.py:h": ("shop.py:f",),
        "core.py:g": ("shop.py:g",),
    }


@pytest.mark.parametrize("below", [False, True])
def test_merged_functions_are_one(below: bool) -> None:
    """Two that were called one after the other, or one by the other."""
    first = ("t", "shop.py:a")
    old: Rows = {("t",): (9, 1), first: (500, 5)}
    old[(*first, "shop.py:b") if below else ("t", "shop.py:b")] = (300, 5)
    blame = find_blame(tree(old), tree({("t",): (9, 1), ("t", "shop.py:both"): (1000, 5)}))
    assert doings(blame) == {"shop.py:both": 200}
    assert blame.functions[0].renamed == ("shop.py:a", "shop.py:b")
    assert blame.functions[0].calls_before == blame.functions[0].calls_after == 5


def test_two_halves_are_merged() -> None:
    """None of them costs half of what they became."""
    old: Rows = {("t",): (9, 1), ("t", "a"): (400, 5), ("t", "b"): (400, 5)}
    blame = find_blame(tree(old), tree({("t",): (9, 1), ("t", "both"): (1000, 5)}))
    assert doings(blame) == {"both": 200}
    assert blame.functions[0].renamed == ("a", "b")


def test_what_merged_functions_call_is_called_as_often() -> None:
    """By both before, and by the one that they are now."""
    old: Rows = {("t",): (9, 1), ("t", "a"): (1000, 10), ("t", "b"): (1000, 10)}
    old |= {("t", "a", "d"): (5000, 10), ("t", "b", "d"): (5000, 10)}
    new: Rows = {("t",): (9, 1), ("t", "ab"): (2000, 10), ("t", "ab", "d"): (14_000, 20)}
    assert doings(find_blame(tree(old), tree(new))) == {"d": 4000}


def test_calls_that_were_moved_were_made() -> None:
    """They are not new, also where the branch stands elsewhere now."""
    old: Rows = {("f",): (100, 1), ("f", "g"): (100, 4), ("f", "f"): (100, 1)}
    new: Rows = {("f",): (100, 1), ("f", "f"): (100, 1), ("f", "f", "g"): (500, 4)}
    new |= {("f", "h"): (10, 1), ("f", "h", "g"): (100, 4)}
    [f] = [each for each in find_blame(tree(old), tree(new)).functions if each.name == "f"]
    [g] = f.called
    assert (g.name, int(g.before)) == ("g", 4)


def test_what_stands_in_a_renamed_function_is_not_merged_with_it() -> None:
    old: Rows = {("t",): (9, 1), ("t", "f"): (400, 1), ("t", "f", "f.<listcomp>"): (100, 1)}
    new: Rows = {("t",): (9, 1), ("t", "g"): (600, 1), ("t", "g", "g.<listcomp>"): (100, 1)}
    blame = find_blame(tree(old), tree(new))
    assert doings(blame) == {"g": 200}
    assert blame.functions[0].renamed == ("f",)


def test_much_dearer_with_another_name() -> None:
    """What all its callers call as often as before is the same, whatever it costs."""
    old: Rows = {("t",): (9, 1), ("t", "a"): (9, 1), ("t", "b"): (9, 1)}
    new = {**old, ("t", "a", "new"): (5000, 4), ("t", "b", "new"): (9000, 7)}
    old |= {("t", "a", "old"): (400, 4), ("t", "b", "old"): (700, 7)}
    assert doings(find_blame(tree(old), tree(new))) == {"new": 12_900}


def test_much_dearer_with_another_name_calls_the_same() -> None:
    """It has one caller, and what it calls tells as much."""
    old: Rows = {("t",): (9, 1), ("t", "old"): (400, 4), ("t", "old", "g"): (30, 8)}
    new: Rows = {("t",): (9, 1), ("t", "new"): (5000, 4), ("t", "new", "g"): (30, 8)}
    assert doings(find_blame(tree(old), tree(new))) == {"new": 4600}


@pytest.mark.parametrize(
    "row", [pytest.param((70, 1), id="much dearer"), pytest.param((30, 2), id="called more often")]
)
def test_a_new_function_in_the_place_of_another(row: tuple[int, int]) -> None:
    """What has nothing in common with what is gone is its caller's doing."""
    old = tree({("t",): (9, 1), ("t", "f"): (9, 1), ("t", "f", "old"): (30, 1)})
    new = tree({("t",): (9, 1), ("t", "f"): (9, 1), ("t", "f", "new"): row})
    assert align(old, new).renamed == {}


def test_much_dearer_in_the_place_of_the_only_other() -> None:
    """It is called as often, by the same: so is what it calls, once its caller is known."""
    old: Rows = {("t",): (9, 1), ("t", "mid"): (9, 24), ("t", "mid", "leaf"): (30, 24)}
    new: Rows = {("t",): (9, 1), ("t", "plus"): (9, 24), ("t", "plus", "count"): (3000, 24)}
    aligned = align(tree(old), tree(new))
    assert aligned.renamed == {"plus": ("mid",), "count": ("leaf",)}
    assert doings(find_blame(tree(old), tree(new))) == {"count": 2970}


def test_of_two_in_one_place_neither_is_the_other() -> None:
    old: Rows = {("t",): (9, 1), ("t", "a"): (30, 24), ("t", "b"): (20, 24)}
    new: Rows = {("t",): (9, 1), ("t", "c"): (3000, 24)}
    assert align(tree(old), tree(new)).renamed == {}


@pytest.mark.parametrize("name", ["<lambda>", "__init__", "wrapper"])
def test_a_name_that_many_have_says_nothing(name: str) -> None:
    old = tree({("t",): (9, 1), ("t", f"shop.py:f.{name}"): (30, 1)})
    new = tree({("t",): (9, 1), ("t", f"shop.py:g.{name}"): (300, 8)})
    assert align(old, new).renamed == {}


@pytest.mark.parametrize(("file", "known"), [("<class 'x'> {}", True), ("x.py", False)])
def test_a_name_with_a_number(file: str, known: bool) -> None:
    """Code that is generated is numbered in the order in which it is made: called more often, too."""
    first, second = f"{file.format(3)}:step_3", f"{file.format(17)}:step_17"
    old = tree({("t",): (9, 1), ("t", first): (30, 1)})
    new = tree({("t",): (9, 1), ("t", second): (300, 8)})
    assert align(old, new).renamed == ({second: (first,)} if known else {})


def test_a_function_in_between() -> None:
    """What stands below a new function now is still itself; so is what stood below one that is gone."""
    direct: Rows = {("t",): (9, 1), ("t", "f"): (9, 1), ("t", "f", "g"): (100, 3)}
    through: Rows = {**direct, ("t", "f", "retry"): (9, 3), ("t", "f", "retry", "g"): (160, 3)}
    del through[("t", "f", "g")]
    assert doings(find_blame(tree(direct), tree(through))) == {"g": 60, "retry": 9}
    dearer = tree({**direct, ("t", "f", "g"): (200, 3)})
    assert doings(find_blame(tree(through), dearer)) == {"g": 40, "f": -9}


def grammar(layers: int, leaf: int) -> CallTree:
    """Elements that call each other by way of one function, in so many layers; a leaf costs as much."""
    found: Rows = {("t",): (9, 1)}

    def run(above: tuple[str, ...], kind: str, inner: Sequence[Any], calls: int) -> None:
        place = (*above, "run", kind)
        for path, ir in ((place[:-1], 20), (place, {"wrap": 30, "seq": 200, "leaf": leaf}[kind])):
            before = found.get(path, (0, 0))
            found[path] = before[0] + ir * calls, before[1] + calls
        for below in inner:
            run(place, below[0], below[1], calls)

    whole: Any = ("seq", [("wrap", [("leaf", [])]), ("leaf", []), ("leaf", [])])
    for _ in range(layers):
        whole = ("wrap", [whole])
    run(("t",), whole[0], whole[1], 1)
    return tree(found)


@pytest.mark.parametrize(
    ("before", "after"), [pytest.param(1, 2, id="one more"), pytest.param(2, 1, id="one less")]
)
def test_a_layer_of_a_recursion(before: int, after: int) -> None:
    """What stands below it is still itself, and who calls it calls it more, or less, often."""
    blame = find_blame(grammar(before, 1000), grammar(after, 1500))
    assert doings(blame) == {"leaf": 1500, "run": 50 * (after - before)}
    [run] = [each for each in blame.functions if each.name == "run"]
    [wrap] = run.called
    assert wrap.name == "wrap"
    assert [wrap.before, wrap.after] == [before + 1, after + 1]
    assert [run.calls_before, run.calls_after] == [before + 5, after + 5]


def test_what_stands_above_a_thread_now() -> None:
    """It has no caller whose doing it could be."""
    old: Rows = {("t",): (9, 1), ("t", "g"): (50, 1), ("work",): (400, 1)}
    new: Rows = {("t",): (9, 1), ("t", "g"): (50, 1), ("g",): (50, 1), ("g", "work"): (600, 1)}
    assert doings(find_blame(tree(old), tree(new))) == {"work": 200, "g": 50}


def test_a_function_that_calls_itself_is_renamed_as_any_other() -> None:
    """Called from several places, at a cost that is another now: its calls of itself have its own name."""
    old: Rows = {("t",): (9, 1), ("t", "a"): (9, 1), ("t", "b"): (9, 1)}
    new = dict(old)
    for rows, name, cost in ((old, "f", 100), (new, "g", 900)):
        for caller in ("a", "b"):
            rows |= {("t", caller, name): (cost, 2), ("t", caller, name, name): (0, 8)}
    blame = find_blame(tree(old), tree(new))
    assert doings(blame) == {"g": 1600}
    assert blame.functions[0].renamed == ("f",)


def test_what_is_still_defined_has_no_other_name(tmp_path: File) -> None:
    """Its caller calls another function now."""
    file = tmp_path / "shop.py"
    text = "def t(): careful()\ndef careful(): pass\ndef fast(): pass\nif t:\n  def fast(): 1\n"
    file.write_text(text)
    old: Rows = {("shop.py:t",): (9, 1), ("shop.py:t", "shop.py:fast"): (400, 4)}
    new: Rows = {("shop.py:t",): (9, 1), ("shop.py:t", "shop.py:careful"): (500, 4)}
    assert doings(find_blame(tree(old), tree(new))) == {"shop.py:careful": 100}
    places = replace(tree(new), places={"shop.py:t": (str(file), 1)})
    assert doings(find_blame(tree(old), places)) == {"shop.py:t": 100}
    # nothing is known where the source is not what runs
    other = tmp_path / "patched.py"
    other.write_text("def t(): fast()\ndef fast(): pass\n")
    places = replace(tree(new), places={"shop.py:t": (str(other), 1)})
    assert doings(find_blame(tree(old), places)) == {"shop.py:careful": 100}


def test_what_the_library_still_defines_has_no_other_name(tmp_path: File) -> None:
    """A cache of the project's own in its place, say."""
    file = tmp_path / "shop.py"
    file.write_text("def t(): compiled()\ndef compiled(): pass\n")
    old: Rows = {("shop.py:t",): (9, 1), ("shop.py:t", "re/__init__.py:compile"): (400, 4)}
    new: Rows = {("shop.py:t",): (9, 1), ("shop.py:t", "shop.py:compiled"): (500, 4)}
    places = replace(tree(new), places={"shop.py:t": (str(file), 1)})
    assert align(tree(old), places).renamed == {}
    gone = {
        path[:1] + ("re/__init__.py:no_more",) * (len(path) - 1): row for path, row in old.items()
    }
    assert align(tree(gone), places).renamed == {"shop.py:compiled": ("re/__init__.py:no_more",)}


@pytest.mark.parametrize("inner", ["<genexpr>", "<lambda>.<locals>.<lambda>"])
def test_what_is_within_a_renamed_function_is_renamed(inner: str) -> None:
    """However much dearer it is."""

    def render(cls: str, ir: int) -> Rows:
        outer, _, last = f"{cls}.render.<locals>.{inner}".rpartition(".<locals>.")
        path = tuple(dict.fromkeys([f"{cls}.render", outer, f"{outer}.<locals>.{last}"]))
        above: Rows = {("t", *path[:n]): (50, 1) for n in range(len(path))}
        return {**above, ("t", *path): (ir, 102)}

    blame = find_blame(tree(render("Plain", 900)), tree(render("Padded", 5000)))
    assert doings(blame) == {f"Padded.render.<locals>.{inner}": 4100}
    assert blame.functions[0].renamed == (f"Plain.render.<locals>.{inner}",)


@given(trees, trees)
def test_no_instruction_is_lost(old: CallTree, new: CallTree) -> None:
    """However much is renamed; and who is aligned with itself stays as it is."""
    aligned = align(old, new)
    assert aligned.tree.total == old.total
    assert align(old, old) == align(align(old, old).tree, old)
    assert not align(old, old).renamed


@given(trees, trees)
def test_self_deltas_of_renamed_functions_add_up(old: CallTree, new: CallTree) -> None:
    nodes = {(path[0], *(f"{name}2" for name in path[1:])): row for path, row in new.nodes.items()}
    other = CallTree(new.how, new.counted, nodes)
    blame = find_blame(old.fold(), other)
    whole = Fraction(other.total, other.counted) - Fraction(old.total, old.counted)
    assert sum(each.self_delta for each in blame.functions) == blame.change == whole


def test_what_got_cheaper_is_not_named_first() -> None:
    """Where the test got dearer, whatever does most there comes behind who made it so."""
    old = tree({("t",): (0, 1), ("t", "f"): (0, 1), ("t", "f", "g"): (400, 4), ("t", "h"): (50, 1)})
    new = tree(
        {("t",): (0, 1), ("t", "f"): (0, 1), ("t", "f", "g"): (300, 8), ("t", "h"): (200, 1)}
    )
    blame = find_blame(old, new)
    assert doings(blame) == {"f": 400, "g": -500, "h": 150}
    assert blame.change == 50
    assert [each.name for each in blame.functions if each.self_delta] == ["h", "f", "g"]
    assert [each.name for each in blame.causes(grew=True)] == ["h", "f"]
    assert [each.name for each in blame.causes(grew=False)] == ["g"]
