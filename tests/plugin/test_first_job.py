"""``--instrcount-init``: a first job for CI, written once."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest
from ruamel.yaml import YAML

from tests.blocks import blocks
from tests.plugin.conftest import TWO_TESTS, Project

WORKFLOW = ".github/workflows/instrcount.yml"


def test_a_workflow_for_github(project: Project) -> None:
    """It is valid, it is the one that the docs show, and no test runs."""
    project.write(TWO_TESTS)
    result = project.run("--instrcount-init")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"wrote {WORKFLOW}: *", f"next: git add {WORKFLOW}, and commit"])
    assert "passed" not in result.stdout.str()
    path = project.path / WORKFLOW
    python = f'python-version: "{sys.version_info[0]}.{sys.version_info[1]}"'
    shown = [block.text.replace('python-version: "3.12"', python) for block in blocks("workflow")]
    assert path.read_text() in shown
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    subprocess.run([*check, "vendor.github-workflows", str(path)], check=True)


def test_what_is_there_stays(project: Project) -> None:
    path = project.path / WORKFLOW
    path.parent.mkdir(parents=True)
    path.write_text("mine\n")
    result = project.run("--instrcount-init")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*{WORKFLOW} is there already [[]init[]]", f"  fix: cat {WORKFLOW}"]
    )
    assert path.read_text() == "mine\n"


def test_a_folder_in_the_way(project: Project) -> None:
    (project.path / ".github").write_text("")
    result = project.run("--instrcount-init")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{WORKFLOW} *[[]init[]]"])


def test_gitlab_has_one_file_for_all_jobs(project: Project) -> None:
    """So the job is shown, to be added to it."""
    (project.path / ".gitlab-ci.yml").write_text("stages: [test]\n")
    text = project.run("--instrcount-init").stdout.str()
    (job,) = YAML(typ="safe").load(text[text.index("instrcount:") :]).values()
    assert job["script"][-1] == "pytest --instrcount-against=$CI_MERGE_REQUEST_DIFF_BASE_SHA"
    assert not (project.path / ".github").exists()


@pytest.mark.parametrize("name", ["part", "a 'part'"])
def test_a_project_that_is_a_part_of_a_repository(project: Project, name: str) -> None:
    """A job is read at the top of the work tree alone, and begins there."""
    (project.path / ".git").mkdir()
    part = project.path / name
    part.mkdir()
    (part / "pytest.ini").write_text("[pytest]\n")
    result = project.run(f"--rootdir={part}", "-c", f"{part}/pytest.ini", "--instrcount-init")
    result.stdout.fnmatch_lines([f"wrote {WORKFLOW}: *"])
    job = YAML(typ="safe").load(project.path / WORKFLOW)["jobs"]["instrcount"]
    assert job["defaults"] == {"run": {"working-directory": name}}
    (project.path / ".gitlab-ci.yml").write_text("stages: [test]\n")
    text = project.run(f"--rootdir={part}", "-c", f"{part}/pytest.ini", "--instrcount-init")
    shown = text.stdout.str()
    (job,) = YAML(typ="safe").load(shown[shown.index("instrcount:") :]).values()
    assert shlex.split(job["script"][0]) == ["cd", name]
