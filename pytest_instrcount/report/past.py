"""The past of one baseline, commit by commit, from git's log."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline_json import LARGEST_FILE, parse_baseline
from pytest_instrcount.gate.store.names import shown_path
from pytest_instrcount.host.git import run_git, work_tree
from pytest_instrcount.report.history import count_of

#: How many commits are looked at, the newest.
MOST_COMMITS = 200


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


def read_past(path: Path) -> Past:
    """The commits that changed a baseline. Raises InstrcountError "no-history" where there are none."""
    tree = work_tree(path.parent)
    try:
        if tree is None:
            raise ValueError(f"{path} is in no work tree")
        name = os.path.relpath(os.path.realpath(path), tree)
        file = f":(literal){name}"
        shallow = run_git(tree, "rev-parse", "--is-shallow-repository").strip() == b"true"
        log = run_git(
            tree,
            *("-c", "log.showSignature=false", "log", f"--max-count={MOST_COMMITS}"),
            *("--first-parent", "-m", "--format=%H%x1f%cI%x1f%s", "-z", "--", file),
        )
        commits = [
            each.split("\x1f") for each in log.decode("utf-8", "replace").split("\0") if each
        ]
        steps = [_step(tree, path, name, *commit) for commit in reversed(commits)]
        status = run_git(tree, "status", "--porcelain", "--", file)
    except (OSError, ValueError, TypeError, subprocess.SubprocessError):
        steps, shallow, status = [], False, b""
    points = tuple(step for step in steps if step is not None)
    if not points:
        raise InstrcountError(
            "no-history",
            f"git's log has no commit of {shown_path(path)}",
            f"git add {shown_path(path)} && git commit",
        )
    return Past(points, shallow, bool(status.strip()))


def _step(tree: Path, path: Path, name: str, commit: str, date: str, subject: str) -> Step | None:
    """None for a commit that deletes the file, or whose file is no baseline."""
    try:
        text = run_git(tree, "cat-file", "blob", f"{commit}:{name}")
    except subprocess.SubprocessError:
        return None
    ir = count_of(text) if len(text) <= LARGEST_FILE else None
    if ir is None:
        return None
    try:
        reason = parse_baseline(text.decode(), path).reason_for(ir)
    except (InstrcountError, ValueError):
        reason = ""  # of a release that checked less
    return Step(commit.strip(), date, subject, ir, reason)
