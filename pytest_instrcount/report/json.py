"""RunSummary -> the JSON report, schema docs/reference/schemas/report-3.json.

History of the schema:
1: environment; per test nodeid, verdict, ir, baseline_ir, delta, limit
2: also denoised_ir, spread, detects; traces
3: floor; causes of a change (per test functions, python, explained, work); budgets; against; of benchmarks
   group and extra_info; cause: why a test was not compared with the baseline that it has; remarks;
   of a trace edges and renamed; shards: those whose results the report has, where others lack
"""

from __future__ import annotations

import json
from fractions import Fraction

from pytest_instrcount.counts.python.blame import PythonBlame, PythonDelta
from pytest_instrcount.gate.budget import (
    BudgetResult,
    CeilingResult,
    RatioResult,
    ScalingResult,
    Unjudged,
    budget_name,
)
from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.report.c_functions import MOST_CAUSES, explained_by_c
from pytest_instrcount.report.calls import calls_limit
from pytest_instrcount.report.trees import place_of, split_name

#: The version that is written.
SCHEMA = 3
#: So many functions of each kind are listed, those that changed most.
MOST_FUNCTIONS = 100


def render_json(summary: RunSummary) -> str:
    """The report as text, a newline at its end."""
    return json.dumps(report_dict(summary), indent=2) + "\n"


def report_dict(summary: RunSummary) -> dict[str, object]:
    """The report as plain values. ``ir`` is per call, ``delta`` a fraction of the baseline.

    >>> report_dict(RunSummary((), {}))
    {'schema': 3, 'environment': {}, 'against': None, 'shards': [], 'tests': [], 'traces': [], 'budgets': []}
    """
    return {
        "schema": SCHEMA,
        "environment": dict(sorted(summary.environment.items())),
        "against": summary.against
        and {"ref": summary.against.ref, "commit": summary.against.commit},
        "shards": [shard_dict(*summary.shard)] if summary.shard else [],
        "tests": [_test_dict(result, summary) for result in summary.results],
        "traces": [_calls_dict(result) for result in summary.traces],
        "budgets": [budget_dict(result) for result in summary.budgets],
    }


def shard_dict(number: int, of: int) -> dict[str, int]:
    """A shard of a suite, its number from 1."""
    return {"number": number, "of": of}


def _calls_dict(result: CallsResult) -> dict[str, object]:
    return {
        "nodeid": result.nodeid,
        "verdict": result.verdict.value,
        "cause": result.cause and result.cause.value,
        "calls": result.calls,
        "baseline_calls": result.baseline_calls,
        "delta": _number(result.delta),
        "limit": calls_limit(result.limit),
        "changes": {each.name: [each.before, each.after] for each in result.changes},
        "edges": [
            {
                "caller": each.caller,
                "function": each.callee,
                "calls": list(each.calls),
                "resumes": list(each.resumes),
            }
            for each in result.edges[:MOST_FUNCTIONS]
        ],
        "renamed": dict(result.renamed),
    }


def _test_dict(result: TestResult, summary: RunSummary) -> dict[str, object]:
    # what moved within the limit is no cause of anything
    changed = result.verdict in (Verdict.regressed, Verdict.improved)
    blame = result.python if changed else None
    functions = result.functions[:MOST_FUNCTIONS] if changed else ()
    return {
        "nodeid": result.nodeid,
        "group": summary.groups.get(result.nodeid),
        "extra_info": dict(summary.extra_info.get(result.nodeid, {})),
        "verdict": result.verdict.value,
        "cause": result.cause and result.cause.value,
        "ir": result.ir,
        "baseline_ir": result.baseline_ir,
        "denoised_ir": result.denoised_ir,
        "delta": _number(result.delta),
        "spread": _number(result.spread),
        "detects": _number(result.detects),
        "floor": _number(result.floor),
        "limit": str(result.limit),
        "functions": [
            {
                "name": each.name,
                "self": _exact(each.ir),
                "inclusive": None if each.inclusive is None else _exact(each.inclusive),
                "calls": [_exact(each.calls_before), _exact(each.calls_after)],
            }
            for each in functions
        ],
        "python": blame and _python_dict(blame),
        "explained": {
            "functions": float(explained_by_c(result)) if functions else None,
            "python": float(blame.explained(MOST_CAUSES)) if blame else None,
        },
        "work": {kind: [_exact(before), _exact(after)] for kind, before, after in result.work},
        "remarks": list(result.remarks),
    }


def _python_dict(blame: PythonBlame) -> dict[str, object]:
    return {
        "how": blame.how,
        "unit": blame.unit,
        "change": [_exact(blame.before), _exact(blame.after)],
        "functions": [_function_dict(blame, each) for each in blame.functions[:MOST_FUNCTIONS]],
    }


def _function_dict(blame: PythonBlame, delta: PythonDelta) -> dict[str, object]:
    name, path = split_name(delta.name)
    return {
        "name": name,
        "file": path,
        "line": place_of(blame.new, delta.name)[1] or None,
        "self_delta": _exact(delta.self_delta),
        "own": _exact(delta.own),
        "inclusive": _exact(delta.inclusive),
        "calls": [_exact(delta.calls_before), _exact(delta.calls_after)],
    }


def budget_dict(result: BudgetResult) -> dict[str, object]:
    """One budget as plain values.

    >>> budget_dict(CeilingResult("t.py::a", Fraction(25), 20))["now"]
    25
    """
    found: dict[str, object] = {"now": None, "allowed": None, "other": None, "counts": {}}
    if isinstance(result, CeilingResult):
        found |= {"now": _exact(result.ir), "allowed": result.most}
    elif isinstance(result, RatioResult):
        now, allowed = _exact(result.ir / result.other_ir), _exact(result.most)
        found |= {"now": now, "allowed": allowed, "other": result.other}
    elif isinstance(result, ScalingResult):
        counts = {str(size): _exact(ir) for size, ir in result.counts.items()}
        found |= {"now": str(result.growth), "allowed": str(result.allowed), "counts": counts}
    return {
        "nodeid": result.nodeid,
        "budget": budget_name(result),
        "kept": result.kept,
        **found,
        "reason": result.why if isinstance(result, Unjudged) else "",
    }


def _exact(number: Fraction) -> float:
    """An integer where it is one, else the nearest number that JSON's readers have."""
    return int(number) if number.denominator == 1 else float(number)


def _number(fraction: Fraction | None) -> float | None:
    return None if fraction is None else float(fraction)
