"""RunSummary -> the JSON report, schema docs/reference/schemas/report-2.json.

History of the schema:
1: environment; per test nodeid, verdict, ir, baseline_ir, delta, limit
2: also denoised_ir, spread, detects; traces
"""

from __future__ import annotations

import json
import shlex
from fractions import Fraction
from pathlib import Path

from pytest_instrcount.atomic import replace_file
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.names import printable
from pytest_instrcount.gate.records import CallsResult, RunSummary, TestResult

#: The version that is written.
SCHEMA = 2


def report_dict(summary: RunSummary) -> dict[str, object]:
    """The report as plain values. ``ir`` is per call, ``delta`` a fraction of the baseline.

    >>> report_dict(RunSummary((), {"valgrind": "3.19.0"}))
    {'schema': 2, 'environment': {'valgrind': '3.19.0'}, 'tests': [], 'traces': []}
    """
    return {
        "schema": SCHEMA,
        "environment": dict(sorted(summary.environment.items())),
        "tests": [_test_dict(result) for result in summary.results],
        "traces": [_calls_dict(result) for result in summary.traces],
    }


def _calls_dict(result: CallsResult) -> dict[str, object]:
    return {
        "nodeid": result.nodeid,
        "verdict": result.verdict.value,
        "calls": result.calls,
        "baseline_calls": result.baseline_calls,
        "delta": _number(result.delta),
        "limit": str(result.limit),
        "changes": {each.name: [each.before, each.after] for each in result.changes},
    }


def _test_dict(result: TestResult) -> dict[str, object]:
    return {
        "nodeid": result.nodeid,
        "verdict": result.verdict.value,
        "ir": result.ir,
        "baseline_ir": result.baseline_ir,
        "denoised_ir": result.denoised_ir,
        "delta": _number(result.delta),
        "spread": _number(result.spread),
        "detects": _number(result.detects),
        "limit": str(result.limit),
    }


def _number(fraction: Fraction | None) -> float | None:
    return None if fraction is None else float(fraction)


def write_report(path: Path, summary: RunSummary) -> None:
    """Write the JSON report, whole or not at all; folders that are missing are made.

    Raises InstrcountError "report-write" if that is not possible.
    """
    text = json.dumps(report_dict(summary), indent=2) + "\n"
    try:
        replace_file(path, text.encode("utf-8"))
    except (OSError, ValueError) as error:
        shown = shlex.quote(printable(str(path)))
        why = (error.strerror if isinstance(error, OSError) else None) or printable(str(error))
        raise InstrcountError(
            "report-write",
            f"the report {shown} cannot be written: {why}",
            "pytest --instrcount --instrcount-report=json:PATH with a PATH you may write to",
        ) from error
