"""Trees of Python functions for reports: names of frames, numbers per call, and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from pytest_instrcount.counts.python.source import first_line
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import RunSummary, TestResult

#: So many rows a report has of all trees together: some megabytes, which viewers still open.
MOST_ROWS = 300_000

#: Reports that show trees.
OF_TREES = ("html", "speedscope", "collapsed")

_FIX = "To have it: pytest --instrcount-update-baseline"


def split_name(name: str) -> tuple[str, str]:
    """Qualified name, and the file without what differs from machine to machine.

    >>> split_name("shop/orders.py:Order.total")
    ('Order.total', 'shop/orders.py')
    """
    path, _, qualname = name.rpartition(":")
    return qualname, path


def frame_name(name: str) -> str:
    """As a frame shows it: what tells most comes first, and no line, which any edit would move.

    >>> frame_name("shop/orders.py:Order.total")
    'Order.total (shop/orders.py)'
    """
    qualname, path = split_name(name)
    return f"{qualname} ({path})" if path else qualname


def place_of(tree: CallTree, name: str) -> tuple[str, int]:
    """The path of a function on this machine and its first line, as far as they are known.

    The tree of a baseline knows neither.
    """
    path, line = tree.places.get(name, ("", 0))
    return path, first_line(path, split_name(name)[0], line) if path else 0


def rows_of(tree: CallTree) -> Iterator[tuple[int, str, int, int]]:
    """As `CallTree.rows`, of a copy: the tree itself would keep all that is worked out for them."""
    return replace(tree).rows()


def chosen_trees(results: Sequence[TestResult], most: int = MOST_ROWS) -> set[str]:
    """Ids of the tests whose trees are shown: all, or as many as have room; what changed first."""
    chosen: set[str] = set()
    left = most
    for result in sorted(results, key=_place):
        size = _size(result)
        if size and (size <= left or not chosen):
            chosen.add(result.nodeid)
            left -= size
    return chosen


def _place(result: TestResult) -> tuple[bool, bool, Fraction]:
    changed = result.verdict in (Verdict.regressed, Verdict.improved)
    return not changed, not result.tree_is_new, -abs(result.delta or Fraction(0))


def _size(result: TestResult) -> int:
    """Rows of its trees."""
    if result.python is not None:
        return len(result.python.old.nodes) + len(result.python.new.nodes)
    return 0 if result.tree is None else len(result.tree.nodes)


def why_no_tree(result: TestResult, summary: RunSummary) -> str:
    """Why nothing is known of this test by Python function, and what to type."""
    if result.verdict is Verdict.stale:
        gone = result.cause is not Cause.unmarked
        return "The test is gone." if gone else "The test is not measured any more."
    if result.verdict in (Verdict.failed, Verdict.nondeterministic, Verdict.uncounted):
        return "The test could not be measured."
    if summary.blame == "off":
        return f"Python functions are not told apart under --instrcount-blame=off. {_FIX}"
    if summary.updating:
        return "This run could not measure it by Python function; the notes of the run say why."
    if result.baseline_ir is None:
        return f"A test is measured by Python function when its baseline is stored. {_FIX}"
    return f"Its baseline has no tree of Python functions to show, or to compare with. {_FIX}"


def with_notes_on_trees(summary: RunSummary, reports: Sequence[tuple[str, Path]]) -> RunSummary:
    """The summary, which says as well what these reports, each a type and a path, lack."""
    said = notes_on_trees([kind for kind, _ in reports], summary)
    return replace(summary, notes=(*summary.notes, *said))


def notes_on_trees(kinds: Sequence[str], summary: RunSummary) -> tuple[str, ...]:
    """Trees that reports of these kinds lack, and why; empty if they have all.

    >>> notes_on_trees(["json"], RunSummary((), {}))
    ()
    """
    asked = [kind for kind in OF_TREES if kind in kinds]
    if not asked or not summary.results:
        return ()
    having = [result for result in summary.results if result.tree is not None]
    reports = f"{' and '.join(asked)} report{'' if len(asked) == 1 else 's'}"
    if not having:
        why = why_no_tree(summary.results[0], summary)
        return (f"no tree of Python functions for the {reports}: {why[0].lower()}{why[1:]}",)
    left = len(having) - len(chosen_trees(having))
    if left:
        return (
            f"the trees of {left:,} tests are left out of the {reports}, so that they can be opened; "
            "a run of fewer tests has them",
        )
    return ()
