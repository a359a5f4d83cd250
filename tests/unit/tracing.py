"""What the tests of the tracer share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from pytest_instrcount.trace.columns import Columns
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import trace_call
from pytest_instrcount.trace.tree import Tree
from tests.invariants import broken_invariants

BACKENDS = ["setprofile"] if sys.version_info < (3, 12) else ["setprofile", "monitoring"]
each_backend = pytest.mark.parametrize("backend", BACKENDS)
each_mode = pytest.mark.parametrize("mode", ["counts", "tree"])
with_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is 3.12+")


def trace(func: Callable[..., object], **options: Any) -> Tree:
    """The tree of one call; checked."""
    _, columns = trace_call(TraceOptions(**options), func)
    return checked(columns)


def checked(columns: Columns) -> Tree:
    """The tree, after its self-check."""
    tree = Tree(columns)
    assert broken_invariants(tree.columns) == ()
    return tree


def shown(tree: Tree) -> list[str]:
    """Names of all nodes in this file's callers, indented by depth; without start frames."""
    lines = []
    for node in tree.walk():
        if not node.flags & 1:
            depth, above = 0, node.parent
            while above is not None and not above.flags & 1:
                depth, above = depth + 1, above.parent
            lines.append("  " * depth + node.name.rpartition(".")[2])
    return lines
