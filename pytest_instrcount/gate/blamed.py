"""The trees of a test, before and after -> whose doing its change is."""

from __future__ import annotations

from dataclasses import replace

from pytest_instrcount.counts.python.blame import PythonBlame, find_blame
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.gate.store.schema import Baseline


def blame_test(nodeid: str, old: Baseline, tree: CallTree | None, body: str) -> PythonBlame | None:
    """None where a tree is missing, or both were made in two ways. ``body``: what the test does now."""
    if old.python is None or tree is None or old.python.how != tree.how:
        return None
    blame = find_blame(old.python, tree)
    return replace(blame, kept=function_of(nodeid)) if body and body == old.body else blame


def function_of(nodeid: str) -> str:
    """The test's function, as trees have it.

    >>> function_of("tests/test_x.py::TestA::test_b[a::b]")
    'tests/test_x.py:TestA.test_b'
    """
    file, _, test = nodeid.partition("::")
    return f"{file}:{test.partition('[')[0].replace('::', '.')}"
