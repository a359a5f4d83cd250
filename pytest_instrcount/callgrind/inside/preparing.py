"""What others do in hooks in whose place ours stand: of the first answer, pytest asks no further.

Hooks around all (``wrapper``) are called as ever.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection
from types import ModuleType
from typing import Any

import pytest

from pytest_instrcount.config.hooks import (
    alone,
    is_conftest,
    is_of_project,
    module_of,
    without_wrappers,
)

#: Packages whose own collection, loop and protocol are what ours replace, wherever their source lies.
_REPLACED = ("_pytest", "pytest_instrcount", "xdist")
#: Of a test that has been run so.
RUN_BY_PROJECT = (
    "a pytest_runtest_protocol of the project runs it in its own way: count one call with the instrcount "
    "fixture"
)


def prepare_collection(session: pytest.Session) -> None:
    """Call what plugins do before the collection; what they say to it is not taken."""
    config, hook = session.config, session.config.hook.pytest_collection
    for each in _of_others(hook):
        alone(config, hook, each)(session=session)


def prepare_late(session: pytest.Session, known: Collection[object]) -> None:
    """Call what a file's conftests do before the collection, as if pytest had been started with that file."""
    config, hook = session.config, session.config.hook.pytest_collection
    config.pluginmanager.subset_hook_caller("pytest_sessionstart", known)(session=session)
    for each in _of_others(hook):
        if each.plugin not in known:
            alone(config, hook, each)(session=session)


def prepare_loop(session: pytest.Session) -> None:
    """Call what the project does before the first test; a plugin may run all of them."""
    config, hook = session.config, session.config.hook.pytest_runtestloop
    for each in _of_others(hook):
        if is_of_project(each, config):
            alone(config, hook, each)(session=session)


def is_run_by_project(item: pytest.Item) -> bool:
    """Call what the project does before a test; True if that has run it, too."""
    config, hook = item.config, item.ihook.pytest_runtest_protocol
    return any(
        alone(config, hook, each)(item=item, nextitem=None) is not None
        for each in _of_others(hook)
        if is_of_project(each, config)
    )


def announce(item: pytest.Item) -> None:
    """Have conftests know that a test begins; plugins with this hook report, and that is done outside."""
    hook = item.ihook.pytest_runtest_logstart
    for each in hook.get_hookimpls():
        if is_conftest(each):
            alone(item.config, hook, each)(nodeid=item.nodeid, location=item.location)


def have_modules() -> None:
    """Put back all modules, where a test has cleared ``sys.modules``: pytest needs them for a second phase."""
    if "warnings" not in sys.modules:
        gc.unfreeze()
        alive = [each for each in gc.get_objects() if type(each) is ModuleType]
        sys.modules.update({vars(each).get("__name__", ""): each for each in alive})


def _of_others(hook: Any) -> list[Any]:
    return [
        each
        for each in without_wrappers(hook)
        if module_of(each).partition(".")[0] not in _REPLACED
    ]
