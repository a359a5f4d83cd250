"""Running a command: its lines are printed, its errors are one line and the way to mend them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TextIO, TypeAlias

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.report.printing import print_lines

#: Lines to print, and the exit code.
Said: TypeAlias = tuple[list[str], int]

#: Exit code of a command that could not do what it was asked for; argparse's own for wrong arguments.
FAILED = 2


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise InstrcountError("folder-gone", "the working folder is gone", "cd ..") from None


def run_command(chosen: argparse.Namespace) -> int:
    """Run the command that was chosen; returns the exit code."""

    def said() -> Said:
        _check_folder()
        found: Said = chosen.run(chosen)
        return found

    # a program that is traced may put others in their places
    return print_said(said, sys.stdout, sys.stderr)


def print_said(said: Callable[[], Said], output: TextIO, errors: TextIO) -> int:
    """Print what is said, or the error in its place, to these streams; returns the exit code."""
    try:
        lines, code = said()
        print_lines(lines, output, errors)
    except InstrcountError as error:
        print_lines([str(error)], errors, output)
        return FAILED
    return code
