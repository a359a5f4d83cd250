"""Which regressions are found, and how often unrelated changes raise an alarm, at a limit of 0.1 % or less.

    python benchmarks/sensitivity.py [--workloads N] [--seed N] [--sizes PERCENT ...]

Stores baselines of the project in ``noise_workloads``. Then, for each of five kinds of slower code
(computing, calls, allocating, look-ups in a dict, copying a string) and for each size (0.1, 0.2, 0.5
and 1 % of a workload's count), it makes an unrelated change to a fresh copy (``unrelated.py``),
measures that, adds the slower code to the body of each workload, and measures again. How much code
makes a regression of a size is known from a calibration: the same code alone, in many amounts.
Beside other code it costs a little more or less, so the limit is half of a size below 0.2 %.

Prints found/all for each kind and size, and what was not found; the same for counts cleaned in other
ways (``columns.py``), which are judged in one layout. Exits 1 if a regression of 0.2 % or more was
not found, or if an unrelated change alone had another verdict than "unchanged".
"""

from __future__ import annotations

import argparse
import ast
import collections
import itertools
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from columns import COLUMNS, known_noise, shifts
from unrelated import CHANGES, Counted, Project, write_project

SIZES = (0.1, 0.2, 0.5, 1.0)
#: What is as large must be found.
MUST_BE_FOUND = 0.2
#: The largest limit, in percent.
LIMIT = 0.1

#: What the slower code uses.
HELPERS = """

def _leaf(first, second):
    return first

_TABLE = {f"key{number}": number for number in range(50)}
_TEXT = "text" * 1_000_000
"""
#: Kind -> lines of a test's body; {amount} is how much of it.
KINDS = {
    "computing": "_value = 1\nfor _ in range({amount}):\n    _value = (_value * 31 + 7) % 1_000_003",
    "calls": "for _ in range({amount}):\n    _leaf(1, 2)",
    "allocating": "_kept = [[None] for _ in range({amount})]",
    "look-ups": "for _ in range({amount}):\n    _TABLE['key7']",
    "copying": "_TEXT[1:{amount}]",
}
#: Amounts in between are interpolated; copying is counted in characters.
AMOUNTS = (1, 4, 16, 64, 256, 1024)
CHARACTERS = (2, 64, 500, 1000, 2000, 2200, 4000, 16_000, 64_000)


def slower(kind: str, amount: int, indent: str = "    ") -> list[str]:
    """The lines that make a test slower."""
    return [indent + line for line in KINDS[kind].format(amount=amount).splitlines()]


def calibrate(folder: Path) -> dict[str, list[tuple[int, int]]]:
    """Kind -> (amount, instructions), in order; counted in tests that do nothing else."""
    tests = ["def test_nothing():\n    pass\n"]
    for number, kind in enumerate(KINDS):
        for amount in CHARACTERS if kind == "copying" else AMOUNTS:
            body = "\n".join(slower(kind, amount))
            tests.append(f"def test_{number}_{amount}():\n{body}\n")
    folder.mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    head = '"""Slower code."""\n\nimport pytest\n\npytestmark = pytest.mark.instrcount\n'
    (folder / "test_slower.py").write_text(head + HELPERS + "\n\n".join(tests))
    counted = {
        nodeid.rpartition("::")[2]: each.report["ir"]
        for nodeid, each in Project(folder).measure().items()
    }
    nothing = counted.pop("test_nothing")
    costs: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
    for name, ir in counted.items():
        _, kind_number, chosen = name.split("_")
        costs[list(KINDS)[int(kind_number)]].append((int(chosen), ir - nothing))
    return {kind: sorted(points) for kind, points in costs.items()}


def amount_for(ir: float, points: list[tuple[int, int]]) -> int:
    """How much of it costs at least so many instructions."""
    for (low, cheap), (high, dear) in itertools.pairwise(points):
        if ir <= dear or high == points[-1][0]:
            return max(1, -int(-(low + (ir - cheap) * (high - low) / (dear - cheap)) // 1))
    raise ValueError(f"no points to interpolate {ir} in")


def slow_down(project: Project, lines: dict[str, list[str]]) -> None:
    """Put lines at the start of tests; ``lines``: nodeid -> lines."""
    for path in project.tests:
        text = path.read_text().splitlines()
        for node in reversed(ast.parse("\n".join(text)).body):
            if isinstance(node, ast.FunctionDef) and f"{path.name}::{node.name}" in lines:
                text[node.lineno : node.lineno] = lines[f"{path.name}::{node.name}"]
        path.write_text("\n".join(text) + "\n" + HELPERS)


def main() -> None:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", type=int, default=26, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", type=float, nargs="*", default=SIZES, metavar="PERCENT")
    options = parser.parse_args()
    pick = random.Random(options.seed)
    scratch = Path(tempfile.mkdtemp())
    costs = calibrate(scratch / "slower" / "project")
    base = write_project(scratch / "base" / "project")
    baseline = base.measure("--instrcount-update-baseline")
    chosen = sorted(pick.sample(sorted(baseline), min(options.workloads, len(baseline))))
    print(f"CPython {sys.version.split()[0]}, {len(chosen)} workloads", flush=True)
    known = known_noise(baseline)
    changes = list(CHANGES)
    alone = alarms = missed = 0
    rows: dict[str, list[str]] = {kind: [] for kind in KINDS}
    # (column, kind, size) -> found; column -> alarms
    found: collections.Counter[object] = collections.Counter()
    for size in options.sizes:
        limit = min(LIMIT, size / 2)
        for kind, points in costs.items():
            name = pick.choice(changes)
            changed = base.copy(scratch / f"{kind}-{size}" / "project")
            fresh = base.copy(scratch / f"{kind}-{size}-slower" / "project")
            seed = pick.random()
            CHANGES[name](changed, random.Random(seed))
            quiet = select(changed, chosen, limit)
            loud = unlike("unchanged", quiet)
            alone, alarms = alone + len(chosen), alarms + len(loud)
            slow_down(
                fresh,
                {
                    i: slower(kind, amount_for(baseline[i].report["ir"] * size / 100, points))
                    for i in chosen
                },
            )
            CHANGES[name](fresh, random.Random(seed))
            counted = select(fresh, chosen, limit)
            lost = unlike("regressed", counted)
            missed += len(lost) if size >= MUST_BE_FOUND else 0
            for nodeid in chosen:
                for column, shift in shifts(baseline[nodeid], quiet[nodeid], known).items():
                    found[column] += abs(shift) > limit / 100
                for column, shift in shifts(baseline[nodeid], counted[nodeid], known).items():
                    found[column, kind, size] += shift > limit / 100
            grown = [each.report["delta"] or 0.0 for each in counted.values()]
            rows[kind].append(f"{len(counted) - len(lost)}/{len(counted)}")
            print(
                f"{kind:<11}{size:>4} % with {name:<20} found {rows[kind][-1]:>6}, "
                f"median {100 * statistics.median(grown):+.3f} %; "
                f"alarms without it: {' '.join(loud) or 0}",
                flush=True,
            )
            for nodeid in lost:
                report = counted[nodeid].report
                raw = grew(quiet[nodeid], counted[nodeid], baseline[nodeid])
                print(
                    f"    not found: {nodeid}, raw {raw:+.4f} %, "
                    f"delta {100 * report['delta']:+.4f} %, detects {100 * report['detects']:.4f} %"
                )
            for project in (changed, fresh):
                shutil.rmtree(project.folder)
    print(f"\n{'found':<12}" + "".join(f"{size:>8} %" for size in options.sizes))
    for kind, row in rows.items():
        print(f"{kind:<12}" + "".join(f"{each:>10}" for each in row))
    for column in COLUMNS:
        if column == "denoised":
            continue
        print(f"\n{column:<12}" + "".join(f"{size:>8} %" for size in options.sizes))
        for kind in KINDS:
            each = [f"{found[column, kind, size]}/{len(chosen)}" for size in options.sizes]
            print(f"{kind:<12}" + "".join(f"{one:>10}" for one in each))
        print(f"{found[column]} alarms of {alone} unrelated changes")
    print(f"\n{alone} comparisons behind unrelated changes alone, {alarms} alarms; {missed} missed")
    shutil.rmtree(scratch)
    sys.exit(missed > 0 or alarms > 0)


def grew(before: Counted, now: Counted, baseline: Counted) -> float:
    """By how many percent of the baseline the raw count of one layout grew."""
    return float(100 * (now.report["ir"] - before.report["ir"]) / baseline.report["denoised_ir"])


def select(project: Project, chosen: list[str], limit: float) -> dict[str, Counted]:
    """What was counted of the chosen workloads at a limit in percent; all others are left out of the run."""
    counted = project.measure(f"--instrcount-max-delta={limit}%", *chosen)
    return {nodeid: counted[nodeid] for nodeid in chosen}


def unlike(verdict: str, counted: dict[str, Counted]) -> list[str]:
    """The tests with another verdict."""
    return [nodeid for nodeid, each in counted.items() if each.report["verdict"] != verdict]


if __name__ == "__main__":
    main()
