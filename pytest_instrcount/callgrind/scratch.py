"""The folder of a run: private, under a name that is the same in every run.

A temporary path ends up in dictionaries and so in the counts. A random name would move them from
run to run; so the name is a number, the lowest that no other run of this user holds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.patience import Patience

_MOST_RUNS = 1000
_MOST_HOLDERS = 20
#: A killed process is gone after that long.
_LAST_MOMENT_SECONDS = 10.0


def folders_in(path: Path) -> tuple[str, str]:
    """The folders that the folder of a run contains from the start."""
    return "dumps", os.path.relpath(temporary_folder(str(path)), path)


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder that belongs to one run as long as ``lock``, a descriptor, is open somewhere."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Delete the folder and everything in it; of another run, which may take its name at once, nothing."""
        for _ in range(2):  # who is just ending may have put something into it
            with contextlib.suppress(OSError):
                os.fchmod(self.lock, 0o700)
                if _is_there(self.path, self.lock):
                    _empty(self.path, self.lock)
                    os.rmdir(self.path)


def remove_tree(path: Path) -> None:
    """Delete a file, or a folder with everything in it, also where tests took the rights away."""
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        with contextlib.suppress(OSError):
            path.unlink()
            return
        # a folder is emptied by who may write to it, and entered by who may read it
        for folder, folders, _ in os.walk(path, onerror=None):
            for each in (folder, *(os.path.join(folder, name) for name in folders)):
                with contextlib.suppress(OSError):
                    if not os.path.islink(each):
                        os.chmod(each, 0o700)
        shutil.rmtree(path, ignore_errors=True)


def restore(scratch: Scratch) -> Scratch:
    """Make the folder of a run that somebody has deleted again, or what is missing in it.

    Raises InstrcountError ``scratch`` if another run has the name by now, OSError if it cannot
    be made.
    """
    if not _is_ours(scratch.path, scratch.lock):
        lock = lock_folder(scratch.path, folders_in(scratch.path))
        if lock is None:
            raise InstrcountError(
                "scratch",
                f"{scratch.path} is another run's now",
                "pytest --instrcount    # once more",
            )
        os.close(scratch.lock)
        scratch = Scratch(scratch.path, lock)
    for name in folders_in(scratch.path):
        (scratch.path / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    return scratch


def remove_abandoned(path: Path, inode: int) -> None:
    """Delete the folder of a run that has ended, unless another run has taken it over.

    ``inode`` is that of the run's own folder: who was killed while holding it does so a moment longer.
    """
    patience, began = Patience(_LAST_MOMENT_SECONDS), time.monotonic()
    while os.path.lexists(path):
        with contextlib.suppress(OSError):
            lock = lock_folder(path, folders_in(path))
            if lock is not None:
                Scratch(path, lock).remove()
                os.close(lock)
                return
            if os.lstat(path).st_ino != inode:
                return
        if time.monotonic() - began > patience.seconds and not patience.more():
            return
        time.sleep(0.01)


def scratch_parent() -> Path:
    """The system's temporary folder as pytest has it, links resolved: paths below it are as long.

    Raises InstrcountError ``scratch`` if there is none.
    """
    try:
        return Path(os.path.realpath(tempfile.gettempdir()))
    except OSError as error:
        raise no_folder(error) from error


def no_folder(error: OSError | None) -> InstrcountError:
    """The error for a system that has no room for temporary files."""
    return InstrcountError(
        "scratch",
        f"no folder for temporary files can be made: {error}",
        "TMPDIR=/path/to/a/writable/folder pytest --instrcount",
    )


def take_scratch(parent: Path | None = None) -> Scratch:
    """Take the first free folder of this user in the system's temporary folder.

    Raises InstrcountError ``scratch`` if none can be made.
    """
    parent = parent or scratch_parent()
    for number in range(_MOST_RUNS):
        path = parent / f"instrcount-{os.getuid():010}-{number:03}"
        try:
            lock = lock_folder(path, folders_in(path))
        except OSError as error:
            raise no_folder(error) from error
        if lock is not None:
            return Scratch(path, lock)
    raise InstrcountError(
        "scratch",
        f"{_MOST_RUNS} runs use {parent} already",
        f"ps -o pid,etime,args -p {_holders(parent)}    # end those that hang: kill PID",
    )


def _holders(parent: Path) -> str:
    """Processes that hold a folder of a run, the first few, with commas: never all that have a name."""
    start = f"{parent}/instrcount-{os.getuid():010}-"
    pids: list[str] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # gone, or another user's
            held = (os.readlink(f"/proc/{pid}/fd/{each}") for each in os.listdir(f"/proc/{pid}/fd"))
            pids += [pid] if any(each.startswith(start) for each in held) else []
        if len(pids) == _MOST_HOLDERS:
            break
    return ",".join(pids) or "PID"


def lock_folder(path: Path, folders: Sequence[str] = ()) -> int | None:
    """Make a folder with these in it, or take over one that a killed run left; None if it is somebody's."""
    import fcntl  # not where ``show`` and ``compare`` are wanted, and nothing is measured

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
            _empty(path, lock)
            for name in folders:
                (path / name).mkdir(mode=0o700, parents=True)
            return lock
    except BlockingIOError:
        pass
    os.close(lock)
    return None


def _empty(path: Path, lock: int) -> None:
    """Delete all in a folder that is locked."""
    for name in os.listdir(lock):
        remove_tree(path / name)


def _is_ours(path: Path, lock: int) -> bool:
    """True if the locked folder is still the one at the path, and nobody else's."""
    held = os.fstat(lock)
    mine = held.st_uid == os.getuid() and not stat.S_IMODE(held.st_mode) & 0o077
    return mine and _is_there(path, lock)


def _is_there(path: Path, lock: int) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), os.lstat(path))
    except FileNotFoundError:
        return False
