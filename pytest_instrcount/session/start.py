"""The story of a measured run: who measures, who judges, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.names import own_key
from pytest_instrcount.session.findings import Findings, find_with
from pytest_instrcount.session.judge import register_gate
from pytest_instrcount.session.measure import Counting
from pytest_instrcount.session.prepare import find_valgrind, make_bundler, make_header
from pytest_instrcount.session.profiles import Keeper
from pytest_instrcount.session.selection import Selection
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
    keeper = Keeper(settings.keep, config.invocation_params.dir)
    try:
        valgrind, version = find_valgrind(config, settings)
        keeper.prepare()
        bundler = make_bundler(config, settings, version)
    except InstrcountError as error:
        raise pytest.UsageError(str(error)) from None
    header = make_header(config, version)
    environment = facts.environment_facts(version, settings.let_through)
    store = Store(settings.baseline_dir, own_key())
    findings = find_with(config, settings, store, environment, keeper)
    watch(findings)
    selection = Selection(config)
    config.pluginmanager.register(selection, "instrcount-selection")
    gate = register_gate(config, settings, findings, selection, bundler, header)
    counting = Counting(
        config,
        settings,
        valgrind,
        LaunchContext.here(config, sys_path),
        findings,
        selection,
        gate.close,
        say=gate.reporter.say,
    )
    config.pluginmanager.register(counting, "instrcount-run")
    accounting = Accounting(config, settings, account)
    config.pluginmanager.register(accounting, "instrcount-account")
