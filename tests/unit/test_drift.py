"""The age of baselines, and growth by many updates, from git's log."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.gate.baselines import Baselines
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.policy import Policy
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.rulings import Rulings
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.schema import to_baseline
from pytest_instrcount.session.drift import age_and_drift

NODEID = "test_a.py::test_x"
FACTS = {"valgrind": "3.19.0"}


class Repository:
    """A work tree with baselines of one test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Store(path / "baselines", "cp311")
        self.git("init", "-q")

    def git(self, *arguments: str) -> None:
        settings = (
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "tag.gpgSign=false",
        )
        subprocess.run(["git", *settings, *arguments], cwd=self.path, check=True)

    def commit(self, subject: str) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", subject)

    def update(self, ir: int, facts: dict[str, str] = FACTS) -> None:
        measurement = Measurement(NODEID, ir, 1, 20, "fork", {"a.c:f": Row(ir, 1)}, {})
        baseline = replace(to_baseline(measurement, facts, {}), denoised=None)
        self.store.write(baseline)
        self.commit(f"update to {ir}")

    def said(self, ir: int) -> list[str]:
        result = TestResult(NODEID, Verdict.unchanged, ir, ir, Fraction(0), parse_limit("1%"))
        rulings = Rulings(Baselines(self.store, False), FACTS, Policy("note", "warn", "note", None))
        rulings.results[NODEID] = result
        return age_and_drift(rulings)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_nothing_without_git(tmp_path: Path) -> None:
    """Neither an error nor a line."""
    rulings = Rulings(
        Baselines(Store(tmp_path, "cp311"), False), FACTS, Policy("note", "warn", "note", None)
    )
    rulings.results[NODEID] = TestResult(
        NODEID, Verdict.unchanged, 1, 1, Fraction(0), parse_limit("1%")
    )
    assert age_and_drift(rulings) == []


def test_age(repository: Repository) -> None:
    """Commits since one changed the baselines; nothing where the last one did, or none is committed."""
    assert repository.said(10_000) == []
    repository.update(10_000)
    assert repository.said(10_000) == []
    for _ in range(12):
        repository.commit("other work")
    (line,) = repository.said(10_000)
    assert line.startswith("the baselines were last changed 12 commits ago (")


def test_drift(repository: Repository) -> None:
    """Seven updates, each within the limit of 1 %, and 4 % in all since the last tag."""
    repository.update(9_000)
    repository.update(10_000)
    repository.git("tag", "v1.2")
    for ir in (10_060, 10_120, 10_180, 10_240, 10_300, 10_360, 10_410):
        repository.update(ir)
    assert repository.said(10_410) == [
        f"grown past the limit since v1.2, by updates: {NODEID} (7 updates, +4.1 %)"
    ]
    assert repository.said(10_090) == []  # within the limit of what the tag has
    repository.git("tag", "v1.3")
    assert repository.said(10_410) == []


def test_another_environment_is_no_drift(repository: Repository) -> None:
    """What the tag has was counted elsewhere."""
    repository.update(10_000, {"valgrind": "3.18.0"})
    repository.git("tag", "v1.2")
    repository.update(12_000)
    assert repository.said(12_000) == []
