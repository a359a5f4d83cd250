"""Files that are there whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def replace_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` by a temp file beside it and a rename; makes missing folders.

    Raises OSError, and leaves the present file as it was and no temp file.
    """
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that becomes ``path`` when the block ends well; makes missing folders.

    Raises OSError. After any error the present file is as it was, and there is no temp file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile: it makes files that only their owner can read, and git checks out others.
    temp = path.parent / f".{secrets.token_hex(6)}.instrcount-tmp"
    try:
        with temp.open("xb") as file:
            yield file
        os.replace(temp, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise
