"""The story of a measured run: who measures, who judges, and what they share."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from pytest_instrcount import facts
from pytest_instrcount.accounting import Accounting, start_account
from pytest_instrcount.against.sides import choose_sides, watch_sides
from pytest_instrcount.bundling import Bundler
from pytest_instrcount.counting import Counting
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.baseline import Store
from pytest_instrcount.gate.names import env_key
from pytest_instrcount.gating import Gate, find_with
from pytest_instrcount.keeping import Keeper
from pytest_instrcount.selection import Selection
from pytest_instrcount.settings import load_settings
from pytest_instrcount.starting import Surroundings
from pytest_instrcount.tracing.settings import load_trace_settings


def start_measuring(config: pytest.Config, sys_path: Sequence[str]) -> None:
    """Read the settings, find Valgrind and register the run. Raises pytest.UsageError."""
    settings = choose_sides(config, load_settings(config))
    account = start_account(config, settings)
    keeper = Keeper(settings.keep, config.invocation_params.dir)
    try:
        valgrind, version = facts.find_valgrind(settings.valgrind)
        keeper.prepare()
        words = tuple(map(str, config.invocation_params.args))
        versions = {"valgrind": version, "pytest": pytest.__version__}
        bundler = Bundler(settings.bundle, config.invocation_params.dir, words, versions)
        bundler.prepare()
    except InstrcountError as error:
        raise pytest.UsageError(str(error)) from None
    key = env_key("cp", sys.version_info[:2], sys.platform, os.uname().machine)
    environment = facts.environment_facts(version, settings.let_through)
    header = {
        "valgrind": version,
        "CPython": ".".join(map(str, sys.version_info[:3])),
        "tracer": load_trace_settings(config).backend_name,
    }
    findings = find_with(config, settings, Store(settings.baseline_dir, key), environment, keeper)
    watch_sides(config, settings, findings, sys_path)
    selection = Selection(config)
    gate = Gate(config, settings, findings, selection, bundler, header)
    counting = Counting(
        config,
        settings,
        valgrind,
        Surroundings.here(config, sys_path),
        findings,
        selection,
        gate.close,
        say=gate.say,
    )
    config.pluginmanager.register(selection, "instrcount-selection")
    config.pluginmanager.register(gate, "instrcount-gate")
    config.pluginmanager.register(counting, "instrcount-run")
    accounting = Accounting(config, settings, account)
    config.pluginmanager.register(accounting, "instrcount-account")
