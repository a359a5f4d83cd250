"""The command ``doctor``: its arguments, and what it prints while it looks."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pytest_instrcount.cli.doctor.check import Check, exit_code, render_checks, render_end
from pytest_instrcount.cli.doctor.leaks import find_leaks, surround
from pytest_instrcount.cli.doctor.machine import check_machine
from pytest_instrcount.cli.doctor.project import Project, collect_file, find_test, read_project
from pytest_instrcount.cli.doctor.trials import Trials
from pytest_instrcount.report.printing import print_lines

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]


def add_doctor(commands: Commands) -> None:
    """Declare the command."""
    doctor = commands.add_parser(
        "doctor",
        allow_abbrev=False,
        help="check this machine, or what leaks into the count of a test",
        description="Check what a measured run needs: Valgrind, this Python, the temporary folder, "
        "the settings and the baselines of the project. With a test, count it in several ways "
        "(again, other variables, another hash seed, another path, before and after its "
        "neighbours) and say what leaks into its count. Exit code 0; 1 if something is wrong; 2 if "
        "that cannot be said.",
    )
    doctor.add_argument("test", metavar="TEST", nargs="?", default="", help="id of one test")
    doctor.set_defaults(run=run_doctor)


def run_doctor(chosen: argparse.Namespace) -> tuple[list[str], int]:
    """Look at everything, printing as it goes; returns the last lines and the exit code.

    Raises InstrcountError "doctor-project" and "doctor-test".
    """
    width = min(100, shutil.get_terminal_size().columns)
    project = read_project()
    checks: list[Check] = []
    for check in _look(project, chosen.test, checks):
        checks.append(check)
        print_lines(render_checks([check], width))
    return [render_end(checks)], exit_code(checks)


def _look(project: Project, wanted: str, done: list[Check]) -> Iterator[Check]:
    yield from check_machine(project)
    if not wanted:
        return
    unfit = [each.name for each in done if each.state == "fail" and each.name in NEEDED]
    if unfit:
        yield Check("leaks", "fail", f"{wanted} was not counted: see {', '.join(unfit)} above")
        return
    yield from _look_at_test(project, wanted)


#: Without these nothing can be counted.
NEEDED = frozenset(("platform", "python", "/proc", "code page", "valgrind", "starts", "scratch"))


def _look_at_test(project: Project, wanted: str) -> Iterator[Check]:
    tests = collect_file(wanted)
    nodeid = find_test(tests, wanted)
    below = os.path.relpath(project.root, project.folder)

    def type_it(nodeid: str) -> str:
        return nodeid if below == "." else os.path.join(below, nodeid)

    test = surround(tests, nodeid, type_it, project.settings.let_through)
    with tempfile.TemporaryDirectory(prefix="instrcount-doctor-") as folder:
        trials = Trials(project, nodeid, Path(folder), os.environ)
        yield from find_leaks(test, trials, project.folder)
