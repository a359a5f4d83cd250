"""How much faster our reader is than callgrind_annotate, on a file of 50 MB.

    python benchmarks/parse_speed.py

The file is made of a recorded one (``tests/data/callgrind``), which is repeated under other names. Both
readers read it in turn; user time is compared, since a loaded machine stretches the clock. Exits with
1 where the ratio of the medians is below 5.
"""

from __future__ import annotations

import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.totals import read_total

SAMPLE = Path(__file__).parents[1] / "tests/data/callgrind/cp311-json.out"
MEGABYTES = 50
#: So many times are the functions of the recorded file in ours: 32,000 of them, as in a large program.
GENERATIONS = 60
RUNS = 3
REQUIRED = 5

_NAME = re.compile(r"^(c?(?:fn|fi|fl|ob)|fe)=\((\d+)\)(?: (.*))?$", re.MULTILINE)


def copies(body: str) -> Iterator[str]:
    """The lines between header and totals, again and again; a name is spelled out only once."""
    number, known = 0, set()

    def renamed(found: re.Match[str]) -> str:
        kind, key, name = found.groups()
        generation = number % GENERATIONS
        if name is None or (kind[-2:], generation, key) in known:
            return f"{kind}=({generation}{key:0>5})"
        known.add((kind[-2:], generation, key))
        folder, slash, last = name.rpartition("/")
        return f"{kind}=({generation}{key:0>5}) {folder}{slash}g{generation}_{last}"

    while True:
        yield _NAME.sub(renamed, body)
        number += 1


def write_large(path: Path) -> None:
    """A whole callgrind.out of one part; the same bytes each time."""
    header, _, rest = SAMPLE.read_text().partition("summary:")
    body, _, _ = rest.partition("\n")[2].partition("totals:")
    written = times = 0
    with path.open("w") as file:
        file.write(header)
        for text in copies(body):
            if written > MEGABYTES * 1_000_000:
                break
            written += file.write(text)
            times += 1
        file.write(f"totals: {times * read_total(SAMPLE)}\n")


def user_seconds(who: int, work: Callable[[], object]) -> float:
    """User time of this process, or of the children that it waited for."""
    before = resource.getrusage(who).ru_utime
    work()
    return resource.getrusage(who).ru_utime - before


def main() -> int:
    """Measure, print, judge."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "callgrind.out.large")
        write_large(path)
        command = ["callgrind_annotate", "--auto=no", str(path)]
        ours, theirs = [], []
        for _ in range(RUNS):
            ours.append(user_seconds(resource.RUSAGE_SELF, lambda: parse_profile(path)))
            theirs.append(
                user_seconds(
                    resource.RUSAGE_CHILDREN,
                    lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
                )
            )
        profile = parse_profile(path)
        size = path.stat().st_size / 1_000_000
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(f"{size:.1f} MB, {len(profile.rows)} functions, {profile.total} instructions")
    print(f"parse_profile: {min(ours):.2f} to {max(ours):.2f} s of user time in {RUNS} runs")
    print(f"callgrind_annotate: {min(theirs):.2f} to {max(theirs):.2f} s")
    print(f"ratio of the medians: {ratio:.1f} (required: {REQUIRED})")
    return 0 if ratio >= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
