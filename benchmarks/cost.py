"""What a run costs, and how much copies of one test differ: this plugin beside pytest-codspeed.

    pip install pytest-codspeed
    python benchmarks/cost.py
    python benchmarks/cost.py --projects yarl wcwidth    # the suites of adopt.py, too; needs the network

Both measure the same suite of 30 and of 300 benchmarks (30 calls of the standard library, once and
in ten copies), marked for each plugin, and those of projects as they are, under the same stock Valgrind,
one after the other in one run. Printed is wall time, CPU time of all processes, and the ratios of both:
for a first run of this plugin, which stores baselines, and for one with baselines; and where the time of
each of them went. Then both count 100 copies of one test.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from adopt import PROJECTS, prepare
from outside_ci import outside_ci
from processes import adopt_orphans

WORK = Path(__file__).parent / "cost_workloads.py"
TIMINGS = "timings.csv"
SUITE = """
import pytest
from cost_workloads import WORKLOADS

@pytest.mark.{marker}
@pytest.mark.parametrize("copy", range({copies}))
@pytest.mark.parametrize("name", {names})
def test_workload(name, copy):
    WORKLOADS[name]()
"""


class Seconds(NamedTuple):
    """What a run took."""

    wall: float
    #: of all its processes, the ones that outlive their parents as well
    cpu: float


def run(folder: Path, command: list[str], **variables: str) -> Seconds:
    """Run a command that has to work."""
    # Byte code is kept, as users have it: compiling under Valgrind would be most of what is timed.
    environment = outside_ci("PYTHONDONTWRITEBYTECODE") | variables
    start, before = time.perf_counter(), os.times()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    with contextlib.suppress(ChildProcessError):  # there are none left
        while True:
            os.wait()
    after = os.times()
    user = after.children_user - before.children_user
    return Seconds(wall, user + after.children_system - before.children_system)


def pytest_of(python: str) -> list[str]:
    """The command that does not import from the folder it is run in."""
    return [str(Path(python).with_name("pytest")), "-q", "-p", "no:cacheprovider"]


def ours(folder: Path, *args: str, python: str = sys.executable) -> Seconds:
    """One run of this plugin."""
    return run(folder, [*pytest_of(python), f"--instrcount-timings-csv={TIMINGS}", *args])


def account(folder: Path) -> str:
    """What the plugin says of where the time of its last run went: phases of 5 % or more."""
    found: dict[str, float] = defaultdict(float)
    with (folder / TIMINGS).open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["phase"]] += float(row["wall_seconds"])
    whole = sum(found.values())
    return ", ".join(
        f"{phase} {100 * seconds / whole:.0f} %"
        for phase, seconds in sorted(found.items(), key=itemgetter(1), reverse=True)
        if seconds >= 0.05 * whole
    )


def theirs(folder: Path, *args: str, python: str = sys.executable) -> Seconds:
    """One run of pytest-codspeed under Valgrind; its dumps are in ``folder/dumps``."""
    dumps = folder / "dumps"
    shutil.rmtree(dumps, ignore_errors=True)
    dumps.mkdir()
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q"]
    valgrind += [f"--callgrind-out-file={dumps}/out.%p", python]
    return run(
        folder,
        [*valgrind, *pytest_of(python), "--codspeed", "--codspeed-mode=simulation", *args],
        CODSPEED_ENV="1",
        PYTHONHASHSEED="0",
    )


def totals(folder: Path) -> list[int]:
    """The counts in pytest-codspeed's dumps."""
    found = []
    for dump in (folder / "dumps").iterdir():
        for line in dump.read_text(errors="replace").splitlines():
            if line.startswith("totals: ") and int(line.split()[1]):
                found.append(int(line.split()[1]))
    return found


def spread(counts: list[int]) -> str:
    """The distance between the least and the most, in percent of the least."""
    return f"{100 * (max(counts) - min(counts)) / min(counts):.2f} % of {min(counts):,} ir"


def suite(scratch: Path, marker: str, copies: int, names: str) -> Path:
    """A folder with the suite, marked for one of the two."""
    folder = scratch / f"{marker}{copies}"
    folder.mkdir(exist_ok=True)
    shutil.copy(WORK, folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    text = SUITE.format(marker=marker, copies=copies, names=names)
    (folder / "test_suite.py").write_text(text)
    return folder


def compare(
    title: str, measured: Path, benchmarks: Path, *args: str, python: str = sys.executable
) -> None:
    """A first run and a check of this plugin, and one of the other; three lines."""
    first = ours(measured, "--instrcount-update-baseline", *args, python=python)
    of_first = account(measured)
    again = ours(measured, "--instrcount", *args, python=python)
    of_again = account(measured)
    other = theirs(benchmarks, *args, python=python)
    print(f"{title}: pytest-codspeed {other.wall:.1f} s, {other.cpu:.1f} s of CPU")
    for name, each, phases in (("first run", first, of_first), ("check", again, of_again)):
        print(
            f"    {name}: {each.wall:.1f} s, ratio {each.wall / other.wall:.2f}; "
            f"{each.cpu:.1f} s of CPU, ratio {each.cpu / other.cpu:.2f} ({phases})",
            flush=True,
        )


def compare_project(name: str, scratch: Path) -> None:
    """The benchmarks of a project as they are."""
    project = next(each for each in PROJECTS if each.name == name)
    python, source = prepare(project, scratch, without=False)
    # -n0 is an option of pytest-xdist, which is not loaded here
    args = (arg for arg in project.args if arg != "-n0")
    run(scratch, [str(python), "-m", "compileall", "-q", str(source)])
    options = "-o", "addopts=", "-p", "no:xdist", *args
    compare(f"{name} {project.version}", source, source, *options, python=str(python))


def main() -> None:
    """Run both and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [project.name for project in PROJECTS]
    parser.add_argument("--projects", nargs="+", default=[], choices=names, metavar="NAME")
    options = parser.parse_args()
    adopt_orphans()
    scratch = Path(tempfile.mkdtemp())
    print(f"CPython {sys.version.split()[0]}, {len(os.sched_getaffinity(0))} cores")
    for name in options.projects:
        compare_project(name, scratch)
    for copies in (1, 10):
        measured = suite(scratch, "instrcount", copies, "WORKLOADS")
        benchmarks = suite(scratch, "benchmark", copies, "WORKLOADS")
        compare(f"{30 * copies} benchmarks", measured, benchmarks)
    chosen = '["json_loads"]'
    folder = suite(scratch, "instrcount", 100, chosen)
    ours(folder, "--instrcount", "--instrcount-report=json:report.json")
    report = json.loads((folder / "report.json").read_text())
    print("100 copies of one test, spread:", spread([test["ir"] for test in report["tests"]]))
    folder = suite(scratch, "benchmark", 100, chosen)
    theirs(folder)
    print("100 copies under pytest-codspeed:", spread(totals(folder)))
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
