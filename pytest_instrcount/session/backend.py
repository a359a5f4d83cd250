"""Chooses the backend: Callgrind, byte code, or none if there is no Valgrind."""

from __future__ import annotations

import sys

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.config.commands import Commands
from pytest_instrcount.config.options import uses_xdist
from pytest_instrcount.config.outputs import OutputGuard
from pytest_instrcount.config.settings import Settings, load_command_line, load_settings
from pytest_instrcount.config.stash import VALGRIND
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.names import advise_with
from pytest_instrcount.gate.store.updating import mend

BYTECODE = "bytecode"
#: The parts that a gate registers, without "instrcount-".
PARTS = "account against clocks gate limits outputs report run selection worker"
#: No choice of the user's: what ``auto`` comes to without Valgrind. Workers of pytest-xdist are told.
_NOTHING = "nothing"


def choose_backend(config: pytest.Config) -> tuple[str, Settings] | None:
    """The backend of this run, "callgrind" or ``BYTECODE``, and its settings; None if there is none.

    Raises pytest.UsageError for wrong settings, for a part of the plugin that is left out, for
    ``auto`` that finds no Valgrind where a gate or an update is wanted, and for ``bytecode`` where it
    cannot be.
    """
    if config.option.instrcount_backend == _NOTHING:
        return None
    _check_parts(config)
    settings = load_settings(config)
    typed = load_command_line(config)
    advise_with(typed.program, typed.needed(selecting=False), Commands(config).typed)
    config.add_cleanup(lambda: advise_with(("pytest",), ()))
    if not hasattr(config, "workerinput"):  # which writes nothing
        _prepare_writing(config, settings)
    if settings.backend != "auto":
        _check_system(config, settings)
        return settings.backend, settings
    try:
        config.stash[VALGRIND] = facts.find_valgrind(settings.valgrind)
    except InstrcountError as error:
        if settings.ci or settings.writing:
            why = f"{settings.ci} is set" if settings.ci else f"{settings.writing} is given"
            raise pytest.UsageError(
                f"{error}\ninstrcount_backend = auto measures nothing without Valgrind, and {why}"
            ) from None
        config.option.instrcount_backend = _NOTHING
        config.pluginmanager.register(_Header(error.why), "instrcount-nothing")
        return None
    config.option.instrcount_backend = "callgrind"
    return "callgrind", settings


def _check_parts(config: pytest.Config) -> None:
    """Refuse ``-p no:`` with a part of the plugin: pytest does without it, and a gate would pass."""
    for name in map("instrcount-{}".format, PARTS.split()):
        if config.pluginmanager.is_blocked(name):
            raise pytest.UsageError(
                f"instrcount: -p no:{name} leaves out a part that the gate needs [part-left-out]\n"
                "  fix: take it out of the command line, addopts and PYTEST_ADDOPTS"
            )


def _prepare_writing(config: pytest.Config, settings: Settings) -> None:
    """Guard what is written to, and finish an update that was killed."""
    named = (*(path for _, path in settings.reports), settings.bundle, settings.timings_csv)
    if files := [path for path in named if path is not None]:
        config.pluginmanager.register(OutputGuard(files), "instrcount-outputs")
    with as_usage_errors():
        mend(settings.baseline_dir)


def _check_system(config: pytest.Config, settings: Settings) -> None:
    if settings.backend == BYTECODE:
        _check_bytecode(config)
    elif sys.platform != "linux":
        with as_usage_errors():  # before anything is imported that is of Linux alone
            facts.find_valgrind(settings.valgrind)


def _check_bytecode(config: pytest.Config) -> None:
    if not hasattr(sys, "monitoring"):
        version = ".".join(map(str, sys.version_info[:2]))
        raise pytest.UsageError(
            "instrcount: byte code is counted with sys.monitoring, which Python has from 3.12 on, "
            f"and this is {version} [bytecode-python]\n"
            "  fix: pytest --instrcount --instrcount-backend=callgrind, or a later Python"
        )
    if hasattr(config, "workerinput") or uses_xdist(config.option):
        raise pytest.UsageError(
            "instrcount: byte code is not counted under pytest-xdist [bytecode-xdist]\n"
            "  fix: pytest --instrcount -n 0"
        )


class _Header:
    """The plugin object that says why nothing is measured."""

    def __init__(self, why: str) -> None:
        self._why = why

    def pytest_report_header(self) -> str:
        """One line."""
        return (
            "instrcount: nothing is measured, tests run natively (instrcount_backend = auto): "
            f"{self._why}"
        )
