"""Counts from the baselines of earlier commits in git's log: points of a plot, or the past of one baseline.

For a plot git is asked for all files of a folder at once: three processes, however many files there are.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import IO, TypedDict, TypeVar

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline_json import LARGEST_FILE
from pytest_instrcount.gate.store.calls import CallTable, parse_calls
from pytest_instrcount.gate.store.names import CALLS_SUFFIX, shown_path
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.gate.store.summary import parse_summary
from pytest_instrcount.host.git import git_command, git_environment, run_git, why_silent, work_tree
from pytest_instrcount.host.programs import Popen

Each = TypeVar("Each")
Stored = TypeVar("Stored", Baseline, CallTable)

#: How many points a file has at most: the newest.
_MOST_POINTS = 50
#: How many commits of the folder are looked through for them.
_MOST_COMMITS = 2_000
#: How many commits of one baseline are looked at, the newest.
_MOST_STEPS = 200


class Point(TypedDict):
    """The count that one commit stored for a test."""

    #: the commit's full hash
    commit: str
    #: when it was made, ISO 8601
    date: str
    #: instructions per call, the mean of all layouts where the baseline has those
    ir: int


def read_histories(paths: Sequence[Path]) -> dict[Path, list[Point]]:
    """For each baseline the counts that commits stored in it, the oldest first, the newest 50.

    Commits are those of the first parents: of a merged branch, what the merge brought. A list is
    empty where git has nothing to say: no git, no repository, a shallow clone (whose first commit
    would look as if it had changed everything), a file that was never committed.

    >>> list(read_histories([Path("/no/such/folder/test_a-3d491c41.json")]).values())
    [[]]
    """
    histories: dict[Path, list[Point]] = {path: [] for path in paths}
    if not paths:
        return histories
    full = {path: Path(os.path.abspath(path)) for path in histories}
    folder = Path(os.path.commonpath([path.parent for path in full.values()]))
    try:
        points = _points_below(folder)
    except (OSError, ValueError, subprocess.SubprocessError):
        return histories
    return {path: points.get(full[path].relative_to(folder).as_posix(), []) for path in histories}


def join_names(pasts: Sequence[Sequence[Each]], date_of: Callable[[Each], str]) -> list[Each]:
    """The past of a test that was renamed, from those of its names, the oldest name first.

    A name can be another test's before and afterwards, or this one's again: of each counts what is
    younger than the first of the name before, up to the first of the next.

    >>> join_names([["2026-03-01", "2026-03-03"], ["2026-03-02"]], str)
    ['2026-03-01', '2026-03-02']
    """

    def time_of(each: Each) -> datetime:
        return datetime.fromisoformat(date_of(each))

    joined: list[Each] = []
    begin = datetime.min
    for past in pasts:
        newer = [each for each in past if not joined or time_of(each) >= begin]
        if newer:
            begin = time_of(newer[0])
            joined = [each for each in joined if time_of(each) < begin] + newer
    return joined[-_MOST_STEPS:]


def _points_below(folder: Path) -> dict[str, list[Point]]:
    """The same of all files in a folder, by their paths in it; nothing where git has nothing to say."""
    tree = work_tree(folder)
    if tree is None or not folder.is_dir():
        return {}
    if run_git(tree, "rev-parse", "--is-shallow-repository").strip() != b"false":
        return {}
    found = _commits_of_files(tree, folder)
    wanted = {blob for entries in found.values() for _, _, blob in entries}
    counts = _read_counts(tree, sorted(wanted))
    return {
        path: [
            Point(commit=commit, date=date, ir=counts[blob])
            for commit, date, blob in reversed(entries)
            if blob in counts
        ]
        for path, entries in found.items()
    }


def _commits_of_files(tree: Path, folder: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Path below the folder -> commit, date and blob, the newest first."""
    below = os.path.relpath(os.path.realpath(folder), tree)
    relative = "--relative" if below == "." else f"--relative={below}"
    text = run_git(
        tree,
        *("-c", "log.diffMerges=first-parent", "-c", "log.showSignature=false"),
        *("log", f"--max-count={_MOST_COMMITS}", "--first-parent", "-m", "--format=%H %cI"),
        *("--raw", "--no-abbrev", "--no-renames", relative, "-z"),
        *("--", f":(literal){below}"),
    )
    found: dict[str, list[tuple[str, str, str]]] = {}
    commit = date = ""
    fields = iter(text.decode("utf-8", "surrogateescape").split("\0"))
    for field in map(str.strip, fields):
        if field.startswith(":"):  # :100644 100644 <old blob> <new blob> M, then the path
            *_, blob, status = field.split(" ")
            entries = found.setdefault(next(fields), [])
            if status != "D" and len(entries) < _MOST_POINTS:
                entries.append((commit, date, blob))
        elif field:
            commit, date = field.split(" ")
    return found


def _read_counts(tree: Path, blobs: Sequence[str]) -> dict[str, int]:
    """Blob -> what the baseline in it counts; without those that are no baselines."""
    counts: dict[str, int] = {}
    with tempfile.TemporaryFile() as names:  # a pipe would block: git answers as it reads
        names.write("".join(f"{blob}\n" for blob in blobs).encode())
        names.seek(0)
        with Popen(
            git_command(tree, "cat-file", "--batch"),
            stdin=names,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=git_environment(),
        ) as process:
            assert process.stdout is not None
            for blob, text in _answers(process.stdout):
                ir = count_of(text)
                if ir is not None:
                    counts[blob] = ir
    return counts


def _answers(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Blob and content, of what ``git cat-file --batch`` answers; what is missing has none."""
    for line in stream:
        name, kind, *size = line.decode().split()
        if not size:
            continue
        text = stream.read(int(size[0]) + 1)[:-1]
        if kind == "blob" and len(text) <= LARGEST_FILE:
            yield name, text


def count_of(text: bytes) -> int | None:
    """Instructions per call of a baseline as they are compared; None if it is none, or an older one.

    Older ones counted otherwise: beside today's counts they would look like changes of the test.
    """
    found = _parsed(parse_summary, text)
    return None if found is None else found.compared_ir


def _parsed(parse: Callable[[str, Path], Stored], text: bytes) -> Stored | None:
    try:
        return parse(text.decode(), Path())
    except (InstrcountError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Step:
    """One commit that changed a baseline."""

    commit: str
    #: when it was made, ISO 8601
    date: str
    #: first line of its message
    subject: str
    #: instructions per call, the mean of all layouts where the baseline has those
    ir: int
    #: of the baseline's ledger; "" if it has none
    reason: str


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a baseline in git."""

    #: the oldest first
    points: tuple[Step, ...]
    #: whether the clone has not all commits
    shallow: bool
    #: whether the file differs from the last commit
    changed: bool


def read_past(paths: Sequence[Path]) -> Past:
    """The commits that changed a baseline, whose last path is that of today.

    Raises InstrcountError "no-history" where there are none, or git cannot be asked.
    """
    pasts = [_read_past(path) for path in paths]
    points = join_names([past.points for past in pasts], attrgetter("date"))
    if not points:
        raise InstrcountError(
            "no-history",
            f"git's log has no commit of {shown_path(paths[-1])}",
            f"git add {shown_path(paths[-1])} && git commit",
        )
    return replace(pasts[-1], points=tuple(points))


def _read_past(path: Path) -> Past:
    tree = work_tree(path.parent)
    try:
        if tree is None:
            raise ValueError(f"{path} is in no work tree")
        name = os.path.relpath(os.path.realpath(path), tree)
        file = f":(literal){name}"
        shallow = run_git(tree, "rev-parse", "--is-shallow-repository").strip() == b"true"
        log = run_git(
            tree,
            *("-c", "log.showSignature=false", "log", f"--max-count={_MOST_STEPS}"),
            *("--first-parent", "-m", "--format=%H%x1f%cI%x1f%s", "-z", "--", file),
        )
        commits = [
            each.split("\x1f") for each in log.decode("utf-8", "replace").split("\0") if each
        ]
        steps = [_step(tree, name, *commit) for commit in reversed(commits)]
        status = run_git(tree, "status", "--porcelain", "--", file)
    except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
        told = why_silent(path.parent, error)
        if told is not None:
            raise InstrcountError("no-history", *told) from None
        steps, shallow, status = [], False, b""
    points = tuple(step for step in steps if step is not None)
    return Past(points, shallow, bool(status.strip()))


def _step(tree: Path, name: str, commit: str, date: str, subject: str) -> Step | None:
    """None for a commit that deletes the file, or whose file is no baseline."""
    try:
        text = run_git(tree, "cat-file", "blob", f"{commit}:{name}")
    except subprocess.SubprocessError:
        return None
    if len(text) > LARGEST_FILE:
        return None
    if name.endswith(CALLS_SUFFIX):
        table = _parsed(parse_calls, text)
        return None if table is None else Step(commit.strip(), date, subject, table.total, "")
    found = _parsed(parse_summary, text)
    if found is None:
        return None
    ir = found.compared_ir
    return Step(commit.strip(), date, subject, ir, found.reason_for(ir))
