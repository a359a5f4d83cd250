"""Standard output and error of a command, as they are found."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from pytest_instrcount.errors import InstrcountError


def print_anything() -> None:
    """From here on what is beyond the terminal's encoding, such as a name of a test, is escaped."""
    _escape(_usable((sys.stdout, sys.stderr)))


def _usable(streams: Iterable[TextIO | None]) -> list[TextIO]:
    """What can be printed to: a program that was traced may have closed or detached the one or the other."""
    found = []
    for each in streams:
        try:
            if each is not None and not each.closed:
                found.append(each)
        except (AttributeError, ValueError):  # a class of its own; a stream without a buffer
            continue
    return found


def _escape(streams: Iterable[TextIO]) -> None:
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_lines(lines: Sequence[str], *streams: TextIO | None) -> None:
    """Print to the first stream that can be printed to, at once; those that there are now come last.

    Raises InstrcountError "output-lost" where nothing can be written.
    """
    found = _usable((*streams, sys.stdout, sys.stderr))[:1]
    _escape(found)
    for stream in found:
        try:
            print(*lines, sep="\n", end="\n" if lines else "", file=stream, flush=True)
        except OSError as error:
            # what is left would be written, and fail, once more at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if not isinstance(error, BrokenPipeError):  # | head
                raise InstrcountError(
                    "output-lost", f"nothing can be printed: {error}", "df    # is there space?"
                ) from error
