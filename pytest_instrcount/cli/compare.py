"""``compare A B``: two folders of baselines, or two JSON reports, as if B were a run against A."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.calls import judge_calls
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.compare import Gated, differing
from pytest_instrcount.gate.gate import Verdict, judge_counts
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.store.calls import CallTable
from pytest_instrcount.gate.store.folder import StoredFile, read_folder
from pytest_instrcount.gate.store.names import printable, shown_path
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.gate.stored import compare_stored
from pytest_instrcount.report.calls import render_calls_failure
from pytest_instrcount.report.failure import render_failure
from pytest_instrcount.report.read_json import Report, exceeded_in, load_report
from pytest_instrcount.report.summary import render_summary
from pytest_instrcount.report.words import worst_first

#: So many regressions are told in full, those that grew most.
MOST_TOLD = 20

#: Traced calls may not grow at all.
_NO_MORE_CALLS = Limit(Fraction(0), None)


Content = TypeVar("Content", Baseline, CallTable)
Result = TypeVar("Result", bound=TestResult | CallsResult)


#: Of these nobody can say whether they regressed.
_UNKNOWN = (Verdict.nondeterministic, Verdict.failed, Verdict.incomparable, Verdict.uncounted)


@dataclass(frozen=True, slots=True)
class _Compared:
    results: list[TestResult]
    traces: list[CallsResult]
    #: budgets of the second report that are not kept
    exceeded: list[str] = field(default_factory=list)

    @property
    def verdicts(self) -> list[Verdict]:
        return [*(each.verdict for each in self.results), *(each.verdict for each in self.traces)]

    @property
    def has_compared(self) -> bool:
        alone = (Verdict.new, Verdict.stale)
        return any(verdict not in alone for verdict in self.verdicts)

    @property
    def code(self) -> int:
        """1 if something regressed, 2 if of something that cannot be said."""
        if Verdict.regressed in self.verdicts or self.exceeded:
            return 1
        return 2 if any(verdict in _UNKNOWN for verdict in self.verdicts) else 0


def compare_paths(
    old: Path, new: Path, limit: Limit, verbosity: int, width: int
) -> tuple[list[str], int]:
    """The lines of a comparison and its exit code: 1 if something regressed, 2 if nobody knows.

    Raises InstrcountError "compare-mixed", "compare-nothing", and as `read_folder` or `load_report`.
    """
    if os.path.isdir(old) is not os.path.isdir(new):
        for path in (old, new):
            if not os.path.exists(path):
                why = f"{shown_path(path)} does not exist"
                raise InstrcountError("compare-nothing", why, f"ls {shown_path(path.parent)}")
        raise InstrcountError(
            "compare-mixed",
            f"{shown_path(old)} and {shown_path(new)} are not of one kind",
            "python -m pytest_instrcount compare DIR DIR, or REPORT REPORT",
        )
    if os.path.isdir(old):
        compared = _compare_folders(list(read_folder(old)), list(read_folder(new)), limit)
    else:
        compared = _compare_reports(load_report(old), load_report(new), limit)
    if not compared.has_compared:
        raise InstrcountError(
            "compare-nothing",
            f"no test is both in {shown_path(old)} and in {shown_path(new)}",
            f"ls {shown_path(old)} {shown_path(new)}",
        )
    return _told(compared, verbosity, width), compared.code


def _told(compared: _Compared, verbosity: int, width: int) -> list[str]:
    results = sorted(compared.results, key=worst_first)
    lines = []
    if verbosity >= 0:
        lines += _regressed(results, lambda each: render_failure(each, "", width))
        lines += _regressed(compared.traces, lambda each: render_calls_failure(each, ""))
    summary = RunSummary(tuple(results), {}, traces=tuple(compared.traces))
    exceeded = map(printable, compared.exceeded)
    return [*lines, *exceeded, *render_summary(summary, verbosity, width)]


def _regressed(results: Iterable[Result], render: Callable[[Result], list[str]]) -> list[str]:
    """The texts of the first of those that regressed."""
    regressed = [each for each in results if each.verdict is Verdict.regressed]
    lines: list[str] = []
    for result in regressed[:MOST_TOLD]:
        lines += [*render(result), ""]
    more = len(regressed) - MOST_TOLD
    return [*lines, f"and {more} more", ""] if more > 0 else lines


def _compare_folders(
    old: Iterable[StoredFile], new: Iterable[StoredFile], limit: Limit
) -> _Compared:
    before, after = ({file.place: file.content for file in files} for files in (old, new))
    compared = _Compared([], [])
    places = sorted(before.keys() | after.keys())
    several = len({place[0] for place in places}) > 1
    for place in places:
        was, now = before.get(place), after.get(place)
        content = now or was
        assert content is not None
        name = f"{place[0]}: {content.nodeid}" if several else content.nodeid
        if isinstance(content, CallTable):
            compared.traces.append(_compare_calls(name, _as(CallTable, was), _as(CallTable, now)))
        else:
            result = _compare_baselines(_as(Baseline, was), _as(Baseline, now), limit)
            compared.results.append(replace(result, nodeid=name))
    return compared


def _as(kind: type[Content], content: object) -> Content | None:
    assert content is None or isinstance(content, kind)
    return content


def _compare_baselines(was: Baseline | None, now: Baseline | None, limit: Limit) -> TestResult:
    if was is not None and now is not None:
        return compare_stored(was, now, limit)
    if now is not None:
        return TestResult(now.nodeid, Verdict.new, now.ir, None, None, limit, calls=now.calls)
    assert was is not None
    return TestResult(was.nodeid, Verdict.stale, None, was.ir, None, limit)


def _compare_calls(name: str, was: CallTable | None, now: CallTable | None) -> CallsResult:
    if now is None:
        assert was is not None
        return CallsResult(name, Verdict.stale, None, was.total, _NO_MORE_CALLS)
    return replace(judge_calls(was, now, _NO_MORE_CALLS), nodeid=name)


def _compare_reports(old: Report, new: Report, limit: Limit) -> _Compared:
    differences = differing(old["environment"], new["environment"])
    before, after = ({test["nodeid"]: test for test in each["tests"]} for each in (old, new))
    compared = _Compared([], [], exceeded_in(new))
    for nodeid in sorted(before.keys() | after.keys()):
        was, now = (_measured(tests.get(nodeid)) for tests in (before, after))
        if now is None or was is None:
            compared.results.extend(_one_sided(nodeid, was, now, after.get(nodeid), limit))
            continue
        result = _compare_tests(was, now, limit)
        if differences:
            result = replace(
                result, verdict=Verdict.incomparable, delta=None, differences=differences
            )
        compared.results.append(result)
    compared.traces.extend(_compare_traces(old, new))
    return compared


def _one_sided(
    nodeid: str, was: Report | None, now: Report | None, said: Report | None, limit: Limit
) -> Iterator[TestResult]:
    """The result of a test that only one report has measured; ``said``: what the second says of it."""
    if now is not None:
        yield TestResult(nodeid, Verdict.new, now["ir"], None, None, limit)
    elif said is not None and said["verdict"] != "stale":
        # uncounted, with its cause, or else failed
        cause = said["cause"] and Cause(said["cause"])
        verdict = Verdict.uncounted if said["verdict"] == "uncounted" else Verdict.failed
        reason = "it was not measured in the second report"
        yield TestResult(nodeid, verdict, None, None, None, limit, cause=cause, reason=reason)
    elif was is not None:
        yield TestResult(nodeid, Verdict.stale, None, was["ir"], None, limit)


def _compare_traces(old: Report, new: Report) -> Iterator[CallsResult]:
    before, after = ({each["nodeid"]: each for each in side["traces"]} for side in (old, new))
    for nodeid in sorted(before.keys() | after.keys()):
        was, now = (side.get(nodeid, {}).get("calls") for side in (before, after))
        if was is not None and now is not None:
            tables = (CallTable(nodeid, {("", "(all)"): (number, 0)}, {}) for number in (was, now))
            yield replace(_compare_calls(nodeid, *tables), changes=(), edges=())
        elif now is not None:
            yield CallsResult(nodeid, Verdict.new, now, None, _NO_MORE_CALLS)
        elif was is not None:
            gone = nodeid not in after or after[nodeid]["verdict"] == "stale"
            verdict = Verdict.stale if gone else Verdict.failed
            yield CallsResult(nodeid, verdict, None, was, _NO_MORE_CALLS)


def _measured(test: Report | None) -> Report | None:
    return None if test is None or test["ir"] is None or test["verdict"] == "failed" else test


def _compare_tests(was: Report, now: Report, limit: Limit) -> TestResult:
    denoised = None not in (was["denoised_ir"], now["denoised_ir"])
    kind = "denoised_ir" if denoised else "ir"
    floors = [Fraction(str(each["detects"])) for each in (was, now) if each["detects"] is not None]
    detects = max(floors, default=Fraction(0))
    gated = Gated(Fraction(was[kind]), Fraction(now[kind]), detects)
    steady = Verdict.nondeterministic.value not in (was["verdict"], now["verdict"])
    return TestResult(
        nodeid=now["nodeid"],
        verdict=judge_counts(gated, limit) if steady else Verdict.nondeterministic,
        ir=now["ir"],
        baseline_ir=was["ir"],
        delta=gated.fraction,
        limit=limit,
        denoised_ir=now[kind] if denoised else None,
        denoised_baseline_ir=was[kind] if denoised else None,
        detects=detects if floors else None,
    )
