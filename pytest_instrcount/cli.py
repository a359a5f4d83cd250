"""``python -m pytest_instrcount``: what can be done without a test run, and without Valgrind."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest_instrcount
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.keeping import keep_bundled
from pytest_instrcount.report.bundle import load_bundle
from pytest_instrcount.report.shown import find_tests, render_shown

#: Exit code of a command that could not do what it was asked for; argparse's own for wrong arguments.
FAILED = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code, 0 or 2."""
    chosen = _parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names of tests may be beyond the terminal's encoding
            stream.reconfigure(errors="backslashreplace")
    try:
        lines = _show(chosen.path, chosen.test, chosen.keep)
        print("\n".join(lines))
        sys.stdout.flush()
    except InstrcountError as error:
        print(error, file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_instrcount",
        description="What pytest-instrcount can do without a test run.",
    )
    version = f"pytest-instrcount {pytest_instrcount.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    show = commands.add_parser(
        "show",
        help="print the failures in a bundle again",
        description="Print the failures of a run again, from the file that "
        "pytest --instrcount --instrcount-bundle=PATH has written. Needs neither Valgrind nor the "
        "project. Exit code 0, or 2 if the file cannot be read or holds no such test.",
    )
    show.add_argument("path", metavar="PATH", type=Path, help="the bundle, .json or .json.gz")
    show.add_argument(
        "test",
        metavar="TEST",
        nargs="?",
        default="",
        help="id of one test, or a part of the ids of some (default: all)",
    )
    show.add_argument(
        "--keep",
        metavar="DIR",
        type=Path,
        help="also write both sides as profiles, for kcachegrind and callgrind_annotate",
    )
    return parser


def _show(path: Path, wanted: str, keep: Path | None) -> list[str]:
    bundle = load_bundle(path)
    tests = find_tests(bundle, wanted, path)
    width = min(80, shutil.get_terminal_size().columns)
    lines = render_shown(bundle, tests, width)
    if keep is not None:
        lines += ["", *(f"profile: {each}" for each in keep_bundled(keep, tests, path))]
    return lines
