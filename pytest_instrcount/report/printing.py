"""Standard output and error of a command, as they are found."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from pytest_instrcount.errors import InstrcountError


def print_anything() -> None:
    """From here on what is beyond the terminal's encoding, such as a name of a test, is escaped."""
    for stream in _open_streams():
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _open_streams() -> list[TextIO]:
    """What can be printed to: a program that was traced may have closed the one or the other."""
    return [each for each in (sys.stdout, sys.stderr) if each is not None and not each.closed]


def print_lines(lines: Sequence[str]) -> None:
    """Print, at once. Raises InstrcountError "output-lost" where nothing can be written."""
    try:
        for stream in _open_streams()[:1]:
            print(*lines, sep="\n", end="\n" if lines else "", file=stream, flush=True)
    except OSError as error:
        # what is left would be written, and fail, once more at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # | head
            raise InstrcountError(
                "output-lost", f"nothing can be printed: {error}", "df    (is there space?)"
            ) from error
