"""Whether counts are the same integers on a machine that has nothing to spare.

    python benchmarks/load.py

Measures the same tests on the machine as it is, then with all processors busy, with memory copied
and taken without end, with files written and synced, and ten times at once in one checkout. Prints a
line for each; exit code 1 if any integer differs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from outside_ci import outside_ci
from tabulate import tabulate

TESTS = """
import json, random, re, pytest

pytestmark = pytest.mark.instrcount
WORDS = [f"word{number % 37}" for number in range(200)]


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_sum(size): assert sum(range(size)) == size * (size - 1) // 2


def test_dict(): assert len({word: 1 for word in WORDS}) == 37


def test_json(): assert json.loads(json.dumps(WORDS)) == WORDS


def test_sort(): assert sorted(random.random() for _ in range(200))


def test_regular_expression(): assert re.sub(r"\\d+", "", "".join(WORDS))


def test_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("".join(WORDS))
    assert path.read_text()


def test_exceptions():
    for word in WORDS:
        try: int(word)
        except ValueError: pass


@pytest.mark.instrcount(isolation="process")
def test_alone(): assert sum(range(100)) == 4950
"""

BUSY = "while True: pass"
#: Takes so many bytes, and writes to all of them again and again.
MEMORY = """
import sys
held = [bytearray(1 << 26) for _ in range(int(sys.argv[1]) >> 26)]
while True:
    for each in held: each[:] = bytes(1 << 26)
"""
#: Writes a file of 64 MB and waits until it is on the disk, again and again.
DISK = """
import os, sys
while True:
    with open(sys.argv[1], "wb") as file:
        file.write(os.urandom(1 << 26))
        os.fsync(file.fileno())
"""


@contextlib.contextmanager
def loaded(commands: Sequence[Sequence[str]]) -> Iterator[None]:
    """Programs in Python that run meanwhile: text and arguments of each."""
    running = [subprocess.Popen([sys.executable, "-c", *command]) for command in commands]
    try:
        time.sleep(0.5 if running else 0)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def available_bytes() -> int:
    """Memory that could be taken without hurting anybody."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024


class Checkout:
    """A folder with the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.reports = folder
        self.folder.mkdir()
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        (self.folder / "test_load.py").write_text(TESTS)

    def start(self, number: int) -> subprocess.Popen[str]:
        """One run."""
        report = self.reports / f"report{number}.json"
        report.unlink(missing_ok=True)
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--instrcount"]
        return subprocess.Popen(
            [sys.executable, *words, f"--instrcount-report=json:{report}"],
            cwd=self.folder,
            env=outside_ci(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def measure(self, runs: int) -> list[dict[str, int | None]]:
        """The integers of so many runs at once. Ends the benchmark where one fails."""
        started = [self.start(number) for number in range(runs)]
        outputs = [run.communicate()[0] for run in started]
        found = []
        for number, run in enumerate(started):
            if run.returncode:
                raise SystemExit(f"a run ended with {run.returncode}\n{outputs[number]}")
            report = json.loads((self.reports / f"report{number}.json").read_text())
            found.append({test["nodeid"]: test["ir"] for test in report["tests"]})
        return found


def main() -> int:
    """Measure under each load and print; 1 if an integer differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--beside", type=int, default=10, help="runs side by side")
    parser.add_argument(
        "--only", nargs="*", default=[], help="names of loads; quiet is first always"
    )
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkout = Checkout(folder)
        share = min(available_bytes() // 2, 4 << 30) // cores
        loads: dict[str, tuple[int, list[list[str]]]] = {
            "quiet": (1, []),
            "processors": (1, [[BUSY]] * (4 * cores)),
            "memory": (1, [[MEMORY, str(share)]] * cores),
            "disk": (1, [[DISK, str(folder / f"written{number}")] for number in range(2)]),
            "side by side": (options.beside, []),
        }
        rows = []
        expected: dict[str, int | None] = {}
        differing = 0
        for load, (runs, commands) in loads.items():
            if options.only and load not in ("quiet", *options.only):
                continue
            start = time.monotonic()
            with loaded(commands):
                measured = checkout.measure(runs)
            seconds = time.monotonic() - start
            expected = expected or measured[0]
            different = sum(
                found.get(test) != expected[test] for found in measured for test in expected
            )
            differing += different
            rows.append((load, runs, runs * len(expected), different, f"{seconds:.0f}"))
        print(tabulate(rows, ("load", "runs", "counts", "that differ", "seconds"), "simple"))
    return 1 if differing or None in expected.values() or not expected else 0


if __name__ == "__main__":
    raise SystemExit(main())
