"""Whether the counts of the examples are the same integers, whatever else differs.

    python benchmarks/equality.py

Measures a copy of the examples again and again: whole, in reversed order, in halves by ``-k``, each
test alone (``--alone N``: the first N tests; default all), beside a process per core that burns it,
beside a README that was not there, with other options of presentation; and compares every integer
with the first run's. Exits 1 if one differs. Needs the package and examples/requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from copied_examples import copy_examples, run


def measure(folder: Path, *args: str) -> dict[str, int]:
    """Nodeid -> instructions per call, of one run."""
    report = folder.parent / "report.json"
    report.unlink(missing_ok=True)
    options = ["--instrcount", f"--instrcount-report=json:{report}"]
    run(folder, "pytest", "-q", "-p", "no:cacheprovider", *options, *args)
    return {test["nodeid"]: test["ir"] for test in json.loads(report.read_text())["tests"]}


@contextmanager
def burning() -> Iterator[None]:
    """While it lasts, every core has something else to do."""
    code = "while True: pass"
    burners = [subprocess.Popen([sys.executable, "-c", code]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def main() -> None:
    """Run it all and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alone", type=int, default=None, metavar="N")
    alone = parser.parse_args().alone
    folder = copy_examples()
    first = measure(folder)
    ids = list(first)
    print(f"{len(ids)} tests, CPython {sys.version.split()[0]}")
    differing = 0

    def compare(what: str, counts: dict[str, int]) -> None:
        nonlocal differing
        moved = [nodeid for nodeid, ir in counts.items() if first[nodeid] != ir]
        differing += len(moved)
        print(
            f"{what:<28} {len(counts):>3} tests  {len(moved)} differ {' '.join(moved)}", flush=True
        )

    compare("again", measure(folder))
    compare("reversed", measure(folder, *reversed(ids)))
    compare("-k test_s", measure(folder, "-k", "test_s"))
    compare("-k 'not test_s'", measure(folder, "-k", "not test_s"))
    compare("-vv --setup-show -s", measure(folder, "-vv", "--setup-show", "-s", "--durations=3"))
    with burning():
        compare("every core busy", measure(folder))
    (folder / "README").write_text("new\n")
    (folder / "tests" / "README.md").write_text("new\n")
    (folder / "results_of_yesterday").mkdir()
    compare("a README beside the tests", measure(folder))
    each: dict[str, int] = {}
    for nodeid in ids[:alone]:
        each |= measure(folder, nodeid)
    compare("each test alone", each)
    shutil.rmtree(folder.parent)
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
