"""The CI examples, carried out: their commands by bash, what they take from others by a copy."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CI = Path(__file__).parents[1] / "docs" / "ci"

#: Steps that make the machine: here it is made already.
INSTALLS = re.compile(r"(?:sudo )?apt-get |python -m pip install ")

#: The conditions of the examples, for a pull request of the project's own and a start by hand.
CONDITIONS = {
    "${{ github.event_name == 'workflow_dispatch' }}": (False, True),
    "${{ github.event_name != 'workflow_dispatch' }}": (True, False),
    "${{ !cancelled() && github.event_name != 'workflow_dispatch' }}": (True, False),
    "${{ github.event.pull_request.head.repo.full_name == github.repository }}": (True, False),
}


@dataclass
class Runner:
    """A machine of a CI system: a checkout for each job, and artifacts that go from job to job."""

    #: the repository to clone for each job
    origin: Path
    folder: Path
    environment: Mapping[str, str]
    artifacts: Path = field(init=False)

    def __post_init__(self) -> None:
        self.artifacts = self.folder / "artifacts"
        self.artifacts.mkdir(parents=True)

    def checkout(self, name: str) -> Path:
        """A clone under the path that a runner would give it: the same for all jobs."""
        there = self.folder / "work" / "project"
        shutil.rmtree(there, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", str(self.origin), str(there)], check=True)
        return there

    def bash(self, script: str, folder: Path, more: Mapping[str, str]) -> int:
        """One ``run:``, as GitHub and GitLab run it."""
        ended = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=folder,
            env={**self.environment, **more},
            check=False,
        )
        return ended.returncode

    def github_job(self, job: dict[str, Any], values: Mapping[str, str], *, by_hand: bool) -> int:
        """All steps of a job; the exit code of the first that fails."""
        folder = self.folder / "work" / "project"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        failed = 0
        for step in job["steps"]:
            condition = step.get("if")
            wanted = condition is None or CONDITIONS[condition][by_hand]
            if not wanted or (failed and not (condition and "!cancelled()" in condition)):
                continue
            given = {name: _filled(text, values) for name, text in step.get("with", {}).items()}
            uses = step.get("uses", "").partition("@")[0]
            if uses == "actions/checkout":
                folder = self.checkout("job")
            elif uses == "actions/upload-artifact":
                self._upload(folder, given)
            elif uses == "actions/download-artifact":
                self._download(folder, given)
            elif uses:
                assert uses == "actions/setup-python"
            elif not INSTALLS.match(step["run"]):
                more = {name: _filled(text, values) for name, text in step.get("env", {}).items()}
                failed = failed or self.bash(_filled(step["run"], values), folder, more)
        return failed

    def _upload(self, folder: Path, given: Mapping[str, Any]) -> None:
        there = self.artifacts / given["name"]
        shutil.rmtree(there, ignore_errors=True)
        source = folder / given["path"]
        if source.is_dir():
            hidden = None if given.get("include-hidden-files") else shutil.ignore_patterns(".*")
            shutil.copytree(source, there, ignore=hidden)
            return
        found = sorted(folder.glob(given["path"]))
        assert found, f"nothing to upload: {given['path']}"
        there.mkdir()
        for path in found:
            shutil.copy(path, there)

    def _download(self, folder: Path, given: Mapping[str, Any]) -> None:
        for artifact in sorted(self.artifacts.iterdir()):
            if fnmatch.fnmatch(artifact.name, given["pattern"]):
                there = folder / given["path"]
                there = there if given.get("merge-multiple") else there / artifact.name
                shutil.copytree(artifact, there, dirs_exist_ok=True)

    def gitlab_job(self, job: dict[str, Any], more: Mapping[str, str]) -> int:
        """The script of a job, with the artifacts of all jobs before it; then its own are kept."""
        folder = self.checkout("job")
        if any(self.artifacts.iterdir()):
            shutil.copytree(self.artifacts, folder, dirs_exist_ok=True)
        script = "\n".join(line for line in job["script"] if not INSTALLS.match(line))
        code = self.bash(script, folder, more)
        for pattern in job.get("artifacts", {}).get("paths", ()):
            for path in folder.glob(pattern.rstrip("/")):
                if path.is_dir():
                    shutil.copytree(path, self.artifacts / path.name, dirs_exist_ok=True)
                else:
                    shutil.copy(path, self.artifacts)
        return code


def _filled(text: Any, values: Mapping[str, str]) -> Any:
    """Each ``${{ name }}`` with its value; one that is not known is an error."""
    if not isinstance(text, str):
        return text
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda match: values[match[1]], text)


def with_python(path: str, python: str) -> str:
    """A search path on which ``python`` is this interpreter."""
    return os.pathsep.join((os.path.dirname(python), path))
