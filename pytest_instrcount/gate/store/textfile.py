"""Files of ours as texts of bounded length: read whole, replaced whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline_json import LARGEST_FILE, damaged
from pytest_instrcount.gate.store.names import file_error, shown_path
from pytest_instrcount.gate.store.reading import read_bytes
from pytest_instrcount.host.files import replace_file

#: What writes a file: at once (`replace_file`), or with all others (`Update.add`).
Put = Callable[[Path, bytes], None]
#: What deletes one: at once (`Path.unlink`), or with all others (`Update.remove`).
Remove = Callable[[Path], None]


def read_text(path: Path, nodeid: str = "") -> str | None:
    """The text of a file of ours, None if there is no file. Raises as `load_baseline` does."""
    data = _read_bytes(path)
    if data is None:
        return None
    if len(data) > LARGEST_FILE:
        raise damaged(path, f"more than {LARGEST_FILE:,} bytes", nodeid)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(path, f"byte {error.start} is not UTF-8", nodeid) from None


def _read_bytes(path: Path) -> bytes | None:
    """More than is allowed of a file that has more."""
    try:
        return read_bytes(path, LARGEST_FILE)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise unreadable(path, error) from error


def write_data(path: Path, data: bytes, put: Put = replace_file) -> None:
    """Replace a file of ours, whole. Raises InstrcountError "baseline-write"."""
    try:
        put(path, data)
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error


def unreadable(path: Path, error: Exception) -> InstrcountError:
    """The error for a file or folder of baselines that cannot be read."""
    fix = f"ls -ld {shown_path(_nearest(path))}"
    return file_error("baseline-unreadable", path, error, fix, "read")


def unwritable(path: Path, error: Exception) -> InstrcountError:
    """The error for a baseline that cannot be written or deleted."""
    return file_error("baseline-write", path, error, room_at(path.parent))


def room_at(folder: Path) -> str:
    """The command that says whether something can be written to a folder."""
    place = shown_path(_nearest(folder))
    return f"ls -ld {place}; df {place}"


def _nearest(path: Path) -> Path:
    """The path, or the nearest of the folders it is in that is there: what is to be looked at."""
    for each in (path, *path.parents):
        with contextlib.suppress(OSError, ValueError):
            if os.path.lexists(each):
                return each
    return path
