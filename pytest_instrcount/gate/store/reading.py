"""Files from anywhere: no more of one is read than is allowed, packed or not."""

from __future__ import annotations

import gzip
import stat
import zlib
from io import BytesIO
from pathlib import Path
from typing import IO

from pytest_instrcount.gate.store.names import file_error, shown_path

_PIECE = 1 << 20

#: Promised are 64 MB of memory, and 150 bytes for each byte of a file. Text takes up to 2 bytes for a byte
#: (5 with characters beyond ASCII, which we never write), a value of JSON with what is made of it 130.
_LEAST_TEXT, _MOST_TIMES_PACKED = 8_000_000, 25
_LEAST_VALUES, _MOST_VALUES_A_BYTE = 300_000, 0.7


def read_file(path: Path, most: int, slug: str, *, pipe: bool = False) -> bytes:
    """The bytes of a file; with ``pipe`` those that come through a pipe, too.

    Raises InstrcountError with this slug if it cannot be read, ValueError if it holds more than
    ``most`` bytes.
    """
    try:
        data = read_bytes(path, most, pipe=pipe)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise file_error(slug, path, error, f"ls -ld {shown_path(path)}", "read") from error
    return _bounded(data, most)


def read_bytes(path: Path, most: int, *, pipe: bool = False) -> bytes:
    """The bytes of a file, or more than ``most`` of them. Raises OSError, and ValueError for a NUL."""
    if not pipe and not stat.S_ISREG(path.stat().st_mode):  # to open one would wait forever
        raise OSError("not a regular file")
    with path.open("rb") as file:
        return _read(file, most)


def unpack_json(data: bytes, most: int) -> bytes:
    """JSON that may be packed by gzip, bounded by the bytes of its file: in text, and in values.

    Raises ValueError if it is more, or not whole.
    """
    size = len(data)
    if data.startswith(b"\x1f\x8b"):
        data = unpack(data, min(most, _LEAST_TEXT + size * _MOST_TIMES_PACKED))
        if not data.isascii():
            _bounded(data, (_LEAST_TEXT + size * _MOST_TIMES_PACKED) // 3)
    values = sum(map(data.count, (b",", b":", b"[", b"{")))
    if values > _LEAST_VALUES + size * _MOST_VALUES_A_BYTE:
        raise ValueError(f"it holds {values:,} values in {size:,} bytes")
    return data


def unpack(packed: bytes, most: int) -> bytes:
    """Unpack gzip data; raises ValueError if that gives more than ``most`` bytes, or is incomplete."""
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
