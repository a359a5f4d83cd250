"""Whether growth is called right: linear, n log n and quadratic code, counted at three sizes.

    python benchmarks/scaling.py [--only NAME]

Counts the fifteen workloads of ``scaling_workloads.py`` under Valgrind, through the plugin: each has a
test whose ``scaling`` is its class, and one whose ``scaling`` is the class before it. Prints the
counts, the class that is found and how far the growth is from the border to the next class (1 is on
the class, 0 on the border). Exits 1 if a class is wrong, or if the gate does not pass the first test
of each workload and fail the second.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

from outside_ci import outside_ci
from scaling_workloads import WORKLOADS, Workload

from pytest_instrcount.gate.scaling import CLASSES, expected_ratio, find_growth, parse_growth

_HERE = Path(__file__).parent

SUITE = """
import pytest
from scaling_workloads import WORKLOADS

def make_test(workload, scaling):
    @pytest.mark.instrcount(scaling=scaling, sizes=workload.sizes)
    def test(size, instrcount):
        instrcount(workload.function, workload.make(size))
    return test

for number, growth in enumerate(GROWTHS):
    for workload in WORKLOADS.get(growth, ()):
        name = workload.function.__name__
        if ONLY in name:
            globals()["test_" + name] = make_test(workload, growth)
            globals()["test_stricter_" + name] = make_test(workload, GROWTHS[number - 1])
"""


def run_suite(folder: Path, only: str) -> tuple[dict[str, int], str]:
    """Name of a test -> instructions per call; and what pytest said."""
    growths = [str(each) for each in CLASSES]
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_scaling.py").write_text(f"GROWTHS = {growths}\nONLY = {only!r}\n{SUITE}")
    shutil.copy(_HERE / "scaling_workloads.py", folder)
    report = folder / "report.json"
    command = [sys.executable, "-m", "pytest", "--instrcount", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"--instrcount-report=json:{report}"],
        cwd=folder,
        env=outside_ci(),
        capture_output=True,
        text=True,
        check=False,
    )
    tests = json.loads(report.read_text())["tests"] if report.exists() else []
    if not tests or any(test["ir"] is None for test in tests):
        sys.exit(done.stdout + done.stderr)
    return {test["nodeid"].partition("::test_")[2]: test["ir"] for test in tests}, done.stdout


def distance_to_border(counts: dict[int, Fraction]) -> float:
    """How near the growth is to its own class, on the way from the border to the one next to it."""
    small, middle, large = counts
    steps = (counts[large] - counts[middle]) / (counts[middle] - counts[small])
    found = math.log(steps)
    own = CLASSES.index(find_growth(counts))
    at = [expected_ratio(each, (small, middle, large)) for each in CLASSES]
    other = at[own + 1] if found > at[own] else at[own - 1]
    return 1 - abs(found - at[own]) / (abs(other - at[own]) / 2)


def report_workload(workload: Workload, growth: str, counted: dict[str, int], said: str) -> bool:
    """Print one line; returns whether all is right."""
    name = workload.function.__name__
    counts = {size: Fraction(counted[f"{name}[{size}]"]) for size in workload.sizes}
    found = find_growth(counts)
    largest = workload.sizes[-1]
    passes = f"test_{name}[{largest}]: grows like" not in said
    fails = f"test_stricter_{name}[{largest}]: grows like {growth} " in said
    right = found == parse_growth(growth) and passes and fails
    numbers = " ".join(f"{int(count):>13,}" for count in counts.values())
    print(
        f"{name:18}{growth:>8}{found!s:>9}{distance_to_border(counts):6.2f} {numbers}"
        f"{'' if right else '  WRONG'}"
    )
    return right


def main() -> None:
    """Count, call, compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory() as folder:
        counted, said = run_suite(Path(folder), only)
    print(f"{'workload':18}{'is':>8}{'found':>9}{'safe':>6}{'instructions at three sizes':>41}")
    wrong = [
        workload
        for growth, workloads in WORKLOADS.items()
        for workload in workloads
        if only in workload.function.__name__
        and not report_workload(workload, growth, counted, said)
    ]
    print(f"{len(wrong)} called wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
