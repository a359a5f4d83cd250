"""Profiles that are kept for the user to open: what Callgrind wrote, and what it is compared with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_instrcount.counts.outfile import header_lines, join_dumps
from pytest_instrcount.counts.python.tree import CallTree, Place
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import (
    file_name,
    folder_parts,
    printable,
    reason_of,
    shown_path,
)
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.files import write_output
from pytest_instrcount.host.text import several
from pytest_instrcount.report.bundle import BundledTest
from pytest_instrcount.report.callgrind import (
    BASELINE,
    COUNTED,
    PYTHON,
    PYTHON_BASELINE,
    baseline_profile,
    counted_calls,
    python_profile,
)


def kept_path(folder: Path, nodeid: str, suffix: str) -> Path:
    """The path of a kept file of a test.

    >>> str(kept_path(Path("kept"), "tests/test_x.py::test_a", COUNTED))
    'kept/tests/test_x/test_a-3d491c41.callgrind.out'
    """
    name = file_name(nodeid).removesuffix(".json") + suffix
    return folder.joinpath(*folder_parts(nodeid), name)


def joined_dumps(nodeid: str, answer: Mapping[str, Any]) -> bytes | None:
    """The dumps of an answer as the one file that they are parts of; None if they are damaged."""
    dumps = [Path(path) for path in answer["dumps"][:-1]]  # the last is that of the switch alone
    told = ["Side: now", counted_calls(answer["counted"][1])]
    try:
        return join_dumps(dumps, header_lines(printable(nodeid), told)) if dumps else None
    except (InstrcountError, OSError):  # it is about to be read, and told
        return None


@dataclass(slots=True)
class Keeper:
    """Keeps the profiles of a run in a folder; without a folder it does nothing.

    What cannot be written is told at the end, by `finish`: a test is none the worse for it.
    """

    folder: Path | None
    #: where pytest was started: paths are shown from there
    start: Path
    _kept: set[str] = field(default_factory=set)
    _places: dict[str, dict[str, Place]] = field(default_factory=dict)
    _error: InstrcountError | None = None

    def prepare(self) -> None:
        """Make the folder, before anything is measured. Raises InstrcountError "keep-write"."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(13, os.strerror(13))
        except (OSError, ValueError) as error:
            raise _unwritable(self.folder, error) from error

    def keep(self, nodeid: str, profile: bytes) -> None:
        """Keep what a test was counted at, as `joined_dumps` makes it."""
        if self.folder is None or not self._write(nodeid, COUNTED, lambda: profile):
            return
        self._kept.add(nodeid)
        for suffix in (BASELINE, PYTHON, PYTHON_BASELINE):  # of a run before
            with suppress(OSError):
                kept_path(self.folder, nodeid, suffix).unlink()

    def attributed(self, nodeid: str, tree: CallTree) -> None:
        """Keep what a test is made of by Python function."""
        if self.folder is None:
            return
        self._places[nodeid] = dict(tree.places)
        self._write(nodeid, PYTHON, lambda: python_profile(tree, nodeid, "now"))

    def failed(self, result: TestResult, found: Baseline | InstrcountError | None) -> TestResult:
        """Keep the old side of a test that is to fail; its text then says where both are."""
        if self.folder is None or result.nodeid not in self._kept:
            return result
        told = [f"profile now:    {self._shown(result.nodeid, COUNTED)}"]
        if isinstance(found, Baseline):
            old = found
            if self._write(result.nodeid, BASELINE, lambda: baseline_profile(old)):
                told.append(f"profile before: {self._shown(result.nodeid, BASELINE)}")
            tree = old.python
            if tree is not None and result.python is not None:
                places = self._places.get(result.nodeid)
                self._write(
                    result.nodeid,
                    PYTHON_BASELINE,
                    lambda: python_profile(tree, result.nodeid, "the baseline", places),
                )
        return replace(result, detail=(*result.detail, *told))

    def notes(self) -> list[str]:
        """Notes for below the table."""
        if self.folder is None or not self._kept:
            return []
        number = len(self._kept)
        return [
            f"profiles of {several(number, 'test')} are in "
            f"{os.path.relpath(self.folder, self.start)}, for kcachegrind and callgrind_annotate"
        ]

    def finish(self) -> None:
        """Raise InstrcountError "keep-write" if a file could not be written."""
        if self._error is not None:
            raise self._error

    def _shown(self, nodeid: str, suffix: str) -> str:
        assert self.folder is not None
        return os.path.relpath(kept_path(self.folder, nodeid, suffix), self.start)

    def _write(self, nodeid: str, suffix: str, made: Callable[[], bytes]) -> bool:
        if self.folder is None:
            return False
        path = kept_path(self.folder, nodeid, suffix)
        try:
            write_output(path, made())
        except InstrcountError:
            pass  # a damaged dump: it is about to be read, and told
        except (OSError, ValueError) as error:
            self._error = self._error or _unwritable(path, error)
        else:
            return True
        return False


def keep_bundled(folder: Path, tests: Iterable[BundledTest]) -> Iterator[Path]:
    """Write both sides of bundled tests; yields the files.

    What was counted is there as a bundle has it: under standard names, without lines of source.
    Raises InstrcountError "keep-write".
    """
    for test in tests:
        for suffix, text in test.profiles.items():
            path = kept_path(folder, test.nodeid, suffix)
            try:
                write_output(path, text.encode())
            except (OSError, ValueError) as error:
                raise _unwritable(path, error) from error
            yield path


def _unwritable(path: Path, error: Exception) -> InstrcountError:
    return InstrcountError(
        "keep-write",
        f"profiles cannot be kept in {shown_path(path)}: {reason_of(error)}",
        "pytest --instrcount --instrcount-keep=DIR with a DIR you may write to",
    )
