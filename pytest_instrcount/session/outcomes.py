"""Takes the answer of a test under Valgrind: its reports, its count, and the verdict."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.callgrind.inside.offspring import describe_offspring
from pytest_instrcount.callgrind.messages import Answer
from pytest_instrcount.callgrind.zygote import Problem
from pytest_instrcount.config.commands import Commands
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.counts.work import can_count_allocations
from pytest_instrcount.errors import InstrcountError, as_started
from pytest_instrcount.fixtures.benchmark.hooks import group_of
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.host.account.current import current
from pytest_instrcount.host.account.records import MeasurementRecord
from pytest_instrcount.session import replay
from pytest_instrcount.session.answers import collector_paused, measurement_of
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.uncompared import (
    Left,
    is_tolerated,
    outcome_of,
    run_blocks_natively,
    run_natively,
    why_skipped,
)

#: The slug of an error with a test that has no count.
_NOT_MEASURED = "not-measured"

#: How a fixture of wider scope fails where another process has one, too.
_TAKEN = re.compile(
    r"Address already in use|[Dd]atabase\b.* (?:is locked|already exists)|File exists"
)


class Outcomes:
    """Tells pytest what became of each test, and the findings what was counted."""

    def __init__(self, config: pytest.Config, settings: Settings, findings: Findings) -> None:
        self._config = config
        self._settings = settings
        self._findings = findings
        self._commands = Commands(config)
        self._packages = facts.Packages()

    def take(
        self,
        item: pytest.Item,
        nextitem: pytest.Item | None,
        chosen: Settings,
        answer: Answer | Problem,
    ) -> str | None:
        """Report a test, whose own settings are ``chosen``; returns why it was skipped, if it was."""
        if isinstance(answer, Problem):
            self._report_problem(item, chosen, answer)
            return None
        reports = replay.load_reports(self._config, answer)
        self._findings.seconds[item.nodeid] = answer["seconds"]
        replay.repeat_warnings(self._config, answer["warnings"])
        self._note_said(item, answer)
        properties: list[tuple[str, object]] = []
        skipped, makers_know = None, False  # they know of what runs natively, too
        if answer["unused"]:
            why = "never calls benchmark, so nothing was measured"
            self._findings.note(f"{item.nodeid}: {why}")
            self._findings.leave(item.nodeid, Left(Cause.uncounted, f"it {why}"))
        elif is_tolerated(reports, item.nodeid, self._findings, updating=chosen.update):
            self._findings.leave(item.nodeid, Left(None))
        # A test that failed or was skipped gets no verdict, whatever it had counted by then.
        elif replay.passed(reports) and "ended" not in answer:
            left = None
            if any(each.skipped for each in reports if replay.is_subtest(each)):
                reports, left = run_blocks_natively(item, nextitem, reports)
                makers_know = True
            if left is not None:
                self._findings.leave(item.nodeid, left)
            else:
                properties = self._judge(item, chosen, answer, reports)
        elif outcome_of(reports) == "skipped":
            skipped, makers_know = why_skipped(reports), True
        else:
            self._hint(item, reports)
        replay.count_failed_blocks(item, reports)
        replay.show_output(self._config, reports, answer["shown"])
        if not makers_know:
            replay.tell_makers(item, reports, self._findings.note)
        replay.log_reports(item.ihook, reports, properties)
        replay.end_session_as(answer)
        return skipped

    def _judge(
        self, item: pytest.Item, chosen: Settings, answer: Answer, reports: list[Any]
    ) -> list[tuple[str, object]]:
        """The properties of a test that has passed; without a count an error is put among the reports."""
        text, slug = _problem_of(answer), _NOT_MEASURED
        try:
            with collector_paused():
                properties = [] if text else self._rule(item, chosen, answer)
        except InstrcountError as error:
            text, slug = str(error), error.slug
        if not text:
            return properties
        self._note_measured(item, text, problem=slug)
        self._findings.fail(item.nodeid, chosen.max_delta, text.removeprefix("instrcount: "))
        reports[:] = replay.add_error(item, reports, text)
        return []

    def _note_said(self, item: pytest.Item, answer: Answer) -> None:
        """What the test says of itself, whatever becomes of it."""
        group = answer["group"] or group_of(item)
        if group is not None:
            self._findings.set_group(item.nodeid, group)
        if answer["extra_info"]:
            self._findings.set_extra_info(item.nodeid, answer["extra_info"])
        self._findings.remark(item.nodeid, _remarks_of(answer))

    def _report_problem(self, item: pytest.Item, chosen: Settings, problem: Problem) -> None:
        self._findings.fail(item.nodeid, chosen.max_delta, problem.why.partition("\n")[0])
        text = f"instrcount: {problem.why} [{problem.slug}]"
        if problem.detail:
            text += f"\n--- the last lines under Valgrind ---\n{problem.detail}"
        remedy = problem.remedy(shlex.quote(self._commands.typed(item.nodeid)))
        if problem.slug == "timeout" and chosen.timeout != self._settings.timeout:
            remedy += "    # timeout= in its marker wins"
        text += f"\n  fix: {as_started(remedy)}" if remedy else ""
        self._note_measured(item, text, problem=problem.slug)
        reports = replay.error_reports(item, text)
        replay.tell_makers(item, reports, self._findings.note)
        replay.log_reports(item.ihook, reports, [])

    def _hint(self, item: pytest.Item, reports: Sequence[pytest.TestReport]) -> None:
        """Say with a failure that another process may have had what the test wanted."""
        for report in reports:
            if report.failed and _TAKEN.search(report.longreprtext):
                test = shlex.quote(self._commands.typed(item.nodeid))
                one = as_started(f"pytest --instrcount {test}")
                said = f"several tests are measured at a time; one alone: taskset -c 0 {one}"
                report.sections.append(("instrcount", said))

    def _note_measured(
        self,
        item: pytest.Item,
        text: str = "",
        *,
        problem: str = "",
        result: TestResult | None = None,
    ) -> None:
        """A record for the account: of a count, or of why there is none."""
        account = current()
        if account is None:
            return
        seconds = account.seconds_of(item.nodeid)
        why = text.partition("\n")[0].removeprefix("instrcount: ")
        record = MeasurementRecord(item.nodeid, problem=problem, why=why, seconds=seconds)
        if result is not None:
            verdict, calls = str(result.verdict), result.calls
            record = replace(record, ir=result.ir, calls=calls, verdict=verdict)
        account.measured(record, text)

    def _rule(
        self, item: pytest.Item, chosen: Settings, answer: Answer
    ) -> list[tuple[str, object]]:
        """Compare what was counted with the baseline; returns the properties for JUnit."""
        baseline = self._findings.rulings.baseline(item.nodeid)
        if isinstance(baseline, InstrcountError):
            raise baseline
        self._findings.keep(item.nodeid, answer)
        measurement = measurement_of(
            item.nodeid,
            answer,
            self._packages,
            self._findings.rulings.environment["valgrind"],
        )
        if chosen.max_allocs_delta is not None and not can_count_allocations(measurement.profile):
            raise InstrcountError(
                "allocations",
                "this Python has no symbols, so its allocations cannot all be counted",
                "use a Python with symbols (uv, pyenv, or the package python3-dbg), or leave "
                "max_allocs_delta out",
            )
        if once := answer["once"]:
            self._findings.note(f"{item.nodeid}: measured once: one call takes {once:.0f} s")
        ruling = self._findings.rule(measurement, chosen.max_delta, chosen.max_allocs_delta)
        self._note_measured(item, result=ruling)
        delta = [] if ruling.delta is None else [("instrcount.delta", float(ruling.delta))]
        return [("instrcount.ir", ruling.ir), *delta]


def _remarks_of(answer: Answer) -> list[str]:
    """Remarks that go with the verdict, whatever it is."""
    remarks = list(answer["remarks"])
    if answer["offspring"] is not None:
        remarks.append(describe_offspring(answer["offspring"]))
    for said, threads in (
        ("threads were alive, so it had a process of its own", answer["threads"]),
        ("counted without threads that are alive now, as its baseline was", answer["beside"]),
    ):
        if threads:
            remarks.append(f"{said}: {'; '.join(threads)}")
    return remarks


def _problem_of(answer: Answer) -> str:
    """Why a test that passed was not counted; "" if it was."""
    problem = answer["problem"]
    if not problem and answer["counted"] is None:
        problem = "the process that counts it was killed"
    what, line, rest = problem.partition("\n")
    # an error of ours has one, and a nodeid may end with a bracket
    slug = "" if re.search(r" \[[a-z-]+\]$", what) else f" [{_NOT_MEASURED}]"
    return f"instrcount: {what}{slug}{line}{rest}" if problem else ""


def know_why_left(
    findings: Findings, item: pytest.Item, nextitem: pytest.Item | None, skipped: str
) -> None:
    """Of a test that was skipped under Valgrind, learn whether it is skipped natively, too.

    One that fails natively fails, as without the plugin.
    """
    reports = run_natively(item, nextitem)
    natively = outcome_of(reports)
    if natively == "failed":
        replay.log_reports(item.ihook, replay.without_blocks(reports), [])
    cause = Cause.skipped if natively == "passed" else None
    findings.leave(item.nodeid, Left(cause, f"{skipped}\nnatively it has {natively}"))
