"""Ten commits of a project: baselines are updated and committed at each.

    python benchmarks/sequence.py                                # 49 tests of markdown-it-py, from GitHub
    python benchmarks/sequence.py --project sqlglot              # six of sqlglot
    python benchmarks/sequence.py --source CLONE                 # from a clone that is there

markdown-it-py needs ``pip install mdurl``. One row for each update: tests whose summaries changed, changed
lines of summaries per changed test, seconds, what git says of all files. Then two branches update different
tests, neighbours among them, one adds a test, and git merges them without a driver. Exits 1 if an update or the
merge fails, or if a changed test has more than ten lines. `benchmarks/sizes.py` prints the bytes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from outside_ci import outside_ci

TESTS = """\
from pathlib import Path

import pytest
{head}

FILES = [file for folder in {folders} for file in sorted(Path(folder).iterdir()) if file.stat().st_size < 3_000]
CASES = [(how, file) for how in {ways} for file in FILES]
CASES = CASES[:: len(CASES) // {number}][:{number}]


@pytest.mark.instrcount
@pytest.mark.parametrize(("how", "file"), CASES, ids=[f"{{how}}-{{file.stem}}" for how, file in CASES])
def test_render(how, file):
    {body}
"""
SETTINGS = "[pytest]\npythonpath = .\npython_files = test_render.py test_added.py\n"
LARGEST = 10.0


@dataclass(frozen=True)
class Project:
    """Commits of a project, and tests for them: ``body`` uses ``how``, one of ``ways``, and ``file``."""

    source: str
    base: str
    last: str
    package: str
    #: folders of documents; in the first are some whose names begin with block and inline
    folders: tuple[str, ...]
    tests: int
    head: str
    ways: tuple[str, ...]
    body: str
    #: documents that the project lacks
    made: Mapping[str, str] = field(default_factory=dict)

    def suite(self, number: int) -> str:
        """A module of so many tests."""
        about = {"folders": self.folders, "head": self.head, "ways": self.ways, "body": self.body}
        return TESTS.format(number=number, **about)


PROJECTS = {
    "markdown-it-py": Project(
        "https://github.com/executablebooks/markdown-it-py",
        *("8eb20ac", "693bb24", "markdown_it"),
        ("benchmarking/samples", "tests/test_port/fixtures"),
        49,
        "from markdown_it import MarkdownIt",
        ("commonmark", "js-default"),
        'MarkdownIt(how, {"linkify": False}).render(file.read_text())',
    ),
    "sqlglot": Project(
        "https://github.com/tobymao/sqlglot",
        *("05eed63b2", "37362f4fc", "sqlglot"),
        ("queries",),
        6,
        "import sqlglot",
        ("duckdb", "postgres"),
        "[each.sql(how) for each in sqlglot.parse(file.read_text(), read=how)]",
        {
            "block-cases.sql": "SELECT CASE WHEN a = 1 THEN 2 ELSE b END, SUM(c) FROM t GROUP BY 1;\n",
            "block-joins.sql": "SELECT * FROM a JOIN b ON a.id = b.id WHERE a.n IN (1, 2, 3);\n",
            "inline-tables.sql": "SELECT n, ROW_NUMBER() OVER (ORDER BY n) FROM t;\n",
        },
    ),
}


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


def grow(folder: Path, kind: str) -> None:
    """Make the documents of a kind twice as long."""
    for path in folder.glob(f"{kind}-*"):
        path.write_text(path.read_text() * 2)


def main() -> None:
    """Print the table, then what git says of the merge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--project", choices=PROJECTS, default="markdown-it-py")
    parser.add_argument("--source", help="a clone, or its address")
    parser.add_argument("--tests", type=int)
    parser.add_argument("--folder", type=Path, help="a new one, which is kept")
    options = parser.parse_args()
    about = PROJECTS[options.project]
    project = options.folder or Path(tempfile.mkdtemp(prefix="sequence-"))
    git(Path(), "clone", "-q", options.source or about.source, str(project))
    git(project, "checkout", "-q", "-b", "here", about.base)
    documents = project / about.folders[0]
    documents.mkdir(exist_ok=True)
    for name, text in about.made.items():
        (documents / name).write_text(text)
    (project / "pytest.ini").write_text(SETTINGS)
    (project / "test_render.py").write_text(about.suite(options.tests or about.tests))
    print(f"{'tests':5} {'lines':5} {'time':>7}")
    update(project, "the first")
    log = git(
        project,
        "log",
        "--reverse",
        "--format=%h %s",
        f"{about.base}..{about.last}",
        "--",
        about.package,
    )
    each = []
    for line in log.splitlines():
        git(project, "rm", "-rq", about.package)
        git(project, "checkout", line.split()[0], "--", about.package)
        each.append(update(project, line))
    git(project, "branch", "other")
    grow(documents, "block")
    added = about.suite(1).replace("test_render", "test_added")
    (project / "test_added.py").write_text(added)
    each.append(update(project, "block documents grow, one test more", "-k", "block or added"))
    git(project, "checkout", "-q", "other")
    grow(documents, "inline")
    each.append(update(project, "inline documents grow", "-k", "inline"))
    print(git(project, "merge", "-m", "both", "-").partition("\n")[0])
    sys.exit(max(each) > LARGEST)


if __name__ == "__main__":
    main()
