"""Call counts of traced tests as lines for a terminal. Pure: nothing is printed here."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import ACCEPTABLE, CallsResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.report.causes import ways_out, what_became
from pytest_instrcount.report.table import fit_table
from pytest_instrcount.report.words import count, count_verdicts, cut_right, percent, short_name

_HEADERS = ("test", "calls before", "now", "delta", "limit")
_MOST_CHANGES = 10
_MOST_CAUSES = 3
_MOST_BRANCHES = 12


def render_calls(results: Sequence[CallsResult], verbosity: int, width: int) -> list[str]:
    """The table of traced tests, and how many have each verdict; see ``render_summary``.

    >>> render_calls([], 0, 80)
    []
    """
    if not results:
        return []
    shown = [each for each in results if verbosity > 0 or each.verdict is not Verdict.unchanged]
    lines = fit_table(_HEADERS, [_cells(each) for each in shown], width)
    totals = count_verdicts(each.verdict for each in results)
    return [*lines, f"instrcount, calls: {totals}"]


def _cells(result: CallsResult) -> tuple[str, ...]:
    delta = str(result.verdict)
    if result.delta is not None:
        delta = percent(result.delta, beyond=result.limit.relative)
    return (
        result.nodeid,
        count(result.baseline_calls),
        count(result.calls),
        delta,
        str(result.limit),
    )


def render_calls_failure(result: CallsResult, update_command: str, width: int = 80) -> list[str]:
    """The text of the failed report of one traced test; the first line says it all."""
    name = short_name(result.nodeid)
    lines = [f"{name}: {_what(result)}"]
    lines += [f"  {line}" for line in _why(result, width - 2)]
    if update_command and result.verdict in ACCEPTABLE and not result.too_many:
        lines.append(f"  accept: {printable(update_command)}")
    return lines + ways_out(result.cause)


def _what(result: CallsResult) -> str:
    if result.verdict is Verdict.new:
        return f"no baseline to compare with ({count(result.calls)} calls) [baseline-missing]"
    if result.verdict is Verdict.incomparable:
        return "the calls were stored in another environment or way [baseline-incomparable]"
    if result.verdict is Verdict.stale:
        return what_became(result.cause)
    if result.verdict is Verdict.failed:
        return printable(result.reason.partition("\n")[0])
    if result.verdict is Verdict.nondeterministic:
        return "traced twice, and the calls differ [nondeterministic]"
    if result.too_many:
        pattern, most, calls = result.too_many[0]
        return f"{printable(pattern)} was called {calls} times, at most {most} allowed"
    if result.memory and not any(change.after > change.before for change in result.changes):
        return _memory_lines(result)[0]
    delta = "new" if result.delta is None else percent(result.delta, beyond=result.limit.relative)
    numbers = f"{count(result.baseline_calls)} -> {count(result.calls)} calls"
    return f"{numbers} ({delta}, limit {result.limit})"


def _why(result: CallsResult, width: int) -> list[str]:
    lines = [printable(line) for line in result.reason.split("\n")[1:]]
    lines += [
        printable(f"{pattern}: {calls} calls, at most {most} allowed")
        for pattern, most, calls in result.too_many[1:]
    ]
    lines += _memory_lines(result)
    lines += [printable(f"{fact}: {old} -> {new}") for fact, old, new in result.differences]
    lines += [cut_right(f"{name} varies", width) for name in result.varying[:_MOST_CHANGES]]
    for change in result.changes[:_MOST_CHANGES]:
        line = f"{change.after - change.before:+} calls  {change.before} -> {change.after}"
        lines.append(cut_right(f"{line}  {change.name}", width))
    if len(result.changes) > _MOST_CHANGES:
        lines.append(f"and {len(result.changes) - _MOST_CHANGES} more")
    grown = [change.name for change in result.changes if change.after > change.before]
    patterns = [pattern for pattern, _, _ in result.too_many]
    branch = branch_of(result.branches, [*patterns, *grown])
    if branch:
        lines += ["where it is called:", *(cut_right(f"  {line}", width) for line in branch)]
    return lines


def explain_by_calls(result: CallsResult) -> tuple[str, ...]:
    """Lines for the failure of the same test's instruction count: which calls came and went.

    >>> from pytest_instrcount.gate.limit import Limit
    >>> explain_by_calls(CallsResult("t.py::a", Verdict.unchanged, 3, 3, Limit(None, 0)))
    ()
    """
    if not result.changes:
        return ()
    changes = [
        f"  {change.after - change.before:+} calls  {change.before} -> {change.after}  {change.name}"
        for change in result.changes[:_MOST_CAUSES]
    ]
    return ("of the calls that its body makes:", *changes)


def _memory_lines(result: CallsResult) -> list[str]:
    lines = []
    for change in result.memory:
        growth = Fraction(change.after, change.before) - 1 if change.before else None
        delta = "new" if growth is None else percent(growth)
        numbers = f"{count(change.before)} -> {count(change.after)} bytes"
        lines.append(printable(f"{change.name}: {numbers} ({delta}, limit {result.memory_limit})"))
    return lines


def branch_of(tree: Sequence[str], names: Sequence[str]) -> list[str]:
    """The lines of an indented tree that name the first of the functions, with their callers.

    >>> branch_of(["a.f", "  a.g", "  b.h", "    a.g"], ["a:g"])
    ['a.f', '  a.g', '  b.h', '    a.g']
    """
    for name in names:
        wanted = name.partition("#")[0].replace(":", ".")
        kept: list[int] = []
        for number, line in enumerate(tree):
            if line.split()[:1] != [wanted] or len(kept) >= _MOST_BRANCHES:
                continue
            callers, depth = [number], _depth(line)
            for above in range(number - 1, -1, -1):
                if _depth(tree[above]) < depth:
                    callers.append(above)
                    depth = _depth(tree[above])
            kept += [each for each in reversed(callers) if each not in kept]
        if kept:
            return [tree[number] for number in sorted(kept)]
    return []


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
