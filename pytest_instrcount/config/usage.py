"""Errors of ours as usage errors of pytest, which end a run with their text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_instrcount.errors import InstrcountError


@contextmanager
def as_usage_errors() -> Iterator[None]:
    """Raise pytest.UsageError, with the same text, for an InstrcountError."""
    try:
        yield
    except InstrcountError as error:
        raise pytest.UsageError(str(error)) from None
