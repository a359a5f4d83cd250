"""The beginning of several kinds of run: Valgrind, the header, the file for failures."""

from __future__ import annotations

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import VALGRIND
from pytest_instrcount.fixtures.trace.settings import load_trace_settings
from pytest_instrcount.session.bundle import Bundler


def find_valgrind(config: pytest.Config, settings: Settings) -> tuple[str, str]:
    """Path and version of the valgrind of this run. Raises InstrcountError as `facts` does."""
    found = config.stash.get(VALGRIND, None)
    return facts.find_valgrind(settings.valgrind) if found is None else found


def make_header(config: pytest.Config, valgrind: str) -> dict[str, str]:
    """The header of a run under this version of Valgrind, as name -> value."""
    return {
        "valgrind": valgrind,
        "CPython": facts.python_version(),
        "tracer": load_trace_settings(config).backend_name,
    }


def make_bundler(config: pytest.Config, settings: Settings, valgrind: str) -> Bundler:
    """The writer of the bundle, if one is wanted. Raises InstrcountError "bundle-write"."""
    words = tuple(map(str, config.invocation_params.args))
    versions = {"valgrind": valgrind, "pytest": pytest.__version__}
    bundler = Bundler(settings.bundle, config.invocation_params.dir, words, versions)
    bundler.prepare()
    return bundler
