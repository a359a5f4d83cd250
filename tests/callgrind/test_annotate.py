"""Our reader against Valgrind's own, function by function, on recorded files and run anew."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from pytest_instrcount.counts.parse import parse_profile

pytestmark = pytest.mark.valgrind

DATA = Path(__file__).parents[1] / "data" / "callgrind"
# in one file of several parts, callgrind_annotate warns of each header but the first
SAMPLES = sorted(DATA.glob("*.out"))
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])

# "." stands for a count of nothing; code that was inlined from another file names no object
_LINE = re.compile(r"^ *([0-9,]+|\.)(?: +[0-9,.]+)*  (.+?):(\S+)(?: \[(.*)\])?$")


def annotated(sample: Path, *, inclusive: bool) -> dict[str, dict[str, tuple[int, bool]]]:
    """Function -> file -> its count, and whether the line names an object."""
    command = ["callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no"]
    command += [f"--inclusive={'yes' if inclusive else 'no'}", str(sample)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, dict[str, tuple[int, bool]]] = defaultdict(dict)
    for line in text.partition(" file:function\n")[2].splitlines()[1:]:
        if line:
            match = _LINE.match(line)
            assert match, line
            count = int(match[1].replace(",", "").replace(".", "0"))
            found[match[3]][match[2]] = count, match[4] is not None
    return found


def function_of(name: str) -> str:
    return name.partition(":")[2].partition(" [")[0]


@every_sample
def test_exclusive_counts_agree(sample: Path) -> None:
    """Each function has the count of all its lines, whatever file they were inlined from."""
    expected: dict[str, int] = defaultdict(int)
    for function, files in annotated(sample, inclusive=False).items():
        expected[re.sub(r"'\d+$", "", function)] += sum(count for count, _ in files.values())
    ours: dict[str, int] = defaultdict(int)
    for name, row in parse_profile(sample).rows.items():
        ours[function_of(name)] += row.ir
    assert {name: ir for name, ir in ours.items() if ir} == {
        name: ir for name, ir in expected.items() if ir
    }


@every_sample
def test_inclusive_counts_agree(sample: Path) -> None:
    """So has the inclusive count of a function that does not recurse.

    callgrind_annotate lists what was inlined from other files as functions of these; of one that was
    called, the line that names its object is the whole, of one that was running before, only all
    lines together are. Left out: functions with one name in two files, whose lines it mixes.
    """
    theirs = annotated(sample, inclusive=True)
    recursive = {re.sub(r"'\d+$", "", name) for name in theirs if re.search(r"'\d+$", name)}
    ours: dict[str, list[int]] = defaultdict(list)
    for name, ir in parse_profile(sample).inclusive.items():
        ours[function_of(name)].append(ir)
    compared = 0
    for function, files in theirs.items():
        if re.sub(r"'\d+$", "", function) not in recursive and len(ours[function]) == 1:
            whole = [count for count, names_object in files.values() if names_object]
            together = sum(count for count, _ in files.values())
            assert ours[function] in (whole, [together])
            compared += 1
    left_out = sum(len(found) > 1 for found in ours.values())
    assert left_out <= 1
    assert compared >= len(ours) - len(recursive) - left_out


@every_sample
def test_no_inclusive_count_passes_all(sample: Path) -> None:
    """However deep a recursion is, its outermost level is within the total."""
    profile = parse_profile(sample)
    assert max(profile.inclusive.values(), default=0) <= profile.total
