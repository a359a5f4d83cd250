"""Files that are there whole, or not at all; and files of the user's choice, of any kind."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

#: A link that leads there is to what a process has open, under a name that need not be a file's.
_OPEN_FILES = ("/proc/", "/dev/fd/")
#: Of this process.
_OWN = re.compile(r"/(?:proc/self|dev)/fd/([0-9]+)")


def files_below(
    folder: Path, ending: str, failed: Callable[[OSError], object] | None = None
) -> list[Path]:
    """All files whose names end so, in folders of folders, too, sorted; links to folders are not followed.

    ``failed`` is called for each folder that cannot be read, which is left out.
    """
    found = os.walk(folder, onerror=failed)
    return sorted(
        Path(each, name) for each, _, names in found for name in names if name.endswith(ending)
    )


def replace_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` by a temp file beside it and a rename; makes missing folders.

    Raises OSError, and leaves the present file as it was and no temp file.
    """
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that becomes ``path``, with its mode, when the block ends well; makes missing folders.

    Raises OSError. After any error the present file is as it was, and there is no temp file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile: it makes files that only their owner can read, and git checks out others.
    temp = path.parent / f".{secrets.token_hex(6)}.instrcount-tmp"
    try:
        with temp.open("xb") as file:
            yield file
        with contextlib.suppress(OSError):  # there was none, or the file system has no modes
            os.chmod(temp, stat.S_IMODE(path.stat().st_mode))
        os.replace(temp, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise


def write_output(path: Path, data: bytes) -> None:
    """Write ``data`` to a path of the user's choice, see `writing`. Raises OSError."""
    with writing(path) as file:
        file.write(data)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, at a path of the user's choice: what is there stays what it is.

    A file is replaced, whole (see `replacing`); a link is followed, and stays; to a device, a pipe, or
    what a process has open (``/dev/stdout``) the data is written. Raises OSError, also for a pipe that
    nobody reads and for a Python file that is there.
    """
    place = replaceable(path)
    if place is None:
        with _open_as_it_is(path) as file:
            yield file
        return
    if place.suffix == ".py" and place.exists():
        raise FileExistsError(errno.EEXIST, "it is a Python file, which is not written over")
    with replacing(place) as file:
        yield file


def replaceable(path: Path) -> Path | None:
    """The file that a path leads to, through all links, there or to be made; None if it is of another kind.

    Raises OSError where links lead in a circle.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode) or _open_file(path):
            return None
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _open_file(path: Path) -> Path | None:
    """The descriptor that links lead to: what it stands for is not to be replaced by another file."""
    for _ in range(40):  # as many as the kernel follows
        if str(path).startswith(_OPEN_FILES):
            return path
        if not path.is_symlink():
            return None
        path = Path(os.path.abspath(path.parent / path.readlink()))
    return None


@contextlib.contextmanager
def appending(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A file to add to, at a path of the user's choice, and how many bytes are there; makes missing folders.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open_as_it_is(path) if replaceable(path) is None else path.open("ab") as file:
        yield file, os.fstat(file.fileno()).st_size


def _open_as_it_is(path: Path) -> BinaryIO:
    """Open what is no plain file. To a pipe without a reader this would wait without end.

    What this process has open (``/dev/stdout``) is written to where it stands: the next to write goes on there.
    """
    own = _OWN.fullmatch(str(_open_file(path)))
    if own is not None:
        sys.stdout.flush()
        return open(os.dup(int(own[1])), "wb")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return open(descriptor, "wb")
