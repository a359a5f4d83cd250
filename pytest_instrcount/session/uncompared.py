"""The tests of a run that have a baseline and were not compared with it, and why."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.policy import Result
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import measure, named
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.text import several
from pytest_instrcount.session import replay
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.selection import Selection

#: Where none of the tests is in the other commit.
OTHER_REF = "pytest --instrcount-against=REF with a commit that has these tests"


@dataclass(frozen=True, slots=True)
class Left:
    """Why a measured test has no count, and what it said; without a cause it is pytest's to report."""

    cause: Cause | None
    said: str = ""


# Of a test that never came to be run here.
_TAKEN = Left(Cause.uncounted, "a plugin or conftest has run it in its own way")


def run_natively(item: Any, nextitem: pytest.Item | None) -> list[Any]:
    """Run a test as without the plugin; its reports, told to nobody but for those of blocks (sub-tests)."""
    blocks, manager = _Blocks(), item.config.pluginmanager
    manager.register(blocks)
    try:
        runner = manager.getplugin("runner")
        reports: list[Any] = runner.runtestprotocol(item, log=False, nextitem=nextitem)
    finally:
        manager.unregister(blocks)
    return blocks.reports + reports


class _Blocks:
    """Hears of sub-tests, which are told of as they end."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        if replay.is_subtest(report):
            self.reports.append(report)


def run_blocks_natively(
    item: pytest.Item, nextitem: pytest.Item | None, reports: list[Any]
) -> tuple[list[Any], Left | None]:
    """Of a test that has passed, and skipped blocks under Valgrind, learn whether it does so natively.

    Returns the reports that are still to be told, and why it is not compared, if it is not.
    """
    natively = run_natively(item, nextitem)
    if outcome_of(natively) == "failed":
        return replay.without_blocks(natively), Left(None)
    inside, outside = (list(filter(replay.is_subtest, each)) for each in (reports, natively))
    left = None
    if [each.outcome for each in inside] != [each.outcome for each in outside]:
        left = Left(Cause.skipped, f"{why_skipped(inside)}\nnatively it has passed")
    return replay.without_blocks(reports), left


def outcome_of(reports: Sequence[Any]) -> str:
    """In one word, of all phases: failed, skipped (as well: expected to fail) or passed."""
    if any(report.failed for report in reports):
        return "failed"
    return "passed" if replay.passed(list(reports)) else "skipped"


def is_tolerated(
    reports: Sequence[Any], nodeid: str, findings: Findings, *, updating: bool
) -> bool:
    """True if a test was expected to fail and has passed, and has neither baseline nor budget.

    That is pytest's to report; an update gives it a baseline, and from then on it is compared.
    """
    unexpected = any(report.passed and hasattr(report, "wasxfail") for report in reports)
    held = nodeid in findings.budgets or findings.rulings.baseline(nodeid) is not None
    return unexpected and not (held or updating)


def why_skipped(reports: Sequence[Any]) -> str:
    """The reason of a skipped test."""
    for report in reports:
        if hasattr(report, "wasxfail"):
            return str(report.wasxfail).removeprefix("reason: ")
        if report.skipped and isinstance(report.longrepr, tuple):
            return str(report.longrepr[2]).removeprefix("Skipped: ")
    return ""


def settle_left(
    findings: Findings, selection: Selection, failed: Callable[[str], bool], limit: Limit
) -> dict[str, tuple[Cause, str]]:
    """Give each measured test without a verdict the one that it is to have, and note the others.

    ``failed``: whether pytest has failed it. Returns why those have no count that may not do without.
    """
    rulings = findings.rulings
    natively: list[str] = []
    without: list[str] = []
    for nodeid in sorted(selection.measured - rulings.results.keys()):
        if failed(nodeid):
            continue
        left = findings.left.get(nodeid, _TAKEN)
        found = rulings.baseline(nodeid)
        nothing_said = left is _TAKEN or left.cause is Cause.skipped
        if found is None and not (nothing_said and rulings.policy.missing == "fail"):
            without += [nodeid] if nothing_said else []
        elif left.cause is None:
            natively.append(nodeid)
        else:
            ir = found.ir if isinstance(found, Baseline) else None
            rulings.results[nodeid] = TestResult(
                nodeid, Verdict.uncounted, None, ir, None, limit, reason=left.said, cause=left.cause
            )
    _note_left(findings, natively, without)
    _note_dropped(findings, selection)
    return _why_uncounted(findings, failed)


def _note_left(findings: Findings, natively: list[str], without: list[str]) -> None:
    for nodeids, one, many in (
        (
            natively,
            "1 test with a baseline was skipped or expected to fail",
            "{} tests with a baseline were skipped or expected to fail",
        ),
        (
            without,
            "1 test was not counted under Valgrind, and has no baseline",
            "{} tests were not counted under Valgrind, and have no baseline",
        ),
    ):
        if nodeids:
            what = one if len(nodeids) == 1 else many.format(len(nodeids))
            findings.note(f"{what}: {named(nodeids)}")


def _why_uncounted(
    findings: Findings, failed: Callable[[str], bool]
) -> dict[str, tuple[Cause, str]]:
    return {
        nodeid: (left.cause, left.said.replace("\n", "; "))
        for nodeid, left in findings.left.items()
        if left.cause and left.cause not in findings.rulings.policy.allowed and not failed(nodeid)
    }


def _note_dropped(findings: Findings, selection: Selection) -> None:
    path = findings.rulings.store.path
    if dropped := [nodeid for nodeid in sorted(selection.dropped) if os.path.exists(path(nodeid))]:
        tests = several(len(dropped), "test")
        findings.note(
            f"a plugin or conftest took {tests} with a baseline out of the run: {named(dropped)}"
        )


def judged_by(failing: list[Result], selection: Selection) -> list[Result]:
    """Results that fail a run: a test that was not selected only where the run knows all tests."""
    whole = selection.knows_all()
    return [
        each
        for each in failing
        if whole or each.verdict is not Verdict.stale or selection.is_selected(each.nodeid)
    ]


def check_compared(
    findings: Findings,
    selection: Selection,
    shard: tuple[int, int] | None,
    update: str,
    variable: str,
) -> None:
    """Raise pytest.UsageError where a gate in CI would pass on nothing: all of it, not one shard's part.

    ``variable``: that of CI; ``update``: the command that accepts what this run has measured, or "".
    """
    if findings.calls.compared() or findings.rulings.compared() or findings.budgets.results:
        return
    if shard is not None and selection.left_out and not findings.places:
        findings.note("no measured test is in this shard ({} of {})".format(*shard))
        return
    fix = update or OTHER_REF
    if not findings.places:
        fix = "pytest without --instrcount: no test with a marker of it was selected"
    raise pytest.UsageError(
        f"instrcount: this run compared no test with a baseline, and {variable} is set "
        f"[nothing-compared]\n  fix: {fix}"
    )


_LOST = (
    "the baseline's profile is missing or damaged, so only totals were compared, which detect less"
)


def settle_remarks(findings: Findings) -> None:
    """Give each verdict what is to be said with it, and say it once for all tests."""
    results = findings.rulings.results
    lost: list[str] = []
    if findings.rulings.policy.update is None:
        lost = sorted(findings.rulings.baselines.lost & results.keys())
    for nodeid in lost:
        findings.remark(nodeid, [_LOST])
    for text, nodeids in findings.remarks.items():
        for nodeid in dict.fromkeys(nodeids):
            if nodeid in results:
                result = results[nodeid]
                results[nodeid] = replace(result, remarks=(*result.remarks, text))
        findings.note(f"{text}: {named(sorted(set(nodeids)))}")
        if text == _LOST:
            findings.note(f"  fix: {measure(*lost)}")


def place_of(findings: Findings, nodeid: str) -> replay.Place:
    """The location of a test, present or former."""
    file, _, name = nodeid.partition("::")
    return findings.places.get(nodeid) or replay.Place(nodeid, (file, None, name), ())
