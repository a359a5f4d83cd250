"""Hooks of other plugins, called one plugin at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def each_alone(
    config: pytest.Config, hook: Any, *beside: object
) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """Each implementation of a hook of an item or config, and what calls it and those ``beside`` it alone."""
    manager = config.pluginmanager
    for each in hook.get_hookimpls():
        others = manager.get_plugins() - {each.plugin, *beside}
        yield each, manager.subset_hook_caller(hook.name, others)


def module_of(implementation: Any) -> str:
    """The module of an implementation."""
    return str(implementation.function.__module__)


def is_conftest(implementation: Any) -> bool:
    """Whether it stands in a project's own ``conftest``, in whatever package."""
    return module_of(implementation).rpartition(".")[2] == "conftest"


def is_of_project(implementation: Any, config: pytest.Config) -> bool:
    """Whether it stands in a ``conftest``, or in another file of the project that is not installed."""
    code = getattr(implementation.function, "__code__", None)
    parents = Path(code.co_filename).parents if code is not None else ()
    installed = {"site-packages", "dist-packages"} & {each.name for each in parents}
    return is_conftest(implementation) or (config.rootpath in parents and not installed)
