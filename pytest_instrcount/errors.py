"""Exceptions for things that cannot be measured, read or written. A regression is data, not an exception."""

from __future__ import annotations

import shlex
from typing import Any

from pytest_instrcount.host.text import escape_controls

#: The words that the present run was started with: ``python -m pytest`` finds modules that ``pytest`` does not.
STARTED = ["pytest"]


def as_started(fix: str) -> str:
    """What to type, begun as the present run was if it is pytest.

    >>> as_started("pytest -n 0"), as_started("df -h")
    ('pytest -n 0', 'df -h')
    """
    program, _, words = fix.partition(" ")
    return f"{shlex.join(STARTED)} {words}" if program == "pytest" else fix


class InstrcountError(RuntimeError):
    """Something could not be measured, read or written; the message ends in the command to type.

    ``slug`` is the anchor of the message in ``docs/reference/messages``.

    >>> raise InstrcountError("valgrind-missing", "no valgrind on PATH", "apt install valgrind")
    Traceback (most recent call last):
    pytest_instrcount.errors.InstrcountError: instrcount: no valgrind on PATH [valgrind-missing]
      fix: apt install valgrind
    """

    def __init__(self, slug: str, why: str, fix: str) -> None:
        super().__init__(escape_controls(f"instrcount: {why} [{slug}]\n  fix: {as_started(fix)}"))
        self.slug, self.why, self.fix = slug, why, fix


class InstrcountWarning(UserWarning):
    """Something was asked for that is likely to be a slip; the test goes on."""


def is_misuse(raised: Any) -> bool:
    """True if pytest's ``ExceptionInfo`` holds an error of ours: then our frames say nothing."""
    return isinstance(raised.value, (InstrcountError, InstrcountWarning))
