"""Branches of calls, before and now, side by side."""

from __future__ import annotations

from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.calls import judge_calls
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.calls import CallTable, Edges
from pytest_instrcount.report.branches import render_branches
from pytest_instrcount.report.calls import render_calls, render_calls_failure

EXACT = Limit(None, 0)


def failed(old: Edges, new: Edges) -> CallsResult:
    tables = (CallTable("t.py::test_a", {("", "m:t"): (1, 0), **each}, {}) for each in (old, new))
    before, now = tables
    return judge_calls(before, now, EXACT)


def test_long_names_and_deep_branches_fit_the_width() -> None:
    """Names give way at their left; of many callers the nearest are shown."""
    names = ["m:t", *(f"package.of.modules.with.names:Class.method_{n}" for n in range(20))]
    edges = dict.fromkeys(zip(["", *names], names), (1, 0))
    last = names[-2], names[-1]
    lines = render_branches(edges, {**edges, last: (12_345, 10**9)}, [last], 78)
    assert len(lines) == 7
    assert max(map(len, lines)) <= 78
    assert lines[-1].endswith("…thod_19  12345 (resumed 1000000000)")
    assert lines[1].endswith("s.with.names:Class.method_14  1")


def test_recursion_and_functions_without_a_caller_end() -> None:
    """A function that calls itself, two that call each other, and one whose caller is not known."""
    edges = {("", "f"): (1, 0), ("f", "g"): (1, 0), ("g", "f"): (1, 0), ("lost", "h"): (1, 0)}
    new = edges | {("f", "f"): (2, 0), ("g", "f"): (3, 0), ("lost", "h"): (2, 0)}
    lines = render_branches(edges, new, [("f", "f"), ("g", "f"), ("lost", "h")], 40)
    assert [line[19:] for line in lines[1:]] == [
        "  f  1",
        ">   f  2",
        "    g  1",
        "|     f  3",
        "|   h  2",
    ]


def test_many_changes_are_counted() -> None:
    """The largest are shown, as functions and as branches, the rest as a number."""
    new = {("m:t", f"m:f{n}"): (n, 0) for n in range(1, 15)}
    lines = render_calls_failure(failed({}, new), "pytest")
    assert lines[0] == "test_a: 1 -> 106 calls (x106, limit +0 calls)"
    assert lines[1] == "  +14 calls  0 -> 14  m:f14"
    assert "  and 4 more" in lines
    assert sum(" > " in line for line in lines) == 10
    assert lines[-1] == "  accept: pytest"


def test_renamed_functions_are_named_in_a_failure_too() -> None:
    """In few lines, though a whole module was renamed."""
    old = {("m:t", f"a:f{n}"): (1, 0) for n in range(9)} | {("m:t", "m:g"): (1, 0)}
    new = {("m:t", f"b:f{n}"): (1, 0) for n in range(9)} | {("m:t", "m:g"): (2, 0)}
    lines = render_calls_failure(failed(old, new), "")
    assert lines[1:7] == [
        "  +1 calls  1 -> 2  m:g",
        *(f"  renamed: a:f{n} -> b:f{n}" for n in range(5)),
    ]
    assert lines[7:] == [
        "  renamed: 4 more",
        "  before                                  now",
        "  m:t  1                                  m:t  1",
        "    m:g  1                              |   m:g  2",
    ]
    assert "renamed" not in " ".join(render_calls([failed(old, new)], 0, 80))


def test_a_name_from_outside_is_escaped() -> None:
    """Names of functions come from a file that anybody may have written."""
    lines = render_calls_failure(failed({}, {("m:t", "m:\x1b[31mf\n"): (1, 0)}), "")
    assert all(line.isprintable() for line in lines)
