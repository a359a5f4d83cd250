"""The folder of a run: private, under a name that is the same in every run.

A temporary path ends up in dictionaries and so in the counts. A random name would move them from
run to run; so the name is a number, the lowest that no other run of this user holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_instrcount.errors import InstrcountError

_MOST_RUNS = 1000
_FOLDERS = ("dumps", "tmp")


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder that belongs to one run as long as ``lock``, a descriptor, is open somewhere."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Delete the folder and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def take_scratch() -> Scratch:
    """Take the first free folder of this user in the system's temporary folder.

    Raises InstrcountError ``scratch`` if none can be made.
    """
    parent = Path(tempfile.gettempdir())
    for number in range(_MOST_RUNS):
        path = parent / f"instrcount-{os.getuid():010}-{number:03}"
        try:
            lock = lock_folder(path, _FOLDERS)
        except OSError as error:
            raise InstrcountError(
                "scratch",
                f"no folder for temporary files can be made: {error}",
                "TMPDIR=/path/to/a/writable/folder pytest --instrcount",
            ) from error
        if lock is not None:
            return Scratch(path, lock)
    raise InstrcountError(
        "scratch", f"{_MOST_RUNS} runs use {parent} already", "pkill -f pytest_instrcount"
    )


def lock_folder(path: Path, folders: Sequence[str] = ()) -> int | None:
    """Make a folder with these in it, or take over one that a killed run left; None if it is somebody's."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        pass
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None  # another user's, a link, or removed just now
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_ours(path, lock):
            for name in os.listdir(lock):
                shutil.rmtree(path / name, ignore_errors=True)
                (path / name).unlink(missing_ok=True)
            for name in folders:
                (path / name).mkdir(mode=0o700)
            return lock
    except BlockingIOError:
        pass
    os.close(lock)
    return None


def _is_ours(path: Path, lock: int) -> bool:
    """Whether the locked folder is still the one at the path, and nobody else's."""
    held = os.fstat(lock)
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    same = (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
    return same and held.st_uid == os.getuid() and not stat.S_IMODE(held.st_mode) & 0o077
