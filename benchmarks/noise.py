"""How far unrelated changes move the counts of unchanged tests: raw, denoised, and cleaned in other ways.

    python benchmarks/noise.py [--changes NAME ...] [-k EXPRESSION] [--keep FILE]

Stores baselines of the project in ``noise_workloads``, then makes one unrelated change at a time to
a fresh copy of it (``unrelated.py``) and measures that at ``--instrcount-max-delta=0.1%``. For each
test and each change it prints, at the end, the worst shift in per cent

    raw        of the raw count
    denoised   of what the gate compares
    dropped    if all noise were left out, whatever it grew by
    rules      if what the rules know were left out, without measuring other layouts

Exits 1 unless the median of the denoised shifts is 0, the worst at most 0.02 % (0.05 % for an
interpreter without symbols), the worst raw shift above 1 %, and no verdict other than "unchanged".
Prints the detection limits, too.
Run it with each interpreter in question; examples/requirements.txt adds real packages.
"""

from __future__ import annotations

import argparse
import pickle
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from columns import COLUMNS, known_noise, shifts
from unrelated import CHANGES, Counted, Project, write_project

#: The largest denoised shift, as a fraction; the second where static functions have no names.
BOUND, BOUND_STRIPPED = 0.0002, 0.0005
#: Raw counts must move by more than this somewhere, else nothing was shown.
RAW = 0.01


def has_symbols(baseline: Mapping[str, Counted]) -> bool:
    """Whether the interpreter's static functions have names."""
    names = [name for counted in baseline.values() for name in counted.measurement.rows]
    return any("unicodeobject.c:" in name for name in names)


def percent(fraction: float) -> str:
    """With a sign, and nothing for what is exactly 0."""
    return f"{100 * fraction:+.4f}" if fraction else "0"


def farthest(values: list[float]) -> float:
    """The one that is farthest from 0."""
    return max(values, key=abs)


def main() -> None:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", nargs="*", choices=CHANGES, default=list(CHANGES))
    parser.add_argument("-k", default="", help="which workloads, as pytest's -k")
    parser.add_argument("--seed", type=int, default=1, help="of what the changes choose")
    parser.add_argument("--keep", type=Path, help="pickle all measurements into this file")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp())
    chosen = ["-k", options.k] if options.k else []
    base = write_project(scratch / "base" / "project")
    baseline = base.measure("--instrcount-update-baseline", *chosen)
    print(f"CPython {sys.version.split()[0]}, {len(baseline)} workloads", flush=True)
    found: dict[str, dict[str, dict[str, float]]] = {nodeid: {} for nodeid in baseline}
    known = known_noise(baseline)
    alarms = 0
    kept = {"": baseline}
    for name in options.changes:
        changed: Project = base.copy(scratch / name / "project")
        CHANGES[name](changed, random.Random(f"{name} {options.seed}"))
        counted = {i: c for i, c in changed.measure(*chosen).items() if i in baseline}
        kept[name] = counted
        loud = [i for i, c in counted.items() if c.report["verdict"] != "unchanged"]
        moves = {nodeid: shifts(baseline[nodeid], each, known) for nodeid, each in counted.items()}
        alarms += len(loud)
        for nodeid, move in moves.items():
            found[nodeid][name] = move
        line = [
            f"{column} {percent(farthest([move[column] for move in moves.values()])):>8}"
            for column in COLUMNS
        ]
        print(f"{name:<20} worst: {'  '.join(line)}  alarms {' '.join(loud) or 0}", flush=True)
        shutil.rmtree(changed.folder)
        if options.keep:
            options.keep.write_bytes(pickle.dumps(kept))
    print(f"\n{'worst shift in %':<44}" + "".join(f"{column:>10}" for column in COLUMNS))
    for nodeid, by_change in found.items():
        worst = [farthest([s[column] for s in by_change.values()]) for column in COLUMNS]
        print(f"{nodeid:<44}" + "".join(f"{percent(each):>10}" for each in worst))
    every = {
        column: [abs(s[column]) for by_change in found.values() for s in by_change.values()]
        for column in COLUMNS
    }
    for what, of in (("median", statistics.median), ("mean", statistics.fmean), ("worst", max)):
        print(f"{what:<44}" + "".join(f"{100 * of(every[column]):>10.4f}" for column in COLUMNS))
    zero = [sum(each == 0 for each in every[column]) / len(every[column]) for column in COLUMNS]
    print(f"{'exactly 0':<44}" + "".join(f"{100 * share:>8.0f} %" for share in zero))
    detects = [100 * c.report["detects"] for c in counted.values()]
    print(f"detects {statistics.median(detects):.2f} % in the median, {max(detects):.2f} % at most")
    bound = BOUND if has_symbols(baseline) else BOUND_STRIPPED
    print(f"{len(every['raw'])} comparisons, {alarms} alarms; bound {100 * bound:.2f} %")
    shutil.rmtree(scratch)
    calm = statistics.median(every["denoised"]) == 0 and max(every["denoised"]) <= bound
    sys.exit(not calm or alarms > 0 or max(every["raw"]) <= RAW)


if __name__ == "__main__":
    main()
