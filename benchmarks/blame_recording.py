"""A plugin of pytest: what the gate found out about each test is JSON beside the project.

`blame_regressions.py` copies it into its project. All that regressed are attributed, not 20.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.report.blame import render_blame
from pytest_instrcount.session import measure

measure.MOST_BLAMED = 1000


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write ``blamed.json``."""
    run = config.pluginmanager.get_plugin("instrcount-run")
    if not isinstance(run, measure.Counting):
        return
    results = run.findings.rulings.results
    record = {nodeid: entry_of(result) for nodeid, result in results.items()}
    (config.rootpath.parent / "blamed.json").write_text(json.dumps(record))


def entry_of(result: TestResult) -> dict[str, Any]:
    """The verdict of a test, and what is to blame."""
    entry: dict[str, Any] = {
        "verdict": result.verdict.value,
        "delta": float(result.delta or 0),
        "how": "",
        "ir": (result.baseline_ir, result.ir),
        "reason": result.reason,
    }
    blame = result.python
    if blame is not None:
        entry |= {
            "how": blame.how,
            "change": float(blame.change),
            "before": float(blame.before),
            "functions": [
                (
                    each.name,
                    float(each.self_delta),
                    [(one.name, float(one.cost)) for one in each.called[:3]],
                )
                for each in blame.functions[:6]
            ],
            "text": render_blame(result, 200),
            "c": [
                (
                    each.name,
                    float(each.ir),
                    None if each.inclusive is None else float(each.inclusive),
                    float(each.calls_before),
                    float(each.calls_after),
                )
                for each in result.functions[:40]
            ],
        }
    return entry
