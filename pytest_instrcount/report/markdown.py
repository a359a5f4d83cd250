"""RunSummary -> GitHub's Markdown: short, the worst first, details folded, never above a limit. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence

from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.text import several
from pytest_instrcount.report.accepted import code_span
from pytest_instrcount.report.budgets import render_budget_failure, render_budgets
from pytest_instrcount.report.calls import render_calls, render_calls_failure
from pytest_instrcount.report.failure import render_failure
from pytest_instrcount.report.summary import render_totals, run_notes
from pytest_instrcount.report.words import (
    count,
    count_verdicts,
    detects,
    percent,
    short_name,
    worst_first,
)

#: Bytes of a comment on GitHub, less some for what others put around it.
LARGEST = 65_000
#: Bytes of the summary of one step on GitHub; what is longer is dropped as a whole.
LARGEST_SUMMARY = 1_000_000

_LONGEST_NAME = 300
_MOST_ROWS = 50
# room for the lines that say what was left out
_RESERVE = 300
# what is markup somewhere in Markdown or HTML
_MARKUP = re.compile(r"[&<>\"'`*_\[\]#|~\\$]")


def render_markdown(summary: RunSummary, largest: int = LARGEST) -> str:
    """The report in at most ``largest`` bytes; empty if not even its heading fits.

    >>> print(render_markdown(RunSummary((), {})), end="")
    ### instrcount: no test measured
    """
    left = largest - _RESERVE
    parts: list[str] = []
    omitted = 0
    for part in _parts(summary):
        size = len(part.encode())
        if size <= left:
            parts.append(part)
            left -= size
        else:
            omitted += 1
    if omitted and parts:
        number = "1 part is" if omitted == 1 else f"{omitted} parts are"
        parts.append(
            f"\n{number} left out, for length; the run's output and its JSON report have all.\n"
        )
    return "".join(parts)


def escape(text: str) -> str:
    r"""Text that shows as it is, in one line, within a table and within ``<code>``.

    >>> escape("a|b<c>\n`*`")
    'a&#124;b&#60;c&#62;&#92;n&#96;&#42;&#96;'
    """
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", printable(text))


def _parts(summary: RunSummary) -> Iterator[str]:
    """Pieces that can be left out one by one, the most important first."""
    yield f"### {escape(_totals(summary))}\n"
    results = [each for each in summary.results if each.verdict is not Verdict.unchanged]
    results.sort(key=worst_first)
    yield from _table(results, summary.failing)
    for budget in summary.budgets:
        if not budget.kept:
            lines = render_budget_failure(budget)
            yield _folded(f"over budget: {short_name(budget.nodeid)}", lines)
    if summary.can_accept:
        yield f"\nTo accept:\n\n{_fenced([summary.update_command])}"
    if summary.can_prune:
        yield f"\nTo delete stale baselines:\n\n{_fenced([summary.prune_command])}"
    if notes := run_notes(summary):
        yield f"\n{_fenced(notes)}"
    for title, lines in (
        *_failures(summary, results[:_MOST_ROWS]),
        *_failing_calls(summary),
        ("calls", render_calls(summary.traces, 0, 100)),
        ("budgets", render_budgets(summary.budgets, 1, 100)),
        ("environment", [*map(": ".join, sorted(summary.environment.items()))]),
    ):
        if lines:
            yield _folded(title, lines)


def _failures(
    summary: RunSummary, results: Sequence[TestResult]
) -> Iterator[tuple[str, list[str]]]:
    """Titles and texts, without the command at the end, which stands above once for all."""
    for each in results:
        if each.nodeid in summary.failing or each.verdict not in (Verdict.stale, Verdict.new):
            yield f"{short_name(each.nodeid)}: {each.verdict}", render_failure(each, "", 100)


def _failing_calls(summary: RunSummary) -> list[tuple[str, list[str]]]:
    failing = [each for each in summary.traces if each.verdict is not Verdict.unchanged]
    return [
        (f"{short_name(each.nodeid)}, calls: {each.verdict}", render_calls_failure(each, "", 100))
        for each in failing[:_MOST_ROWS]
    ]


def _totals(summary: RunSummary) -> str:
    calls = count_verdicts(each.verdict for each in summary.traces)
    totals = render_totals(summary) if summary.results or not calls else "instrcount"
    broken = [budget for budget in summary.budgets if not budget.kept]
    over = f"; {several(len(broken), 'budget')} not kept" if broken else ""
    return f"{totals}{f'; calls: {calls}' if calls else ''}{over}"


def _table(results: Sequence[TestResult], failing: Container[str]) -> Iterator[str]:
    if results:
        rows = "".join(_row(each, each.nodeid in failing) for each in results[:_MOST_ROWS])
        yield f"\n| test | before | now | delta | limit | |\n|---|--:|--:|--:|--:|---|\n{rows}"
    if len(results) > _MOST_ROWS:
        yield f"\nand {len(results) - _MOST_ROWS} more\n"


def _row(result: TestResult, fails: bool) -> str:
    before, now = result.compared_ir
    limit = result.limit.relative
    delta = "" if result.delta is None else percent(result.delta, beyond=limit)
    seen = "" if result.detects is None else f", detects {detects(result.detects, beyond=limit)}"
    name = _shortened(code_span, result.nodeid).replace("|", r"\|")
    cells = (
        count(before),
        count(now),
        delta,
        str(result.limit).replace("|", r"\|"),
        f"**{result.verdict}**{seen}" if fails else f"{result.verdict}{seen}",
    )
    # a number and its sign stay in one line
    shown = (cell.replace(" %", "\N{NO-BREAK SPACE}%") for cell in cells)
    return f"| {' | '.join((name, *shown))} |\n"


def _shortened(shown: Callable[[str], str], text: str) -> str:
    return shown(text if len(text) <= _LONGEST_NAME else f"…{text[-_LONGEST_NAME:]}")


def _folded(title: str, lines: Sequence[str]) -> str:
    summary = f"<summary><code>{_shortened(escape, title)}</code></summary>"
    return f"\n<details>{summary}\n\n{_fenced(lines)}\n</details>\n"


def _fenced(lines: Sequence[str]) -> str:
    """Lines as they are, whatever is in them: no line ends the fence."""
    text = "\n".join(printable(line) for line in lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}\n"
