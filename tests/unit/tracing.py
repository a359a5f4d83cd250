"""What the tests of the tracer share."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_instrcount.trace.columns import Columns
from pytest_instrcount.trace.core import VARIABLE, load_core
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import trace_call
from pytest_instrcount.trace.tree import Tree
from tests.invariants import broken_invariants

BACKENDS = ["setprofile"] if sys.version_info < (3, 12) else ["setprofile", "monitoring"]
each_backend = pytest.mark.parametrize("backend", BACKENDS)
each_mode = pytest.mark.parametrize("mode", ["counts", "tree"])
with_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is 3.12+")


@pytest.fixture(params=["python", "c"], scope="module", autouse=True)
def core(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each test of a module that imports this runs with both cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, request.param)
        if request.param == "c" and not importlib.util.find_spec("pytest_instrcount.trace._core"):
            pytest.skip("the core in C is not built")
        yield request.param


def stays_on_setprofile() -> bool:
    """True if nothing but another profiler takes the hook of that backend away."""
    return load_core("setprofile") is not None


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
