"""An update of baselines: all that one run stores lands together, and two runs take turns.

Each file is written beside its place first, then all are renamed. Before its rename, what was there gets
a second name; the file `JOURNAL` in the folder says that those names count. So a full disk, an error or a
kill, between two renames as well, leaves every baseline as it was: after a kill, the next run makes it so.
Second names say all there is to know: no path is read from a file, which could be a stranger's.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.names import file_error, shown_path
from pytest_instrcount.gate.store.textfile import room_at
from pytest_instrcount.host.files import files_below
from pytest_instrcount.host.patience import Patience

try:
    import fcntl
except ModuleNotFoundError:  # Windows has none: two runs there do not take turns
    fcntl = None  # type: ignore[assignment]

#: While it is there, an update is under way, or was killed.
JOURNAL = ".instrcount-update"

_TEMP_SUFFIX = ".instrcount-tmp"
#: Second name of a file that was there, and of one that was not.
_OLD_SUFFIX = ".instrcount-old"
_NEW_SUFFIX = ".instrcount-new"

#: Another run stores its baselines in less.
_TURN_SECONDS = 60.0
_LOOK_SECONDS = 0.05


class Update:
    """The files that one run stores. None is on disk under its name until ``commit``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._begun = False
        self._lock: int | None = None
        #: what is to be renamed, None where the file is to go, and the place of the file
        self._staged: list[tuple[Path | None, Path]] = []
        self._made: list[Path] = []

    def begin(self) -> None:
        """Wait for other runs that store in the same folder, and sweep what a killed one has left.

        What is read from now on stays as it is until the end. Raises InstrcountError
        ``baseline-busy`` and OSError.
        """
        if self._begun:
            return
        self._root.mkdir(parents=True, exist_ok=True)
        if fcntl is not None:
            self._lock = _take_turn(self._root)
        _roll_back(self._root)
        for suffix in (_TEMP_SUFFIX, _OLD_SUFFIX, _NEW_SUFFIX):
            for left in _named(self._root, suffix):
                with contextlib.suppress(OSError):
                    left.unlink()
        self._begun = True

    def add(self, path: Path, data: bytes) -> None:
        """Have ``data`` stored at ``path``; makes missing folders. Raises OSError."""
        self._made += [each for each in reversed(path.parents) if not os.path.lexists(each)]
        # Not tempfile: it makes files that only their owner can read, and git checks out others.
        temp = path.parent / f".{secrets.token_hex(6)}{_TEMP_SUFFIX}"
        self._staged.append((temp, path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temp.open("xb") as file:
                file.write(data)
        except OSError:
            self._forget()  # so that what is said of it names a folder that stays
            raise

    def remove(self, path: Path) -> None:
        """Have the file at ``path`` deleted."""
        self._staged.append((None, path))

    def commit(self) -> None:
        """Put all files in their places, or leave all as they were. Raises OSError."""
        if not self._staged:
            return
        journal = self._root / JOURNAL
        with _held_back():
            journal.touch()
            try:
                for temp, path in self._staged:
                    _keep(path)
                    if temp is None:
                        path.unlink(missing_ok=True)
                    else:
                        os.replace(temp, path)
            except BaseException:
                _roll_back(self._root)
                raise
            journal.unlink()
            for _, path in self._staged:
                for suffix in (_OLD_SUFFIX, _NEW_SUFFIX):
                    _second_name(path, suffix).unlink(missing_ok=True)
            self._staged.clear()

    def end(self) -> None:
        """Forget what was not committed, and let others go on."""
        self._forget()
        if self._lock is not None:
            os.close(self._lock)

    def _forget(self) -> None:
        for temp, _ in self._staged:
            if temp is not None:
                with contextlib.suppress(OSError):
                    temp.unlink()
        for folder in reversed(self._made):  # what was stored keeps them
            with contextlib.suppress(OSError):
                folder.rmdir()


def mend(root: Path) -> None:
    """Before baselines are read: undo what an update did that was killed between two files.

    One that is under way is waited for. Raises InstrcountError ``baseline-busy`` and ``baseline-write``.
    """
    if os.path.lexists(root / JOURNAL):
        with updating(root) as update:
            update.begin()


def _take_turn(root: Path) -> int:
    """Wait for other runs that store in a folder; returns what holds the lock."""
    lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    patience, began = Patience(_TURN_SECONDS), time.monotonic()
    while not _try_lock(lock):
        if time.monotonic() - began > patience.seconds and not patience.more():
            os.close(lock)
            raise InstrcountError(
                "baseline-busy",
                f"another run has been storing in {shown_path(root)} for {patience}",
                f"fuser -v {shown_path(root)}    # who is it?",
            )
        time.sleep(_LOOK_SECONDS)
    return lock


def _second_name(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}{suffix}")


def _keep(path: Path) -> None:
    """Give what is at a path a second name, or note that there is nothing."""
    old = _second_name(path, _OLD_SUFFIX)
    if not os.path.lexists(path):
        _second_name(path, _NEW_SUFFIX).touch()
        return
    try:
        os.link(path, old, follow_symlinks=False)
    except OSError:  # a file system without links; a copy is to be whole before it has the name
        copied = _second_name(path, _TEMP_SUFFIX)
        shutil.copy2(path, copied, follow_symlinks=False)
        os.replace(copied, old)


def _roll_back(root: Path) -> None:
    """Undo the renames of an update that did not come to its end; raises OSError."""
    journal = root / JOURNAL
    if not os.path.lexists(journal):
        return
    failed: list[OSError] = []
    for suffix in (_OLD_SUFFIX, _NEW_SUFFIX):
        for second in _named(root, suffix, failed.append):
            path = second.with_name(second.name[1:].removesuffix(suffix))
            try:
                if suffix == _OLD_SUFFIX:
                    os.replace(second, path)
                else:
                    path.unlink(missing_ok=True)
                second.unlink(missing_ok=True)  # two names of one file: nothing was renamed
            except OSError as error:
                failed.append(error)
    if failed:
        raise failed[0]  # with the journal in its place: the next run tries again
    journal.unlink()


def _named(
    root: Path, suffix: str, failed: Callable[[OSError], object] | None = None
) -> Iterator[Path]:
    """What an update has named so."""
    return (each for each in files_below(root, suffix, failed) if each.name.startswith("."))


@contextlib.contextmanager
def _held_back() -> Iterator[None]:
    """Delay signals that would end pytest between two renames until all are made.

    By handlers, since a mask holds for one thread, and pytest-xdist has others, which would take them.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield  # a handler runs in the main thread
        return
    numbers = [getattr(signal, name, None) for name in ("SIGHUP", "SIGTERM", "SIGINT")]
    handlers = {number: signal.getsignal(number) for number in numbers if number is not None}
    handlers = {n: old for n, old in handlers.items() if old not in (None, signal.SIG_IGN)}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, old in handlers.items():  # SIGINT last: from then on Ctrl-C can end this
            signal.signal(number, old)
        for number in came:
            signal.raise_signal(number)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: it has to do without
        pass
    return True


@contextlib.contextmanager
def updating(root: Path) -> Iterator[Update]:
    """Store everything added in the block if it ends without an error, else nothing.

    Raises InstrcountError ``baseline-write`` and ``baseline-busy``.
    """
    update = Update(root)
    try:
        yield update
        update.commit()
    except OSError as error:
        raise file_error("baseline-write", root, error, room_at(root)) from error
    finally:
        update.end()
