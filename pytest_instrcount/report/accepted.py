"""A summary of an update, as lines that can go into a pull request. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.text import escape_unprintable, several
from pytest_instrcount.report.words import count, percent, short_name

#: So many tests are listed, those that moved most.
MOST_LISTED = 20


def render_accepted(summary: RunSummary) -> list[str]:
    """A list in Markdown of the counts that an update has changed; nothing if it changed none.

    >>> render_accepted(RunSummary((), {}))
    []
    """
    written = [result for result in summary.results if result.written]
    compared = [result for result in written if result.verdict is not Verdict.new]
    changed = [result for result in compared if result.delta is None or _has_moved(result)]
    if not changed:
        return []
    changed.sort(key=_largest_first)
    new = len(written) - len(compared)
    why = printable(summary.reason) or "(no reason given: --instrcount-reason)"
    lines = ["", f"Accepted instruction counts: {why}", ""]
    lines += map(_line, changed[:MOST_LISTED])
    if len(changed) > MOST_LISTED:
        lines.append(f"- and {len(changed) - MOST_LISTED} more")
    if new:
        lines.append(f"- {new} new")
    return [*lines, ""]


def _largest_first(result: TestResult) -> tuple[bool, Fraction, str]:
    """Largest deltas first; what has none comes last, as it comes."""
    if result.delta is None:
        return True, Fraction(0), ""
    return False, -abs(result.delta), result.nodeid


def _has_moved(result: TestResult) -> bool:
    before, now = result.compared_ir
    return before != now


def _line(result: TestResult) -> str:
    before, now = result.compared_ir
    delta = percent(result.delta) if result.delta is not None else str(result.verdict)
    return f"- {code_span(result.nodeid)}: {count(before)} -> {count(now)} ({delta})"


def code_span(text: str) -> str:
    """Text as code in Markdown, in one line, whatever is in it.

    >>> code_span("t.py::test_a[`|`]")
    '`` t.py::test_a[`|`] ``'
    """
    shown = printable(text)
    if "`" not in shown:
        return f"`{shown}`"
    longest = max(len(run) for run in "".join(c if c == "`" else " " for c in shown).split())
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}"


def missing_reason(jumps: Sequence[TestResult], above: Fraction, command: str) -> InstrcountError:
    """The error for an update that moves counts so far that it needs a reason."""
    most, number = jumps[0], len(jumps)
    what = several(number, "test")
    share = percent(above).removeprefix("+")
    return InstrcountError(
        "reason",
        f"nothing was stored: {what} would move by more than {share}, "
        f"{short_name(most.nodeid)} by {percent(most.delta or Fraction(0))}, and no reason is given",
        f"{escape_unprintable(command)} --instrcount-reason='why'",
    )
