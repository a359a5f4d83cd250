"""What an update has changed, as lines that can go into a pull request. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.report.words import count, percent, short_name

#: So many tests are listed, those that moved most.
MOST_LISTED = 20


def render_accepted(summary: RunSummary) -> list[str]:
    """A list in Markdown of the counts that an update has changed; nothing if it changed none.

    >>> render_accepted(RunSummary((), {}))
    []
    """
    written = [result for result in summary.results if result.written]
    moved = [result for result in written if result.delta is not None and _has_moved(result)]
    others = [
        result for result in written if result.delta is None and result.verdict is not Verdict.new
    ]
    if not moved and not others:
        return []
    moved.sort(key=lambda result: (-abs(result.delta or Fraction(0)), result.nodeid))
    new = sum(result.verdict is Verdict.new for result in written)
    why = printable(summary.reason) or "(no reason given: --instrcount-reason)"
    lines = ["", f"Accepted instruction counts: {why}", ""]
    lines += [_line(result) for result in (*moved, *others)[:MOST_LISTED]]
    left = len(moved) + len(others) - MOST_LISTED
    if left > 0:
        lines.append(f"- and {left} more")
    if new:
        lines.append(f"- {new} new")
    return [*lines, ""]


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
    what = "1 test" if number == 1 else f"{number} tests"
    share = percent(above).removeprefix("+")
    return InstrcountError(
        "reason",
        f"nothing was stored: {what} would move by more than {share}, "
        f"{short_name(most.nodeid)} by {percent(most.delta or Fraction(0))}, and no reason is given",
        f"{printable(command)} --instrcount-reason='why'",
    )
