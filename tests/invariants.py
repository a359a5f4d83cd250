"""Invariants of every trace, as code; and a table that only tests compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from pytest_instrcount.trace.columns import Columns, Flag
from pytest_instrcount.trace.counts import lasting_names
from pytest_instrcount.trace.tree import Tree


def broken_invariants(columns: Columns) -> tuple[str, ...]:
    """Sentences about what does not hold; none, if all is well."""
    numbers = columns.key, columns.parent, columns.start, columns.end, columns.flags
    lengths = {*map(len, (*numbers, columns.thread))}
    if len(lengths) > 1:
        return (f"columns of different lengths: {sorted(lengths)}",)
    return (*_per_row(columns), *_of_siblings(columns), *_of_sums(columns))


def _per_row(columns: Columns) -> Iterator[str]:
    for row in range(len(columns)):
        parent = columns.parent[row]
        if not 0 <= columns.key[row] < len(columns.keys):
            yield f"row {row} has no key"
        if not 0 <= columns.thread[row] < len(columns.threads):
            yield f"row {row} has no thread"
        if columns.start[row] > columns.end[row]:
            yield f"row {row} ends before it starts"
        if not -1 <= parent < row:
            yield f"row {row} stands before its caller {parent}"
        elif parent >= 0 and not columns.folded:
            yield from _of_caller(columns, row, parent)
        before = columns.flags[row] & Flag.START_FRAME
        if before and parent >= 0 and not columns.flags[parent] & Flag.START_FRAME:
            yield f"start frame {row} was called within the trace"


def _of_caller(columns: Columns, row: int, parent: int) -> Iterator[str]:
    if columns.thread[parent] != columns.thread[row]:
        yield f"row {row} was called from another thread"
    if not columns.start[parent] < columns.start[row]:
        yield f"row {row} starts before its caller {parent}"
    if columns.end[row] > columns.end[parent]:
        yield f"row {row} ends after its caller {parent}"


def _of_siblings(columns: Columns) -> Iterator[str]:
    """Calls of one caller follow one another."""
    if columns.folded:
        return
    last: dict[tuple[int, int], int] = {}
    for row, parent in enumerate(columns.parent):
        before = last.get((columns.thread[row], parent))
        if before is not None and columns.end[before] > columns.start[row] and parent >= 0:
            yield f"row {row} starts before its sibling {before} ends"
        last[columns.thread[row], parent] = row


def _of_sums(columns: Columns) -> Iterator[str]:
    stats = columns.stats
    unfinished = sum(1 for flags in columns.flags if flags & Flag.UNFINISHED)
    if not stats.truncated and unfinished != stats.unfinished:
        yield f"{unfinished} rows are unfinished, {stats.unfinished} were counted"
    if any(numbers.calls < 0 or numbers.resumes < 0 for numbers in columns.folded.values()):
        yield "a number of calls is negative"
    for row in (*columns.objects, *columns.folded):
        if not 0 <= row < len(columns):
            yield f"there is no row {row}"


def resume_counts(tree: Tree) -> dict[str, int]:
    """``module:qualname[#n]`` -> resumes of generators and coroutines."""
    columns = tree.columns
    names = lasting_names(columns.keys)
    found: Counter[str] = Counter()
    for row, key in enumerate(columns.key):
        found[names[key]] += columns.resumes(row)
    return dict(+found)


def differing(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Names whose numbers are not the same, with both."""
    names = sorted(first.keys() | second.keys())
    pairs = {name: (first.get(name, 0), second.get(name, 0)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
