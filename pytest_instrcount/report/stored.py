"""A baseline -> lines for a terminal: what is known of a test. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from tabulate import tabulate

from pytest_instrcount.counts.python.tree import CallTree, Path
from pytest_instrcount.gate.store.calls import CallTable
from pytest_instrcount.gate.store.names import named, printable
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.text import several
from pytest_instrcount.report.branches import edge_name
from pytest_instrcount.report.words import (
    IR,
    UNIT_FACT,
    count,
    cut_left,
    cut_right,
    detects_where,
    percent,
    quotient,
)

MOST_FUNCTIONS = 10
MOST_BRANCHES = 40
_MOST_PACKAGES = 20
# Branches that cost less than this share of the test are not shown.
_WORTH_SHOWING = Fraction(1, 100)


def render_stored(baseline: Baseline, width: int = 80) -> list[str]:
    """All that a baseline says, most important first."""
    lines = [printable(baseline.nodeid), *_counts(baseline)]
    if baseline.lost:
        return [*lines, "  its profile is missing or damaged: no function is known"]
    lines += ["", "C functions, the dearest first; of the test, per call:"]
    lines += _functions(baseline, width)
    if baseline.work:
        done = (
            f"{kind} {quotient(Fraction(number, baseline.calls))}"
            for kind, number in baseline.work.items()
        )
        lines += ["", f"calls: {', '.join(done)}"]
    if baseline.python is not None:
        lines += ["", *_tree(baseline.python, width)]
    if baseline.ledger:
        lines += ["", "accepted:"]
    for entry in baseline.ledger:
        commit = f" ({entry.commit})" if entry.commit else ""
        counts = f"{count(entry.old)} -> {count(entry.new)}"
        lines.append(printable(f"  {counts}  {entry.reason}{commit}"))
    lines += ["", "environment:"]
    lines += [f"  {printable(f'{name}: {fact}')}" for name, fact in baseline.environment.items()]
    if baseline.packages:
        packages = [f"{name} {version}" for name, version in baseline.packages.items()]
        lines.append(f"packages: {named(packages, _MOST_PACKAGES)}")
    return lines


def _counts(baseline: Baseline) -> Iterator[str]:
    unit = baseline.environment.get(UNIT_FACT, IR)
    yield f"  {unit} {count(baseline.ir)} a call"
    denoised = baseline.denoised
    if denoised is not None:
        low, now, high = (
            quotient(Fraction(number) / baseline.calls)
            for number in (denoised.low, denoised.mean, denoised.high)
        )
        spread = percent(denoised.spread).removeprefix("+")
        between = f"in {denoised.layouts} layouts {low} to {high} (spread {spread})"
        yield f"  mean {unit} {now}, {between}"
        yield f"  {detects_where(denoised.detects, denoised.floor)}"
        noisy = denoised.noise.functions
        if noisy:
            yield f"  noise beyond the rules: {several(len(noisy), 'function')}"
    yield f"  {baseline.calls} calls counted after {baseline.warmup}, isolation {baseline.isolation}"


def _functions(baseline: Baseline, width: int) -> list[str]:
    rows = baseline.rows
    dearest = sorted(rows, key=lambda name: (-rows[name].ir, name))[:MOST_FUNCTIONS]
    total = max(1, baseline.total_ir)
    cells = [
        (
            percent(Fraction(rows[name].ir, total)).removeprefix("+"),
            percent(Fraction(baseline.inclusive[name], total)).removeprefix("+")
            if name in baseline.inclusive
            else "-",
            quotient(Fraction(rows[name].calls, baseline.calls)),
            cut_left(name, max(20, width - 34)),
        )
        for name in dearest
    ]
    lines = _aligned(("own", "with callees", "calls", "function"), cells, width)
    if len(rows) > MOST_FUNCTIONS:
        lines.append(f"  and {len(rows) - MOST_FUNCTIONS} more")
    return lines


def _tree(tree: CallTree, width: int) -> list[str]:
    lines = [f"Python functions ({tree.how}), {tree.unit} a call of the test:"]
    shown: list[tuple[str, str, str, str]] = []
    left = 0
    total = max(1, tree.total)
    for path in _paths(tree, ()):
        cost = Fraction(tree.inclusive[path])
        if cost / total < _WORTH_SHOWING or len(shown) >= MOST_BRANCHES:
            left += 1
            continue
        row = tree.nodes.get(path)
        shown.append(
            (
                quotient(cost / tree.counted),
                quotient(Fraction(row.ir if row else 0, tree.counted)),
                quotient(Fraction(tree.runs(path), tree.counted)),
                "  " * (len(path) - 1) + printable(path[-1]),
            )
        )
    lines += _aligned(("with callees", "own", "calls", "function"), shown, width)
    if left:
        lines.append(f"  and {left} more, below 1 % or beyond the first {MOST_BRANCHES}")
    return lines


def _paths(tree: CallTree, above: Path) -> Iterator[Path]:
    """The dearest first, each before what it called."""
    stack = [above]
    while stack:
        path = stack.pop()
        if path and not tree.is_itself(path):
            yield path
        below = tree.children.get(path, ())
        stack += sorted(below, key=lambda each: (tree.inclusive[each], each))


def render_table_of_calls(table: CallTable, width: int = 80) -> list[str]:
    """The lines of a table of calls, most calls first: calls, caller and function, resumes."""
    lines = [printable(table.nodeid), f"  {count(table.total)} calls"]
    most = sorted(table.edges.items(), key=lambda each: (*(-n for n in each[1]), each[0]))
    for edge, (calls, resumes) in most[:MOST_BRANCHES]:
        resumed = f" (resumed {resumes:,})" if resumes else ""
        name = edge_name(edge)
        if len(name) > (room := width - 13 - len(resumed)):  # both ends of it are to be told apart
            name = edge_name((cut_left(edge[0], room // 2 - 2), cut_left(edge[1], room // 2 - 2)))
        lines.append(cut_right(f"  {calls:>9,}  {name}{resumed}", width))
    if len(most) > MOST_BRANCHES:
        lines.append(f"  and {len(most) - MOST_BRANCHES} more")
    return lines


def _aligned(headers: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[str]:
    """Columns of numbers, then one of names that keeps its indent."""
    numbers = [each[:-1] for each in cells]
    lines = tabulate(
        numbers,
        headers=headers[:-1],
        tablefmt="plain",
        disable_numparse=True,
        colalign=["right"] * (len(headers) - 1) if cells else None,
    ).splitlines()
    names = [headers[-1], *(each[-1] for each in cells)]
    return [cut_right(f"  {line}  {name}".rstrip(), width) for line, name in zip(lines, names)]
