"""The files of the other commit, in a work tree of their own: checked out, completed, built."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL

from pytest_instrcount.callgrind.endings import read_lines
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.records import Base
from pytest_instrcount.gate.store.names import named, printable
from pytest_instrcount.host.programs import Popen
from pytest_instrcount.session.against.git import Repository
from pytest_instrcount.session.against.origins import built_elsewhere, built_in_place, packages_of

_TAIL_LINES = 20
_MOST_NAMES = 5


class Checkout:
    """The contents of a commit's work tree; ``tree`` is its folder."""

    def __init__(self, repository: Repository, base: Base, tree: Path) -> None:
        self._repository = repository
        self._base = base
        self._tree = tree
        self._there: list[str] = []

    def take(self) -> list[str]:
        """Check the commit out; returns what is to be said of it."""
        self._repository.check_out(self._base.commit, self._tree)
        self._there = self._repository.files_of(self._base.commit)
        notes = []
        if self._repository.is_at(self._base.commit):
            notes.append(f"{self._base} is what is checked out here, unchanged: no test can differ")
        if generated := self._copy_generated():
            names = named(generated, _MOST_NAMES)
            notes.append(f"git ignores {names}: {self._base} was measured with yours")
        return notes

    def packages(self) -> list[str]:
        """Names of what the project installs at the commit."""
        return list(packages_of(self._there))

    def _folders(self) -> set[str]:
        return {os.path.dirname(each) for each in self._there}

    def _copy_generated(self) -> list[str]:
        """Copy what a build or an install has written beside the sources, and git ignores."""
        folders = self._folders()
        copied = []
        for name in self._repository.ignored():
            source, target = self._repository.path / name, self._tree / name
            if os.path.dirname(name.rstrip("/")) not in folders or os.path.lexists(target):
                continue
            if name.endswith(".egg-info/"):
                shutil.copytree(source, target)
            elif name.endswith(".py") and source.is_file():
                shutil.copy2(source, target)
                copied.append(name)
        return copied

    def check_built(self) -> None:
        """Raise InstrcountError "against-compiled" where the user's side is built in place, this not."""
        here, tracked, folders = self._repository.path, self._repository.tracked(), self._folders()
        built = [each for each in built_in_place(here, tracked) if os.path.dirname(each) in folders]
        built += built_elsewhere(here, tracked)
        missing = [each for each in built if not (self._tree / each).exists()]
        if missing:
            raise InstrcountError(
                "against-compiled",
                f"{named(missing, _MOST_NAMES)} {'is' if len(missing) == 1 else 'are'} built, and not so for "
                f"{self._base}",
                "pytest --instrcount-against=REF -o "
                "instrcount_against_build='python setup.py build_ext --inplace'    # or what "
                "else builds it",
            )

    def build(self, command: str, where: str, environment: Mapping[str, str], log: Path) -> None:
        """Run the user's command in a folder. Raises InstrcountError "against-build"."""
        path = os.pathsep.join(
            (os.path.dirname(sys.executable), environment.get("PATH", os.defpath))
        )
        with (
            log.open("wb") as output,
            Popen(
                ["/bin/sh", "-c", command],
                cwd=where,
                env={**environment, "PATH": path},
                stdin=DEVNULL,
                stdout=output,
                stderr=output,
            ) as process,
        ):
            status = process.wait()
        if status:
            raise InstrcountError(
                "against-build",
                f"the build of {self._base} ended with exit code {status}: {command}\n"
                f"{tail_of(log)}",
                "change instrcount_against_build, or choose a commit that it builds",
            )


def tail_of(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(printable(line) for line in read_lines(log)[-_TAIL_LINES:]).strip()
