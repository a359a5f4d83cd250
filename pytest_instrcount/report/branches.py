"""Branches of calls before and now, side by side, as lines for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pytest_instrcount.gate.store.calls import Edge, Edges, Uses
from pytest_instrcount.report.words import cut_left

#: So many callers above a function are shown, the nearest.
_MOST_CALLERS = 5
_NARROWEST_NAME = 8


def edge_name(edge: Edge) -> str:
    """Caller and function, or the function alone that nobody called.

    >>> edge_name(("m:f", "m:g")), edge_name(("", "m:f"))
    ('m:f -> m:g', 'm:f')
    """
    return " -> ".join(filter(None, edge))


@dataclass(slots=True)
class _Branch:
    """A function below its callers."""

    edge: Edge
    below: dict[str, _Branch] = field(default_factory=dict)


def render_branches(before: Edges, now: Edges, wanted: Sequence[Edge], width: int) -> list[str]:
    """The branches that lead to some edges: left as they were, right as they are.

    Between them stands "|" where the numbers differ, "<" or ">" where a call is on one side alone.

    >>> old = {("", "m:t"): (1, 0), ("m:t", "m:f"): (1, 0), ("m:t", "m:g"): (10, 0)}
    >>> new = {("", "m:t"): (1, 0), ("m:t", "m:f"): (10, 0), ("m:t", "m:h"): (1, 0)}
    >>> for line in render_branches(old, new, [("m:t", each) for each in ("m:f", "m:g", "m:h")], 40):
    ...     print(line)
    before               now
    m:t  1               m:t  1
      m:f  1           |   m:f  10
      m:g  10          <
                       >   m:h  1
    """
    half = (width - 3) // 2
    lines = [("before", " ", "now")]
    for depth, edge in _walk(_branches(_callers(now, before), wanted)):
        was, is_ = before.get(edge), now.get(edge)
        if was is is_ is None:  # a file that somebody wrote by hand
            continue
        mark = " " if was == is_ else "|" if was and is_ else "<" if was else ">"
        lines.append((_side(depth, edge[1], was, half), mark, _side(depth, edge[1], is_, half)))
    return [f"{left:<{half}} {mark} {right}".rstrip() for left, mark, right in lines]


def _callers(*tables: Edges) -> dict[str, str]:
    """Function -> the caller by which it is reached in the fewest steps, of the first table if it can be."""
    found = {"": ""}
    for table in tables:
        called: dict[str, list[str]] = {}
        for caller, callee in sorted(table):
            called.setdefault(caller, []).append(callee)
        queue = list(found)
        for caller in queue:
            for callee in called.get(caller, ()):
                if callee not in found:
                    found[callee] = caller
                    queue.append(callee)
    return found


def _branches(callers: dict[str, str], wanted: Iterable[Edge]) -> _Branch:
    root = _Branch(("", ""))
    for caller, callee in sorted(wanted):
        path = [callee]
        while caller and len(path) <= _MOST_CALLERS:
            path.append(caller)
            caller = callers.get(caller, "")
        branch, above = root, caller
        for name in reversed(path):
            branch = branch.below.setdefault(name, _Branch((above, name)))
            above = name
    return root


def _walk(branch: _Branch, depth: int = 0) -> Iterator[tuple[int, Edge]]:
    for below in branch.below.values():
        yield depth, below.edge
        yield from _walk(below, depth + 1)


def _side(depth: int, name: str, uses: Uses | None, width: int) -> str:
    if uses is None:
        return ""
    calls, resumes = uses
    numbers = f"  {calls}" + (f" (resumed {resumes})" if resumes else "")
    indent = " " * min(2 * depth, width - len(numbers) - _NARROWEST_NAME)
    return indent + cut_left(name, width - len(indent) - len(numbers)) + numbers
