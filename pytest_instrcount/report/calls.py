"""Call counts of traced tests as lines for a terminal. Pure: nothing is printed here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from fractions import Fraction

from pytest_instrcount.gate.call_records import CallChange, CallsResult
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import ACCEPTABLE
from pytest_instrcount.gate.store.calls import Edge
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.text import escape_unprintable
from pytest_instrcount.report.branches import edge_name, render_branches
from pytest_instrcount.report.causes import ways_out, what_became
from pytest_instrcount.report.table import fit_table
from pytest_instrcount.report.words import count, count_verdicts, cut_right, percent, short_name

_HEADERS = ("test", "calls before", "now", "delta", "limit")
_MOST_CHANGES = 10
_MOST_CAUSES = 3
_MOST_RENAMED = 5


def render_calls(results: Sequence[CallsResult], verbosity: int, width: int) -> list[str]:
    """The table of traced tests, and how many have each verdict; see ``render_summary``.

    >>> render_calls([], 0, 80)
    []
    """
    if not results:
        return []
    shown = [each for each in results if verbosity > 0 or each.verdict is not Verdict.unchanged]
    lines = fit_table(_HEADERS, [_cells(each) for each in shown], width)
    for each in results:
        if each.verdict is Verdict.unchanged:
            lines += [f"{short_name(each.nodeid)}: {line}" for line in _renamed_lines(each)]
    totals = count_verdicts(each.verdict for each in results)
    return [*lines, f"instrcount, calls: {totals}"]


def _cells(result: CallsResult) -> tuple[str, ...]:
    delta = str(result.verdict)
    if result.delta is not None:
        delta = percent(result.delta, beyond=result.limit.relative)
        if result.edges and not result.delta:
            delta += ", parts differ"
    return (
        result.nodeid,
        count(result.baseline_calls),
        count(result.calls),
        delta,
        calls_limit(result.limit),
    )


def calls_limit(limit: Limit) -> str:
    """A limit of calls, as people read it.

    >>> calls_limit(Limit(None, 5))
    '+5 calls'
    """
    return str(limit).replace(" ir", " calls")


def render_calls_failure(result: CallsResult, update_command: str, width: int = 80) -> list[str]:
    """The text of the failed report of one traced test; the first line says it all."""
    name = short_name(result.nodeid)
    lines = [f"{name}: {_what(result)}"]
    lines += [f"  {line}" for line in _why(result, width - 2)]
    if update_command and result.verdict in ACCEPTABLE and not result.too_many:
        lines.append(f"  accept: {escape_unprintable(update_command)}")
    return lines + ways_out(result.cause, update_command)


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
    return _what_changed(result)


def _what_changed(result: CallsResult) -> str:
    limit = f"limit {calls_limit(result.limit)}"
    if result.baseline_calls == result.calls:
        return f"{count(result.calls)} calls: the sum is the same, its parts are not ({limit})"
    delta = "new" if result.delta is None else percent(result.delta, beyond=result.limit.relative)
    numbers = f"{count(result.baseline_calls)} -> {count(result.calls)} calls"
    within = not result.limit.exceeded(result.baseline_calls or 0, 1, result.calls or 0, 1)
    parts = ": parts of the sum grew" if within and result.verdict is Verdict.regressed else ""
    return f"{numbers} ({delta}, {limit}){parts}"


def _why(result: CallsResult, width: int) -> list[str]:
    lines = [printable(line) for line in result.reason.split("\n")[1:]]
    lines += [
        printable(f"{pattern}: {calls} calls, at most {most} allowed")
        for pattern, most, calls in result.too_many[1:]
    ]
    lines += _memory_lines(result)
    lines += [printable(f"{fact}: {old} -> {new}") for fact, old, new in result.differences]
    varying = map(edge_name, result.varying[:_MOST_CHANGES])
    lines += [cut_right(f"{name} varies", width) for name in varying]
    if result.varying:
        callees = dict.fromkeys(callee for _, callee in result.varying)
        named = f"ignore={json.dumps([*callees][:_MOST_CHANGES])}"
        lines.append("fix: call them equally often, or add to what its marker ignores:")
        lines.append(f"@pytest.mark.trace_profile({named})")
    return lines + _changed_lines(result, width)


def _changed_lines(result: CallsResult, width: int) -> list[str]:
    """The functions that changed, and the branches that they are on."""
    changes = [*_changes(result.changes, "calls"), *_changes(result.resumed, "resumes")]
    lines = [cut_right(line, width) for line in changes[:_MOST_CHANGES]]
    if len(changes) > _MOST_CHANGES:
        lines.append(f"and {len(changes) - _MOST_CHANGES} more")
    lines += [cut_right(line, width) for line in _renamed_lines(result)]
    wanted = [change.edge for change in result.edges[:_MOST_CHANGES]] or _too_often(result)
    if wanted:
        before = result.before if result.edges else result.now
        lines += render_branches(before, result.now, wanted, width)
    return lines


def _changes(changes: Sequence[CallChange], what: str) -> list[str]:
    return [
        f"{each.after - each.before:+} {what}  {each.before} -> {each.after}  {each.name}"
        for each in changes
    ]


def _renamed_lines(result: CallsResult) -> list[str]:
    lines = [printable(f"renamed: {old} -> {new}") for old, new in result.renamed[:_MOST_RENAMED]]
    more = len(result.renamed) - _MOST_RENAMED
    return [*lines, f"renamed: {more} more"] if more > 0 else lines


def _too_often(result: CallsResult) -> list[Edge]:
    """Edges to the functions whose ceilings were passed."""
    patterns = [pattern.replace(":", ".") for pattern, _, _ in result.too_many]
    edges = sorted(result.now)
    found = [e for e in edges if any(fnmatchcase(e[1].replace(":", "."), p) for p in patterns)]
    return found[:_MOST_CHANGES]


def explain_by_calls(result: CallsResult) -> tuple[str, ...]:
    """Lines for the failure of the same test's instruction count: which calls came and went.

    >>> from pytest_instrcount.gate.limit import Limit
    >>> explain_by_calls(CallsResult("t.py::a", Verdict.unchanged, 3, 3, Limit(None, 0)))
    ()
    """
    changes = [*_changes(result.changes, "calls"), *_changes(result.resumed, "resumes")]
    lines = [f"  {line}" for line in changes[:_MOST_CAUSES]]
    return ("of the calls that its body makes:", *lines) if lines else ()


def _memory_lines(result: CallsResult) -> list[str]:
    lines = []
    for change in result.memory:
        growth = Fraction(change.after, change.before) - 1 if change.before else None
        delta = "new" if growth is None else percent(growth)
        numbers = f"{count(change.before)} -> {count(change.after)} bytes"
        lines.append(printable(f"{change.name}: {numbers} ({delta}, limit {result.memory_limit})"))
    return lines
