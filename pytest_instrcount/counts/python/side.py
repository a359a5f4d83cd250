"""A tree by Python function with its numbers per call of the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from pytest_instrcount.counts.profile import NOTHING
from pytest_instrcount.counts.python.tree import CallTree, Path


class Side:
    """A tree with its numbers per call of the test."""

    def __init__(self, tree: CallTree) -> None:
        self.tree = tree
        self.functions = tree.functions()

    def __contains__(self, path: Path) -> bool:
        return path in self.tree.inclusive

    @property
    def total(self) -> Fraction:
        return self.per_call(self.tree.total)

    @cached_property
    def edges(self) -> Mapping[Path, int]:
        """Caller and callee -> calls, wherever they are made."""
        found: dict[Path, int] = {}
        for path, row in self.tree.nodes.items():
            found[path[-2:]] = found.get(path[-2:], 0) + row.calls
        return found

    def below(self, path: Path) -> Sequence[Path]:
        return self.tree.children.get(path, ())

    def per_call(self, number: int) -> Fraction:
        return Fraction(number, self.tree.counted)

    def own(self, path: Path) -> Fraction:
        return self.per_call(self.tree.nodes.get(path, NOTHING).ir)

    def calls(self, path: Path) -> Fraction:
        return self.per_call(self.tree.nodes.get(path, NOTHING).calls)

    def runs(self, path: Path) -> Fraction:
        return self.per_call(self.tree.runs(path))

    def inclusive(self, path: Path) -> Fraction:
        return self.per_call(self.tree.inclusive.get(path, 0))
