"""Counts of earlier commits, from repositories that each test makes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pytest_instrcount.counts.measurement import per_call
from pytest_instrcount.gate.store.summary import parse_summary
from pytest_instrcount.host import git, programs
from pytest_instrcount.report import history
from pytest_instrcount.report.history import Point, join_names, read_histories
from tests.baselines import SAMPLE

DATA = Path(__file__).parents[1] / "data" / "baselines"


class Repository:
    """A repository with a folder of baselines; each commit is a minute later."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "baselines" / "cp311-linux-x86_64"
        self.minute = 0
        self.folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        date = f"2026-03-01T10:{self.minute:02}:00+01:00"
        return subprocess.run(
            ["git", "-C", str(self.root), *arguments],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_AUTHOR_NAME": "A",
                "GIT_AUTHOR_EMAIL": "a@example.org",
                "GIT_AUTHOR_DATE": date,
                "GIT_COMMITTER_NAME": "A",
                "GIT_COMMITTER_EMAIL": "a@example.org",
                "GIT_COMMITTER_DATE": date,
            },
        ).stdout.strip()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self) -> str:
        self.minute += 1
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def store(self, **counts: int) -> str:
        for name, ir in counts.items():
            self.write(f"{name}.json", baseline(ir))
        return self.commit()


def baseline(count: int, *, totals: tuple[int, ...] = (), **changes: object) -> str:
    """A summary, with layouts if it is told what these counted in two calls."""
    mean = per_call(sum(totals), 2 * len(totals)) if totals else None
    values = {"ir": count, "denoised_ir": mean, "calls": 2, "totals": totals or [2 * count]}
    return json.dumps({**json.loads(SAMPLE.read_text()), **values, **changes})


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def points(path: Path) -> list[Point]:
    return read_histories([path])[path]


def counts(path: Path) -> list[int]:
    return [point["ir"] for point in points(path)]


def test_points_say_commit_date_and_count(repository: Repository) -> None:
    """The oldest first."""
    first, second = repository.store(a=100), repository.store(a=90)
    assert points(repository.folder / "a.json") == [
        {"commit": first, "date": "2026-03-01T10:01:00+01:00", "ir": 100},
        {"commit": second, "date": "2026-03-01T10:02:00+01:00", "ir": 90},
    ]


def test_a_commit_is_a_point_of_the_files_that_it_changed(repository: Repository) -> None:
    for files in ({"a": 1, "b": 1}, {"b": 2}, {"a": 3}):
        repository.store(**files)
    assert counts(repository.folder / "a.json") == [1, 3]
    assert counts(repository.folder / "b.json") == [1, 2]


def test_the_mean_of_layouts_comes_first(repository: Repository) -> None:
    """Per call, rounded half up, as everywhere: here of 180 and 182."""
    repository.write("a.json", baseline(90, totals=(180, 182)))
    repository.commit()
    assert counts(repository.folder / "a.json") == [91]


def test_only_the_schema_of_today_has_a_count(repository: Repository) -> None:
    """Older ones counted otherwise, and would look like changes of the test."""
    samples = sorted(DATA.glob("*.json"))
    assert samples[-1] == SAMPLE and len(samples) == 6
    for sample in samples:
        repository.write("a.json", sample.read_text())
        repository.commit()
    newest = parse_summary(SAMPLE.read_text(), SAMPLE)
    assert counts(repository.folder / "a.json") == [newest.compared_ir]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<<<<<<< ours\n",
        "[]",
        "{}",
        baseline(9, ir="9"),
        baseline(1, ir=True),
        baseline(9, denoised_ir=8),
        baseline(9, calls=0),
        "[" * 100_000,
    ],
)
def test_what_is_no_baseline_is_no_point(repository: Repository, text: str) -> None:
    repository.store(a=1)
    repository.write("a.json", text)
    repository.commit()
    repository.store(a=3)
    assert counts(repository.folder / "a.json") == [1, 3]


def test_a_deleted_file_has_a_gap(repository: Repository) -> None:
    repository.store(a=1, b=1)
    (repository.folder / "a.json").unlink()
    repository.commit()
    repository.store(a=3)
    assert counts(repository.folder / "a.json") == [1, 3]


def test_of_a_merged_branch_the_merge_is_the_point(repository: Repository) -> None:
    repository.store(a=1, b=1)
    repository.git("checkout", "-q", "-b", "branch")
    repository.store(a=2)
    repository.store(a=3)
    repository.git("checkout", "-q", "main")
    repository.store(b=5)
    repository.minute += 1
    repository.git("merge", "-q", "--no-ff", "-m", "m", "branch")
    merge = repository.git("rev-parse", "HEAD")
    assert counts(repository.folder / "a.json") == [1, 3]
    assert points(repository.folder / "a.json")[-1]["commit"] == merge


def test_names_that_git_would_quote(repository: Repository) -> None:
    path = repository.write('ä "b"\n c.json', baseline(1))
    repository.commit()
    assert counts(path) == [1]


def test_the_newest_fifty(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST_POINTS", 3)
    for ir in range(5):
        repository.store(a=ir)
    assert counts(repository.folder / "a.json") == [2, 3, 4]


def test_five_hundred_files_are_three_processes(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"test_x/f{number}" for number in range(500)]
    for step in range(3):
        repository.store(**{name: 1000 * step + number for number, name in enumerate(names)})
    paths = [repository.folder / f"{name}.json" for name in names]
    started: list[object] = []
    popen = subprocess.Popen

    def counted(*args: object, **kwargs: object) -> object:
        started.append(args)
        return popen(*args, **kwargs)  # type: ignore[call-overload]

    for each in (programs, history):
        monkeypatch.setattr(each, "Popen", counted)
    found = read_histories(paths)
    assert len(started) == 3
    assert [point["ir"] for point in found[paths[7]]] == [7, 1007, 2007]
    assert all(len(points) == 3 for points in found.values())


def test_paths_may_be_relative(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.store(a=1)
    monkeypatch.chdir(repository.root)
    path = (repository.folder / "a.json").relative_to(repository.root)
    assert counts(path) == [1]


def test_a_hook_of_another_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a hook git has said where its repository is; ours may be another."""
    repository.store(a=1)
    other = Repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    assert counts(repository.folder / "a.json") == [1]


def test_a_shallow_clone_says_nothing(repository: Repository, tmp_path: Path) -> None:
    """Its oldest commit would seem to have changed all files."""
    repository.store(a=1)
    repository.store(b=1)
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth=1", repository.root.as_uri(), str(clone))
    path = clone / (repository.folder / "a.json").relative_to(repository.root)
    assert path.is_file() and counts(path) == []


def test_no_paths() -> None:
    assert read_histories([]) == {}


def test_a_repository_without_commits(repository: Repository) -> None:
    assert counts(repository.write("a.json", baseline(1))) == []


def test_a_file_that_is_not_committed(repository: Repository) -> None:
    repository.store(b=1)
    assert counts(repository.write("a.json", baseline(1))) == []


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert counts(tmp_path / "a.json") == []


def test_no_git(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.store(a=1)
    monkeypatch.setenv("PATH", str(repository.root))
    assert counts(repository.folder / "a.json") == []


def test_git_that_does_not_end(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.store(a=1)
    program = repository.root / "git"
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(repository.root))
    monkeypatch.setattr(git, "_SECONDS", 0.2)
    assert counts(repository.folder / "a.json") == []


@pytest.mark.parametrize(
    ("pasts", "joined"),
    [
        pytest.param([[1, 2, 5, 6], [3, 4], [1, 2, 5, 6]], [1, 2, 3, 4, 5, 6], id="A, B, A"),
        pytest.param([[2, 3], [1, 4]], [2, 3, 4], id="another test's before"),
        pytest.param([[1, 2, 9], [3]], [1, 2, 3], id="another test's afterwards"),
        pytest.param([[1], [], [2]], [1, 2], id="a name that was never committed"),
        pytest.param([[], []], [], id="nothing"),
    ],
)
def test_names_of_one_test(pasts: list[list[int]], joined: list[int]) -> None:
    assert join_names(pasts, "2026-03-0{}".format) == joined
