"""The story of a measured run: who measures, who judges, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.callgrind.interpreter import own_options
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.names import own_key
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.judge import register_gate
from pytest_instrcount.session.measure import Counting
from pytest_instrcount.session.prepare import find_valgrind, make_header
from pytest_instrcount.session.timings import Accounting, start_account
from pytest_instrcount.session.zygote import LaunchContext


def start_measuring(
    config: pytest.Config,
    settings: Settings,
    sys_path: Sequence[str],
    *,
    watch: Callable[[Findings], None],
) -> None:
    """Find Valgrind and register the run; ``watch`` gets what collects findings. Raises pytest.UsageError."""
    account = start_account(config, settings)
    with as_usage_errors():
        valgrind, version = find_valgrind(config, settings)
    store, header = Store(settings.baseline_dir, own_key()), make_header(config, version)
    environment = facts.environment_facts(version, settings.let_through, own_options())
    gate = register_gate(config, settings, store, environment, header, version)
    watch(gate.findings)
    config.pluginmanager.register(gate.selection, "instrcount-selection")
    counting = Counting(
        config,
        settings,
        valgrind,
        LaunchContext.here(config, sys_path),
        gate.findings,
        gate.selection,
        gate.close,
        say=gate.reporter.say,
    )
    config.pluginmanager.register(counting, "instrcount-run")
    accounting = Accounting(config, settings, account)
    config.pluginmanager.register(accounting, "instrcount-account")
