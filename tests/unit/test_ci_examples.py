"""The CI examples: valid for their systems, and in the docs as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.pipelines import CI, CONDITIONS, INSTALLS

DOCS = CI.parent


@pytest.mark.parametrize(
    "args",
    [
        ("--builtin-schema", "vendor.github-workflows", str(CI / "github.yml")),
        (
            "--builtin-schema",
            "vendor.gitlab-ci",
            "--data-transform",
            "gitlab-ci",
            str(CI / "gitlab.yml"),
        ),
    ],
)
def test_schemas(args: tuple[str, ...], tmp_path: Path) -> None:
    """The schemas of SchemaStore, as check-jsonschema brings them; a typing error is found."""
    command = [sys.executable, "-m", "check_jsonschema", *args]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    wrong = tmp_path / "wrong.yml"
    text = Path(args[-1]).read_text()
    wrong.write_text(re.sub(r"^(\s+)(steps|script):", r"\1\2s:", text, count=1, flags=re.MULTILINE))
    refused = subprocess.run([*command[:-1], str(wrong)], capture_output=True, check=False)
    assert refused.returncode == 1


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("how-to/ci.md", "github.yml"),
        ("how-to/ci.md", "gitlab.yml"),
        ("how-to/macos.md", "Dockerfile"),
    ],
)
def test_docs_lead_to_the_files(page: str, name: str) -> None:
    """What is checked is what is copied."""
    assert f"[docs/ci/{name}](../ci/{name})" in (DOCS / page).read_text()


def test_the_container_is_shown() -> None:
    """Word for word."""
    page = (DOCS / "how-to/macos.md").read_text()
    assert f"```dockerfile\n{(CI / 'Dockerfile').read_text()}```" in page


def test_expressions_are_known() -> None:
    """Each context and function that the workflow uses is one that GitHub has."""
    text = (CI / "github.yml").read_text()
    used = set(re.findall(r"\$\{\{ (.+?) \}\}", text))
    values = {each for each in used if re.fullmatch(r"[\w.]+", each)}
    assert values == {
        "github.event.number",
        "github.repository",
        "github.token",
        "inputs.reason",
        "matrix.group",
    }
    assert {f"${{{{ {each} }}}}" for each in used - values} == set(CONDITIONS)


def test_no_input_is_pasted_into_a_script() -> None:
    """What a person typed comes through the environment: it could be a command."""
    workflow = YAML(typ="safe").load((CI / "github.yml").read_text())
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert not re.search(r"\$\{\{ (?!matrix\.)", step.get("run", "")), step


def test_jobs_have_no_more_rights_than_they_need() -> None:
    """Reading, but for the one that comments and the one that commits."""
    workflow = YAML(typ="safe").load((CI / "github.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    assert rights == {
        "count": None,
        "gate": {"pull-requests": "write"},
        "commit": {"contents": "write"},
    }


def test_the_container_installs_what_the_workflows_install() -> None:
    """One Python and one set of packages for all three."""
    versions = {
        name: re.findall(r"3\.\d+\.\d+", (CI / name).read_text())
        for name in ("github.yml", "gitlab.yml", "Dockerfile")
    }
    assert len({version for found in versions.values() for version in found}) == 1
    assert all(versions.values())
    runs = re.findall(r"^RUN (.+)$", (CI / "Dockerfile").read_text(), re.MULTILINE)
    assert sum(bool(INSTALLS.match(run)) for run in runs) == 1  # apt; pip is called by itself
    assert sum(run.startswith("pip install") for run in runs) == 2
