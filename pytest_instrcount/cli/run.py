"""Running a command: its lines are printed, its errors are one line and the way to mend them."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TextIO, TypeAlias

from pytest_instrcount.errors import InstrcountError

#: Lines to print, and the exit code.
Said: TypeAlias = tuple[list[str], int]

#: Exit code of a command that could not do what it was asked for; argparse's own for wrong arguments.
FAILED = 2


def print_anything() -> None:
    """From here on what is beyond the terminal's encoding, such as a name of a test, is escaped."""
    for stream in _open_streams():
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _open_streams() -> list[TextIO]:
    """What can be printed to: a program that was traced may have closed the one or the other."""
    return [each for each in (sys.stdout, sys.stderr) if each is not None and not each.closed]


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise InstrcountError("folder-gone", "the working folder is gone", "cd ..") from None


def run_command(chosen: argparse.Namespace) -> int:
    """Run the command that was chosen; returns the exit code."""
    code = 0
    try:
        _check_folder()
        lines, code = chosen.run(chosen)
        for stream in _open_streams()[:1]:
            print(*lines, sep="\n", end="\n" if lines else "", file=stream, flush=True)
    except InstrcountError as error:
        print(error, file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
