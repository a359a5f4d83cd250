"""The age of baselines, and the growth of tests since the last tag within the limit."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.compare import differing_facts
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.rulings import Rulings
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.names import named, printable
from pytest_instrcount.gate.store.summary import parse_summary
from pytest_instrcount.host.git import run_git, work_tree
from pytest_instrcount.host.text import several
from pytest_instrcount.report.words import percent

#: Of so many tests that were updated most often those that grew most are named.
_MOST_READ = 100


def age_and_drift(rulings: Rulings) -> list[str]:
    """The drift of the baselines that a run compared with, from git's log; empty without git."""
    store = rulings.store
    compared = [result for result in rulings.results.values() if result.delta is not None]
    tree = work_tree(store.folder)
    if not compared or tree is None:
        return []
    try:
        if run_git(tree, "rev-parse", "--is-shallow-repository").strip() == b"true":
            return []
        return [*_age(tree, store.folder), *_drift(tree, store, compared, rulings.environment)]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []


def _age(tree: Path, folder: Path) -> list[str]:
    last = _log(tree, "-1", "--format=%H", path=folder).decode().strip()
    if not last:
        return []
    number = int(run_git(tree, "rev-list", "--count", "--first-parent", f"{last}..HEAD"))
    commits = several(number, "commit")
    return [f"the baselines were last changed {commits} ago ({last[:7]})"] if number else []


def _drift(
    tree: Path, store: Store, compared: Iterable[TestResult], environment: Mapping[str, str]
) -> list[str]:
    try:
        tag = run_git(tree, "describe", "--tags", "--abbrev=0", "HEAD").decode().strip()
    except subprocess.CalledProcessError:  # there is none
        return []
    since = f"refs/tags/{tag}..HEAD"
    log = _log(tree, "--format=", "--name-only", "-z", since, path=store.folder)
    updates = Counter(os.fsdecode(log).split("\0"))
    tests = {_name(tree, store.path(result.nodeid)): result for result in compared}
    updated = Counter({name: updates[name] for name in tests if name in updates})
    found: list[tuple[Fraction, str]] = []
    for name, number in updated.most_common(_MOST_READ):
        result = tests[name]
        blob = f"refs/tags/{tag}:{name}"
        growth = _growth(result, _count_at(tree, blob, store.path(result.nodeid), environment))
        if growth is not None:
            times = several(number, "update")
            found.append((growth, f"{result.nodeid} ({times}, {percent(growth)})"))
    if not found:
        return []
    found.sort(reverse=True)
    shown = named([text for _, text in found])
    return [f"grown past the limit since {printable(tag)}, by updates: {shown}"]


def _growth(result: TestResult, then: int | None) -> Fraction | None:
    """Growth since then; None if it is within the limit."""
    now = result.compared_ir[1]
    if not then or now is None or not result.limit.exceeded(then, 1, now, 1):
        return None
    return Fraction(now, then) - 1


def _count_at(tree: Path, blob: str, path: Path, environment: Mapping[str, str]) -> int | None:
    """Instructions per call in the baseline of a commit; None if it has none of this environment."""
    try:
        text = run_git(tree, "cat-file", "blob", blob).decode()
        baseline = parse_summary(text, path)
    except (InstrcountError, ValueError, subprocess.CalledProcessError):
        return None
    return None if differing_facts(baseline.environment, environment) else baseline.compared_ir


def _log(tree: Path, *arguments: str, path: Path) -> bytes:
    literal = f":(literal){_name(tree, path)}"
    command = ("-c", "log.showSignature=false", "log", "--first-parent", "-m", *arguments)
    return run_git(tree, *command, "--", literal)


def _name(tree: Path, path: Path) -> str:
    """The path from the work tree on, as git has it."""
    return os.path.relpath(os.path.realpath(path), tree)
