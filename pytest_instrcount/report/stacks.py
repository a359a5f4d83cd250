"""Trees of Python functions for the viewers of stacks: speedscope's file, and lines that are folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_instrcount.counts.measurement import per_call
from pytest_instrcount.counts.python.tree import TRACER, CallTree
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.report.trees import chosen_trees, frame_name, place_of, rows_of, split_name
from pytest_instrcount.trace.export.collapsed import frame_text
from pytest_instrcount.trace.export.speedscope import file_start, profile_start

#: A frame opens or closes: speedscope's letter, the frame's name, how much was counted by then.
Event = tuple[str, str, int]


def trees_of(summary: RunSummary) -> list[tuple[TestResult, CallTree]]:
    """The trees of now, or those of baselines where there is none, as many as have room."""
    chosen = chosen_trees(summary.results)
    found = []
    for result in summary.results:
        tree = result.tree if result.python is None else result.python.new
        if tree is not None and result.nodeid in chosen:
            found.append((result, tree))
    return found


def collapsed_lines(summary: RunSummary) -> Iterator[str]:
    """``test;outer;inner number`` for each stack that cost something of its own, per call.

    Of the tracer the number is calls, else instructions. As `flamegraph.pl` reads it: semicolons and
    line breaks in names are replaced.
    """
    for result, tree in trees_of(summary):
        path = [frame_text(result.nodeid)]
        for depth, name, number in _rows(tree):
            path[depth + 1 :] = [frame_text(frame_name(name))]
            if number > 0:
                yield f"{';'.join(path)} {number}\n"


def speedscope_chunks(summary: RunSummary) -> Iterator[str]:
    """One evented profile per test; a function is one frame in all of them."""
    trees = trees_of(summary)
    frames = _frames(tree for _, tree in trees)
    numbers = {name: number for number, name in enumerate(frames)}
    yield from file_start(summary.title or "pytest-instrcount", frames.values())
    for number, (result, tree) in enumerate(trees):
        events = list(_events(tree))
        yield ("," if number else "") + profile_start(
            _title(result, tree), "none", 0, events[-1][2] if events else 0
        )
        for place, (kind, name, at) in enumerate(events):
            comma = "," if place else ""
            yield f'{comma}{{"type":"{kind}","frame":{numbers[name]},"at":{at}}}'
        yield "]}"
    yield "]}\n"


def _title(result: TestResult, tree: CallTree) -> str:
    """The test, and what would surprise: another unit than instructions, another run than this one."""
    said = ["calls, not instructions"] if tree.how == TRACER else []
    said += [] if result.tree_is_new else ["from the baseline"]
    return f"{result.nodeid} ({'; '.join(said)})" if said else result.nodeid


def _frames(trees: Iterable[CallTree]) -> dict[str, dict[str, object]]:
    """Name -> its frame; of several trees, the one that was measured now knows lines."""
    frames: dict[str, dict[str, object]] = {}
    for tree in trees:
        for path in tree.nodes:
            if path[-1] not in frames or (tree.places and "line" not in frames[path[-1]]):
                frames[path[-1]] = _frame(tree, path[-1])
    return frames


def _frame(tree: CallTree, name: str) -> dict[str, object]:
    qualname, path = split_name(name)
    found: dict[str, object] = {"name": qualname}
    if path:
        found["file"] = path
    line = place_of(tree, name)[1]
    return {**found, "line": line} if line else found


def _rows(tree: CallTree) -> Iterator[tuple[int, str, int]]:
    """Depth, name, own cost of a call of the test; callers first."""
    for depth, name, own, _ in rows_of(tree):
        yield depth, name, per_call(max(0, own), tree.counted)


def _events(tree: CallTree) -> Iterator[Event]:
    """Put a function's own cost before its calls; leave out zero costs."""
    at = 0
    open_names: list[str] = []
    waiting: list[str] = []
    for depth, name, own in _rows(tree):
        while len(open_names) > depth:
            yield "C", open_names.pop(), at
        waiting[max(0, depth - len(open_names)) :] = [name]
        if own:
            yield from (("O", each, at) for each in waiting)
            open_names += waiting
            waiting = []
            at += own
    while open_names:
        yield "C", open_names.pop(), at
