"""Hooks of other plugins, called one plugin at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def without_wrappers(hook: Any) -> list[Any]:
    """The implementations of a hook that are no wrappers, in the order in which pytest calls them."""
    return [
        each for each in reversed(hook.get_hookimpls()) if not (each.hookwrapper or each.wrapper)
    ]


def alone(
    config: pytest.Config, hook: Any, implementation: Any, *beside: object
) -> Callable[..., Any]:
    """What calls one implementation of a hook of an item or config, and the plugins ``beside`` it, alone."""
    manager = config.pluginmanager
    others = manager.get_plugins() - {implementation.plugin, *beside}
    return manager.subset_hook_caller(hook.name, others)


def module_of(implementation: Any) -> str:
    """The module of an implementation."""
    return str(implementation.function.__module__)


def is_conftest(implementation: Any) -> bool:
    """Whether it stands in a project's own ``conftest``, in whatever package."""
    return _names_conftest(module_of(implementation))


def conftests_of(config: pytest.Config) -> list[ModuleType]:
    """The conftests that pytest has imported."""
    modules = (each for each in config.pluginmanager.get_plugins() if isinstance(each, ModuleType))
    return [each for each in modules if _names_conftest(each.__name__)]


def is_of_project(implementation: Any, config: pytest.Config) -> bool:
    """Whether it stands in a ``conftest``, or in another file of the project that is not installed."""
    code = getattr(implementation.function, "__code__", None)
    parents = Path(code.co_filename).parents if code is not None else ()
    installed = {"site-packages", "dist-packages"} & {each.name for each in parents}
    return is_conftest(implementation) or (config.rootpath in parents and not installed)


def _names_conftest(module: str) -> bool:
    return module.rpartition(".")[2] == "conftest"
