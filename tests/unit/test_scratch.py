"""The folder of a run: private, with a name that is the same in every run, taken by one run."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind import launch, scratch
from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.callgrind.scratch import Scratch, folders_in, remove_abandoned, take_scratch
from pytest_instrcount.callgrind.supervisor.state import State
from pytest_instrcount.errors import InstrcountError


@pytest.fixture(autouse=True)
def parent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The system's temporary folder, for these tests."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def give_up(taken: Scratch) -> None:
    """As a killed run does: the lock goes, the folder stays."""
    os.close(taken.lock)


def has_its_folders_alone(taken: Scratch) -> bool:
    return set(os.listdir(taken.path)) == {
        name.partition("/")[0] for name in folders_in(taken.path)
    }


def name(number: int) -> str:
    return f"instrcount-{os.getuid():010}-{number:03}"


def test_the_name_is_the_same_in_every_run(parent: Path) -> None:
    """The first free number; freed, it is taken again."""
    for _ in range(2):
        taken = take_scratch()
        assert taken.path == parent / name(0)
        taken.remove()
        give_up(taken)
        assert not list(parent.iterdir())


def test_private_with_its_folders() -> None:
    """Nobody else may look in."""
    taken = take_scratch()
    assert stat.S_IMODE(taken.path.stat().st_mode) == 0o700
    assert has_its_folders_alone(taken)
    give_up(taken)


def test_two_runs_at_once() -> None:
    """Each has its own; the names have one length."""
    one, two = take_scratch(), take_scratch()
    assert [one.path.name, two.path.name] == [name(0), name(1)]
    give_up(one)
    third = take_scratch()
    assert third.path == one.path
    give_up(two)
    give_up(third)


def test_who_takes_the_name_at_once_keeps_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the moment in which the run before it has deleted its own."""
    mine, rmdir = take_scratch(), os.rmdir
    others: list[Scratch] = []

    def remove_and_be_late(path: Any, **how: Any) -> None:
        rmdir(path, **how)
        if str(path) == str(mine.path) and not others:
            others.append(take_scratch())

    monkeypatch.setattr(os, "rmdir", remove_and_be_late)
    mine.remove()
    give_up(mine)
    (other,) = others
    assert other.path == mine.path
    assert has_its_folders_alone(other)
    give_up(other)


def test_the_folder_of_who_is_being_killed() -> None:
    """It is waited for until it is nobody's; another run's is let be at once."""
    taken = take_scratch()
    inode = taken.path.stat().st_ino
    remove_abandoned(taken.path, inode + 1)
    assert taken.path.exists()
    dying = threading.Timer(0.2, give_up, [taken])
    dying.start()
    remove_abandoned(taken.path, inode)
    assert not taken.path.exists()
    dying.join()


def test_what_a_killed_run_left_is_swept() -> None:
    """Files, folders and links are gone; what a link points to is not."""
    taken = take_scratch()
    outside = taken.path.parent / "outside"
    outside.mkdir()
    (taken.path / "dumps" / "out.1").write_text("old")
    (taken.path / "file").write_text("old")
    (taken.path / "link").symlink_to(outside)
    give_up(taken)
    again = take_scratch()
    assert has_its_folders_alone(again)
    assert not list((again.path / "dumps").iterdir())
    assert outside.is_dir()
    give_up(again)


@pytest.mark.parametrize("kind", ["link", "file", "open"])
def test_a_place_that_is_not_ours_is_passed_by(parent: Path, kind: str) -> None:
    """A link somebody put there, a file, a folder that others may enter: untouched."""
    first = parent / name(0)
    target = parent / "target"
    target.mkdir()
    (target / "kept").write_text("")
    if kind == "link":
        first.symlink_to(target)
    elif kind == "file":
        first.write_text("kept")
    else:
        first.mkdir()
        first.chmod(0o755)
        (first / "kept").write_text("")
    taken = take_scratch()
    assert taken.path == parent / name(1)
    assert (target / "kept").exists()
    assert kind != "open" or (first / "kept").exists()
    give_up(taken)


def test_pytest_is_gone_before_it_knows_the_folder(parent: Path) -> None:
    """The supervisor, which makes it, finds nobody to tell, and takes it away."""
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        launch._start_supervisor(theirs, parent)
    await_empty(parent)


def test_pytest_is_gone_before_it_says_what_it_wants(parent: Path) -> None:
    """The folder goes with it."""
    channel, said = launch.open_supervisor(parent)
    assert channel.receive() == {"kind": "housed", "name": name(0)}
    assert (parent / name(0) / "supervisor.log").is_file()
    channel.close()
    await_empty(parent)
    assert not said


def await_empty(folder: Path) -> None:
    deadline = time.monotonic() + 60
    while os.listdir(folder):
        assert time.monotonic() < deadline, os.listdir(folder)
        time.sleep(0.01)


def test_no_folder_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's words and what to set."""
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    with pytest.raises(InstrcountError, match=r"\[scratch\]\n  fix: TMPDIR="):
        take_scratch()


def test_all_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error, not a loop without end; the command names no process but the plugin's."""
    monkeypatch.setattr(scratch, "_MOST_RUNS", 2)
    taken = [take_scratch(), take_scratch()]
    with pytest.raises(InstrcountError, match=r"2 runs use .* \[scratch\]"):
        take_scratch()
    for each in taken:
        give_up(each)


def test_all_names_are_taken(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes that hold them are named: to end all of a name would end healthy runs, too."""
    monkeypatch.setattr(scratch, "_MOST_RUNS", 2)
    taken = [take_scratch(), take_scratch()]
    with pytest.raises(InstrcountError) as caught:
        take_scratch()
    assert str(os.getpid()) in caught.value.fix
    assert "pkill" not in caught.value.fix
    for each in taken:
        each.remove()
        give_up(each)


@pytest.mark.parametrize(
    "parent", ["", "/tmp", "/var/tmp", "/t", "/home/me/tmp", "/home/me/my/tmp"]
)
def test_one_length_and_depth_of_temporary_folders(parent: str) -> None:
    """A test with tmp_path finds paths of one length and depth, whatever TMPDIR is."""
    found = temporary_folder(f"{parent}/instrcount-0000001000-000")
    assert (len(found), found.count("/")) == (48, 6)
    assert found.startswith(f"{parent}/instrcount-0000001000-000/tmp")


def test_steps_of_depth() -> None:
    """A deeper TMPDIR makes it as deep again."""
    made = [temporary_folder(f"{'/d' * depth}/instrcount") for depth in range(12)]
    assert [path.count("/") for path in made] == [6] * 5 + [12] * 6 + [18]


def test_steps_of_length() -> None:
    """What is longer has one of few lengths, and stays short enough for a socket where it can."""
    lengths = {
        len(temporary_folder(f"/{'x' * size}/instrcount-0000001000-000")) for size in range(90)
    }
    assert lengths == {48, 66, 98, 130}
    listener = "/00000001/pymp-12345678/listener-12345678"  # of multiprocessing, on Linux
    assert 66 + len(listener) <= 107
    assert len(temporary_folder("/é" * 4)) == 48 - 4  # bytes are what is counted


def test_a_link_to_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is known by the path that pytest resolves it to."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "link"))
    taken = take_scratch()
    assert taken.path.parent == tmp_path / "real"
    give_up(taken)


def test_a_folder_that_a_test_deletes_is_made_again() -> None:
    """With all that pytest wrote for the next process under Valgrind, in folders of it, too."""
    mine = take_scratch()
    plan = {"fork.json": b"{}", "site": b"\x80", "installed/numpy": b"[]"}
    (mine.path / "installed").mkdir()
    for name, text in plan.items():
        (mine.path / name).write_bytes(text)
    (mine.path / "supervisor.log").touch()
    unused: Any = None
    state = State(unused, unused, unused, mine)
    try:
        shutil.rmtree(mine.path)
        state.restore_scratch()
        found = {
            str(path.relative_to(mine.path)): path.read_bytes()
            for path in mine.path.rglob("*")
            if path.is_file()
        }
        assert found == plan
        assert all((mine.path / name).is_dir() for name in folders_in(mine.path))
        assert state.disturbances == 1
    finally:
        state.scratch.remove()
        os.close(state.scratch.lock)
