"""How many layouts a baseline needs, and which margin beside their range: false alarms, and what is detected.

    python benchmarks/truth.py --layouts 12 --keep DIR
    python benchmarks/margins.py DIR [--picks N]

Reads what ``truth.py`` has kept: the profiles of each planted change in layouts 0 to 12, of both sides.
Layouts of one side differ in nothing but memory, so what is told apart there is a false alarm. For each
number of layouts and each margin (in ranges), N times (5) for each test and side, some of its layouts in
random order are a baseline, and others are held against it: one, four where that has moved, and all that
are left where four have, too. Prints how often each of them moved, the largest false move at the end, and the
median and the 95th percentile of what such a baseline detects.
"""

from __future__ import annotations

import argparse
import pickle
import random
import statistics
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from tabulate import tabulate
from truth import KEPT

import pytest_instrcount.counts.denoised as denoised
from pytest_instrcount.counts.noise import find_noise
from pytest_instrcount.counts.profile import Profile
from pytest_instrcount.gate.compare import gate_layouts

NUMBERS = (2, 3, 4, 5)
MARGINS = (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1))
#: How many layouts are held against the baseline, one after the other; then all others.
STAGES = (1, 4)
HEADERS = ("layouts", "margin", "pairs", "in 1", "in 4", "in all", "largest", "detects", "95th")


def read(folder: Path) -> Iterator[tuple[str, int, list[Profile]]]:
    """Name, calls, and the profiles in all layouts, of each test and side."""
    for side in ("old", "new"):
        found = pickle.loads((folder / f"{side}.pickle").read_bytes())
        for nodeid, each in found.items():
            if len(each["profiles"]) > KEPT:
                yield f"{side} {nodeid}", each["calls"], list(each["profiles"].values())


def moves(picked: Sequence[Profile], number: int, calls: int) -> tuple[Fraction, list[Fraction]]:
    """What the first ``number`` layouts detect, and by how much the others seem to have moved."""
    noise = find_noise(picked[:number])
    old = denoised.denoise_layouts(picked[:number], noise)
    others, found = picked[number:], list[Fraction]()
    for stage in (*STAGES, len(others)):
        new = denoised.denoise_layouts(others[:stage], noise)
        gated = gate_layouts(old, calls, new, calls)
        found.append(gated.fraction or Fraction(0))
        if not found[-1]:
            break
        if stage == STAGES[-1] and not gated.is_close:  # no more are measured
            found.append(found[-1])
            break
    return old.detects, found


def main() -> None:
    """Read, pick, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--picks", type=int, default=5, metavar="N")
    options = parser.parse_args()
    records = list(read(options.folder))
    table = []
    for number in NUMBERS:
        for margin in MARGINS:
            denoised._WIDTHS = margin
            seen, moved, largest = [], [0] * (len(STAGES) + 1), Fraction(0)
            for name, calls, profiles in records:
                pick = random.Random(name)
                for _ in range(options.picks):
                    picked = pick.sample(profiles, len(profiles))
                    detects, found = moves(picked, number, calls)
                    seen.append(detects)
                    for stage, move in enumerate(found):
                        moved[stage] += move != 0
                    if len(found) == len(moved):
                        largest = max(largest, abs(found[-1]))
            seen.sort()
            shown = (largest, statistics.median(seen), seen[len(seen) * 95 // 100])
            percents = [f"{100 * float(each):.2f} %" for each in shown]
            table.append([number, f"{float(margin):g}", len(seen), *moved, *percents])
    print(tabulate(table, HEADERS, stralign="right"))


if __name__ == "__main__":
    main()
