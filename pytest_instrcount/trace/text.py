"""A tree as text: the same on every machine and in every checkout."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from pytest_instrcount.host.text import escape_unprintable
from pytest_instrcount.trace.contexts import ContextTree

_HEADING = "in other threads and greenlets:"


def matches(name: str, pattern: str) -> bool:
    """Does a pattern like "json.*" match ``module.qualname``? "json:loads" is "json.loads".

    >>> matches("json.decoder.f", "json.*"), matches("json.loads", "json:loads")
    (True, True)
    """
    return fnmatchcase(name, pattern.replace(":", "."))


def render(
    tree: ContextTree,
    *,
    only: set[int] | None = None,
    limit: int | None = None,
    total: int | None = None,
    width: int = 0,
) -> str:
    """Indented lines of "name [object]  calls"; ``only``: contexts to show; ``limit``: how many lines.

    What was on the stack before the trace has no line. ``total``: before each its milliseconds and their
    share of that, in nanoseconds. ``width``: names are cut so that lines are no wider.
    """
    lines: list[str] = []
    left_out = 0
    for line in _lines(tree, only, total, width):
        if limit is None or len(lines) < limit or line == _HEADING:
            lines.append(line)
        else:
            left_out += 1
    if left_out:
        lines.append(f"... {left_out} more lines")
    return "\n".join(lines)


def total_ns(tree: ContextTree) -> int:
    """Nanoseconds of what began in the trace: in the main thread, or if nothing did there in all."""
    for roots in (tree.main, tree.others):
        total, pending = 0, list(roots)
        for number in pending:
            node = tree.nodes[number]
            total += 0 if node.started_before else node.ns
            pending += node.children if node.started_before else ()
        if total:
            return total
    return 0


def _times(ns: int, total: int) -> str:
    """Columns of a time.

    >>> _times(1_234_567, 10_000_000)
    '     1.235 ms   12.3 %  '
    """
    return f"{ns / 1e6:>10,.3f} ms {100 * ns / total if total else 0:>6.1f} %  "


def _fitted(before: str, depth: int, title: str, after: str, width: int) -> str:
    """A line that is no wider; the end of a name says more than its begin.

    >>> _fitted("", 1, "app.Model.fit", "  2", 14), _fitted("", 20, "app.Model.fit", "  2", 40)
    ('  ...el.fit  2', '                    20 app.Model.fit  2')
    """
    # a name has at least half of the room
    levels = depth if not width else min(depth, max(0, width - len(before)) // 4)
    before += "  " * levels + (f"{depth} " if depth > levels else "")
    room = max(8, width - len(before) - len(after)) if width else len(title)
    return before + (title if len(title) <= room else "..." + title[3 - room :]) + after


def _lines(
    tree: ContextTree, only: set[int] | None, total: int | None, width: int
) -> Iterator[str]:
    pending = [(number, 0) for number in reversed(list(tree.roots()))]
    others = set(tree.others)
    while pending:
        number, depth = pending.pop()
        node = tree.nodes[number]
        if number in others:
            others.clear()
            yield _HEADING
        if only is not None and number not in only:
            continue
        if not node.started_before:
            resumed = f" (resumed {node.resumes})" if node.resumes else ""
            times = "" if total is None else _times(node.ns, total)
            title = escape_unprintable(node.title)
            yield _fitted(times, depth, title, f"  {node.calls}{resumed}", width)
            depth += 1
        pending.extend((child, depth) for child in reversed(node.children))
