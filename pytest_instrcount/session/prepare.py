"""The beginning of several kinds of run: Valgrind, and the header."""

from __future__ import annotations

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import VALGRIND
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.fixtures.trace.settings import load_trace_settings


def find_valgrind(config: pytest.Config, settings: Settings) -> tuple[str, str]:
    """Path and version of the valgrind of this run. Raises InstrcountError as `facts` does."""
    found = config.stash.get(VALGRIND, None)
    return facts.find_valgrind(settings.valgrind) if found is None else found


def make_header(config: pytest.Config, valgrind: str) -> dict[str, str]:
    """The header of a run under this version of Valgrind, as name -> value. Raises pytest.UsageError."""
    # what is of the tracer is not imported by a start without a run
    from pytest_instrcount.trace.core import core_name

    backend = load_trace_settings(config).backend_name
    with as_usage_errors():
        core = core_name(backend)
    return {
        "valgrind": valgrind,
        "CPython": facts.python_version(),
        "tracer": backend,
        "core": core,
    }
