"""Ten commits of markdown-it-py with 49 tests: baselines are updated and committed at each, as in a project.

    python benchmarks/sequence.py                    # clones it from GitHub
    python benchmarks/sequence.py --source CLONE     # from a clone that is there

Needs ``pip install mdurl``. One row for each update: tests whose summaries changed, changed lines of summaries
per changed test, seconds, what git says of all files. Then two branches update different tests, neighbours
among them, one adds a test, and git merges them without a driver. Exits 1 if an update or the merge fails,
or if a changed test has more than ten lines. `benchmarks/sizes.py` prints the bytes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from outside_ci import outside_ci

BASE, LAST = "8eb20ac", "693bb24"
DOCUMENTS = ("benchmarking/samples", "tests/test_port/fixtures")
TESTS = """\
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

FILES = [file for folder in {folders} for file in sorted(Path(folder).iterdir()) if file.stat().st_size < 3_000]
CASES = [(preset, file) for preset in ("commonmark", "js-default") for file in FILES]
CASES = CASES[:: len(CASES) // {number}][:{number}]


@pytest.mark.instrcount
@pytest.mark.parametrize(("preset", "file"), CASES, ids=[f"{{p}}-{{file.stem}}" for p, file in CASES])
def test_render(preset, file):
    MarkdownIt(preset, {{"linkify": False}}).render(file.read_text())
"""
SETTINGS = "[pytest]\npythonpath = .\npython_files = test_render.py test_added.py\n"
LARGEST = 10.0


def run(project: Path, *command: str) -> str:
    """What a command prints; an error ends all."""
    done = subprocess.run(
        command, cwd=project, env=outside_ci(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def git(project: Path, *arguments: str) -> str:
    """The same of git."""
    return run(project, "git", "-c", "user.name=it", "-c", "user.email=it@localhost", *arguments)


def update(project: Path, message: str, *arguments: str) -> float:
    """Update baselines, commit all, print a row; returns changed lines of summaries per changed test."""
    began = time.monotonic()
    run(project, sys.executable, "-m", "pytest", "-q", "--instrcount-update-baseline", *arguments)
    seconds = time.monotonic() - began
    git(project, "add", "-A")
    git(project, "commit", "-q", "--allow-empty", "-m", message)
    summaries = ":(glob)instrcount_baselines/**/*.json"
    files = git(project, "show", "--format=", "--numstat", "--", summaries).splitlines()
    lines = sum(int(number) for line in files for number in line.split()[:2])
    words = git(project, "show", "--format=", "--shortstat", "--", "instrcount_baselines").strip()
    each = lines / max(1, len(files))
    print(f"{len(files):5} {each:5.1f} {seconds:5.0f} s  {message[:44]:44}  {words}", flush=True)
    return each


def grow(project: Path, kind: str) -> None:
    """Make the documents of a kind twice as long."""
    for path in (project / DOCUMENTS[0]).glob(f"{kind}-*"):
        path.write_text(path.read_text() * 2)


def main() -> None:
    """Print the table, then what git says of the merge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", default="https://github.com/executablebooks/markdown-it-py")
    parser.add_argument("--tests", type=int, default=49)
    parser.add_argument("--folder", type=Path, help="a new one, which is kept")
    options = parser.parse_args()
    project = options.folder or Path(tempfile.mkdtemp(prefix="sequence-"))
    git(Path(), "clone", "-q", options.source, str(project))
    git(project, "checkout", "-q", "-b", "here", BASE)
    (project / "pytest.ini").write_text(SETTINGS)
    (project / "test_render.py").write_text(TESTS.format(folders=DOCUMENTS, number=options.tests))
    print(f"{'tests':5} {'lines':5} {'time':>7}")
    update(project, "the first")
    log = git(project, "log", "--reverse", "--format=%h %s", f"{BASE}..{LAST}", "--", "markdown_it")
    each = []
    for line in log.splitlines():
        git(project, "rm", "-rq", "markdown_it")
        git(project, "checkout", line.split()[0], "--", "markdown_it")
        each.append(update(project, line))
    git(project, "branch", "other")
    grow(project, "block")
    added = TESTS.format(folders=DOCUMENTS, number=1).replace("test_render", "test_added")
    (project / "test_added.py").write_text(added)
    each.append(update(project, "block documents grow, one test more", "-k", "block or added"))
    git(project, "checkout", "-q", "other")
    grow(project, "inline")
    each.append(update(project, "inline documents grow", "-k", "inline"))
    print(git(project, "merge", "-m", "both", "-").partition("\n")[0])
    sys.exit(max(each) > LARGEST)


if __name__ == "__main__":
    main()
