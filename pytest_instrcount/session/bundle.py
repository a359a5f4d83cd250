"""A file about the failures of a run, for people who have neither the project nor its machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import file_error
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.files import replaceable, write_output
from pytest_instrcount.host.git import run_git, work_tree
from pytest_instrcount.report.bundle import (
    Bundle,
    BundledTest,
    load_bundle,
    numbers_of,
    render_bundle,
    show_command,
)
from pytest_instrcount.report.callgrind import profiles_of


@dataclass(slots=True)
class Bundler:
    """Collects the failures of a run for one file; without a path it does nothing."""

    path: Path | None
    #: where pytest was started: the path is shown from there
    start: Path
    #: what stood behind ``pytest`` on the command line
    words: Sequence[str]
    #: of what only the caller knows
    versions: Mapping[str, str]
    _tests: list[BundledTest] = field(default_factory=list)
    _error: InstrcountError | None = None

    def prepare(self) -> None:
        """See that the file can be written. Raises InstrcountError "bundle-write"."""
        if self.path is None:
            return
        try:
            there = next(each for each in self.path.parents if os.path.lexists(each))
            if not there.is_dir():
                raise NotADirectoryError(20, os.strerror(20))
            if not os.access(there, os.W_OK | os.X_OK):
                raise PermissionError(13, os.strerror(13))
        except (OSError, ValueError) as error:
            raise _unwritable(self.path, error) from error

    def failed(
        self,
        result: TestResult,
        text: Sequence[str],
        found: Baseline | InstrcountError | None,
        measurement: Measurement | None,
    ) -> None:
        """One test that failed for its count, or for having none."""
        if self.path is not None:
            old = found if isinstance(found, Baseline) else None
            tree = None if result.python is None else result.python.new
            self._tests.append(
                BundledTest(
                    result.nodeid,
                    result.verdict.value,
                    tuple(text),
                    numbers_of(result),
                    profiles_of(result.nodeid, measurement, old, tree),
                )
            )

    def failed_otherwise(self, nodeid: str, word: str, text: Sequence[str]) -> None:
        """One test that failed for its calls, a budget, or not being compared: the text holds all."""
        if self.path is not None:
            self._tests.append(BundledTest(nodeid, word, tuple(text)))

    def write(self, environment: Mapping[str, str], rootdir: Path) -> list[str]:
        """Write the file if there were failures; returns what is to be said of it.

        Without one, a bundle of a run before goes: it would be taken for one of this run.
        """
        if self.path is None:
            return []
        if not self._tests:
            with suppress(InstrcountError, OSError):
                place = replaceable(self.path)
                if place is not None and load_bundle(place):
                    place.unlink()
            return []
        bundle = Bundle(
            _command(self.words),
            git_commit(rootdir),
            {
                "pytest-instrcount": importlib.metadata.version("pytest-instrcount"),
                "CPython": " ".join(sys.version.split()),
                **self.versions,
                "on": platform.platform(),
            },
            environment,
            tuple(self._tests),
        )
        try:
            write_output(self.path, render_bundle(bundle, packed=self.path.suffix == ".gz"))
        except (OSError, ValueError) as error:
            self._error = _unwritable(self.path, error)
            return []
        number = len(self._tests)
        what = "failure of 1 test is" if number == 1 else f"failures of {number} tests are"
        shown = os.path.relpath(self.path, self.start)
        return [f"the {what} in {shown}; to print it again:", f"  {show_command(shown)}"]

    def finish(self) -> None:
        """Raise InstrcountError "bundle-write" if the file could not be written."""
        if self._error is not None:
            raise self._error


def _command(words: Sequence[str]) -> str:
    always = os.environ.get("PYTEST_ADDOPTS", "")
    before = [f"PYTEST_ADDOPTS={shlex.quote(always)}"] if always else []
    return " ".join([*before, shlex.join(["pytest", *words])])


def git_commit(folder: Path) -> str:
    """The commit that is checked out, with a "+" if files that git knows differ; "" without git."""
    tree = work_tree(folder)
    if tree is None:
        return ""
    try:
        commit = run_git(tree, "rev-parse", "HEAD").decode().strip()
        changed = run_git(tree, "status", "--porcelain", "--untracked-files=no").strip()
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return f"{commit}+" if changed else commit


def _unwritable(path: Path, error: Exception) -> InstrcountError:
    fix = "pytest --instrcount --instrcount-bundle=PATH.json.gz with a PATH you may write to"
    return file_error("bundle-write", path, error, fix)
