"""How the plugin's own time and memory grow with the number of tests, up to 5,000.

    python benchmarks/scale.py                      # the native side alone, a few minutes
    python benchmarks/scale.py --per-file 5000      # all tests in one file
    python benchmarks/scale.py --real               # everything under Valgrind, for an hour or more
    python benchmarks/scale.py --real --recorded    # the same, with baselines from a record

The suite is 30 calls of the standard library (cost_workloads.py), in as many copies as it takes. They
are measured once, and what the zygote answered is recorded; then pytest runs with a zygote that
answers from the record (replayed.py), so that what is left is the native side: reading profiles,
comparing, storing, reporting. Printed is CPU time, since a loaded machine stretches the clock. It
stretches CPU time, too, by caches and clock rates that are shared: with each answer some work that is
always the same is done and timed, and costs per test are given at the speed of the fastest run.

With --real the supervisor, the zygote and its children run, too, and each kind of process is shown.

Exits with 1 where a test takes more than 5 ms with baselines (beside what pytest itself takes for
it), a baseline is read twice, a process of the native side has more than 300 MB, or the cost per
test grows by more than a half from the smallest sizes to the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from outside_ci import outside_ci
from processes import KINDS, Watch, adopt_orphans
from scale_suite import write_suite

HERE = Path(__file__).parent
SIZES = (250, 500, 1000, 2500, 5000)
MOST_SECONDS = 0.005
MOST_BYTES = 300_000_000
MOST_GROWTH = 1.5
UPDATE, CHECK = "--instrcount-update-baseline", "--instrcount"


@dataclass(frozen=True, slots=True)
class Point:
    """One run: CPU seconds of the pytest process, its peak of memory, the most often read baseline.

    ``turn``: CPU seconds of the reference work in the same run.
    """

    tests: int
    cpu: float
    peak: int
    reads: int = 0
    turn: float = 0


def environment() -> dict[str, str]:
    """As a user has it."""
    return outside_ci("PYTHONDONTWRITEBYTECODE") | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def command(how: str, record: Path, used: Path, *args: str) -> list[str]:
    """Pytest through replayed.py, with this plugin alone."""
    start = [sys.executable, str(HERE / "replayed.py"), how, str(record), str(used)]
    return [*start, "-q", "-p", "no:cacheprovider", "-p", "pytest_instrcount.plugin", *args]


def run(folder: Path, how: str, record: Path, *args: str) -> Point:
    """One run without Valgrind, or the one that records."""
    used = folder / "used.json"
    done = subprocess.run(
        command(how, record, used, *args),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    found = json.loads(used.read_text())
    return Point(0, found["cpu"], found["peak"], found["reads"], found["turn"])


def run_real(folder: Path, record: Path, *args: str) -> tuple[Watch, float]:
    """One run with Valgrind: what each kind of process used, and seconds by the clock."""
    start = time.monotonic()
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            [*command("record", record, folder / "used.json", *args)],
            cwd=folder,
            env=environment(),
            stdout=output,
            stderr=output,
        )
        watch = Watch(process.pid)
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            watch.look()
            time.sleep(0.5)
        watch.note_end(process.pid)
        status = process.wait()
        watch.look()
    if status:
        sys.exit((folder / "output.txt").read_text())
    return watch, time.monotonic() - start


def own_seconds(points: list[Point], plain: list[Point], fastest: float) -> list[float]:
    """What the plugin took, without what pytest takes, as if each run had had the fastest's speed."""
    return [(point.cpu - other.cpu) * fastest / point.turn for point, other in zip(points, plain)]


def per_test(points: list[Point], own: list[float]) -> list[float]:
    """Seconds for each test more, from size to size."""
    sizes = [point.tests for point in points]
    return [
        (after - before) / (more - fewer)
        for before, after, fewer, more in zip(own, own[1:], sizes, sizes[1:])
    ]


def native_curve(scratch: Path, sizes: list[int], per_file: int) -> list[str]:
    """Print the curve of the native side; returns what is wrong with it."""
    record = scratch / "record"
    run(write_suite(scratch / "recorded", 30, per_file), "record", record, UPDATE)
    print(
        f"native side, CPython {sys.version.split()[0]}, {per_file} tests a file: CPU seconds, MB"
    )
    print(" tests    pytest alone      first run          with baselines    reference, ms")
    curves: dict[str, list[Point]] = {"plain": [], UPDATE: [], CHECK: []}
    for tests in sizes:
        folder = write_suite(scratch / f"replayed{tests}", tests, per_file)
        for name, args in (("plain", ()), (UPDATE, (UPDATE,)), (CHECK, (CHECK,))):
            point = run(folder, "replay", record, *args)
            curves[name].append(replace(point, tests=tests))
        shutil.rmtree(folder)
        row = [curve[-1] for curve in curves.values()]
        columns = "".join(f"{each.cpu:>10.1f}{each.peak / 1e6:>8.0f}" for each in row)
        turns = "".join(f"{1000 * each.turn:>8.3f}" for each in row[1:])
        print(f"{tests:>6}{columns} {turns}", flush=True)
    wrong = []
    fastest = min(point.turn for name in (UPDATE, CHECK) for point in curves[name])
    print("at the speed of the fastest run:")
    own = {name: own_seconds(curves[name], curves["plain"], fastest) for name in (UPDATE, CHECK)}
    for name, what in ((UPDATE, "first run"), (CHECK, "with baselines")):
        slopes = per_test(curves[name], own[name])
        shown = ", ".join(f"{1000 * each:.1f}" for each in slopes)
        print(f"{what}: ms for each test more, from size to size: {shown}")
        if slopes and max(slopes[-1:]) > MOST_GROWTH * slopes[0]:
            wrong.append(f"{what}: the cost of a test grows with their number")
        if curves[name][-1].peak > MOST_BYTES:
            wrong.append(f"{what}: more than {MOST_BYTES / 1e6:.0f} MB")
    last = curves[CHECK][-1]
    whole = own[CHECK][-1] / last.tests
    print(f"with baselines, per test of {last.tests}, starting included: {1000 * whole:.1f} ms")
    print(f"each baseline is read {last.reads} time{'' if last.reads == 1 else 's'}")
    if whole > MOST_SECONDS:
        wrong.append(f"a test takes more than {1000 * MOST_SECONDS:.0f} ms")
    if last.reads != 1:
        wrong.append("a baseline is not read exactly once")
    return wrong


def real_curve(scratch: Path, sizes: list[int], per_file: int, *, recorded: bool) -> list[str]:
    """Print what each kind of process uses under Valgrind; returns what is wrong with it."""
    adopt_orphans()
    record, wrong = scratch / "record", []
    if recorded:
        run(write_suite(scratch / "recorded", 30, per_file), "record", record, UPDATE)
    print(f"under Valgrind, CPython {sys.version.split()[0]}, {per_file} tests a file")
    for tests in sizes:
        folder = write_suite(scratch / f"real{tests}", tests, per_file)
        if recorded:
            run(folder, "replay", record, UPDATE)
        for name in (CHECK,) if recorded else (UPDATE, CHECK):
            watch, seconds = run_real(folder, record, name)
            what = "first run" if name == UPDATE else "with baselines"
            print(f"{tests} tests, {what}: {seconds:.0f} s")
            print((folder / "output.txt").read_text().splitlines()[-2])
            for kind in KINDS:
                use = watch.uses[kind]
                cpu = f"{1000 * use.cpu / tests:>6.2f} ms a test" if use.cpu else ""
                print(
                    f"  {kind:<11}{use.peak / 1e6:>6.0f} MB,{use.descriptors:>4} descriptors {cpu}",
                    flush=True,
                )
                if kind in ("pytest", "supervisor") and use.peak > MOST_BYTES:
                    wrong.append(f"{tests} tests, {what}: {kind} has {use.peak / 1e6:.0f} MB")
        shutil.rmtree(folder)
    return wrong


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--per-file", type=int, default=10)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="instrcount-scale-"))
    try:
        if options.real:
            wrong = real_curve(scratch, options.sizes, options.per_file, recorded=options.recorded)
        else:
            wrong = native_curve(scratch, options.sizes, options.per_file)
    finally:
        shutil.rmtree(scratch)
    print("\n".join(wrong or ["within all limits"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
