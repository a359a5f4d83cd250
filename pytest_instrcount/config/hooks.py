"""Hooks of other plugins, called one plugin at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest


def each_alone(
    item: pytest.Item, name: str, *beside: object
) -> Iterator[tuple[str, Callable[..., object]]]:
    """For each implementation of a test's hook: its module, and what calls it and those ``beside`` it alone."""
    manager = item.config.pluginmanager
    for each in getattr(item.ihook, name).get_hookimpls():
        others = manager.get_plugins() - {each.plugin, *beside}
        yield each.function.__module__, manager.subset_hook_caller(name, others)


def is_conftest(module: str) -> bool:
    """True for the name of a project's own ``conftest``, in whatever package.

    >>> is_conftest("tests.conftest"), is_conftest("pytest_conftest")
    (True, False)
    """
    return module.rpartition(".")[2] == "conftest"
