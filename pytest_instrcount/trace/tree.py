"""A trace as a tree: immutable views over its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_instrcount.trace.columns import Columns, Flag, Key, RecognizedObject, Thread
from pytest_instrcount.trace.contexts import Context, ContextTree, fold_libraries, merge
from pytest_instrcount.trace.counts import count_calls
from pytest_instrcount.trace.library import is_library
from pytest_instrcount.trace.sums import Children
from pytest_instrcount.trace.text import matches, render, total_ns

#: Lines of a tree in a failing assert.
EXPLAINED_LINES = 40


@dataclass(frozen=True, slots=True)
class Node:
    """One row of a trace: a call, or a stretch of a generator. Made when it is looked at."""

    tree: Tree
    #: its id: in start order
    row: int

    @property
    def key(self) -> Key:
        """The function that was called."""
        columns = self.tree.columns
        return columns.keys[columns.key[self.row]]

    @property
    def name(self) -> str:
        """``module.qualname``."""
        return self.key.name

    @property
    def flags(self) -> Flag:
        """The way it was entered and left."""
        return Flag(self.tree.columns.flags[self.row])

    @property
    def thread(self) -> Thread:
        """The thread and task in which it ran."""
        columns = self.tree.columns
        return columns.threads[columns.thread[self.row]]

    @property
    def calls(self) -> int:
        """1; 0 of a resume or a start frame; more, if the trace was folded."""
        return self.tree.columns.calls(self.row)

    @property
    def ns(self) -> int:
        """Inclusive nanoseconds; 0 without a clock."""
        return self.tree.columns.ns(self.row)

    @property
    def parent(self) -> Node | None:
        """The caller, if it is in the trace."""
        row = self.tree.columns.parent[self.row]
        return None if row < 0 else Node(self.tree, row)

    @property
    def children(self) -> tuple[Node, ...]:
        """Its calls, in start order."""
        return tuple(Node(self.tree, row) for row in self.tree.children_of(self.row))

    @property
    def object(self) -> RecognizedObject | None:
        """Its ``self``, if that was recognised."""
        return self.tree.columns.objects.get(self.row)

    def __repr__(self) -> str:
        return f"<{self.name} #{self.row}>"


class Calls(int):
    """A number of calls that knows where they were: see ``explain_calls``.

    It is an int in every other respect.
    """

    tree: Tree
    pattern: str

    @classmethod
    def of(cls, number: int, tree: Tree, pattern: str) -> Calls:
        """The number of calls in a tree that a pattern matches."""
        made = cls(number)
        made.tree, made.pattern = tree, pattern
        return made


class Tree:
    """The calls of a trace as a tree, in order.

    >>> from pytest_instrcount.trace.recorder import TraceOptions
    >>> from pytest_instrcount.trace.tracer import trace_call
    >>> import json
    >>> _, columns = trace_call(TraceOptions(), json.dumps, [1])
    >>> tree = Tree(columns)
    >>> assert tree.calls("json.dumps") == 1
    >>> print(tree.to_text())
    json.dumps  1
      json.encoder.JSONEncoder.encode  1
        json.encoder.JSONEncoder.iterencode  1
    """

    __slots__ = ("_children", "_contexts", "columns")

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._children: Children | None = None
        self._contexts: ContextTree | None = None

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        truncated = ", truncated" if self.columns.stats.truncated else ""
        return f"<Tree of {int(self.calls())} calls{truncated}>"

    def children_of(self, row: int) -> tuple[int, ...]:
        """Rows called by a row, in start order; by -1: the roots."""
        if self._children is None:
            self._children = Children(self.columns.parent)
        return tuple(self._children.of(row))

    @property
    def roots(self) -> tuple[Node, ...]:
        """Roots: calls without a caller in the trace."""
        return tuple(Node(self, row) for row in self.children_of(-1))

    def walk(self) -> Iterator[Node]:
        """All nodes, in start order: callers before what they call."""
        return (Node(self, row) for row in range(len(self.columns)))

    def find(self, pattern: str) -> tuple[Node, ...]:
        """Nodes whose ``module.qualname`` a pattern like "json.*" matches, in start order."""
        wanted = self._matching(pattern)
        return tuple(Node(self, row) for row, key in enumerate(self.columns.key) if key in wanted)

    def calls(self, pattern: str = "*") -> Calls:
        """The number of calls of functions that match a pattern; a generator is called when it starts."""
        wanted = self._matching(pattern)
        calls = self.columns.calls
        number = sum(calls(row) for row, key in enumerate(self.columns.key) if key in wanted)
        return Calls.of(number, self, pattern)

    def resumes(self, pattern: str = "*") -> int:
        """The number of times that matching generators and coroutines were resumed."""
        wanted = self._matching(pattern)
        resumes = self.columns.resumes
        return sum(resumes(row) for row, key in enumerate(self.columns.key) if key in wanted)

    def _matching(self, pattern: str) -> set[int]:
        return {n for n, key in enumerate(self.columns.keys) if matches(key.name, pattern)}

    @property
    def contexts(self) -> ContextTree:
        """The tree with equal calls put together."""
        if self._contexts is None:
            self._contexts = merge(self.columns)
        return self._contexts

    def to_text(self, *, time: bool = False, libraries: bool = True) -> str:
        """Indented lines of "name  calls", equal calls put together; the same on every machine.

        ``time``: before each its time and the share of the main thread's, where a clock was read.
        ``libraries=False``: only what your code calls of libraries, not what these call of each other.

        Calls of recognised objects are put together by object: "app.Model.fit [Model #0]  2".
        What was on the stack before the trace is cut off.
        """
        contexts = (
            self.contexts
            if libraries
            else fold_libraries(self.contexts, lambda node: is_library(node.module))
        )
        timed = time and self.columns.clock
        return render(contexts, total=total_ns(contexts) if timed else None)

    def diff(self, other: Tree) -> list[tuple[str, int, int]]:
        """(path, calls here, calls in the other) of each path that differs, callers first.

        A path is "a.f > b.g [B #0]"; recursive calls count for the first call.
        """
        here, there = self.contexts.named(), other.contexts.named()
        nothing = Context("", -1, False)
        found = []
        for path in (*here, *(path for path in there if path not in here)):
            before, after = here.get(path, nothing).calls, there.get(path, nothing).calls
            if before != after:
                found.append((path, before, after))
        return [(" > ".join(path), before, after) for path, before, after in sorted(found)]

    def call_counts(self) -> dict[str, int]:
        """``module:qualname[#n]`` -> calls: for baselines, without line numbers."""
        return count_calls(self.columns)


def explain_calls(op: str, left: object, right: object) -> list[str] | None:
    """Lines for a failed assert about ``tree.calls(...)``: the branches with what matched.

    For ``pytest_assertrepr_compare``; None if neither side is such a number.
    """
    calls = left if isinstance(left, Calls) else right
    if not isinstance(calls, Calls) or not hasattr(calls, "tree"):
        return None
    contexts = calls.tree.contexts
    branch: set[int] = set()
    for number, node in enumerate(contexts.nodes):
        if node.calls and matches(node.name, calls.pattern):
            while number >= 0 and number not in branch:
                branch.add(number)
                number = contexts.nodes[number].parent
    lines = [f"{left!r} {op} {right!r} (calls of {calls.pattern!r})"]
    if branch:
        text = render(contexts, only=branch, limit=EXPLAINED_LINES)
    else:
        lines.append("nothing of that name was called; what was:")
        text = render(contexts, limit=EXPLAINED_LINES)
    return lines + text.splitlines()
