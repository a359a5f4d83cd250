"""``python -m pytest_instrcount``: the commands beside pytest."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest_instrcount
from pytest_instrcount.cli.compare import compare_paths
from pytest_instrcount.cli.doctor.command import add_doctor
from pytest_instrcount.cli.merge import merge
from pytest_instrcount.cli.run import Said, run_command
from pytest_instrcount.cli.show import (
    baseline_folder,
    find_tests,
    render_shown,
    show_history,
    show_stored,
)
from pytest_instrcount.cli.trace import add_trace
from pytest_instrcount.config.options import IMPROVED, INCOMPARABLE, MISSING
from pytest_instrcount.gate.cause import ALLOWABLE, parse_causes
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.policy import Policy
from pytest_instrcount.host.ci import ci_variable
from pytest_instrcount.report.bundle import load_bundle
from pytest_instrcount.report.printing import print_anything
from pytest_instrcount.session.profiles import keep_bundled

if TYPE_CHECKING:
    from pytest_instrcount.cli.doctor.command import Commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 for a gate that fails, 2 for what cannot be done."""
    chosen = _parser().parse_args(argv)
    print_anything()
    return run_command(chosen)


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
        allow_abbrev=False,  # as pytest: a name that is added must not break a script
        help="print a test's baseline, or the failures in a bundle again",
        description="Print what the baseline of a test says; or the failures of a run again, from "
        "the file that pytest --instrcount --instrcount-bundle=PATH has written. Needs neither "
        "Valgrind nor, for a bundle, the project. Exit code 0, or 2 on an error.",
    )
    show.add_argument(
        "path",
        metavar="TEST_OR_PATH",
        help="id of a test, or a part of it that no other has; or the bundle, .json or .json.gz",
    )
    show.add_argument(
        "test",
        metavar="TEST",
        nargs="?",
        default="",
        help="of a bundle: id of one test, or a part of the ids of some (default: all)",
    )
    show.add_argument(
        "--keep",
        metavar="DIR",
        type=Path,
        help="of a bundle: also write both sides as profiles, for kcachegrind and "
        "callgrind_annotate",
    )
    _add_folder(show)
    show.set_defaults(run=_show)
    history = commands.add_parser(
        "history",
        allow_abbrev=False,
        help="print what commits have stored for a test",
        description="Print the counts that commits have stored for a test, from git's log: commit, "
        "date, instructions per call, growth, and why. Exit code 0, or 2 if there is nothing.",
    )
    history.add_argument("test", metavar="TEST", help="id of a test, or a part no other has")
    _add_folder(history)
    history.set_defaults(run=_history)
    _add_compare(commands)
    _add_merge(commands)
    add_doctor(commands)
    add_trace(commands)
    return parser


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baseline-dir",
        metavar="DIR",
        type=Path,
        help="folder of the baselines (default: instrcount_baselines here, or the nearest above)",
    )


def _add_compare(commands: Commands) -> None:
    compare = commands.add_parser(
        "compare",
        allow_abbrev=False,
        help="compare two folders of baselines, or two reports",
        description="Compare two folders of baselines, or two JSON reports, as if B were a run "
        "against the baselines A: the same table and words, the worst first. Exit code 0; 1 if a "
        "test regressed; 2 if that cannot be said.",
    )
    compare.add_argument("old", metavar="A", type=Path, help="a folder or a report")
    compare.add_argument("new", metavar="B", type=Path, help="another of the same kind")
    compare.add_argument(
        "--max-delta",
        metavar="LIMIT",
        default="1%",
        help='growth that a test is allowed: "1%%", "5000ir" or "1%%|5000ir" (default: 1%%)',
    )
    compare.add_argument(
        "-v", "--verbose", action="count", default=0, help="show all tests, -vv more"
    )
    compare.add_argument("-q", "--quiet", action="store_true", help="show the totals alone")
    compare.set_defaults(run=_compare)


def _compare(chosen: argparse.Namespace) -> Said:
    verbosity = -1 if chosen.quiet else chosen.verbose
    limit = parse_limit(chosen.max_delta)
    return compare_paths(chosen.old, chosen.new, limit, verbosity, _width())


def _history(chosen: argparse.Namespace) -> Said:
    return show_history(baseline_folder(chosen.baseline_dir), chosen.test), 0


def _width() -> int:
    return min(80, shutil.get_terminal_size().columns)


def _add_merge(commands: Commands) -> None:
    merge = commands.add_parser(
        "merge",
        allow_abbrev=False,
        help="join the baselines or the reports of several machines",
        description="Join folders of baselines, or JSON reports, of runs that had a part of the "
        "tests each. Exit code 0; 1 if a merged report contains a failure; 2 if two of them "
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
    merge.add_argument(
        "--allow",
        action="append",
        choices=ALLOWABLE,
        default=[],
        help="of reports: why a test may miss the comparison with its baseline in CI",
    )
    merge.set_defaults(run=_merge)


def _merge(chosen: argparse.Namespace) -> Said:
    strict = bool(ci_variable(os.environ))
    missing, incomparable = chosen.missing, chosen.incomparable
    if missing == "auto":
        missing = "fail" if strict else "note"
    if incomparable == "auto":
        incomparable = "fail" if strict else "warn"
    allowed = parse_causes(chosen.allow)
    policy = Policy(missing, incomparable, chosen.improved, None, strict, allowed)
    return merge(chosen.into, chosen.inputs, policy)


def _show(chosen: argparse.Namespace) -> Said:
    path = Path(chosen.path)
    is_named = "::" not in chosen.path and path.name.endswith((".json", ".json.gz"))
    # of any length: an id is one, too
    if not (is_named or os.path.isfile(path)) or path.suffix == ".py":
        folder = baseline_folder(chosen.baseline_dir)
        return show_stored(folder, chosen.path, _width()), 0
    bundle = load_bundle(path)
    tests = find_tests(bundle, chosen.test, path)
    lines = render_shown(bundle, tests, _width())
    if chosen.keep is not None:
        lines += ["", *(f"profile: {each}" for each in keep_bundled(chosen.keep, tests))]
    return lines, 0
