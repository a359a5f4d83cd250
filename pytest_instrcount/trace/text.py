"""A tree as text: the same on every machine and in every checkout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from pytest_instrcount.trace.contexts import Context, ContextTree

Action = Literal["keep", "drop", "splice"]

_HEADING = "in other threads and greenlets:"


@dataclass(frozen=True, slots=True)
class Prune:
    """A rule for functions that a pattern matches; the first matching rule applies.

    "drop" leaves them out with all that they call, "splice" shows what they call in their place,
    "keep" shows them whatever later rules say.

    >>> Prune("importlib.*", "drop")
    Prune(pattern='importlib.*', action='drop')
    """

    pattern: str
    action: Action


def matches(name: str, pattern: str) -> bool:
    """Does a pattern like "json.*" match ``module.qualname``? "json:loads" is "json.loads".

    >>> matches("json.decoder.f", "json.*"), matches("json.loads", "json:loads")
    (True, True)
    """
    return fnmatchcase(name, pattern.replace(":", "."))


def render(
    tree: ContextTree,
    *,
    marker: str | None = None,
    rules: Iterable[Prune] = (),
    only: set[int] | None = None,
    limit: int | None = None,
) -> str:
    """Indented lines of "name [object]  calls"; ``only``: contexts to show; ``limit``: how many lines."""
    lines: list[str] = []
    left_out = 0
    for line in _lines(tree, marker, tuple(rules), only):
        if limit is None or len(lines) < limit or line == _HEADING:
            lines.append(line)
        else:
            left_out += 1
    if left_out:
        lines.append(f"... {left_out} more lines")
    return "\n".join(lines)


def _lines(
    tree: ContextTree, marker: str | None, rules: tuple[Prune, ...], only: set[int] | None
) -> Iterator[str]:
    act = _decider(rules)
    tops = _below(tree, marker)
    pending = [(number, 0) for number in reversed(tops or list(tree.roots()))]
    others = set(tree.others)
    while pending:
        number, depth = pending.pop()
        node = tree.nodes[number]
        action = "splice" if node.started_before and not tops else act(node.name)
        if number in others:
            others.clear()
            yield _HEADING
        if action == "drop" or (only is not None and number not in only):
            continue
        if action == "keep":
            yield "  " * depth + f"{node.title}  {_numbers(node)}"
            depth += 1
        pending.extend((child, depth) for child in reversed(node.children))


def _below(tree: ContextTree, marker: str | None) -> list[int]:
    """The nodes to begin with: those below frames that the marker matches."""
    below: list[int] = []
    pending = list(reversed(list(tree.roots()))) if marker else []
    while pending:
        node = tree.nodes[pending.pop()]
        if marker and matches(node.name, marker):
            below.extend(node.children)
        else:
            pending.extend(reversed(node.children))
    return below


def _numbers(node: Context) -> str:
    if node.started_before:
        return "(running)"
    return f"{node.calls} (resumed {node.resumes})" if node.resumes else str(node.calls)


def _decider(rules: tuple[Prune, ...]) -> Callable[[str], Action]:
    known: dict[str, Action] = {}

    def act(name: str) -> Action:
        action = known.get(name)
        if action is None:
            found = (each.action for each in rules if matches(name, each.pattern))
            action = known[name] = next(found, "keep")
        return action

    return act
