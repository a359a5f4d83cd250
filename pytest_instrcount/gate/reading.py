"""Files from anywhere: no more of one is read than is allowed, packed or not."""

from __future__ import annotations

import gzip
import stat
import zlib
from io import BytesIO
from pathlib import Path
from typing import IO

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.names import reason_of, shown_path

_PIECE = 1 << 20


def read_file(path: Path, most: int, slug: str, *, pipe: bool = False) -> bytes:
    """The bytes of a file; with ``pipe`` those that come through a pipe, too.

    Raises InstrcountError with this slug if it cannot be read, ValueError if it holds more than
    ``most`` bytes.
    """
    try:
        if not pipe and not stat.S_ISREG(path.stat().st_mode):  # to open one would wait forever
            raise OSError("not a regular file")
        with path.open("rb") as file:
            data = _read(file, most)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InstrcountError(
            slug,
            f"{shown_path(path)} cannot be read: {reason_of(error)}",
            f"ls -ld {shown_path(path)}",
        ) from error
    return _bounded(data, most)


def unpack(packed: bytes, most: int) -> bytes:
    """What gzip has packed; raises ValueError if that is more than ``most`` bytes, or not whole."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(packed)) as file:
            data = _read(file, most)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(error) from None
    return _bounded(data, most)


def _read(file: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    """By pieces, until it is too much: it may hold more than it says, and a buffer for the most is large."""
    data = bytearray()
    while len(data) <= most and (piece := file.read(_PIECE)):
        data += piece
    return bytes(data)


def _bounded(data: bytes, most: int) -> bytes:
    if len(data) > most:
        raise ValueError(f"it holds more than {most:,} bytes")
    return data
