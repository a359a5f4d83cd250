"""The gold record: what the gate makes of recorded counts, to stay equal while the code is moved about.

    python benchmarks/gold.py record FOLDER
    python benchmarks/gold.py check FOLDER

``record`` measures a copy of the examples under Valgrind as they are, and with one function slowed
down, and keeps all answers, dumps included, in FOLDER; then it writes what is made of them to
``FOLDER/gold.json``. ``check`` makes it again from the same answers, without Valgrind, prints what has
become another and exits 1 if anything has: the bytes of baselines, reports, verdicts and texts of a first run,
a check, a regression, an accepted change; exit codes; what ``show`` and ``history`` print;
the slugs of errors, the options, the public names, the items of docs/explanation/faults.md. Numbers of
schemas are left out, and so are durations. Use the interpreter that has recorded.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from copied_examples import EXAMPLES
from outside_ci import outside_ci

ROOT = EXAMPLES.parent
SLOWED = "counts[letter] += 1  #", "counts[letter] += len(letter)  #"
#: What differs from run to run, and what the plan of the new layout says will differ.
VARIABLE = (
    (re.compile(r"=* (\d.*) in \d+\.\d+s( \(\d+:\d+:\d+\))? =*"), r"\1 in TIME"),
    (
        re.compile(r'("(?:schema|rules|created|duration|seconds|version)"): ?("[^"]*"|[\d.]+)'),
        r"\1: X",
    ),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*"), "WHEN"),
)
REPORTS = ("json:r.json", "markdown:r.md", "html:r.html")


def steps() -> list[tuple[str, str, tuple[str, ...]]]:
    """The runs: a name, which side is measured, and the arguments."""
    reports = tuple(f"--instrcount-report={each}" for each in REPORTS)
    accepted = "--instrcount-update-baseline", "--instrcount-reason=as planned"
    return [
        ("first", "old", ("--instrcount-update-baseline", *reports)),
        ("again", "old", ("--instrcount", "-vv", "--instrcount-max-delta=0", *reports)),
        ("slowed", "new", ("--instrcount", *reports)),
        ("strict", "new", ("--instrcount", "--instrcount-max-delta=0", *reports)),
        ("accepted", "new", accepted),
        ("deselected", "new", ("--instrcount", "-k", "workload")),
    ]


COMMANDS = (
    ("show", "tests/test_workload.py::test_count_vowels"),
    ("history", "tests/test_workload.py::test_count_vowels"),
)


def python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in a folder, as if not in CI and not in a terminal."""
    return subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        env=outside_ci() | {"COLUMNS": "80", "REPLAY_BY_TEST": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def place(folder: Path, side: str) -> Path:
    """The project, always at one path, with the function as it is or slowed down."""
    project = folder / "project"
    shutil.copytree(
        EXAMPLES, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    if side == "new":
        workload = project / "workload.py"
        workload.write_text(workload.read_text().replace(*SLOWED))
    return project


def answered(
    project: Path, how: str, answers: Path, *args: str
) -> subprocess.CompletedProcess[str]:
    """Pytest, with the zygote recorded or replaced by its record."""
    script = str(ROOT / "benchmarks" / "replayed.py")
    common = "-p", "no:cacheprovider", "-p", "no:randomly", "--color=no"
    return python(project, script, how, str(answers), str(answers) + ".used", *common, *args)


def plain(text: str) -> str:
    """The text without what varies."""
    for pattern, instead in VARIABLE:
        text = pattern.sub(instead, text)
    return text


def digest(path: Path) -> str:
    """A short hash of a file without what varies."""
    return hashlib.sha256(plain(path.read_text(errors="replace")).encode()).hexdigest()[:16]


def made_of_answers(folder: Path, how: str) -> dict[str, Any]:
    """What the runs print, write and return, with answers that are recorded or replayed."""
    found: dict[str, Any] = {}
    project = folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    for name, side, args in steps():
        done = answered(place(folder, side), how, folder / side, *args)
        written = sorted(
            path for path in project.rglob("*") if path.suffix in (".json", ".md", ".html")
        )
        found[name] = {
            "status": done.returncode,
            "printed": plain(done.stdout + done.stderr).splitlines(),
            "written": {str(path.relative_to(project)): digest(path) for path in written},
        }
    for command in COMMANDS:
        done = python(project, "-m", "pytest_instrcount", *command)
        found[" ".join(command)] = [done.returncode, *plain(done.stdout + done.stderr).splitlines()]
    shutil.rmtree(project)
    return found


def public() -> dict[str, Any]:
    """Names, options, slugs and promises."""
    package = ROOT / "pytest_instrcount"
    slugs = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InstrcountError":
                slugs |= {each.value for each in node.args[:1] if isinstance(each, ast.Constant)}
    helped = python(ROOT, "-m", "pytest", "--help").stdout
    faults = (ROOT / "docs" / "explanation" / "faults.md").read_text().splitlines()
    return {
        "slugs": sorted(map(str, slugs)),
        "options": sorted(set(re.findall(r"(?:--instrcount|instrcount_)[\w-]*", helped))),
        "faults": [line for line in faults if line.startswith("- ")],
        "__all__": sorted(importlib.import_module("pytest_instrcount").__all__),
    }


def main() -> None:
    """Record, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("how", choices=("record", "check"))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(exist_ok=True, parents=True)
    if arguments.how == "record":
        for side in ("old", "new"):
            shutil.rmtree(folder / side, ignore_errors=True)
        made_of_answers(folder, "record")
    found = (
        json.dumps(made_of_answers(folder, "replay") | public(), indent=1, sort_keys=True) + "\n"
    )
    gold = folder / "gold.json"
    if arguments.how == "record":
        gold.write_text(found)
    before, after = gold.read_text().splitlines(), found.splitlines()
    lines = [*difflib.unified_diff(before, after, "gold", "now", lineterm="", n=1)]
    print("\n".join(lines) or f"equal: {len(before):,} lines of gold")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
