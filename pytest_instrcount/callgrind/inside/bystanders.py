"""Plugins that leave a test alone unless it asks for them: it is counted as if they were not installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pytest_instrcount.config.compat import fixture_info

#: Packages and modules whose hooks around a phase, and fixtures for every test, do nothing to one that has no
#: fixture of theirs and none of `_ASKING`.
_BYSTANDERS = """
    _hypothesis_pytestplugin _pytest anyio faker flaky inline_snapshot pyfakefs pytest_asyncio
    pytest_base_url pytest_benchmark pytest_check pytest_codspeed pytest_cov
    pytest_dependency pytest_django pytest_durations pytest_factoryboy pytest_fail_slow
    pytest_flask pytest_instrcount pytest_logger pytest_mpl pytest_playwright
    pytest_randomly pytest_recording pytest_remotedata pytest_rerunfailures
    pytest_selenium pytest_socket pytest_splinter pytest_structlog pytest_timeout
    pytest_trio pytest_vcr schemathesis xdist
"""
#: Marks by which a test asks for one of them.
_ASKING = """
    allow_hosts block_network client_class disable_socket django_db enable_socket filterwarnings
    ignore_template_errors mpl_image_compare options remote_data urls usefixtures vcr
"""
#: Where pytest makes fixtures of a module's ``setup_function`` and the like.
_XUNIT = frozenset(("_pytest.python", "_pytest.unittest"))
_PHASE_HOOKS = (
    "pytest_runtest_protocol",
    "pytest_fixture_setup",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_pyfunc_call",
    "pytest_runtest_teardown",
)


def start_no_server(config: pytest.Config) -> None:
    """Have pytest-rerunfailures wait for no workers of pytest-xdist: beside its thread no test is forked."""
    plugin: Any = config.pluginmanager.getplugin("rerunfailures")
    if plugin is not None:
        plugin.HAS_PYTEST_HANDLECRASHITEM = False


def say_first_run(config: pytest.Config) -> None:
    """Have tests say what pytest-rerunfailures says in a first run, by a protocol that does not run inside."""
    if config.pluginmanager.hasplugin("rerunfailures"):
        test: Any = pytest.Function
        test.execution_count = 1


def is_left_alone(item: pytest.Function, own: Iterable[str]) -> bool:
    """True if all hooks and fixtures of a test are bystanders', but for fixtures named in ``own``."""
    if not set(_ASKING.split()).isdisjoint(mark.name for mark in item.iter_markers()):
        return False
    asked = fixture_info(item)
    modules = set()
    for name in set(item.fixturenames).difference(own):
        # ``request`` has no definition: a bystander's fixture takes it. A hook may have put in other names.
        found = asked.name2fixturedefs.get(name, ())
        if name in asked.argnames or not (found or name == "request"):
            return False
        modules |= {each.func.__module__ for each in found}
    if not _XUNIT.isdisjoint(modules):
        return False
    for name in _PHASE_HOOKS:
        implementations = getattr(item.ihook, name).get_hookimpls()
        modules |= {each.function.__module__ for each in implementations}
    return {module.partition(".")[0] for module in modules} <= set(_BYSTANDERS.split())
