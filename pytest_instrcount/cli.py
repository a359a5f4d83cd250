"""``python -m pytest_instrcount``: what can be done without a test run, and without Valgrind."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest_instrcount
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.keeping import keep_bundled
from pytest_instrcount.merging import Judging, merge
from pytest_instrcount.options import IMPROVED, INCOMPARABLE, MISSING, in_ci
from pytest_instrcount.report.bundle import load_bundle
from pytest_instrcount.report.shown import find_tests, render_shown

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

#: Lines to print, and the exit code.
Said: TypeAlias = tuple[list[str], int]

#: Exit code of a command that could not do what it was asked for; argparse's own for wrong arguments.
FAILED = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 for a gate that fails, 2 for what cannot be done."""
    chosen = _parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names of tests may be beyond the terminal's encoding
            stream.reconfigure(errors="backslashreplace")
    code = 0
    try:
        lines, code = chosen.run(chosen)
        print("\n".join(lines))
        sys.stdout.flush()
    except InstrcountError as error:
        print(error, file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


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
    show.set_defaults(run=lambda chosen: (_show(chosen.path, chosen.test, chosen.keep), 0))
    _add_merge(commands)
    return parser


def _add_merge(commands: Commands) -> None:
    merge = commands.add_parser(
        "merge",
        help="join the baselines or the reports of several machines",
        description="Join folders of baselines, or JSON reports, of runs that had a part of the "
        "tests each. Exit code 0; 1 if a merged report holds what fails a run; 2 if two of them "
        "differ or one cannot be read, and then nothing is written.",
    )
    merge.add_argument(
        "--into",
        metavar="OUT",
        type=Path,
        required=True,
        help="the folder, to which files are added, or the report",
    )
    merge.add_argument("inputs", metavar="INPUT", type=Path, nargs="+", help="a folder or a report")
    for name, choices, help_ in (
        ("missing", MISSING, "a test without a baseline"),
        ("incomparable", INCOMPARABLE, "a baseline of another environment"),
        ("improved", IMPROVED, "a test that shrank by more than its limit"),
    ):
        merge.add_argument(
            f"--{name}",
            choices=choices,
            default=choices[0],
            help=f"of reports: {help_} (default: {choices[0]})",
        )
    merge.set_defaults(run=_merge)


def _merge(chosen: argparse.Namespace) -> Said:
    missing = chosen.missing
    if missing == "auto":
        missing = "fail" if in_ci(os.environ) else "note"
    return merge(chosen.into, chosen.inputs, Judging(missing, chosen.incomparable, chosen.improved))


def _show(path: Path, wanted: str, keep: Path | None) -> list[str]:
    bundle = load_bundle(path)
    tests = find_tests(bundle, wanted, path)
    width = min(80, shutil.get_terminal_size().columns)
    lines = render_shown(bundle, tests, width)
    if keep is not None:
        lines += ["", *(f"profile: {each}" for each in keep_bundled(keep, tests, path))]
    return lines
