"""What a run costs, and how much copies of one test differ: this plugin beside pytest-codspeed.

    pip install pytest-codspeed
    python benchmarks/cost.py

Both measure the same suite of 30 and of 300 benchmarks (30 calls of the standard library, once and
in ten copies), marked for each plugin, under the same stock Valgrind, one after the other in one
run. Printed is wall time and its ratio: for a first run of this plugin, which has to find the
number of repetitions, and for one with baselines; and where the time of each of them went. Then
both count 100 copies of one test.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

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


def run(folder: Path, command: list[str], **variables: str) -> float:
    """Seconds that a command takes."""
    # Byte code is kept, as users have it: compiling under Valgrind would be most of what is timed.
    without = ("CI", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if name not in without}
    environment |= variables
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return time.perf_counter() - start


def ours(folder: Path, *args: str) -> float:
    """One run of this plugin."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return run(folder, [*command, f"--instrcount-timings-csv={TIMINGS}", *args])


def account(folder: Path) -> str:
    """What the plugin says of where the time of its last run went: phases of 5 % or more."""
    found: Counter[str] = Counter()
    with (folder / TIMINGS).open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["phase"]] += float(row["wall_seconds"])
    whole = sum(found.values())
    return ", ".join(
        f"{phase} {100 * seconds / whole:.0f} %"
        for phase, seconds in found.most_common()
        if seconds >= 0.05 * whole
    )


def theirs(folder: Path) -> float:
    """One run of pytest-codspeed under Valgrind; its dumps are in ``folder/dumps``."""
    dumps = folder / "dumps"
    shutil.rmtree(dumps, ignore_errors=True)
    dumps.mkdir()
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q"]
    valgrind.append(f"--callgrind-out-file={dumps}/out.%p")
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--codspeed"]
    return run(
        folder,
        [*valgrind, *pytest, "--codspeed-mode=simulation"],
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


def main() -> None:
    """Run both and print."""
    scratch = Path(tempfile.mkdtemp())
    print(f"CPython {sys.version.split()[0]}, {len(os.sched_getaffinity(0))} cores")
    for copies in (1, 10):
        folder = suite(scratch, "instrcount", copies, "WORKLOADS")
        first = ours(folder, "--instrcount-update-baseline")
        of_first = account(folder)
        again = ours(folder, "--instrcount")
        of_again = account(folder)
        other = theirs(suite(scratch, "benchmark", copies, "WORKLOADS"))
        print(
            f"{30 * copies:>3} benchmarks: pytest-codspeed {other:.1f} s; "
            f"first run {first:.1f} s, ratio {first / other:.2f}; "
            f"with baselines {again:.1f} s, ratio {again / other:.2f}",
            flush=True,
        )
        print(f"    first run: {of_first}\n    with baselines: {of_again}", flush=True)
    names = '["json_loads"]'
    folder = suite(scratch, "instrcount", 100, names)
    ours(folder, "--instrcount", "--instrcount-report=json:report.json")
    report = json.loads((folder / "report.json").read_text())
    print("100 copies of one test, spread:", spread([test["ir"] for test in report["tests"]]))
    folder = suite(scratch, "benchmark", 100, names)
    theirs(folder)
    print("100 copies under pytest-codspeed:", spread(totals(folder)))
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
