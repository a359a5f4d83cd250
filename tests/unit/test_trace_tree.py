"""The tree as users meet it: patterns, text, differences, failing asserts, tables for baselines."""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest

from pytest_instrcount.trace.columns import Columns, Key, Thread
from pytest_instrcount.trace.counts import lasting_names
from pytest_instrcount.trace.keys import KeyTable, trim_path
from pytest_instrcount.trace.text import render
from pytest_instrcount.trace.tree import EXPLAINED_LINES, Tree, explain_calls
from tests.invariants import differing
from tests.unit.tracing import trace

HERE = __name__


def leaf() -> None:
    pass


def branch(times: int) -> None:
    for _ in range(times):
        leaf()


def again(n: int) -> None:
    leaf()
    if n:
        again(n - 1)


def body() -> None:
    branch(2)
    branch(1)
    again(3)


def tree_of(func: Callable[[], object], **options: Any) -> Tree:
    return trace(func, **options)


TEXT = f"""\
{HERE}.body  1
  {HERE}.branch  2
    {HERE}.leaf  3
  {HERE}.again  4
    {HERE}.leaf  4"""


def test_text_puts_equal_calls_together() -> None:
    """A recursive call counts for the first one."""
    tree = tree_of(body)
    assert tree.to_text() == TEXT
    assert render(tree.contexts, limit=2).splitlines()[-1] == "... 3 more lines"


def test_text_says_resumes() -> None:
    """Beside the calls."""
    tree = tree_of(lambda: sum(n for n in range(3)))
    assert (
        f"{HERE}.test_text_says_resumes.<locals>.<lambda>.<locals>.<genexpr>  1 (resumed 3)"
        in tree.to_text()
    )


async def leaves(n: int) -> None:
    await asyncio.sleep(0)
    leaf()


async def three() -> None:
    await asyncio.gather(*map(leaves, range(3)))


def test_text_folds_libraries() -> None:
    """What libraries call of libraries; what they call of ours stands below what we have called."""
    tree = tree_of(lambda: asyncio.run(three()), start_frames=0, c_calls=True)
    lines = tree.to_text(libraries=False).replace(f"{HERE}.", "").splitlines()
    assert len(tree.to_text().splitlines()) > 100
    assert lines[1:] == [
        "  asyncio.runners.run  1",
        "    three  1 (resumed 1)",
        "      asyncio.tasks.gather  1",
        "    leaves  3 (resumed 3)",
        "      asyncio.tasks.sleep  3 (resumed 3)",
        "      leaf  3",
    ]


def test_text_has_times() -> None:
    """Of the outermost calls, and their share; no columns where no clock was read."""
    tree = tree_of(body, mode="tree")
    lines = tree.to_text(time=True).splitlines()
    assert [line[24:] for line in lines] == tree.to_text().splitlines()
    times = [float(line[:10].replace(",", "")) for line in lines]
    assert lines[0][10:24] == " ms  100.0 %  "
    assert all(0 <= each <= times[0] for each in times)
    assert tree_of(body).to_text(time=True) == TEXT


def test_time_of_a_recursive_call_counts_once() -> None:
    """It is within that of the first one."""
    columns = Columns(
        parent=array("q", [-1, 0, 0]),
        start=array("q", [0, 1_000_000, 4_000_000]),
        end=array("q", [9_000_000, 3_000_000, 8_000_000]),
        flags=array("q", [0, 0, 0]),
        keys=(Key("python", "m", "f"), Key("python", "m", "g")),
        key=array("q", [0, 0, 1]),
        thread=array("q", [0, 0, 0]),
        threads=(Thread(0, "main", 1),),
    )
    assert Tree(columns).to_text(time=True).splitlines() == [
        "     9.000 ms  100.0 %  m.f  2",
        "     4.000 ms   44.4 %    m.g  1",
    ]


def test_text_has_nothing_of_this_machine() -> None:
    """No address, no line number, no path."""
    space: dict[str, Any] = {}
    exec(compile("def f(): pass", "<generated 0x7f001122aabb>", "exec"), space)
    text = tree_of(space["f"]).to_text()
    assert text == "<generated 0x>.f  1"
    assert "/" not in tree_of(lambda: json.dumps({"a": [1]}, indent=1), c_calls=True).to_text()


def test_patterns() -> None:
    """On module.qualname; "module:qualname" is the same."""
    tree = tree_of(body)
    assert tree.calls(f"{HERE}.leaf") == 7
    assert tree.calls(f"{HERE}:leaf") == 7
    assert tree.calls(f"{HERE}.*") == 14
    assert tree.calls() == 14
    assert tree.calls("*.LEAF") == 0
    assert [node.name.rpartition(".")[2] for node in tree.find("*.b[or]*")] == [
        "body",
        "branch",
        "branch",
    ]


def test_nodes() -> None:
    """Views over rows: name, parent, children, in start order."""
    tree = tree_of(body)
    (top,) = tree.find("*.body")
    assert [child.name.rpartition(".")[2] for child in top.children] == [
        "branch",
        "branch",
        "again",
    ]
    assert all(child.parent == top for child in top.children)
    assert [node.row for node in tree.walk()] == list(range(len(tree)))
    assert tree.roots[0].parent is None
    assert top.calls == 1
    assert top.thread.number == 0
    assert repr(top) == f"<{HERE}.body #{top.row}>"
    assert top.ns == 0
    (timed,) = tree_of(body, mode="tree").find("*.body")
    assert timed.ns > sum(child.ns for child in timed.children) > 0


def test_diff() -> None:
    """Paths whose calls differ, with both numbers."""
    one, two = tree_of(lambda: branch(2)), tree_of(lambda: branch(5))
    found = one.diff(two)
    assert [(path.rpartition(".")[2], before, after) for path, before, after in found] == [
        ("leaf", 2, 5)
    ]
    assert f"{HERE}.branch > {HERE}.leaf" in found[0][0]
    assert one.diff(one) == []
    more = tree_of(body).diff(tree_of(leaf))
    assert (f"{HERE}.leaf", 0, 1) in more
    assert (f"{HERE}.body", 1, 0) in more


def test_a_failing_assert_shows_the_branch() -> None:
    """Only what leads to the calls that matched."""
    tree = tree_of(body)
    calls = tree.calls("*.branch")
    assert explain_calls("==", calls, 3) == [
        "2 == 3 (calls of '*.branch')",
        f"{HERE}.body  1",
        f"  {HERE}.branch  2",
    ]
    assert explain_calls("==", 3, calls) is not None
    assert explain_calls("==", 3, 2) is None
    assert explain_calls("==", calls + 0, 3) is None


def test_a_failing_assert_about_what_was_not_called() -> None:
    """Shows what was, up to a limit."""
    space: dict[str, Any] = {}
    many = (
        "\n".join(f"def f{n}(): pass" for n in range(100))
        + "\ndef all():\n"
        + "\n".join(f" f{n}()" for n in range(100))
    )
    exec(many, space)
    lines = explain_calls("==", tree_of(space["all"]).calls("nothing"), 1)
    assert lines is not None
    assert lines[1].startswith("nothing of that name")
    assert len(lines) == 2 + EXPLAINED_LINES + 1
    assert lines[-1].startswith("...")


def test_calls_are_ints() -> None:
    """In every other respect."""
    calls = tree_of(body).calls("*.leaf")
    assert calls + 1 == 8
    assert repr(calls) == "7"
    assert {7: 1}[calls] == 1


def test_names_for_baselines_have_no_line_numbers() -> None:
    """So an edit above a function is none of it; those that share a name keep their order."""

    def made(shift: int) -> dict[str, int]:
        source = "\n" * shift + "a = lambda: 1\nb = lambda: 2\ndef f():\n  a(); b(); b()\n"
        space: dict[str, Any] = {}
        exec(compile(source, "<made>", "exec"), space)
        return tree_of(space["f"]).call_counts()

    assert made(0) == made(7) == {"<made>:<lambda>": 1, "<made>:<lambda>#2": 2, "<made>:f": 1}


def test_names_do_not_depend_on_the_order_of_calls() -> None:
    """The second of that name in the file is the second."""
    first, second = (Key("python", "m", "f", "m.py", line) for line in (3, 9))
    assert lasting_names([first, second]) == ("m:f", "m:f#2")
    assert lasting_names([second, first]) == ("m:f#2", "m:f")


def test_what_varies_between_two_runs() -> None:
    """Names with both numbers."""
    assert differing({}, {}) == {}
    assert differing({"a": 1}, {"a": 1}) == {}
    assert differing({"a": 1}, {"a": 2, "b": 1}) == {"a": (1, 2), "b": (0, 1)}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/lib/site-packages/p/m.py", "p/m.py"),
        ("/a/lib/json/x.py", "json/x.py"),
        ("/a/libx/m.py", "m.py"),
        ("/elsewhere/deep/m.py", "m.py"),
        ("<string>", "<string>"),
        ("", ""),
    ],
)
def test_the_longest_prefix_is_trimmed(path: str, expected: str) -> None:
    """Whatever the order of prefixes; what is under none keeps its name."""
    prefixes = ["/a/lib", "/a/lib/site-packages", "/a"]
    wanted = "libx/m.py" if path.startswith("/a/libx") else expected
    for order in (prefixes, prefixes[::-1]):
        assert trim_path(path, order) == wanted


def test_keys_are_of_values_not_of_objects() -> None:
    """The same function compiled twice is one key; replaced code objects have their own."""
    table = KeyTable()

    def made() -> CodeType:
        space: dict[str, Any] = {}
        exec(compile("def f(): pass", "<twice>", "exec"), space)
        code: CodeType = space["f"].__code__
        return code

    first, second = made(), made()
    assert table.add(first) == table.add(second)
    assert table.add(first.replace(co_firstlineno=9)) != table.add(first)


def test_modules_are_named_by_what_was_imported() -> None:
    """A frozen one by its name, a file by the module, a package without "__init__"."""
    import os

    table = KeyTable()
    names = [
        table.keys[table.add(func.__code__)].module for func in (os.makedirs, json.dumps, leaf)
    ]
    assert names == ["os", "json", HERE]
