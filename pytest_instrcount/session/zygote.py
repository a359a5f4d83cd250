"""The zygote of a run: told what pytest was told, so that it collects and sets up the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from pytest_instrcount.callgrind.command import child_environment
from pytest_instrcount.callgrind.inside.canonical import (
    canonical_args,
    canonical_options,
    presentation,
)
from pytest_instrcount.callgrind.interpreter import own_options
from pytest_instrcount.callgrind.launch import ZygoteSetup
from pytest_instrcount.callgrind.zygote import Zygote
from pytest_instrcount.config.hooks import conftests_of
from pytest_instrcount.config.options import ADOPTS, adopts_benchmarks
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import EDITABLE, OWN_PACKAGE
from pytest_instrcount.fixtures.benchmark.leftovers import plugins_inside
from pytest_instrcount.host import patience


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """The environment of a test, apart from pytest's options."""

    #: ``sys.path`` before pytest and its plugins add to it
    sys_path: Sequence[str]
    #: the working folder
    folder: Path
    variables: Mapping[str, str]
    #: with which Python was started
    options_of_python: Sequence[str] = ()

    @classmethod
    def here(cls, config: pytest.Config, sys_path: Sequence[str]) -> LaunchContext:
        """Those of this process."""
        return cls(sys_path, config.invocation_params.dir, os.environ, own_options())


def start_zygote(
    config: pytest.Config,
    settings: Settings,
    valgrind: str,
    context: LaunchContext,
    jobs: int,
    options_of_valgrind: Sequence[str] = (),
    *,
    layouts: bool = False,
) -> Zygote:
    """Start one that counts instructions, or, where ``valgrind`` is "", one that traces calls.

    It measures ``jobs`` tests at a time. ``layouts``: in other layouts of memory, too, for sure.

    Raises InstrcountError if there is no room for its files.
    """
    adopts = adopts_benchmarks(config, config.option)
    option = vars(config.option) | {ADOPTS: adopts}
    plugins = plugin_arguments(config)

    def setup_in(scratch: Path) -> ZygoteSetup:
        return ZygoteSetup(
            valgrind=valgrind,
            environment=child_environment(
                context.variables, settings.let_through, sys.executable, scratch
            )
            | dict(settings.child.variables),
            folder=str(context.folder),
            options=canonical_options(
                option,
                config.rootpath,
                config.inipath,
                scratch,
                lambda name: has_ini(config, name),
                conftests_of(config),
            ),
            args=canonical_args(plugins_inside(plugins) if adopts else plugins, config.rootpath),
            sys_path=list(context.sys_path),
            presentation=presentation(option),
            patience=max(patience.START_SECONDS, settings.timeout),
            jobs=jobs,
            options_of_valgrind=(*options_of_valgrind, *settings.child.valgrind),
            editable=config.stash.get(EDITABLE, {}),
            options_of_python=tuple(context.options_of_python),
            own_package=config.stash.get(OWN_PACKAGE, ""),
            layouts=layouts,
            plugins=metadata_folders(config),
        )

    return Zygote(setup_in)


def plugin_arguments(config: pytest.Config) -> list[str]:
    """The user's ``-p``, without ``no:NAME`` of what is installed: inside nothing offers it."""
    given = [each.strip() for each in config.option.plugins]  # "-p name" in an ini file is one word
    if not any(each.startswith("no:") for each in given):
        return given
    wanted = {*os.environ.get("PYTEST_PLUGINS", "").split(","), *given}
    for plugin in config.pluginmanager.get_plugins():
        names = getattr(plugin, "pytest_plugins", None) or ()
        wanted.update([names] if isinstance(names, str) else names)
    offered = {each.name for each in metadata.entry_points(group="pytest11")}
    needless = {f"no:{name}" for name in offered - wanted}
    return [each for each in given if each not in needless]


def metadata_folders(config: pytest.Config) -> list[str] | None:
    """Of the plugins that pytest has found by their entry points, in their order."""
    paths = [
        getattr(each, "_path", None) for _, each in config.pluginmanager.list_plugin_distinfo()
    ]
    return list(dict.fromkeys(map(str, paths))) if all(isinstance(p, Path) for p in paths) else None


def has_ini(config: pytest.Config, name: str) -> bool:
    """True if pytest or a plugin declares an ini setting of this name."""
    try:
        config.getini(name)
    except (ValueError, KeyError):
        return False
    return True
