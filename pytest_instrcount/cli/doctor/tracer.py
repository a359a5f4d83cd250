"""What records the calls of traced tests."""

from __future__ import annotations

import pytest

from pytest_instrcount.cli.doctor.check import Check
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.fixtures.trace.settings import load_trace_settings
from pytest_instrcount.trace.backends import choose_backend


def check_tracer(config: pytest.Config) -> Check:
    """Its backend, and its core: that in Python is as exact as that in C, and slower."""
    try:
        tracer = choose_backend(load_trace_settings(config).backend)
    except InstrcountError as error:
        return Check.failed("tracer", error)
    slow = ": slower than the core in C" if tracer.core == "python" else ""
    return Check("tracer", "ok", f"{tracer.backend}, core {tracer.core}{slow}")
