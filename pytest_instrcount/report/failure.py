"""The failure of one test -> lines for a terminal: the first says it all, the last is what to type."""

from __future__ import annotations

from pytest_instrcount.counts.work import ALLOCATIONS
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import ACCEPTABLE, TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.text import escape_unprintable
from pytest_instrcount.report.blame import render_blame
from pytest_instrcount.report.c_functions import MOST_CAUSES, probing_lines
from pytest_instrcount.report.causes import ways_out, what_became
from pytest_instrcount.report.main_cause import main_cause
from pytest_instrcount.report.moves import changed_packages
from pytest_instrcount.report.waiting import waiting
from pytest_instrcount.report.words import (
    IR,
    count,
    cut_left,
    cut_middle,
    detects_where,
    percent,
    quotient,
    short_name,
)

# A nodeid that leaves no room for a change and a function beside it.
_LONG_NODEID = 40


def accept_line(command: str) -> str:
    """The command that accepts the new count."""
    return f"  accept: {escape_unprintable(command)}"


def render_failure(
    result: TestResult, update_command: str, width: int = 80, like: str = ""
) -> list[str]:
    """The text of the failed report of one test; the first line says it all, the last what to type.

    Wants a result whose verdict fails the run; for any other it says the verdict. Without a command
    there is no such line. ``like``: a test whose text has told the same cause whole.
    """
    name = short_name(result.nodeid)
    moved = result.verdict in (Verdict.regressed, Verdict.improved)
    first = what_happened(result)
    lines = [first, f"  {name}: {_counts(result)}"] if moved else [f"{name}: {first}"]
    if like:
        said = "  for the same cause as {}, see there"
        lines.append(said.format(cut_middle(short_name(like), width + len("{}") - len(said))))
    else:
        lines += [f"  {line}" for line in _why(result, width)]
    lines += [f"  {printable(line)}" for line in (*result.detail, *result.remarks)]
    if update_command and result.verdict is Verdict.new:
        lines.append(f"  fix: {escape_unprintable(update_command)}")
    elif update_command and result.verdict in ACCEPTABLE:
        lines.append(accept_line(update_command))
    return lines + ways_out(result.cause, update_command)


def what_happened(result: TestResult) -> str:
    """The first line of a failure: the verdict with its reason."""
    verdict = result.verdict
    if verdict is Verdict.new:
        return f"no baseline to compare with ({result.unit} {count(result.ir)}) [baseline-missing]"
    if verdict is Verdict.incomparable:
        other = "the baseline was made in another environment or way [baseline-incomparable]"
        return _reason(result)[0] or other
    if verdict in (Verdict.stale, Verdict.uncounted):
        return what_became(result.cause)
    if verdict is Verdict.failed:
        return _reason(result)[0] or "could not be measured"
    if verdict is Verdict.nondeterministic:
        return "measured twice, and the counts differ [nondeterministic]"
    return f"{describe_change(result)}{' [improved]' if verdict is Verdict.improved else ''}"


def describe_change(result: TestResult) -> str:
    """``+2.9 % (limit 1 %): slugify slug.py:12 calls re.sub 20 -> 40 times``.

    Of a long nodeid a line of 80 columns leaves little beside it: then the function comes first.
    """
    limit = str(result.limit).replace("+", "")
    delta = str(result.verdict)
    if result.delta is not None:
        delta = percent(result.delta, beyond=result.limit.relative)
    change = f"{delta} (limit {limit})"
    if result.allocs_limit is not None:
        old, new = next((old, new) for kind, old, new in result.work if kind == ALLOCATIONS)
        limit = str(result.allocs_limit).removesuffix(" ir").replace("+", "")
        change = f"allocations {quotient(old)} -> {quotient(new)} a call (limit {limit})"
    function, what = map(printable, main_cause(result))
    if not function:
        return f"{change}: {_counts(result)}"
    if len(result.nodeid) > _LONG_NODEID:
        return f"{function} {change}: {what}"
    return f"{change}: {function} {what}"


def _counts(result: TestResult) -> str:
    """``Ir 12,345 -> 12,702``; the numbers are those that the delta is of."""
    before, now = result.compared_ir
    kind = f"mean {result.unit}" if result.is_denoised else result.unit
    return f"{kind} {count(before)} -> {count(now)}"


def _why(result: TestResult, width: int) -> list[str]:
    verdict = result.verdict
    if verdict is Verdict.new:
        return ["a gate that compares with nothing cannot fail: store this count and commit it"]
    if verdict is Verdict.incomparable:
        return [printable(f"{fact}: {old} -> {new}") for fact, old, new in result.differences]
    if verdict is Verdict.improved:
        why = "cheaper by more than the limit: store the new count, or it may grow back unseen"
        lines = [*_denoised_lines(result), why, *probing_lines(result)]
        lines += render_blame(result, width - 2)
        return [*lines, *changed_packages(result.packages_changed)]
    if verdict is Verdict.regressed:
        lines = [*_denoised_lines(result), *probing_lines(result)]
        lines += render_blame(result, width - 2)
        return [*lines, *changed_packages(result.packages_changed)]
    if verdict is Verdict.failed:
        return _reason(result)[1:]
    if verdict is Verdict.nondeterministic:
        where = "in two equal processes" if result.unit == IR else "twice, in this process"
        lines = [f"the same call {where}; most often a clock, threads, I/O or a"]
        lines.append("random number without a seed; these functions differ most:")
        lines += [f"  {cut_left(name, width - 4)}" for name in result.unsteady[:MOST_CAUSES]]
        lines += waiting(result.unsteady)
        return lines if result.unsteady else _reason(result)
    return _reason(result) if result.reason else []


def _denoised_lines(result: TestResult) -> list[str]:
    """The counts of the usual layout, where the means of several were compared, and what those tell apart."""
    if result.denoised_ir is None:
        return []
    seen = detects_where(result.detects, result.floor)
    if not result.is_denoised:
        return [seen]
    counts = f"{count(result.baseline_ir)} -> {count(result.ir)}"
    return [f"in the usual layout of memory: {result.unit} {counts}", seen]


def _reason(result: TestResult) -> list[str]:
    # an InstrcountError brings a second line, its command
    return [printable(line.strip()) for line in result.reason.split("\n")]
