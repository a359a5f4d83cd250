"""Files from anywhere: bounded, whole, and never waited for."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path
from threading import Thread

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.reading import read_file, unpack

PACKED = gzip.compress(b"12345" * 100, mtime=0)


@pytest.mark.parametrize("data", [b"", b"1234", b"12345"])
def test_what_is_allowed(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert read_file(path, 5, "slug") == data


def test_more_than_is_allowed(tmp_path: Path) -> None:
    """Of a file that says nothing of its size no more is read."""
    path = tmp_path / "file"
    path.write_bytes(b"123456")
    with pytest.raises(ValueError, match="holds more than 5 bytes"):
        read_file(path, 5, "slug")
    with pytest.raises(ValueError, match="holds more than 5,000,000 bytes"):
        read_file(Path("/dev/zero"), 5_000_000, "slug", pipe=True)


@pytest.mark.parametrize("name", ["none", "folder", "pipe", "/dev/zero", "nul\0"])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    """A pipe would be waited for."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InstrcountError, match="cannot be read: ") as raised:
        read_file(tmp_path / name, 5, "slug")
    assert raised.value.slug == "slug"
    assert raised.value.fix.startswith("ls -ld ")


def test_a_pipe_that_the_user_names(tmp_path: Path) -> None:
    """As in ``compare <(git show main:report.json) report.json``."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(b"1234",))
    writer.start()
    assert read_file(path, 5, "slug", pipe=True) == b"1234"
    writer.join()


def test_packed() -> None:
    assert unpack(PACKED, 500) == b"12345" * 100
    with pytest.raises(ValueError, match="holds more than 499 bytes"):
        unpack(PACKED, 499)


@pytest.mark.parametrize(
    "packed",
    [b"12345", PACKED[:-1], PACKED[:20], PACKED[:10] + b"\0\0" + PACKED[12:], PACKED + b"1"],
)
def test_what_is_packed_badly(packed: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - zlib's words
        unpack(packed, 500)


def test_what_unpacks_to_far_more() -> None:
    """No buffer for all that is allowed, and none for all that there is."""
    packed = gzip.compress(b" " * 60_000_000, compresslevel=1)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="holds more than 2,000,000 bytes"):
            unpack(packed, 2_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12_000_000
