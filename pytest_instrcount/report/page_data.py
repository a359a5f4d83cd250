"""RunSummary and histories -> the plain values that the page shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from pytest_instrcount.counts.python.blame import PythonDelta
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.gate.budget import BudgetResult
from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.compare import FunctionDelta
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.store.names import measure
from pytest_instrcount.report.budgets import budget_cells, budget_word, render_budget_failure
from pytest_instrcount.report.c_functions import change_by_c
from pytest_instrcount.report.calls import calls_limit, render_calls_failure
from pytest_instrcount.report.failure import render_failure
from pytest_instrcount.report.history import Point
from pytest_instrcount.report.main_cause import main_cause
from pytest_instrcount.report.summary import run_notes
from pytest_instrcount.report.trees import (
    chosen_trees,
    frame_name,
    place_of,
    rows_of,
    split_name,
    why_no_tree,
)

#: So many functions are listed of a test that changed, and of any other.
_MOST_FUNCTIONS, _MOST_OF_OTHERS = 200, 20
#: Columns of the text of a failure.
_WIDTH = 100
_CHANGED = frozenset({Verdict.regressed, Verdict.improved})

_Record = dict[str, object]


def page_data(
    summary: RunSummary, histories: Mapping[str, Sequence[Point]], created: str
) -> _Record:
    """The data that `render_page` shows. ``histories`` is by test, ``created`` is ISO 8601.

    >>> page_data(RunSummary((), {}, title="shop"), {}, "2026-03-14")["title"]
    'pytest-instrcount: shop'
    """
    chosen = chosen_trees(summary.results)
    return {
        "title": ": ".join(filter(None, ("pytest-instrcount", summary.title))),
        "created": created,
        "environment": dict(sorted(summary.environment.items())),
        "notes": list(run_notes(summary)),
        "accept": summary.update_command if summary.can_accept else "",
        "budgets": [_budget(each) for each in summary.budgets],
        "calls": [_calls(each) for each in summary.traces],
        "tests": [
            {
                **_test(result),
                **_cause(result, summary),
                **_python_part(result, summary, result.nodeid in chosen),
                "history": _history(result, histories.get(result.nodeid, ()), created),
            }
            for result in summary.results
        ],
    }


def _history(result: TestResult, points: Sequence[Point], created: str) -> list[Point]:
    """The points of commits, and this run if it was compared."""
    now = result.compared_ir[1]
    if result.delta is None or now is None:
        return list(points)
    return [*points, Point(commit="", date=created, ir=now)]


def _budget(result: BudgetResult) -> _Record:
    nodeid, budget, now, allowed = budget_cells(result)
    return {
        "nodeid": nodeid,
        "budget": budget,
        "verdict": "kept" if result.kept else budget_word(result),
        "now": now,
        "allowed": allowed,
        "why": "" if result.kept else "\n".join(render_budget_failure(result)),
    }


def _calls(result: CallsResult) -> _Record:
    unchanged = result.verdict is Verdict.unchanged
    return {
        "nodeid": result.nodeid,
        "verdict": result.verdict.value,
        "before": result.baseline_calls,
        "now": result.calls,
        "limit": calls_limit(result.limit),
        "why": "" if unchanged else "\n".join(render_calls_failure(result, "", _WIDTH)),
    }


def _test(result: TestResult) -> _Record:
    before, now = result.compared_ir
    functions = _first(result.functions, result)
    change = _shared(change_by_c(result), result)
    return {
        "nodeid": result.nodeid,
        "verdict": result.verdict.value,
        "baseline_ir": before,
        "ir": now,
        "raw": [result.baseline_ir, result.ir] if result.is_denoised else None,
        "delta": None if result.delta is None else float(result.delta),
        "limit": str(result.limit),
        "detects": None if result.detects is None else float(result.detects),
        "layouts": result.layouts,
        "spread": None if result.ends is None else [plain(end) for end in result.ends],
        "reason": result.reason,
        "differences": [list(each) for each in result.differences],
        "packages": [list(each) for each in result.packages_changed],
        "work": [[kind, plain(old), plain(new)] for kind, old, new in result.work],
        "functions": [_c_function(each, change) for each in functions],
        "functions_left": len(result.functions) - len(functions),
    }


def _cause(result: TestResult, summary: RunSummary) -> _Record:
    """The function that is to blame and what it did, and the text of the failure."""
    if result.verdict is Verdict.unchanged:
        return {"cause": None, "why": []}
    command = "" if summary.against else measure(result.nodeid)
    lines = render_failure(result, command, _WIDTH)
    function, what = main_cause(result) if result.verdict in _CHANGED else ("", "")
    if not function:
        return {"cause": None, "why": lines}
    return {"cause": [function, what, main_cause(result, exact=False)[1]], "why": lines}


def _first(functions: Sequence[FunctionDelta], result: TestResult) -> Sequence[FunctionDelta]:
    most = _MOST_FUNCTIONS if result.verdict in _CHANGED else _MOST_OF_OTHERS
    return functions[:most]


def _shared(change: Fraction, result: TestResult) -> Fraction | None:
    """The change that functions have shares of; None where the whole test did not move that way."""
    signs = {Verdict.regressed: 1, Verdict.improved: -1}
    return change if change * signs.get(result.verdict, 0) > 0 else None


def _share(part: Fraction, change: Fraction | None) -> float | None:
    return None if change is None else round(float(part / change), 6)


def _c_function(delta: FunctionDelta, change: Fraction | None) -> _Record:
    return {
        "name": delta.name,
        "share": _share(delta.ir, change),
        "self": plain(delta.ir),
        "inclusive": None if delta.inclusive is None else plain(delta.inclusive),
        "calls_before": plain(delta.calls_before),
        "calls_after": plain(delta.calls_after),
    }


def _python_part(result: TestResult, summary: RunSummary, has_room: bool) -> _Record:
    if result.tree is None:
        return {"python": None, "no_python": why_no_tree(result, summary)}
    if not has_room:
        return {
            "python": None,
            "no_python": "This page has as many trees as can be opened, and this one is not among "
            "them. A run of fewer tests has it.",
        }
    return {"python": _python(result, result.tree), "no_python": ""}


def _python(result: TestResult, tree: CallTree) -> _Record:
    blame = result.python
    found: _Record = {"how": tree.how, "unit": tree.unit, "from_baseline": not result.tree_is_new}
    if blame is None:
        return {**found, "functions": [], "old": None, "new": _rows(tree)}
    functions = blame.functions[:_MOST_FUNCTIONS]
    change = _shared(blame.change, result)
    return {
        **found,
        "functions": [_python_function(blame.new, each, change) for each in functions],
        "functions_left": len(blame.functions) - len(functions),
        "old": _rows(blame.old),
        "new": _rows(blame.new),
    }


def _python_function(tree: CallTree, delta: PythonDelta, change: Fraction | None) -> _Record:
    qualname, path = split_name(delta.name)
    return {
        "name": qualname,
        "file": path,
        "line": place_of(tree, delta.name)[1] or None,
        "share": _share(delta.self_delta, change),
        "self_delta": plain(delta.self_delta),
        "self": plain(delta.own),
        "inclusive": plain(delta.inclusive),
        "calls_before": plain(delta.calls_before),
        "calls_after": plain(delta.calls_after),
    }


def _rows(tree: CallTree) -> list[tuple[int, str, float, float]]:
    """Depth, name, self and calls, per call of the test; callers first."""
    return [
        (
            depth,
            frame_name(name),
            plain(Fraction(own, tree.counted)),
            plain(Fraction(calls, tree.counted)),
        )
        for depth, name, own, calls in rows_of(tree)
    ]


def plain(number: Fraction) -> float:
    """For people: two decimals at most.

    >>> plain(Fraction(7)), plain(Fraction(1, 3))
    (7, 0.33)
    """
    return int(number) if number.denominator == 1 else round(float(number), 2)
