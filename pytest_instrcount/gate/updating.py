"""An update of baselines: all that one run stores lands together, and two runs take turns.

Each file is written beside its place first, then all are renamed. So a full disk, an error or a kill
on the way leaves every baseline as it was, and no run can end up with half of another's.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.names import reason_of, shown_path
from pytest_instrcount.patience import Patience

try:
    import fcntl
except ModuleNotFoundError:  # Windows has none: two runs there do not take turns
    fcntl = None  # type: ignore[assignment]

_TEMP_SUFFIX = ".instrcount-tmp"

#: Another run stores its baselines in less.
_TURN_SECONDS = 60.0
_LOOK_SECONDS = 0.05


class Update:
    """What one run stores. Nothing is on disk under its name until ``commit``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock: int | None = None
        self._staged: list[tuple[Path, Path]] = []

    def begin(self) -> None:
        """Wait for other runs that store in the same folder, and sweep what a killed one has left.

        What is read from now on stays as it is until the end. Raises InstrcountError
        ``baseline-busy`` and OSError.
        """
        if self._lock is not None:
            return
        self._root.mkdir(parents=True, exist_ok=True)
        if fcntl is None:
            return
        self._lock = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        patience, began = Patience(_TURN_SECONDS), time.monotonic()
        while not _try_lock(self._lock):
            if time.monotonic() - began > patience.seconds and not patience.more():
                raise InstrcountError(
                    "baseline-busy",
                    f"another run has been storing in {shown_path(self._root)} "
                    f"for {patience.seconds:.0f} s",
                    f"fuser -v {shown_path(self._root)}    (who is it?)",
                )
            time.sleep(_LOOK_SECONDS)
        for left in self._root.rglob(f".*{_TEMP_SUFFIX}"):
            with contextlib.suppress(OSError):
                left.unlink()

    def add(self, path: Path, data: bytes) -> None:
        """Have ``data`` stored at ``path``; makes missing folders. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not tempfile: it makes files that only their owner can read, and git checks out others.
        temp = path.parent / f".{secrets.token_hex(6)}{_TEMP_SUFFIX}"
        self._staged.append((temp, path))
        with temp.open("xb") as file:
            file.write(data)

    def commit(self) -> None:
        """Put all files in their places. Raises OSError."""
        with _held_back():
            for temp, path in self._staged:
                os.replace(temp, path)
            self._staged.clear()

    def end(self) -> None:
        """Forget what was not committed, and let others go on."""
        for temp, _ in self._staged:
            with contextlib.suppress(OSError):
                temp.unlink()
        if self._lock is not None:
            os.close(self._lock)


@contextlib.contextmanager
def _held_back() -> Iterator[None]:
    """What would end pytest between two renames comes when all are made."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    """What is added in the block is stored when it ends well; after any error nothing is.

    Raises InstrcountError ``baseline-write`` and ``baseline-busy``.
    """
    update = Update(root)
    try:
        yield update
        update.commit()
    except OSError as error:
        raise InstrcountError(
            "baseline-write",
            f"{shown_path(root)} cannot be written: {reason_of(error)}",
            f"ls -ld {shown_path(root)}; df {shown_path(root)}",
        ) from error
    finally:
        update.end()
