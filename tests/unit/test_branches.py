"""Baselines in git: what a reviewer sees of a change, and what happens when branches are merged."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.ledger import Entry
from pytest_instrcount.gate.store.schema import Baseline, to_baseline
from pytest_instrcount.gate.store.updating import updating
from tests.unit.test_history import Repository

KEY = "cp311-linux-x86_64"
OLD = ("test_a", "test_b", "test_c")


class Project(Repository):
    """A repository with the baselines of some tests, which branches change."""

    @property
    def baselines(self) -> Store:
        return Store(self.root / "baselines", KEY)

    def update(self, counts: dict[str, int], reason: str = "") -> None:
        """Store baselines as a run does, and commit them."""
        with updating(self.baselines.root) as update:
            update.begin()
            for name, ir in counts.items():
                rows = {f"a.c:f{number}": Row(ir // 50, 1) for number in range(50)}
                measured = Measurement(f"test_x.py::{name}", ir, 1, 20, "fork", rows, {})
                baseline = to_baseline(measured, {"valgrind": "3.19.0"})
                ledger = (Entry(None, ir, reason),) if reason else ()
                self.baselines.write(replace(baseline, ledger=ledger), update.add, update.remove)
            self.baselines.mark_profiles(update.add)
        self.commit()

    def counts(self) -> dict[str, int]:
        """Of tests whose baselines are whole."""
        found = {
            name: self.baselines.read(f"test_x.py::{name}") for name in (*OLD, "test_n", "test_o")
        }
        whole = {name: each for name, each in found.items() if isinstance(each, Baseline)}
        assert not any(each.lost for each in whole.values())
        return {name: each.ir for name, each in whole.items()}

    def merge(self, branch: str) -> str:
        """What git says of the files that it cannot merge."""
        author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", "-C", str(self.root), *author, "merge", "-q", "--no-edit", branch],
            check=False,
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr if done.returncode else ""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "repository")
    made.update(dict.fromkeys(OLD, 100_000))
    return made


def test_a_review_is_short(project: Project) -> None:
    """Five lines and two braces a test; of a change, the numbers and the reason."""
    for path in project.root.rglob("*.json"):
        assert path.read_text().count("\n") == 7 and path.stat().st_size <= 400
    project.update({"test_b": 90_000}, "a faster parser")
    shown = project.git("diff", "--unified=0", "HEAD~1", "--", "*.json")
    changed = [line for line in shown.splitlines() if line[0] in "+-" and line[1] == " "]
    assert len(changed) == 8
    assert '+ "reason": "a faster parser",' in changed
    assert '+ "ir": 90000, "denoised_ir": 90000,' in changed
    files = project.git("diff", "--name-status", "--no-renames", "HEAD~1").splitlines()
    assert sorted(line[0] for line in files) == ["A", "D", "M"]


def test_git_knows_what_is_not_for_people(project: Project) -> None:
    (profile, *_) = project.root.rglob("*.profile.gz")
    said = project.git("check-attr", "diff", "merge", "linguist-generated", "--", str(profile))
    assert [line.rpartition(": ")[2] for line in said.splitlines()] == ["unset", "unset", "set"]


def test_attributes_of_the_user_stay(project: Project) -> None:
    attributes = project.baselines.root / ".gitattributes"
    attributes.write_text("mine\n")
    project.update({"test_a": 1_000_000})
    assert attributes.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param({"test_a": 200_000}, {"test_b": 300_000}, id="neighbours changed"),
        pytest.param({"test_n": 200_000}, {"test_o": 300_000}, id="neighbours added"),
        pytest.param({"test_n": 100_000}, {"test_c": 300_000}, id="added and changed"),
        pytest.param({"test_a": 50, "test_n": 100}, {"test_b": 150, "test_o": 200}, id="both"),
    ],
)
def test_branches_with_different_tests(
    project: Project, ours: dict[str, int], theirs: dict[str, int]
) -> None:
    """Merge without a conflict, without a driver, and no profile is left over."""
    project.git("checkout", "-q", "-b", "other")
    project.update(theirs)
    project.git("checkout", "-q", "main")
    project.update(ours)
    assert project.merge("other") == ""
    assert project.counts() == dict.fromkeys(OLD, 100_000) | ours | theirs
    assert not list(project.baselines.unnamed_profiles())


def test_a_test_that_is_deleted_beside_one_that_changes(project: Project) -> None:
    """The profile of the one is not taken for that of the other."""
    project.git("checkout", "-q", "-b", "other")
    project.baselines.delete(project.baselines.path("test_x.py::test_a"))
    project.update({"test_n": 100_050})
    project.git("checkout", "-q", "main")
    project.update({"test_b": 100_100})
    assert project.merge("other") == ""
    assert project.counts() == {"test_b": 100_100, "test_c": 100_000, "test_n": 100_050}


def test_branches_with_the_same_test(project: Project) -> None:
    """Conflict in the summary alone; an update settles it, and leaves one profile."""
    project.git("checkout", "-q", "-b", "other")
    project.update({"test_a": 200_000})
    project.git("checkout", "-q", "main")
    project.update({"test_a": 300_000})
    said = project.merge("other")
    assert said.count("CONFLICT") == 1 and ".json" in said
    nodeid = "test_x.py::test_a"
    assert project.baselines.read(nodeid, updating=True) is None
    assert project.baselines.read("test_x.py::test_b") is not None
    project.update({"test_a": 400_000})
    assert project.counts() == dict.fromkeys(OLD, 100_000) | {"test_a": 400_000}
    assert not list(project.baselines.unnamed_profiles())
