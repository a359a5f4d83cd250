"""The suite again and again: whether anything grows, and whether every integer stays the same.

    python benchmarks/soak.py                # 24 runs
    python benchmarks/soak.py --minutes 60   # 24 runs or more, for at least an hour

The suite is 30 calls of the standard library (cost_workloads.py) and nine tests of other kinds
(soak_kinds.py: files, processes, coroutines, TestCase), measured under Valgrind. The first run stores
baselines; of those that follow every sixth stores them again, the others compare. After each run a
line is printed: the most memory and the most descriptors that a process of each kind had while it
ran, and what was there when it had ended: processes that it left behind, files in its folder for
temporary files, files of the project, entries of /dev/shm.

Exits with 1 where something grows from run to run, or a count or a baseline differs from the first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from outside_ci import outside_ci
from processes import KINDS, Watch, adopt_orphans, children
from scale_suite import write_suite

HERE = Path(__file__).parent
RUNS = 24
#: Beside those of soak_kinds.py.
TESTS = 30
#: Every so many runs store baselines.
UPDATES = 6
#: How long a supervisor may take to end after its pytest.
ENDING_SECONDS = 10.0
#: Memory is looked at now and then, and short-lived processes are seen at one moment or another.
TOLERATED = 0.05
TOLERATED_BYTES = 2_000_000
TOLERATED_DESCRIPTORS = 4
LEFT = ("orphans", "temp files", "files", "/dev/shm")


def environment(temporary: Path) -> dict[str, str]:
    """As a user has it, with a folder for temporary files of its own."""
    own = {"TMPDIR": str(temporary), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return outside_ci("PYTHONDONTWRITEBYTECODE") | own


def measure(project: Path, temporary: Path, how: str) -> Watch:
    """One run; its JSON report is in the project. Ends this process if it fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_instrcount.plugin", how]
    command.append("--instrcount-report=json:report.json")
    with (project / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command, cwd=project, env=environment(temporary), stdout=output, stderr=output
        )
        watch = Watch(process.pid)
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            watch.look()
            time.sleep(0.1)
        watch.note_end(process.pid)
        status = process.wait()
    end = time.monotonic() + ENDING_SECONDS
    while children().get(os.getpid()) and time.monotonic() < end:
        watch.look()
        time.sleep(0.05)
    if status:
        sys.exit((project / "output.txt").read_text())
    return watch


def counted(project: Path) -> dict[str, object]:
    """Every integer of a run: counts by test, and the bytes of each baseline."""
    tests = json.loads((project / "report.json").read_text())["tests"]
    found: dict[str, object] = {test["nodeid"]: (test["ir"], test["denoised_ir"]) for test in tests}
    for path in sorted((project / "instrcount_baselines").rglob("*.json")):
        found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def left(project: Path, temporary: Path) -> tuple[int, ...]:
    """How much there is, in the order of LEFT."""
    return (
        len(children().get(os.getpid(), ())),
        len(list(temporary.rglob("*"))),
        len(list(project.rglob("*"))),
        len(os.listdir("/dev/shm")),
    )


def grows(values: Sequence[float], room: Callable[[float], float]) -> bool:
    """Whether the last third has more than the first, beyond what is tolerated of that."""
    third = max(1, len(values) // 3)
    before, after = statistics.median(values[:third]), statistics.median(values[-third:])
    return after > before + room(before)


def soak(scratch: Path, runs: int, seconds: float) -> list[str]:
    """Run, print, and return what is wrong."""
    project, temporary = write_suite(scratch / "project", TESTS, TESTS), scratch / "tmp"
    shutil.copy(HERE / "soak_kinds.py", project / "test_kinds.py")
    temporary.mkdir()
    memory: dict[str, list[float]] = {kind: [] for kind in KINDS}
    descriptors: dict[str, list[float]] = {kind: [] for kind in KINDS}
    remains: list[tuple[int, ...]] = []
    first: dict[str, object] = {}
    different: dict[str, str] = {}
    print("MB/descriptors:  " + "  ".join(f"{kind:>10}" for kind in KINDS) + "  " + ", ".join(LEFT))
    start = time.monotonic()
    # the first two runs warm up: byte code is written, and the cache of pytest
    number = -2
    while number < runs or time.monotonic() - start < seconds:
        stores = number == -2 or (number > 0 and not number % UPDATES)
        watch = measure(
            project, temporary, "--instrcount-update-baseline" if stores else "--instrcount"
        )
        number += 1
        if number < 0:
            continue
        if number == 0:
            first = counted(project)
        now = counted(project)
        for name in first.keys() | now.keys():
            if first.get(name) != now.get(name):
                values = f"{first.get(name)}, and {now.get(name)} in run {number}"
                different.setdefault(name, values)
        remains.append(left(project, temporary))
        for kind in KINDS:
            if not stores:
                memory[kind].append(watch.uses[kind].peak)
                descriptors[kind].append(watch.uses[kind].descriptors)
        columns = (
            f"{use.peak / 1e6:>6.1f}/{use.descriptors:<3}"
            for use in map(watch.uses.get, KINDS)
            if use
        )
        told = " ".join(map(str, remains[-1])) + (f"  {len(different)} differ" if different else "")
        print(
            f"{number:>5} {time.monotonic() - start:>5.0f} s {'update' if stores else '':<6}"
            + "  ".join(columns)
            + "  "
            + told,
            flush=True,
        )
    wrong = [f"{name}: {values}" for name, values in sorted(different.items())]
    for kind in KINDS:
        if grows(memory[kind], lambda before: TOLERATED * before + TOLERATED_BYTES):
            wrong.append(f"the memory of the {kind} grows")
        if grows(descriptors[kind], lambda before: TOLERATED_DESCRIPTORS):
            wrong.append(f"the descriptors of the {kind} grow")
    for what, numbers in zip(LEFT, zip(*remains)):
        if numbers[-1] > numbers[0]:
            wrong.append(f"{what}: {numbers[0]} after the first run, {numbers[-1]} after the last")
    print(
        f"{number} runs in {(time.monotonic() - start) / 60:.0f} minutes, {len(first)} values compared"
    )
    return wrong


def main() -> int:
    """Soak, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--minutes", type=float, default=0)
    options = parser.parse_args()
    adopt_orphans()
    scratch = Path(tempfile.mkdtemp(prefix="instrcount-soak-"))
    try:
        wrong = soak(scratch, options.runs, 60 * options.minutes)
    finally:
        shutil.rmtree(scratch)
    print("\n".join(wrong or ["nothing grows, and every integer is the same"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
