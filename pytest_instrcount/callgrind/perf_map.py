"""Maps of trampolines to the names of Python functions, one file for each process."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

#: Where CPython writes its map, whatever TMPDIR says.
PERF_MAP = "/tmp/perf-{pid}.map"
#: The map that the stubs of ours get, in the folder of the dumps.
NAMES = "names.{pid}"


def take_names(pid: int, folder: Path) -> Path | None:
    """The map of a process that has ended, moved into ``folder``; None if it left none."""
    names = folder / NAMES.format(pid=pid)
    perf = Path(PERF_MAP.format(pid=pid))
    with contextlib.suppress(OSError):
        found = perf.lstat()  # in a folder of all users: it may be another's, or a link
        if found.st_uid == os.getuid() and stat.S_ISREG(found.st_mode):
            shutil.move(perf, names)
    return names if names.exists() else None
