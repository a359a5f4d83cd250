"""Collecting one test file without listing the folders on the way to it.

Pytest's collectors of folders read the whole folder; a README beside the tests would shape the
heap of every test in it. The ones here know which entry they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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


class CollectorHook:
    """Makes folders into collectors of one entry. A conftest's own collector comes before it."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> Any:
        """A folder that leads to the file."""
        if path not in self._target.parents:
            return None
        kind: Any = OneEntryPackage if (path / "__init__.py").is_file() else OneEntryFolder
        collector = kind.from_parent(parent, path=path)
        collector.target = self._target
        return collector


@contextmanager
def only_collect(path: str, config: pytest.Config) -> Iterator[None]:
    """While it lasts, folders collect nothing but what leads to the file."""
    hook = CollectorHook(Path(path))
    config.pluginmanager.register(hook)
    try:
        yield
    finally:
        config.pluginmanager.unregister(hook)


def case_of(item: pytest.Item) -> str:
    """What a test is called in its file or class: a plugin may number ids, and differently in each process."""
    within = getattr(item, "cls", None)
    return item.name if within is None else f"{within.__name__}::{item.name}"
