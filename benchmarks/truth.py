"""Whether the gate sees what really grew: planted changes, gated and in truth.

    python benchmarks/truth.py [-k EXPRESSION] [--layouts N] [--most N] [--keep DIR] [--truth FILE]

Each case of ``truth_workloads.py`` is a test whose body changes inside one kind of C work. The truth is
the mean of its raw counts in N layouts of memory (24), before and after, in the same layouts; where
the standard error of the paired difference is above 0.02 % of the test and 2 % of the change, in as
many more as are needed, up to ``--most`` (96). A baseline of the old bodies is stored, and the new ones are
checked at ``--instrcount-max-delta=0``. Prints for each case the truth and its standard error, what
the gate says, by how much it is wrong, what it claims to detect, and the verdict, all in per cent of
the old mean. Exits 1 unless, for what is beyond two standard errors,

    sign     is right wherever the truth is beyond what the gate claims to detect
    size     is within 5 % of the truth in 95 % of the cases and within 15 % in all, plus 0.02 % of
             the test and two standard errors
    unseen   no growth beyond what the gate claims to detect is called unchanged

``--truth FILE`` has raw counts of earlier runs, to which the layouts are added that it lacks: where
it lacks none, only the gate is run. ``--keep DIR`` keeps the profiles of layouts 0 to 12 of both sides
in ``old.pickle`` and ``new.pickle``, as ``layouts_recorded.py`` writes them.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

from outside_ci import outside_ci
from truth_judgement import Counts, Judged, Truth, judge, print_table, truth_of
from truth_workloads import Case, planted, write_side

_RECORDED = Path(__file__).parent / "layouts_recorded.py"
_PYTEST = ("--instrcount", "-q", "-p", "no:cacheprovider", "--instrcount-blame=off")
#: Profiles are kept of the layouts up to this one.
KEPT = 12

Record = dict[str, dict[str, Any]]


class Bench:
    """The project, whose bodies are rewritten, and what is run in it."""

    def __init__(self, cases: list[Case], keep: Path | None) -> None:
        self._cases = cases
        self._keep = keep
        self._temporary = tempfile.TemporaryDirectory()  # removed with this object
        self._scratch = Path(self._temporary.name)
        self._folder = self._scratch / "project"
        self._folder.mkdir()

    def run(self, side: str, layouts: range, *args: str) -> Record:
        """Run pytest on the old or the new bodies; what was counted in the layouts."""
        write_side(self._folder, self._cases, attrgetter(side))
        record = self._scratch / f"{side}.pickle"
        ends = [str(layouts.start), str(layouts.stop - 1), str(KEPT if self._keep else -1)]
        done = subprocess.run(
            [sys.executable, str(_RECORDED), str(record), *ends, *_PYTEST, *args],
            cwd=self._folder,
            env=outside_ci(),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        # 1: a regression, which is what is planted here
        if done.returncode not in (0, 1) or " error" in done.stdout[-200:]:
            sys.exit(done.stdout)
        found: Record = pickle.loads(record.read_bytes())
        if self._keep is not None:
            keep_profiles(self._keep / record.name, found)
        return found

    def store(self, layouts: range) -> Record:
        """Store baselines of the old bodies."""
        return self.run("old", layouts, "--instrcount-update-baseline")

    def check(self, layouts: range) -> tuple[Record, dict[str, dict[str, Any]]]:
        """Check the new bodies; what was counted, and nodeid -> what the gate says."""
        report = self._scratch / "report.json"
        reports = f"--instrcount-report=json:{report}"
        record = self.run("new", layouts, "--instrcount-max-delta=0", reports)
        return record, {test["nodeid"]: test for test in json.loads(report.read_text())["tests"]}

    def count_more(self, layouts: range, nodeids: list[str]) -> dict[str, Record]:
        """Both sides in more layouts."""
        # what the gate says is known: nothing is to look as if it had moved
        args = "--instrcount-max-delta=1000000%", *nodeids
        return {side: self.run(side, layouts, *args) for side in ("old", "new")}


def keep_profiles(path: Path, found: Record) -> None:
    """Add what was found to what is kept already."""
    kept: Record = pickle.loads(path.read_bytes()) if path.exists() else {}
    for nodeid, each in found.items():
        known = kept.setdefault(nodeid, each)
        for table in ("totals", "profiles"):
            known[table] |= each[table]
    path.write_bytes(pickle.dumps(kept, pickle.HIGHEST_PROTOCOL))


def add(counts: Counts, side: str, record: Record) -> None:
    """Note what was counted of one side: layout -> the raw total, and of how many calls."""
    for nodeid, each in record.items():
        known = counts.setdefault(nodeid, {}).setdefault(side, {})
        # the usual layout is one among very many
        known |= {str(n): [ir, each["calls"]] for n, ir in each["totals"].items() if n}


def last_layout(counts: Counts, nodeids: Iterable[str]) -> int:
    """The last layout that all of these were counted in, on both sides; 0 if there is none."""
    sides = (counts.get(nodeid, {}).get(side, {}) for nodeid in nodeids for side in ("old", "new"))
    return min((max(map(int, side), default=0) for side in sides), default=0)


def truths_of(counts: Counts, cases: list[Case]) -> dict[str, Truth]:
    """Nodeid -> the truth, of what was counted on both sides."""
    known = [case.nodeid for case in cases if len(counts.get(case.nodeid, {})) == 2]
    return {nodeid: truth_of(counts[nodeid]) for nodeid in known}


def chosen(expression: str) -> list[Case]:
    """The cases with one of some words in their nodeid, as in ``a or b``."""
    words = expression.split(" or ")
    return [case for case in planted() if any(word in case.nodeid for word in words)]


def main() -> None:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="words, as in 'a or b'")
    parser.add_argument("--layouts", type=int, default=24, metavar="N", help="the least number")
    parser.add_argument("--most", type=int, default=96, metavar="N", help="the largest number")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where to keep the profiles")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="raw counts, read or written")
    options = parser.parse_args()
    cases = chosen(options.k)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    bench = Bench(cases, options.keep and options.keep.absolute())
    counts: Counts = {}
    if options.truth and options.truth.exists():
        counts = json.loads(options.truth.read_text())
    first = last_layout(counts, (case.nodeid for case in cases)) + 1
    # the usual layout is kept, too, and is no part of the truth
    layouts = range(0 if first == 1 else first, options.layouts + 1)
    add(counts, "old", bench.store(layouts))
    record, gated = bench.check(layouts)
    add(counts, "new", record)
    while unknown := [i for i, truth in truths_of(counts, cases).items() if not truth.is_known]:
        first = last_layout(counts, unknown) + 1
        more = range(first, min(first + options.layouts, options.most + 1))
        if not more:
            break
        for side, each in bench.count_more(more, unknown).items():
            add(counts, side, each)
    if options.truth:
        options.truth.write_text(json.dumps(counts))
    truths = truths_of(counts, cases)
    judged = [
        Judged(case, truths[case.nodeid], gated[case.nodeid])
        for case in cases
        if case.nodeid in truths
    ]
    print(f"CPython {sys.version.split()[0]}, {len(judged)} of {len(cases)} cases")
    print_table(judged)
    sys.exit(not judge(judged) or len(judged) < len(cases))


if __name__ == "__main__":
    main()
