"""Running a command: its lines are printed, its errors are one line and the way to mend them."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TypeAlias

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
    # a program that is traced may put others in their places
    streams = sys.stdout, sys.stderr
    try:
        _check_folder()
        said: Said = chosen.run(chosen)
        print_lines(said[0], *streams)
    except InstrcountError as error:
        print_lines([str(error)], *streams[::-1])
        return FAILED
    return said[1]
