"""What git is asked, beside files that a stranger has chosen."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_instrcount.cli.doctor.machine import is_ignored
from pytest_instrcount.host.git import work_tree
from pytest_instrcount.report.history import read_histories
from pytest_instrcount.session.bundle import git_commit
from tests.unit.test_history import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def make_trap(folder: Path, mark: Path) -> None:
    """Files that git takes for a bare repository, whose configuration runs a program.

    Of its one commit all but the commit itself is missing: git would have it fetched.
    """
    made = folder.parent / "made"
    trap = Repository(made)
    trap.store(a=1)
    for name in ("HEAD", "objects", "refs"):
        place = folder / name
        (shutil.copytree if (made / ".git" / name).is_dir() else shutil.copy)(
            made / ".git" / name, place
        )
    commit = trap.git("rev-parse", "HEAD")
    for each in (folder / "objects").glob("??/*"):
        if each.parent.name + each.name != commit:
            each.unlink()
    shutil.rmtree(made)
    (folder / "config").write_text(
        "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = .\n"
        f'\tfsmonitor = "touch {mark}; false"\n'
        "[extensions]\n\tpartialClone = origin\n"
        f'[remote "origin"]\n\tpromisor = true\n\turl = ext::touch {mark}\n'
        '[protocol "ext"]\n\tallow = always\n'
    )


def test_a_repository_among_the_baselines_is_not_one(repository: Repository) -> None:
    """A pull request can bring a folder that git takes for a repository: its programs do not run."""
    repository.store(first=1)
    mark = repository.root.parent / "executed"
    make_trap(repository.folder, mark)
    # it is one: without care, git obeys it
    subprocess.run(
        ["git", "-C", str(repository.folder), "status"], capture_output=True, check=False
    )
    assert mark.exists()
    mark.unlink()
    [[point]] = read_histories([repository.folder / "first.json"]).values()
    assert point["ir"] == 1
    assert len(git_commit(repository.folder)) == 40
    assert not is_ignored(repository.folder / "baselines")
    assert not mark.exists()


def test_nothing_is_fetched(repository: Repository) -> None:
    """Of a partial clone what is missing stays missing, with any release of git."""
    repository.store(first=1)
    mark = repository.root.parent / "fetched"
    blob = repository.git("rev-parse", "HEAD:baselines/cp311-linux-x86_64/first.json")
    (repository.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::touch {mark}"),
        ("protocol.ext.allow", "always"),
    ):
        repository.git("config", name, value)
    path = repository.folder / "first.json"
    assert read_histories([path]) == {path: []}
    assert not mark.exists()
    subprocess.run(
        ["git", "-C", str(repository.root), "cat-file", "-p", blob],
        capture_output=True,
        check=False,
    )
    assert mark.exists()


def test_work_trees_are_told_by_their_git_entry(repository: Repository, tmp_path: Path) -> None:
    assert work_tree(repository.folder) == repository.root.resolve()
    # of a linked work tree and of a submodule it is a file
    (repository.folder / ".git").write_text("gitdir: elsewhere")
    assert work_tree(repository.folder) == repository.folder.resolve()
