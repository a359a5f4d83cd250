"""The functions that cause a change: trees, their comparison, and what Callgrind says of trampolines."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.python.blame import find_blame
from pytest_instrcount.counts.python.contexts import Function, parse_names, tree_from
from pytest_instrcount.counts.python.tree import TRAMPOLINES, CallTree, FunctionCost
from pytest_instrcount.errors import InstrcountError


def tree(counted: int = 1, /, **branches: tuple[int, int]) -> CallTree:
    """``f__g=(70, 2)``: g, called by f, cost 70 of its own in 2 calls."""
    nodes = {tuple(name.split("__")): Row(*row) for name, row in branches.items()}
    return CallTree(TRAMPOLINES, counted, nodes)


def doings(old: CallTree, new: CallTree) -> dict[str, int]:
    return {
        each.name: int(each.self_delta)
        for each in find_blame(old, new).functions
        if each.self_delta
    }


trees = st.builds(
    lambda counted, nodes: CallTree(TRAMPOLINES, counted, {("t",): Row(5, counted), **nodes}),
    st.integers(1, 4),
    st.dictionaries(
        # what is not below the test is a thread's
        st.lists(st.sampled_from("abct"), min_size=1, max_size=4).map(tuple),
        st.builds(Row, st.integers(0, 10**6), st.integers(0, 50)),
        max_size=8,
    ),
)


@given(trees)
def test_rows_are_the_tree(made: CallTree) -> None:
    """What is written is read; so are callers that cost nothing of their own."""
    again = CallTree.from_rows(made.how, made.counted, list(made.rows()))
    assert again.total == made.total
    assert again.inclusive == made.inclusive
    assert list(again.rows()) == list(made.rows())
    assert pickle.loads(pickle.dumps(made)) == made


@given(trees)
def test_folding_loses_nothing(made: CallTree) -> None:
    """No instruction is lost, no branch above 0.01 % is touched, and folding twice is folding once."""
    folded = made.fold()
    assert folded.total == made.total
    for path, ir in made.inclusive.items():
        if ir * 10_000 >= made.total or len(path) == 1:
            assert folded.inclusive[path] == ir
        elif not ir and path[-1] == path[-2] and made.nodes.get(path, Row(0, 0)).calls:
            assert (path in folded.nodes) is (path[:-1] in folded.inclusive)  # calls of itself
        else:
            assert path not in folded.inclusive
    assert folded.fold().nodes == folded.nodes
    assert made.fold(made.inclusive).inclusive == made.inclusive


@given(trees, trees)
def test_self_deltas_add_up_to_the_change(old: CallTree, new: CallTree) -> None:
    """Nothing is blamed twice, nothing on nobody; both sides per call of the test."""
    blame = find_blame(old.fold(), new)
    whole = Fraction(new.total, new.counted) - Fraction(old.total, old.counted)
    assert blame.change == whole
    assert sum(each.self_delta for each in blame.functions) == whole


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "f", 1, 1)],
        [(0, "f", 1, 1), (2, "g", 1, 1)],
        [(0, "f", 1, 1), (-1, "g", 1, 1)],
        [(0, "", 1, 1)],
        [(0, "f", 1, 1), (0, "f", 1, 1)],
    ],
)
def test_rows_of_no_tree(rows: list[tuple[int, str, int, int]]) -> None:
    """A file that somebody edited."""
    with pytest.raises(ValueError, match="stands"):
        CallTree.from_rows(TRAMPOLINES, 1, rows)


def test_of_a_recursion_the_outermost_counts() -> None:
    """No function comes to more than the whole."""
    made = tree(f=(1, 1), f__g=(2, 1), f__g__f=(3, 1), f__g__f__g=(4, 1))
    assert made.functions() == {"f": FunctionCost(4, 10, 2), "g": FunctionCost(6, 9, 2)}


def test_who_calls_more_is_to_blame_not_who_is_called() -> None:
    """G costs twice as much, and does what it did."""
    old = tree(t=(5, 1), t__f=(10, 1), t__f__g=(100, 10), t__f__g__h=(50, 20))
    new = tree(t=(5, 1), t__f=(10, 1), t__f__g=(200, 20), t__f__g__h=(100, 40))
    assert doings(old, new) == {"f": 150}
    (called,) = find_blame(old, new).functions[0].called
    numbers = [called.before, called.after, called.cost]
    assert called.name == "g"
    assert numbers == [10, 20, 150]


def test_what_is_called_more_and_dearer() -> None:
    """Each has its part: the calls at what they cost before, the rest is the called one's."""
    old = tree(t=(0, 1), t__f=(0, 1), t__f__g=(100, 10))
    new = tree(t=(0, 1), t__f=(0, 1), t__f__g=(240, 20))
    assert doings(old, new) == {"f": 100, "g": 40}


def test_a_new_function_is_the_doing_of_who_calls_it() -> None:
    """And so is one that is gone."""
    old = tree(t=(0, 1), t__f=(10, 1), t__f__old=(30, 1))
    new = tree(t=(0, 1), t__f=(10, 1), t__f__new=(70, 1), t__f__new__g=(5, 1))
    assert doings(old, new) == {"f": 45}


def test_other_numbers_of_calls_of_the_test() -> None:
    """All is per call of the test."""
    old, new = tree(2, t=(10, 2), t__f=(20, 4)), tree(3, t=(15, 3), t__f=(33, 6))
    assert doings(old, new) == {"f": 1}
    assert find_blame(old, new).functions[0].calls_before == 2


def test_explained() -> None:
    """The share of those that are named; what fell elsewhere does not make it more than all."""
    old = tree(t=(10, 1), t__f=(10, 1), t__g=(10, 1), t__h=(10, 1))
    new = tree(t=(10, 1), t__f=(40, 1), t__g=(20, 1), t__h=(10, 1))
    blame = find_blame(old, new)
    assert [each.name for each in blame.functions] == ["f", "g", "t"]
    assert [blame.explained(1), blame.explained(3)] == [Fraction(3, 4), 1]
    assert find_blame(old, tree(t=(0, 1), t__f=(40, 1))).explained(1) <= 1
    assert find_blame(old, old).explained(3) == 0


# What Callgrind says.


def key_of(context: str) -> str:
    """``a_b``: b, called by a, by the addresses 0xa and 0xb; ``a_2b``: b, which is active above."""
    chain = []
    for frame in reversed(context.split("_")):
        address = f"0x{frame.lstrip('2'):0>16}"
        chain += [address, "2"] if frame.startswith("2") else [address]
    return f"???:{chr(39).join(chain)} [???]"


def dumped(
    callers: Mapping[str, Mapping[str, int]] = MappingProxyType({}), /, **contexts: tuple[int, int]
) -> Profile:
    """Costs and calls of contexts; ``callers``: of some also who calls them how often."""
    rows = {key_of(name): Row(*row) for name, row in contexts.items()}
    told = {
        key_of(name): {key_of(caller): Row(1, calls) for caller, calls in each.items()}
        for name, each in callers.items()
    }
    return Profile(sum(row.ir for row in rows.values()), rows, told)


FUNCTIONS = {
    0xA: Function("loop", "/plugin/child.py", 1),
    0xB: Function("test_a", "/p/test_a.py", 1),
    0xC: Function("f", "/p/f.py", 7),
}


def named(function: Function) -> str | None:
    return None if function.filename.startswith("/plugin") else function.qualname


def test_contexts_become_a_tree() -> None:
    """What stands above the test is none of it; what is no Python function is its caller's."""
    dump = dumped(a=(900, 0), a_b=(10, 2), a_b_c=(20, 4), a_b_c_9=(3, 8), a_9_b_c_9_9=(4, 8))
    made = tree_from([dump], FUNCTIONS, 2, named)
    assert made == tree(2, test_a=(10, 2), test_a__f=(27, 4))
    assert made.places["f"] == ("/p/f.py", 7)
    assert tree_from([dump, dump], FUNCTIONS, 4, named).total == 74


def test_the_lines_of_namesakes_are_not_known() -> None:
    """A getter and a setter have one name, and so are one place: the line of either would mislead."""
    functions = {**FUNCTIONS, 0xD: Function("f", "/p/f.py", 12)}
    made = tree_from([dumped(a_b=(10, 1), a_b_c=(20, 1), a_b_d=(5, 1))], functions, 1, named)
    assert made.places["f"] == ("/p/f.py", 0)


def test_a_folded_tree_knows_the_places_of_what_it_has() -> None:
    """Of each test all functions of its process are known at first: thousands of them, in all."""
    places = {name: (f"/p/{name}.py", 1) for name in "fgh"}
    nodes = {("f",): Row(10_000, 1), ("f", "g"): Row(20_000, 1), ("f", "h"): Row(1, 1)}
    assert CallTree(TRAMPOLINES, 1, nodes, places).fold().places.keys() == {"f", "g"}


def test_direct_recursions_are_one_place() -> None:
    """How often they begin, and how often they go on, Callgrind says by who calls whom."""
    callers = {
        "a_b_c": {"a_b": 1},
        "a_b_2c": {"a_b_c": 2, "a_b_2c": 3},
        "a_b_c_9_c": {"a_b_c_9": 2},
    }
    dump = dumped(callers, a_b=(10, 1), a_b_c=(20, 1), a_b_2c=(3, 5), a_b_c_9_c=(4, 2))
    made = tree_from([dump], FUNCTIONS, 1, named)
    assert made == tree(test_a=(10, 1), test_a__f=(27, 1), test_a__f__f=(0, 7))
    assert made.fold() == made


def test_a_function_that_calls_itself_more_often_is_to_blame() -> None:
    """Not who calls it, as often as before; what it calls in each of its runs is its own doing, too."""

    def walk(itself: int) -> CallTree:
        runs = 8 + itself
        nodes = {("use",): Row(50, 1), ("use", "walk"): Row(100 * runs, 8)}
        nodes |= {
            ("use", "walk", "walk"): Row(0, itself),
            ("use", "walk", "g"): Row(10 * runs, runs),
        }
        return CallTree(TRAMPOLINES, 1, nodes)

    [walked] = [each for each in find_blame(walk(72), walk(144)).functions if each.self_delta]
    assert walked.name == "walk"
    assert list(map(int, (walked.self_delta, walked.own))) == [7920, 7200]
    assert list(map(int, (walked.calls_before, walked.calls_after))) == [80, 152]
    [more] = walked.called
    assert more.name == "walk"
    assert list(map(int, (more.before, more.after, more.cost))) == [72, 144, 7920]


def test_no_python_function() -> None:
    """An error, never an empty tree."""
    with pytest.raises(InstrcountError, match="no-trampolines"):
        tree_from([dumped(a=(900, 1), a_9=(5, 1))], FUNCTIONS, 1, named)


def test_maps() -> None:
    """Those of perf and ours; colons in paths, brackets in names, lines that are none."""
    lines = [
        "7f0000000010 b py::A.<locals>.<lambda>:/a:b/c d.py\n",
        "7f0000000020 20 py:12:f:<string>\n",
        "7f0000000030 b trampoline of somebody else\n",
        "\n",
    ]
    assert parse_names(lines) == {
        0x7F0000000010: Function("A.<locals>.<lambda>", "/a:b/c d.py", 0),
        0x7F0000000020: Function("f", "<string>", 12),
    }


def test_a_test_that_is_as_it_was_is_not_named_first() -> None:
    """It frees what others made dearer; alone, or almost, it is the cause all the same."""
    old, new = tree(t=(100, 1), t__f=(50, 3)), tree(t=(160, 1), t__f=(80, 3))
    blame = find_blame(old, new)
    assert [each.name for each in blame.causes(grew=True)] == ["t", "f"]
    kept = replace(blame, kept="t")
    assert [each.name for each in kept.causes(grew=True)] == ["f", "t"]
    alone = replace(find_blame(old, tree(t=(200, 1), t__f=(80, 3))), kept="t")
    assert [each.name for each in alone.causes(grew=True)] == ["t", "f"]


def test_a_list_that_became_a_generator() -> None:
    """It is called where it was, runs where it is consumed, and is to blame for what it costs there."""
    old = tree(t=(10, 1), t__f=(1000, 1), t__g=(50, 1))
    new = tree(t=(10, 1), t__f=(5, 1), t__g=(50, 1), t__g__f=(1800, 25))
    blame = find_blame(old, new)
    assert {each.name: each.self_delta for each in blame.functions if each.self_delta} == {"f": 805}
    elsewhere = find_blame(old, tree(t=(10, 1), t__g=(50, 1), t__g__f=(1800, 1)))
    assert elsewhere.change == 800


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        ("t.<locals>.<listcomp>", {"t": 90, "f": 500}),
        ("t.<locals>.g", {"t.<locals>.g": 90, "f": 500}),
    ],
)
def test_a_comprehension_in_between_is_its_function(name: str, causes: dict[str, int]) -> None:
    """What a line did is done within one now: the function with the line is to blame."""
    old = CallTree(TRAMPOLINES, 1, {("t",): Row(10, 1), ("t", "f"): Row(500, 9)})
    between = {("t", name): Row(90, 9), ("t", name, "f"): Row(1000, 9)}
    blame = find_blame(old, CallTree(TRAMPOLINES, 1, {("t",): Row(10, 1), **between}))
    assert {each.name: each.self_delta for each in blame.functions if each.self_delta} == causes
