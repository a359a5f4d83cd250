"""The CI examples, step by step, in a copy of the examples: a first baseline, a check, a regression."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import TWO_LAYOUTS
from tests.pipelines import CI, Runner, with_python

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

EXAMPLES = Path(__file__).parents[2] / "examples"

#: In the place of GitHub's own: remembers one comment.
GH = """#!/usr/bin/env bash
echo "$@" >> "$FAKE_GH/calls"
case "$*" in
  *"--jq"*) [ -e "$FAKE_GH/comment" ] && echo 77 ;;
  *"@comment.md"*) cp comment.md "$FAKE_GH/comment" ;;
esac
true
"""


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with two test files, and without baselines."""
    bare, work = tmp_path / "origin.git", tmp_path / "author"
    shutil.copytree(EXAMPLES, work, ignore=shutil.ignore_patterns("instrcount_baselines", "__*"))
    (work / "tests" / "test_packages.py").unlink()
    (work / "tests" / "test_stdlib.py").write_text(
        "import json\nimport pytest\n\n\n@pytest.mark.instrcount\ndef test_json():\n"
        "    assert json.loads(json.dumps(list(range(99))))\n"
    )
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    for command in (
        ["init", "-q", "-b", "main"],
        ["remote", "add", "origin", str(bare)],
    ):
        subprocess.run(["git", "-C", str(work), *command], check=True)
    push(work, "first")
    return bare


def push(work: Path, message: str) -> None:
    """What the author has in the folder."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    for command in (
        ["add", "-A"],
        [*identity, "commit", "-qm", message],
        ["push", "-q", "origin", "main"],
    ):
        subprocess.run(["git", "-C", str(work), *command], check=True)


def pull(work: Path) -> None:
    """What CI has committed."""
    subprocess.run(["git", "-C", str(work), "pull", "-q", "origin", "main"], check=True)


def slow_down(work: Path) -> None:
    """As ``examples/run`` does."""
    path = work / "workload.py"
    text = path.read_text()
    slower = text.replace("counts[letter] += 1  #", "counts[letter] += len(letter)  #")
    assert slower != text
    path.write_text(slower)


def load(name: str) -> Any:
    return YAML(typ="safe").load((CI / name).read_text())


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """As on a runner, with a ``gh`` that is ours."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    path = os.pathsep.join((str(tools), with_python(os.environ["PATH"], sys.executable)))
    ours = {"CI": "true", "PATH": path, "FAKE_GH": str(tools)}
    return os.environ | TWO_LAYOUTS | ours


def test_github(origin: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    """Started by hand it commits baselines; a pull request passes, and a slower one fails."""
    pytest.importorskip("pytest_split")
    workflow, tools, author = load("github.yml"), tmp_path / "tools", tmp_path / "author"
    summary = tmp_path / "summary.md"
    runner = Runner(
        origin, tmp_path / "runner", environment | {"GITHUB_STEP_SUMMARY": str(summary)}
    )
    values = {
        "github.event.number": "12",
        "github.repository": "o/r",
        "github.token": "t",
        "inputs.reason": 'a first "baseline"; $(exit 9)',
    }
    jobs = workflow["jobs"]

    def count(*, by_hand: bool) -> list[int]:
        return [
            runner.github_job(jobs["count"], values | {"matrix.group": str(n)}, by_hand=by_hand)
            for n in jobs["count"]["strategy"]["matrix"]["group"]
        ]

    assert count(by_hand=True) == [0, 0]
    assert runner.github_job(jobs["commit"], values, by_hand=True) == 0
    pull(author)
    assert len(list(author.glob("instrcount_baselines/**/*.json"))) == 2
    log = ["git", "-C", str(author), "log", "-1", "--format=%s"]
    said = subprocess.run(log, capture_output=True, text=True, check=True).stdout
    assert said == 'Update instruction counts: a first "baseline"; $(exit 9)\n'

    assert count(by_hand=False) == [0, 0]
    assert runner.github_job(jobs["gate"], values, by_hand=False) == 0
    comment = (tools / "comment").read_text()
    assert comment.startswith("<!-- instrcount -->\n") and "regressed" not in comment

    slow_down(author)
    push(author, "slower")
    assert sorted(count(by_hand=False)) == [0, 1]
    assert runner.github_job(jobs["gate"], values, by_hand=False) == 1
    comment = (tools / "comment").read_text()
    assert "test_count_vowels" in comment and "regressed" in comment
    assert "test_count_vowels" in summary.read_text()
    calls = (tools / "calls").read_text().splitlines()
    assert calls[-1].startswith("api --method PATCH repos/o/r/issues/comments/77 ")


def test_gitlab(origin: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    """The artifact of the update is the folder to be committed; then as above."""
    pytest.importorskip("pytest_split")
    jobs, author = load("gitlab.yml"), tmp_path / "author"
    updating = Runner(origin, tmp_path / "updating", environment)
    assert updating.gitlab_job(jobs["instrcount-update"], {}) == 0
    shutil.copytree(updating.artifacts, author, dirs_exist_ok=True)
    slow_down(author)
    push(author, "baselines, and slower code")
    runner = Runner(origin, tmp_path / "runner", environment)
    total = str(jobs["instrcount"]["parallel"])
    codes = [
        runner.gitlab_job(jobs["instrcount"], {"CI_NODE_TOTAL": total, "CI_NODE_INDEX": index})
        for index in ("1", "2")
    ]
    assert sorted(codes) == [0, 1]
    assert runner.gitlab_job(jobs["instrcount-gate"], {}) == 1
