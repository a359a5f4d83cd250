"""nvprof's SQLite files: ranges, kernels, and files that are none."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.events.nvprof import Kernel, load_nvprof, parse_nvprof_trace

# The columns that are read, as CUDA 10's nvprof declares them.
SCHEMA = """
    CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(
        _id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL, timestamp INT NOT NULL,
        id INT NOT NULL, objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT NULL);
"""
GPU = """
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(
        _id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT NOT NULL, start INT NOT NULL,
        end INT NOT NULL, correlationId INT NOT NULL);
    CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(
        _id_ INTEGER PRIMARY KEY AUTOINCREMENT, start INT NOT NULL, end INT NOT NULL,
        correlationId INT NOT NULL, name INT NOT NULL);
"""
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a file: ranges as (id, name, start, end, thread), launches with their kernels."""

    def write(
        *ranges: tuple[int, str, int, int, int],
        launches: tuple[tuple[int, int, int, int], ...] = (),
        sql: str = "",
    ) -> Path:
        path = tmp_path / "trace #1?.nvvp"
        with closing(sqlite3.connect(path)) as file, file:
            file.executescript(SCHEMA + GPU)
            names = {name: number + 1 for number, name in enumerate(["outer", "inner", "gemm"])}
            for name, number in names.items():
                file.execute("INSERT INTO StringTable VALUES(?, ?)", (number, name))
            for number, name, begin, end, thread in ranges:
                owner = struct.pack("<III", 77, thread, 0)
                put = "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES(NULL, ?, ?, ?, 2, ?, ?)"
                file.execute(put, (2, begin, number, owner, names[name]))
                file.execute(put, (4, end, number, owner, 0))
            for number, (begin, end, start, stop) in enumerate(launches):
                put = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(NULL, 211, ?, ?, ?)"
                file.execute(put, (begin, end, number))
                put = "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES(NULL, ?, ?, ?, 3)"
                file.execute(put, (start, stop, number))
            file.executescript(sql)
        return path

    return write


def test_ranges_in_order_of_start(make: Make) -> None:
    """With name, times and thread; of what starts together the longer comes first."""
    path = make((2, "inner", 100, 200, 5), (1, "outer", 100, 900, 5), (3, "inner", 50, 60, 6))
    found = [(one.name, one.start_ns, one.end_ns, one.thread) for one in parse_nvprof_trace(path)]
    assert found == [("inner", 50, 60, 6), ("outer", 100, 900, 5), ("inner", 100, 200, 5)]


def test_kernels_belong_to_all_ranges_around_their_launch(make: Make) -> None:
    """Wherever on the GPU's time they ran."""
    path = make(
        (1, "outer", 100, 900, 5),
        (2, "inner", 200, 300, 5),
        launches=((210, 220, 1000, 1500), (400, 410, 1500, 1600), (910, 920, 1700, 1800)),
    )
    first = Kernel("gemm", 1000, 1500, 1)
    outer, inner = parse_nvprof_trace(path)
    assert outer.kernels == (first, Kernel("gemm", 1500, 1600, 2))
    assert inner.kernels == (first,)


def test_load_gives_events(make: Make) -> None:
    """Ranges nest on their threads; kernels have a track, and the number of their range."""
    path = make(
        (1, "outer", 100, 900, 5),
        (2, "inner", 200, 300, 5),
        (3, "inner", 150, 400, 6),
        launches=((210, 220, 1000, 1500), (500, 510, 1500, 1600)),
    )
    events = load_nvprof(path)
    assert [event.name for event in events] == ["outer", "inner", "inner", "gemm", "gemm"]
    assert [event.cpu_time_total for event in events] == [0.8, 0.25, 0.1, 0.5, 0.1]
    assert [track.name for track in events.timeline.tracks] == ["thread 5", "thread 6", "GPU"]
    parent = events[2].cpu_parent
    assert parent is not None
    assert parent.name == "outer"
    assert [event.sequence_nr for event in events] == [1, 3, 2, 2, 1]


def test_a_run_without_a_gpu(make: Make) -> None:
    """There are no tables of kernels then."""
    drop = (
        "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME; DROP TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
    )
    (one,) = parse_nvprof_trace(make((1, "outer", 1, 2, 5), sql=drop))
    assert one.kernels == ()


def test_no_ranges(make: Make) -> None:
    """A file without any is still a trace."""
    path = make()
    assert parse_nvprof_trace(path) == []
    assert len(load_nvprof(path)) == 0


def test_an_unknown_thread(make: Make) -> None:
    """Ranges of a process have none."""
    path = make((1, "outer", 1, 2, 5), sql="UPDATE CUPTI_ACTIVITY_KIND_MARKER SET objectKind = 1")
    assert parse_nvprof_trace(path)[0].thread == 0


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE StringTable",
        "DROP TABLE CUPTI_ACTIVITY_KIND_MARKER",
        "DELETE FROM StringTable",
        "UPDATE CUPTI_ACTIVITY_KIND_MARKER SET timestamp = 'soon'",
        "UPDATE CUPTI_ACTIVITY_KIND_MARKER SET timestamp = 1.5",
        "UPDATE CUPTI_ACTIVITY_KIND_MARKER SET objectId = x'00'",
        "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER SELECT NULL, 2, 9, 1, 2, objectId, 1 FROM"
        " CUPTI_ACTIVITY_KIND_MARKER LIMIT 1",
        "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = 'x'",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_MARKER RENAME COLUMN id TO number",
    ],
)
def test_a_database_of_something_else(make: Make, sql: str) -> None:
    """Missing tables, columns and names, wrong types, markers that come twice."""
    path = make((1, "outer", 100, 900, 5), launches=((210, 220, 1000, 1500),), sql=sql)
    for read in (parse_nvprof_trace, load_nvprof):
        with pytest.raises(InstrcountError) as caught:
            read(path)
        assert caught.value.slug == "nvprof"
        assert "trace #1?.nvvp" in caught.value.why


@pytest.mark.parametrize(
    "content", [None, b"", b"not a database at all, by no means", b"SQLite format 3\0"]
)
def test_a_file_that_is_none(tmp_path: Path, content: bytes | None) -> None:
    """Nor is a file made where there is none."""
    path = tmp_path / "x.nvvp"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InstrcountError) as caught:
        load_nvprof(str(path))
    assert caught.value.slug == "nvprof"
    assert path.exists() == (content is not None)


def test_a_file_cut_short(make: Make) -> None:
    """As a full disk leaves it: an error, unless what is lost are pages that say nothing."""
    path = make((1, "outer", 100, 900, 5))
    whole, errors = parse_nvprof_trace(path), 0
    data = path.read_bytes()
    for size in range(100, len(data), 1000):
        path.write_bytes(data[:size])
        try:
            assert parse_nvprof_trace(path) == whole
        except InstrcountError as error:
            assert error.slug == "nvprof"
            errors += 1
    assert errors > 10
