"""Whether ``--instrcount-against`` finds half a percent, and says nothing of a commit that changes nothing.

    python benchmarks/against.py                 # this repository's examples, and markdown-it-py
    python benchmarks/against.py examples        # one of them
    python benchmarks/against.py --folder DIR    # keeps the repositories and what was printed

Takes a clone of this repository, and the sdist of a project on PyPI, put under git, of whose tests a
conftest marks some; no baseline is there. In each:

- commits what has nothing to do with the tests (docs, imports, another module, a new test in front of
  the others) and compares with the commit before, at a limit of 0.1 %: nothing may be said;
- commits a loop in one function that is 0.5 % of one test, and compares at a limit of 0.2 %: that test
  has to fail, and each test that fails has to name that function first.

Prints a table; exits 1 if something is not so. Needs git, the package, and examples/requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outside_ci import outside_ci

from pytest_instrcount import Timer

HERE = Path(__file__).parent.parent
RELEASE = "markdown-it-py==4.3.0"
#: A loop that does nothing, in so many turns.
LOOP = "for _ in (None,) * {turns}: pass"
SHARE = 0.005

MARKS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items[10::40]:
        item.add_marker("instrcount")
"""


@dataclass
class Project:
    """A repository, and what is done to it."""

    name: str
    #: where pytest is started, below the top
    folder: str
    args: tuple[str, ...]
    #: file -> what a commit that changes nothing puts at its beginning
    unrelated: dict[str, str]
    #: file and function that gets slower
    file: str
    function: str
    #: a part of the id of the test that it is 0.5 % of, which calls it once; the dearest of several
    target: str
    python: str = sys.executable
    top: Path = field(default_factory=Path)


PROJECTS = (
    Project(
        "examples",
        "examples",
        (),
        {
            "README.md": "One line more.\n",
            "examples/tests/conftest.py": "from __future__ import annotations\nimport decimal, uuid\n",
            "examples/another.py": "def other(): return [n * n for n in range(9)]\n",
            "examples/workload.py": '"""One more."""\n'
            "from __future__ import annotations\ndef unused(n): return {n: str(n)}\n",
            "examples/tests/test_workload.py": "from __future__ import annotations\n"
            "import csv, pytest\n@pytest.mark.instrcount\ndef test_added(): assert csv.QUOTE_ALL\n",
        },
        "examples/workload.py",
        "count_vowels",
        "test_count_vowels",
    ),
    Project(
        "markdown-it-py",
        ".",
        ("tests/test_cmark_spec/test_spec.py", "tests/test_api/test_main.py"),
        {
            "README.md": "One line more.\n",
            "conftest.py": "import decimal, uuid\n",
            "markdown_it/another.py": "def other(): return [n * n for n in range(9)]\n",
            "markdown_it/cli/parse.py": "import csv, html.parser\n",
            "tests/test_api/test_main.py": "import csv\ndef test_added(): assert csv.QUOTE_ALL\n",
        },
        "markdown_it/parser_block.py",
        "parse",
        "",
    ),
)


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints that has to work."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def commit(top: Path, message: str) -> None:
    """Commit all that is there."""
    run("git", "add", "--all", cwd=top)
    who = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost")
    run("git", *who, "commit", "--quiet", "--message", message, cwd=top)


def prepare(project: Project, folder: Path) -> None:
    """Make the repository, and the environment that its tests need."""
    project.top = folder / project.name
    if project.name == "examples":
        run("git", "clone", "--quiet", HERE, project.top)
        for path in (project.top / "examples").rglob("test_*.py"):  # the limit is the run's
            path.write_text(re.sub(r"max_delta=[^,)]*", "max_delta=None", path.read_text()))
        commit(project.top, "no limits")
        return
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", environment)
    project.python = str(environment / "bin" / "python")
    pip = (project.python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "download", "--no-deps", "--no-binary=:all:", "-d", folder, RELEASE)
    archive = next(folder.glob("markdown_it_py-*.tar.gz"))
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (folder / archive.name.removesuffix(".tar.gz")).rename(project.top)
    (project.top / "conftest.py").write_text(MARKS)
    (project.top / ".gitignore").write_text("__pycache__/\n")
    run("git", "init", "--quiet", project.top)
    commit(project.top, "the release")
    run(*pip, "install", HERE, "pytest-regressions", "-e", project.top)


def put_first(path: Path, text: str) -> None:
    """Put lines at the beginning of a file, in front of what it has."""
    old = path.read_text() if path.exists() else ""
    if "from __future__" in text:
        old = old.replace("from __future__ import annotations\n", "", 1)
    path.write_text(text + old)


def slow_down(path: Path, function: str, turns: int) -> None:
    """Put an empty loop at the beginning of a function."""
    lines = path.read_text().splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if re.match(rf"\s*def {function}\(", line))
    while not re.search(r":\s*(#.*)?$", lines[start]):
        start += 1
    indent = re.match(r"\s*", lines[start + 1])[0]  # type: ignore[index]
    lines.insert(start + 1, f"{indent}{LOOP.format(turns=turns)}\n")
    path.write_text("".join(lines))


def instructions_of_a_turn() -> float:
    """What one turn of the loop costs on this Python, in a function that is warm."""
    turns, calls = 1_000, 100
    timer = Timer(
        "loop()", f"def loop():\n    {LOOP.format(turns=turns)}\nfor _ in range(99): loop()"
    )
    return timer.collect_callgrind(number=calls).counts() / calls / turns


def compare(project: Project, limit: str) -> tuple[list[dict[str, Any]], float]:
    """The tests of a run against the commit before this one, and its seconds."""
    report = project.top.parent / f"{project.name}.json"
    report.unlink(missing_ok=True)
    command = [project.python, "-m", "pytest", "-p", "no:cacheprovider", "--instrcount-only"]
    command += ["--instrcount-against=HEAD~1", f"--instrcount-max-delta={limit}"]
    command += [f"--instrcount-report=json:{report}", *project.args]
    start = time.monotonic()
    done = subprocess.run(
        command,
        cwd=project.top / project.folder,
        env=outside_ci(),
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    with (project.top.parent / f"{project.name}.txt").open("a") as log:
        log.write(done.stdout + done.stderr)
    if not report.exists() or run("git", "status", "--porcelain", cwd=project.top):
        sys.exit(done.stdout + done.stderr)
    return json.loads(report.read_text())["tests"], seconds


def row(
    project: Project, what: str, tests: list[dict[str, Any]], seconds: float, says: str
) -> None:
    """One line of the table."""
    compared = [test for test in tests if test["delta"] is not None]
    raw = max(abs(test["ir"] / test["baseline_ir"] - 1) for test in compared)
    unmoved = sum(test["delta"] == 0 for test in compared)
    print(
        f"{project.name:15} {what:10} {len(compared):>8} {raw:>9.3%} {unmoved:>9} {seconds:>6.0f} s"
        f"  {says}",
        flush=True,
    )


def check(project: Project) -> bool:
    """Make both commits; whether all was as it should be."""
    for name, text in project.unrelated.items():
        put_first(project.top / name, text)
    commit(project.top, "nothing that a test runs")
    tests, seconds = compare(project, "0.1%")
    moved = [t for t in tests if t["verdict"] not in ("unchanged", "new")]
    says = ", ".join(f"{t['nodeid']} {t['verdict']}" for t in moved) or "silent"
    row(project, "unrelated", tests, seconds, says)

    target = max(
        (test for test in tests if test["baseline_ir"] and project.target in test["nodeid"]),
        key=lambda test: test["ir"],
    )
    turns = round(target["ir"] * SHARE / instructions_of_a_turn())
    slow_down(project.top / project.file, project.function, turns)
    commit(project.top, "half a percent")
    tests, seconds = compare(project, "0.2%")
    failed = {test["nodeid"]: test for test in tests if test["verdict"] == "regressed"}
    named = [
        nodeid
        for nodeid, test in failed.items()
        if test["python"] and test["python"]["functions"][0]["name"].endswith(project.function)
    ]
    found = failed.get(target["nodeid"])
    says = f"{len(failed)} failed, {len(named)} name {project.function}; "
    says += (
        f"{target['nodeid'].rpartition('::')[2]} {found['delta']:+.2%}" if found else "not found"
    )
    row(project, "planted", tests, seconds, says)
    right = found is not None and SHARE / 2 < found["delta"] < SHARE * 2
    return not moved and right and len(named) == len(failed)


def main() -> None:
    """Run them and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="project")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="against-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    print(f"CPython {sys.version.split()[0]}")
    print(f"{'project':15} {'commit':10} {'compared':>8} {'raw':>9} {'exactly 0':>9} {'':>8}")
    good = True
    for project in PROJECTS:
        if not options.names or project.name in options.names:
            prepare(project, folder)
            good = check(project) and good
    sys.exit(not good)


if __name__ == "__main__":
    main()
