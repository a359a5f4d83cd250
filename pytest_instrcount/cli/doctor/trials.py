"""Counting one test in a pytest of its own, under one change of what is around it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from pytest_instrcount.callgrind.command import FIXED, LET_THROUGH
from pytest_instrcount.cli.doctor.project import Project
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile
from pytest_instrcount.counts.standardize import standardize_profile
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.ci import OF_CI
from pytest_instrcount.report.callgrind import COUNTED
from pytest_instrcount.session.profiles import kept_path

#: Folders that are no part of a project when it is copied.
LEFT_OUT = """
    .git .hg .tox .nox .venv venv node_modules __pycache__ .mypy_cache .pytest_cache .ruff_cache
    instrcount_baselines
"""
#: A project of more bytes is not copied.
LARGEST_COPY = 500_000_000

#: What the other environment has, and the usual one has not.
ADDED = {
    "INSTRCOUNT_DOCTOR": "of another length " * 20,
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "C",
    "TZ": "Asia/Kolkata",
    "COLUMNS": "133",
    "TERM": "xterm-256color",
    "OMP_NUM_THREADS": "3",
    "USER": "somebody-else-altogether",
    "DEBUG": "1",
    "NO_COLOR": "1",
}
#: What it has as it is: without these, Python, pytest or the project would not be found.
_KEPT = ("PATH", "LD_LIBRARY_PATH", *(name for name in LET_THROUGH if name != "USER"))
OTHER_SEED = "4321"

_SEED = "PYTHONHASHSEED"


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to count the test."""

    name: str
    #: tests to be given to pytest, in this order
    tests: tuple[str, ...]
    #: where pytest is started
    folder: Path
    environment: Mapping[str, str]
    #: whether what is counted becomes the baseline of the other trials
    stores: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a trial."""

    #: the word of the JSON report, or "" if the test has none: it did not pass
    verdict: str
    #: growth against the baseline as the gate sees it; None where there is none
    gated: Fraction | None = None
    #: the smallest growth outside of layout noise that the gate believes
    floor: Fraction = Fraction(0)
    #: what Callgrind counted; None if nothing was
    profile: Profile | None = None
    #: the last lines of pytest's output
    said: tuple[str, ...] = ()


class Counts(Protocol):
    """Runs trials: ``Trials``, or a fake."""

    def count(self, trial: Trial) -> Outcome:
        """Count the test."""

    def run_natively(self, folder: Path, words: Sequence[str]) -> bool:
        """Run tests without counting; whether all passed."""

    def copy_project(self) -> Path | None:
        """The project in another folder; None if it is too large."""


@dataclass(slots=True)
class Trials:
    """Carries trials out, with baselines and reports in a folder of the doctor's own."""

    project: Project
    nodeid: str
    scratch: Path
    #: the user's own, as the doctor was started with it
    inherited: Mapping[str, str]
    _ini: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        (self.scratch / "tmp-of-another-name").mkdir()
        self._ini = ("-o", f"cache_dir={self.scratch / 'cache'}")

    def count(self, trial: Trial) -> Outcome:
        """Count the test. Raises OSError if pytest cannot be started."""
        folder = self.scratch / trial.name
        report, kept = folder / "report.json", folder / "kept"
        folder.mkdir()
        words = [
            *trial.tests,
            "--instrcount-update-baseline" if trial.stores else "--instrcount",
            f"--instrcount-baseline-dir={self.scratch / 'baselines'}",
            f"--instrcount-report=json:{report}",
            f"--instrcount-keep={kept}",
            "--instrcount-missing=note",
            "--instrcount-blame=off",
        ]
        _, said = self._pytest(words, trial.folder, trial.environment)
        last = tuple(said.strip().splitlines()[-8:])
        try:
            tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
        except (OSError, ValueError):
            return Outcome("", said=last)
        found = next((test for test in tests if test["nodeid"] == self.nodeid), None)
        if found is None or found["ir"] is None:
            return Outcome("", said=last)
        try:
            path = kept_path(kept, self.nodeid, COUNTED)
            profile = standardize_profile(parse_profile(path))
        except InstrcountError:
            profile = None
        return Outcome(
            found["verdict"],
            None if found["delta"] is None else Fraction(found["delta"]),
            Fraction(found["floor"] or 0),
            profile,
            last,
        )

    def run_natively(self, folder: Path, words: Sequence[str]) -> bool:
        """Run tests without counting; whether all passed."""
        return self._pytest([*words, "-o", "instrcount=false"], folder, self.usual())[0] == 0

    def copy_project(self) -> Path | None:
        """The working folder in a copy of the project, whose path has another length."""
        root = self.project.root
        if _size(root) > LARGEST_COPY:
            return None
        there = self.scratch / "a-folder-with-another-and-longer-name" / f"{root.name}-copy"
        shutil.copytree(
            root, there, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT.split())
        )
        folder = self.project.folder
        return there / folder.relative_to(root) if folder.is_relative_to(root) else there

    def usual(self) -> dict[str, str]:
        """The user's variables, outside CI."""
        return {name: value for name, value in self.inherited.items() if name not in OF_CI}

    def other_environment(self) -> dict[str, str]:
        """Variables added, changed and removed: all but those without which nothing is found.

        Those of the user's own choice stay as they are, unless they must be the same everywhere.
        """
        through = set(self.project.settings.let_through)
        kept = {*_KEPT, *(through - FIXED.keys())}
        made = {
            name: value
            for name, value in self.usual().items()
            if name in kept or name.startswith("PYTEST_") or name == _SEED
        }
        made |= {name: value for name, value in ADDED.items() if name not in through - FIXED.keys()}
        return made | {"TMPDIR": str(self.scratch / "tmp-of-another-name")}

    def other_seed(self) -> dict[str, str]:
        """Another hash seed."""
        return self.usual() | {_SEED: OTHER_SEED}

    def _pytest(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> tuple[int, str]:
        more = ["-n0"] if "pytest-xdist" in self.project.plugins else []
        root = self.project.root
        moved = dict(environment)
        if not folder.is_relative_to(root) and "PYTHONPATH" in moved:
            moved["PYTHONPATH"] = _moved(moved["PYTHONPATH"], root, folder)
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *self._ini, *more],
            cwd=folder,
            env=moved,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return ended.returncode, ended.stdout


def _moved(path: str, root: Path, copy: Path) -> str:
    """Entries of a search path that are in the project, as they are in the copy."""
    return os.pathsep.join(
        str(copy / Path(each).relative_to(root)) if Path(each).is_relative_to(root) else each
        for each in path.split(os.pathsep)
    )


def _size(root: Path) -> int:
    """Bytes of what would be copied, as far as is needed to say that it is too much."""
    size, left_out = 0, LEFT_OUT.split()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in left_out]
        for name in files:
            try:
                size += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
        if size > LARGEST_COPY:
            break
    return size
