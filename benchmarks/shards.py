"""Whether shards, merged, are one run: the baselines of the examples, file by file.

    python benchmarks/shards.py --shards 2

Updates the baselines of a copy of the examples in one run, then in shards by pytest-split; compares
every file of the shards, copied together and merged, with that of the one run. Exits 1 if a merged
file differs. Needs the package, pytest-split and examples/requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from copied_examples import copy_examples, run


def update(folder: Path, into: str, *args: str) -> Path:
    """The baselines of one run."""
    options = ["--instrcount-update-baseline", f"--instrcount-baseline-dir={folder.parent / into}"]
    run(folder, "pytest", "-q", "-p", "no:cacheprovider", *options, *args)
    return folder.parent / into


def files(folder: Path) -> dict[str, str]:
    found = sorted(folder.rglob("*.json"))
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def counts(text: str) -> dict[str, object]:
    """What stands in a summary but for the name of the profile, which knows of noise."""
    return {key: value for key, value in json.loads(text).items() if key != "profile"}


def main() -> None:
    """Run it all and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=2, metavar="N")
    number = parser.parse_args().shards
    folder = copy_examples()
    scratch = folder.parent
    one = files(update(folder, "one"))
    print(f"{len(one)} tests, {number} shards, CPython {sys.version.split()[0]}", flush=True)
    shards = [
        update(folder, f"s{n}", f"--splits={number}", f"--group={n}", "--instrcount-shard")
        for n in range(1, number + 1)
    ]
    run(scratch, "pytest_instrcount", "merge", "--into", "merged", *(path.name for path in shards))
    copied = {name: text for path in shards for name, text in files(path).items()}
    merged = files(scratch / "merged")
    print(
        f"copied: {sum(counts(copied[name]) != counts(one[name]) for name in one)} with other counts"
    )
    print(f"copied: {sum(copied[name] != one[name] for name in one)} files differ, in known noise")
    differing = [name for name in one if merged.get(name) != one[name]]
    print(f"merged: {len(differing)} files differ {' '.join(differing)}".rstrip())
    shutil.rmtree(scratch)
    sys.exit(bool(differing) or merged.keys() != one.keys())


if __name__ == "__main__":
    main()
