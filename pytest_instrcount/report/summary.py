"""RunSummary and TestResult -> lines for a terminal. Pure: nothing is printed here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.text import several
from pytest_instrcount.report.accepted import render_accepted
from pytest_instrcount.report.blame import render_blame
from pytest_instrcount.report.budgets import render_budgets
from pytest_instrcount.report.c_functions import MOST_CAUSES, function_lines
from pytest_instrcount.report.calls import render_calls
from pytest_instrcount.report.causes import uncompared_lines
from pytest_instrcount.report.detection_limit import blind_limits, unsteady_tests
from pytest_instrcount.report.failure import accept_line, describe_change
from pytest_instrcount.report.moves import changed_packages, moved_together, other_environments
from pytest_instrcount.report.table import fit_table
from pytest_instrcount.report.words import (
    count,
    count_verdicts,
    cut_right,
    detects,
    percent,
    quotient,
    short_name,
    wrapped,
)

_HEADERS = ("test", "baseline", "now", "delta", "limit", "detects")
_WIDEST_LIMIT = 16
# Functions below a row with -vv, and in the text of a failure.
_MOST_FUNCTIONS = 10
# Below this a line says nothing.
_NARROWEST_LINE = 20


def render_header(facts: Mapping[str, str]) -> str:
    """The one line at the top of pytest's output.

    >>> render_header({"valgrind": "3.19.0", "CPython": "3.11.7"})
    'instrcount: valgrind 3.19.0, CPython 3.11.7'
    """
    return printable("instrcount: " + ", ".join(f"{key} {facts[key]}" for key in facts))


def render_summary(
    summary: RunSummary, verbosity: int, width: int = 80, told: Collection[str] = ()
) -> list[str]:
    """The terminal section of a run, without its title; nothing if nothing was to be measured.

    ``verbosity``: -1 the totals only; 0 rows that are not unchanged; 1 all rows; 2 the functions
    below each row that moved. The table has at most ``width`` columns; notes are wrapped to it,
    the totals and commands are not, so that they can be searched and copied. Below the totals
    stands why tests got cheaper, but for those in ``told``.
    """
    if not (summary.results or summary.notes or summary.traces):
        return []
    if verbosity < 0:
        calls = render_calls(summary.traces, verbosity, width)[-1:]
        calls += render_budgets(summary.budgets, verbosity, width)[-1:]
        return _totals(summary) + calls + (_stored(summary)[:1] if summary.updating else [])
    width = max(width, _NARROWEST_LINE)
    shown = list(summary.results) if verbosity > 0 else _moved(summary.results)
    lines = _table(shown, width, verbosity, summary.groups) + _totals(summary)
    lines += _improvements([each for each in shown if each.nodeid not in told], width)
    lines += render_calls(summary.traces, verbosity, width)
    lines += render_budgets(summary.budgets, verbosity, width)
    if summary.updating:
        lines += _stored(summary)
    for note in run_notes(summary):
        lines += [note] if note.startswith("  fix: ") else wrapped(note, width)
    return lines + _what_to_type(summary)


def _what_to_type(summary: RunSummary) -> list[str]:
    """The commands to type next."""
    lines = [accept_line(summary.update_command)] if summary.can_accept else []
    if summary.can_prune:
        lines.append(f"  delete stale baselines: {printable(summary.prune_command)}")
    return lines


def _stored(summary: RunSummary) -> list[str]:
    written = sum(result.written for result in summary.results)
    written += sum(calls.written for calls in summary.traces)
    unchanged = {result.verdict for result in summary.results} == {Verdict.unchanged}
    why = ": what is unchanged keeps its own" if unchanged and not written else ""
    why = f" to {summary.baselines}" if written and summary.baselines else why
    return [f"instrcount: {several(written, 'baseline')} written{why}", *render_accepted(summary)]


def _moved(results: Sequence[TestResult]) -> list[TestResult]:
    return [each for each in results if each.verdict is not Verdict.unchanged]


def _totals(summary: RunSummary) -> list[str]:
    lines = [render_totals(summary)] if summary.results or not summary.traces else []
    is_first = {result.verdict for result in summary.results} == {Verdict.new}
    if is_first and summary.baselines and not summary.updating:
        lines.append(f"no matching baseline was found in {printable(summary.baselines)}")
    return lines


def _improvements(results: Sequence[TestResult], width: int) -> list[str]:
    """Why tests got cheaper, those that did most: as a failure would say it."""
    improved = [each for each in results if each.verdict is Verdict.improved]
    lines = []
    for result in sorted(improved, key=lambda each: each.delta or 0)[:MOST_CAUSES]:
        blame = render_blame(result, width - 2)
        if blame:
            lines += wrapped(f"{short_name(result.nodeid)}: {describe_change(result)}", width)
            lines += [cut_right(f"  {line}", width) for line in blame]
            for line in changed_packages(result.packages_changed):
                lines += wrapped(line, width, first="  ", indent="    ")
    return lines


def run_notes(summary: RunSummary) -> tuple[str, ...]:
    """Notes about the run for below its table.

    >>> run_notes(RunSummary((), {}, notes=("gate skipped",)))
    ('gate skipped',)
    """
    return (
        *moved_together(summary.results),
        *other_environments(summary.results),
        *uncompared_lines(summary.results),
        *blind_limits(summary.results),
        *unsteady_tests(summary.results),
        *summary.notes,
    )


def render_totals(summary: RunSummary) -> str:
    """The number of tests with each verdict, in one line.

    >>> render_totals(RunSummary((), {}))
    'instrcount: no test measured'
    """
    counts = count_verdicts(result.verdict for result in summary.results)
    return "instrcount: " + (counts or "no test measured")


def _table(
    results: Sequence[TestResult], width: int, verbosity: int, groups: Mapping[str, str]
) -> list[str]:
    """Groups come one after another below a line with their name, and after what is in none."""
    columns = len(_HEADERS) if verbosity > 0 else len(_HEADERS) - 1
    group = ""
    results = sorted(results, key=lambda result: groups.get(result.nodeid, ""))
    lines = fit_table(_HEADERS[:columns], [_cells(result)[:columns] for result in results], width)
    table = lines[:2]
    for result, line in zip(results, lines[2:]):
        if groups.get(result.nodeid, "") != group:
            group = groups[result.nodeid]
            table.append(cut_right(f"{printable(group)}:", width))
        table.append(line)
        if verbosity > 1:
            below = _noise_lines(result)
            below += function_lines(result, result.functions[:_MOST_FUNCTIONS], width - 4)
            if len(result.functions) > _MOST_FUNCTIONS:
                below.append(f"and {len(result.functions) - _MOST_FUNCTIONS} more")
            table += [cut_right(f"    {one}".rstrip(), width) for one in below]
    return table


def _cells(result: TestResult) -> tuple[str, ...]:
    # the word stands where a delta would: it says why there is none
    delta = str(result.verdict)
    if result.delta is not None:
        delta = percent(result.delta, beyond=result.limit.relative)
    limit = cut_right(str(result.limit), _WIDEST_LIMIT)
    before, now = result.compared_ir
    seen = detects(result.detects, beyond=result.limit.relative)
    return (result.nodeid, count(before), count(now), delta, limit, seen)


def _noise_lines(result: TestResult) -> list[str]:
    """A line for each kind of noise that has grown, and one about the layouts."""
    layouts = several(result.layouts, "layout")
    lines = [f"measured in {layouts} of memory"] if result.denoised_ir is not None else []
    return lines + [
        f"{kind}: {quotient(ir)} ir a call beyond noise" for kind, ir in result.noise.items() if ir
    ]
