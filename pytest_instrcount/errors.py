"""Exceptions for things that cannot be measured, read or written. A regression is data, not an exception."""

from __future__ import annotations

from typing import Any

from pytest_instrcount.host.text import escape_controls


class InstrcountError(RuntimeError):
    """Something could not be measured, read or written; the message ends in the command to type.

    ``slug`` is the anchor of the message in ``docs/reference/messages``.

    >>> raise InstrcountError("valgrind-missing", "no valgrind on PATH", "apt install valgrind")
    Traceback (most recent call last):
    pytest_instrcount.errors.InstrcountError: instrcount: no valgrind on PATH [valgrind-missing]
      fix: apt install valgrind
    """

    def __init__(self, slug: str, why: str, fix: str) -> None:
        super().__init__(escape_controls(f"instrcount: {why} [{slug}]\n  fix: {fix}"))
        self.slug, self.why, self.fix = slug, why, fix


class InstrcountWarning(UserWarning):
    """Something was asked for that is likely to be a slip; the test goes on."""


def is_misuse(raised: Any) -> bool:
    """True if pytest's ``ExceptionInfo`` holds an error of ours: then our frames say nothing."""
    return isinstance(raised.value, (InstrcountError, InstrcountWarning))
