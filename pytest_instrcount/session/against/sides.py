"""Which side of a comparison a run is: the user's own, the other commit's, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from pytest_instrcount.config.options import runs_natively
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import OTHER_SIDE
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.start import start_measuring


def start_side(config: pytest.Config, settings: Settings, sys_path: Sequence[str]) -> None:
    """Measure one side, in this process. Raises pytest.UsageError."""
    chosen = choose_sides(config, settings)
    watch = partial(watch_sides, config, chosen, sys_path)
    start_measuring(config, chosen, sys_path, watch=watch)


def choose_sides(config: pytest.Config, settings: Settings) -> Settings:
    """The settings with which this side is measured. Raises pytest.UsageError."""
    other = config.stash.get(OTHER_SIDE, None)
    if other is not None:
        chosen: Settings = other.settings(settings)
        return chosen
    ref = config.getoption("instrcount_against")
    if ref is None or runs_natively(config):
        return settings
    if settings.writing:
        raise pytest.UsageError(
            "instrcount: --instrcount-against reads and writes no baselines, and something is to be "
            f"written [settings]\n  fix: pytest --instrcount-against={ref}"
        )
    from pytest_instrcount.session.against.head import Head

    with as_usage_errors():
        head = Head.prepare(config, ref)
    config.pluginmanager.register(head, "instrcount-against")
    # what is new in a change has nothing to be held against, nor has what did not pass before
    incomparable = "warn" if settings.incomparable == "auto" else settings.incomparable
    return replace(
        settings,
        against=head.base,
        baseline_dir=head.store,
        missing="note",
        incomparable=incomparable,
    )


def watch_sides(
    config: pytest.Config,
    settings: Settings,
    sys_path: Sequence[str],
    findings: Findings,
    *,
    ahead: bool = False,
) -> None:
    """Have the other side measured when the tests of this run are known; ``ahead``: before that,
    and all that a baseline has, for workers of pytest-xdist to compare with.
    """
    other = config.stash.get(OTHER_SIDE, None)
    if other is not None:
        findings.rulings.first_look = other.first_look
    head = config.pluginmanager.getplugin("instrcount-against")
    if head is not None:
        findings.rulings.first_look = not ahead
        head.begin(config, settings, findings, sys_path, ahead=ahead)
