"""Bytes of the baselines in a folder, as git and a reviewer have them.

    python benchmarks/sizes.py instrcount_baselines

One row for each test: C functions and branches of Python functions that are known, bytes of the summary, bytes
of the profile.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_instrcount.gate.store.folder import read_folder
from pytest_instrcount.gate.store.parts import profiles_beside
from pytest_instrcount.gate.store.schema import Baseline


def main() -> None:
    """Print the table, and the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    rows: list[tuple[int, int, int, int, str]] = []
    for file in read_folder(parser.parse_args().folder):
        if isinstance(file.content, Baseline):
            tree = file.content.python
            branches = 0 if tree is None else len(tree.inclusive)
            profile = sum(each.stat().st_size for each in profiles_beside(file.path))
            sizes = file.path.stat().st_size, profile
            rows.append((len(file.content.rows), branches, *sizes, file.nodeid))
    print(f"{'C':>5} {'Python':>6} {'summary':>7} {'profile':>7}  test")
    for functions, branches, summary, profile, nodeid in sorted(rows):
        print(f"{functions:5} {branches:6} {summary:7} {profile:7}  {nodeid}")
    number = max(1, len(rows))
    means = sum(row[2] for row in rows) / number, sum(row[3] for row in rows) / number
    print(f"{len(rows)} tests, {means[0]:.0f} and {means[1]:.0f} bytes each in the mean")


if __name__ == "__main__":
    main()
