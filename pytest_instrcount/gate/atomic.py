"""Files that are there whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` by a temp file beside it and a rename; makes missing folders.

    Raises OSError, and leaves the present file as it was and no temp file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile: it makes files that only their owner can read, and git checks out others.
    temp = path.parent / f".{secrets.token_hex(6)}.instrcount-tmp"
    try:
        with temp.open("xb") as file:
            file.write(data)
        os.replace(temp, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise
