"""Collecting one test file, all of it, without listing the folders on the way to it.

Pytest's collectors of folders read the whole folder; a README beside the tests would shape the
heap of every test in it. The ones here know which entry they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest


class OneEntry:
    """Collects the one entry of the folder that leads to the file."""

    target: Path
    path: Path
    config: pytest.Config
    ihook: Any
    session: pytest.Session

    def collect(self) -> Iterable[Any]:
        """The collector of the next folder on the way, or those of the file."""
        step = self.path / self.target.relative_to(self.path).parts[0]
        if step != self.target:
            folder = self.ihook.pytest_collect_directory(path=step, parent=self)
            if folder is not None:
                yield folder
        else:
            yield from self.ihook.pytest_collect_file(file_path=step, parent=self)


class OneEntryFolder(OneEntry, pytest.Directory):
    """A folder of tests."""


class OneEntryPackage(OneEntry, pytest.Package):
    """A package of tests; its ``__init__.py`` may set up and tear down, as ever."""


class Collecting:
    """The hooks while one file is collected. A conftest's own collector of folders comes before this one.

    ``problems`` are the texts of collectors that failed, or were skipped: outside they were not.
    """

    def __init__(self, path: str) -> None:
        self._target = Path(path)
        self.problems: list[str] = []

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> Any:
        """A folder that leads to the file."""
        if path not in self._target.parents:
            return None
        kind: Any = OneEntryPackage if (path / "__init__.py").is_file() else OneEntryFolder
        collector = kind.from_parent(parent, path=path)
        collector.target = self._target
        return collector

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a collector failed, or was skipped."""
        if report.failed:
            self.problems.append(str(report.longrepr))
        elif report.skipped:
            from pytest_instrcount.gate.cause import MEANINGS, Cause  # not before each count

            why = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
            self.problems.append(f"{report.nodeid}: {why}\nfix: {MEANINGS[Cause.skipped][1]}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Outside it is decided what runs: a conftest that takes each second test has others here."""
        collected = list(items)
        yield
        kept = {item.nodeid for item in items}  # one may stand for another
        items += [item for item in collected if item.nodeid not in kept]


def case_of(item: pytest.Item) -> str:
    """What a test is called in its file or class: a plugin may number ids, and differently in each process."""
    within = getattr(item, "cls", None)
    return item.name if within is None else f"{within.__name__}::{item.name}"
