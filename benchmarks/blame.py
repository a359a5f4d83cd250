"""Whether a regression's cause is named: known functions made slower, one at a time.

    python benchmarks/blame.py [--pythons PYTHON ...] [--how trampolines|tracer] [-k NAME ...]

Takes the regressions of ``blame_regressions.py``: a function of the standard library, of a package or
of the workloads themselves, whose source was edited so that its workload grows by some per cent. One
test for each: stores baselines, puts the slower code in, measures again, and reads what the failure
says. Right is what names the edited function first; where that was renamed or moved as well, by its new
name, and says what it was called before.

Prints, for each regression: its kind, by how much its test grew, the function's share of the change,
how much of the change the named functions explain (at most three; Python functions, C functions),
and what was named first. Exits 1 unless, of the regressions that raised an alarm, at least 95 % are
right (85 % before 3.12), and the named Python functions explain 90 % of the change on average. Fewer
than 40 such regressions fail, too. How much three C functions explain is printed: the work of one line
of Python spreads over dozens of them. What the tracer names (``--how tracer``) is not judged either.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from outside_ci import outside_ci

HERE = Path(__file__).parent
#: The least share of right names, from a version of Python on.
RIGHT = {(3, 10): 0.85, (3, 12): 0.95}
EXPLAINED = 0.90
FEWEST = 40
#: Growth that a regression should have; one of another size is marked.
SIZES = (0.01, 0.20)

_HEAD = re.compile(r"by (Python|C) function.* share of the change")
_SHARE = re.compile(r"  ? ?(\d+) %  ")


def run(command: list[str], folder: Path, allowed: tuple[int, ...] = (0,)) -> str:
    """Run a command; what it prints. Ends the benchmark where it fails."""
    environment = outside_ci("PYTHONDONTWRITEBYTECODE")
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in allowed:
        sys.exit(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def explained(entry: dict[str, Any]) -> dict[str, float]:
    """``Python`` or ``C`` -> the share of the change that the failure's text says it explains."""
    found: dict[str, float] = {}
    kind = ""
    for line in entry.get("text", ()):
        if not line.startswith(" "):
            head = _HEAD.match(line)
            kind = head[1] if head else ""
        elif kind and (share := _SHARE.match(line)):
            found[kind] = min(1.0, found.get(kind, 0.0) + int(share[1]) / 100)
    return found


def says_renamed(entry: dict[str, Any]) -> bool:
    """Whether the failure's text has a former name."""
    return any("renamed: " in line for line in entry.get("text", ()))


def measure(python: str, how: str, names: list[str], scratch: Path) -> tuple[list[Any], str]:
    """Store, make slower, measure; returns what was to be found, and a line about the time it took.

    What was found is in ``blamed.json`` then, and what pytest printed in ``output.txt``.
    """
    folder = scratch / "project"
    run([python, str(HERE / "blame_regressions.py"), str(folder)], HERE)
    told = json.loads((scratch / "regressions.json").read_text())
    told = [each for each in told if not names or each["name"] in names]
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--instrcount-blame={how}"]
    pytest.append("--instrcount-max-delta=0.2%")
    pytest += [each["nodeid"] for each in told if not each["problem"]]
    start = time.monotonic()
    run([*pytest, "--instrcount-update-baseline"], folder)
    stored = time.monotonic()
    (scratch / "slower-code").rename(scratch / "slower")
    output = run([*pytest, "--instrcount"], folder, (0, 1))
    (scratch / "output.txt").write_text(output)
    ended = time.monotonic()
    return told, f"{stored - start:.0f} s to store, {ended - stored:.0f} s to blame"


def judge(told: list[Any], blamed: dict[str, Any], version: str) -> bool:
    """Print what was named, and say whether the figures are reached."""
    right = collections.Counter[str]()
    number = collections.Counter[str]()
    shares: dict[str, list[float]] = {"Python": [], "C": []}
    width = max(len(each["name"]) for each in told)
    print(f"{'regression':<{width}} kind    grew  doing  Python    C  named first")
    for each in told:
        entry = blamed.get(
            each.get("nodeid", ""), {"verdict": "left out", "reason": each["problem"]}
        )
        functions = entry.get("functions") or [["", 0.0, []]]
        first = functions[0][0]
        if entry["verdict"] != "regressed":
            said_of = entry["reason"] or entry["verdict"]
            print(f"{each['name']:<{width}} {each['kind']:<5} not judged: {said_of}")
            continue
        number[each["kind"]] += 1
        expected = each["expected"]
        if first == expected and each["renamed"] and not says_renamed(entry):
            first = f"{first}, not that it was renamed,"
        right[each["kind"]] += first == expected
        said = explained(entry)
        for kind in shares:
            shares[kind].append(said.get(kind, 0.0))
        doing = next((doing for name, doing, _ in functions if name == expected), 0.0)
        word = first if first == expected else f"WRONG: {first or 'nothing'} and not {expected}"
        size = "" if SIZES[0] <= entry["delta"] <= SIZES[1] else " (size)"
        print(
            f"{each['name']:<{width}} {each['kind']:<5} {entry['delta']:>6.1%} "
            f"{doing / (entry.get('change') or 1):>6.0%} {said.get('Python', 0):>7.0%} "
            f"{said.get('C', 0):>4.0%}  {word}{size}"
        )
    total, found = sum(number.values()), sum(right.values())
    kinds = ", ".join(f"{kind} {right[kind]}/{number[kind]}" for kind in sorted(number))
    averages = {kind: statistics.fmean(each) if each else 0.0 for kind, each in shares.items()}
    print(
        f"CPython {version}: right {found}/{total} = {found / max(1, total):.1%} ({kinds})\n"
        f"explained on average by Python function {averages['Python']:.1%}, "
        f"by C function {averages['C']:.1%}"
    )
    short = tuple(map(int, version.split(".")[:2]))
    least = RIGHT[max(each for each in RIGHT if each <= short)]
    return total >= FEWEST and found >= least * total and averages["Python"] >= EXPLAINED


def main() -> None:
    """Measure with each interpreter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pythons", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--how", choices=("trampolines", "tracer"), default="trampolines")
    parser.add_argument("-k", nargs="*", default=[], metavar="NAME", help="only these regressions")
    parser.add_argument("--keep", type=Path, help="keep what was found in a folder of this one")
    options = parser.parse_args()
    good = []
    for python in options.pythons:
        code = "import platform; print(platform.python_version())"
        version = run([python, "-c", code], HERE).strip()
        scratch = Path(tempfile.mkdtemp(dir=options.keep))
        told, time_taken = measure(python, options.how, options.k, scratch)
        blamed = json.loads((scratch / "blamed.json").read_text())
        good.append(judge(told, blamed, version) or options.how == "tracer")
        print(f"by {options.how}, {time_taken}\n", flush=True)
        if options.keep is None:
            shutil.rmtree(scratch)
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
