"""Traces of nvprof: NVTX ranges and the kernels that were launched in them, from its SQLite file."""

from __future__ import annotations

import os
import sqlite3
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.ranges.unique import EnforceUnique
from pytest_instrcount.trace.timeline import Detail, Label, Timeline, Track, printable
from pytest_instrcount.trace.weave import Span, weave

#: CUPTI_ACTIVITY_OBJECT_THREAD: the marker's object is a process and a thread.
_OBJECT_THREAD = 2

_TABLES = (
    "CUPTI_ACTIVITY_KIND_MARKER",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
)
_MARKERS = """
    SELECT start.id, start.name, start.timestamp, end.timestamp, start.objectKind, start.objectId
    FROM CUPTI_ACTIVITY_KIND_MARKER AS start
    JOIN CUPTI_ACTIVITY_KIND_MARKER AS end ON start.id = end.id
    WHERE start.name != 0 AND end.name = 0
"""
_LAUNCHES = """
    SELECT runtime._id_, runtime.start, runtime.end, kernel.name, kernel.start, kernel.end
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS runtime
    JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel
    ON kernel.correlationId = runtime.correlationId
"""
# What a file is given, since a view or a number that comes again and again makes a query endless:
# steps of SQLite's machine and rows per byte of it, and kernels in all ranges that hold them per row.
_STEPS_PER_BYTE, _LEAST_STEPS = 100, 10_000_000
_MOST_KERNELS_PER_ROW, _LEAST_KERNELS = 100, 1_000_000
_LOOK_UP_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that ran on the GPU; times in ns of nvprof's clock."""

    #: as nvprof wrote it, mangled or not
    name: str
    start_ns: int
    end_ns: int
    #: number of the call that launched it
    launch: int


@dataclass(frozen=True, slots=True)
class NvprofRange:
    """An NVTX range; times in ns of nvprof's clock."""

    #: nvprof's number of it
    id: int
    name: str
    start_ns: int
    end_ns: int
    #: number of the thread that pushed it; 0 if nvprof does not say
    thread: int
    #: all that were launched within it, also within ranges in it
    kernels: tuple[Kernel, ...]


def load_nvprof(path: str | os.PathLike[str]) -> EventList:
    """The NVTX ranges in a file of ``nvprof -o``, as events: a track per thread, and one of kernels.

    A kernel and the innermost range that launched it have the same ``sequence_nr``. Raises
    InstrcountError (slug "nvprof") if the file cannot be read, or is not one of nvprof's.
    """
    ranges = parse_nvprof_trace(path)
    threads = sorted({one.thread for one in ranges})
    tracks = [Track(f"thread {thread}", thread) for thread in threads]
    numbers = {thread: number for number, thread in enumerate(threads)}
    spans = [
        Span(
            Label(printable(one.name), "range"), numbers[one.thread], one.start_ns, one.end_ns,
            detail=Detail(sequence_nr=one.id),
        )
        for one in ranges
    ]  # fmt: skip
    # Sorted by start: the last range to have a kernel is the innermost one.
    owners = {kernel: one.id for one in ranges for kernel in one.kernels}
    if owners:
        tracks.append(Track("GPU"))
    spans += [
        Span(
            Label(printable(kernel.name), "range"), len(threads), kernel.start_ns, kernel.end_ns,
            detail=Detail(sequence_nr=owner),
        )
        for kernel, owner in owners.items()
    ]  # fmt: skip
    return EventList(weave(Timeline(tracks=tuple(tracks)), spans))


def parse_nvprof_trace(path: str | os.PathLike[str]) -> list[NvprofRange]:
    """The NVTX ranges in a file of ``nvprof -o``, in order of start.

    Raises InstrcountError (slug "nvprof") if the file cannot be read, or is not one of nvprof's.
    """
    try:
        # read-only: connect() alone would make a file that is not there
        uri = Path(path).absolute().as_uri() + "?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as file:
            _guard(file, os.path.getsize(path))
            return _ranges(file)
    except OSError as error:
        raise _not_nvprof(path, error.strerror or str(error)) from error
    # Overflow: numbers beyond 64 bits. struct: an objectId that is too short. Memory: SQLite's word
    # for pages that cannot be.
    except (
        sqlite3.Error,
        MemoryError,
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        struct.error,
    ) as error:
        raise _not_nvprof(path, _reason(error)) from error
    except InstrcountError as error:
        raise _not_nvprof(path, error.why) from error


def _guard(file: sqlite3.Connection, size: int) -> None:
    """Have the file be data: it is given time in proportion to its size, and calls no functions."""
    left = (_LEAST_STEPS + size * _STEPS_PER_BYTE) // _LOOK_UP_STEPS

    def is_too_long() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    file.execute("PRAGMA trusted_schema = OFF")
    file.execute("PRAGMA query_only = ON")
    file.execute("PRAGMA cell_size_check = ON")
    file.set_progress_handler(is_too_long, _LOOK_UP_STEPS)
    tables = ("StringTable", *_TABLES)
    for name, kind, text in file.execute("SELECT name, type, sql FROM sqlite_master"):
        if name in tables and (kind != "table" or "VIRTUAL" in str(text).upper()):
            raise ValueError(f"{name} is no table of nvprof's")


def _ranges(file: sqlite3.Connection) -> list[NvprofRange]:
    strings = dict(file.execute("SELECT _id_, value FROM StringTable"))
    # in order of their begin; sorted here, where rows that are too many are told before they are
    launches = _Launches(sorted(_launched(file, strings), key=lambda one: one[0]))
    ids, ranges = EnforceUnique("markers"), []
    room = _LEAST_KERNELS
    for number, name, start, end, kind, owner in file.execute(_MARKERS):
        ids.see(number)
        start, end = _integer(start), _integer(end)
        kernels = launches.within(start, end)
        room += _MOST_KERNELS_PER_ROW - len(kernels)
        if room < 0:
            raise ValueError("too many kernels are in too many ranges")
        ranges.append(
            NvprofRange(
                _integer(number), str(strings[name]), start, end, _thread(kind, owner), kernels
            )
        )
    # of what starts together, the longer is outside
    return sorted(ranges, key=lambda one: (one.start_ns, -one.end_ns))


def _launched(
    file: sqlite3.Connection, strings: dict[int, str]
) -> Iterator[tuple[int, int, Kernel]]:
    """Begin and end of each launch, and its kernel; a run without a GPU has no table of them."""
    tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
    if not set(_TABLES[1:]) <= tables:
        return
    ids = EnforceUnique("launches")
    for number, begin, end, name, start, stop in file.execute(_LAUNCHES):
        ids.see(number)
        kernel = Kernel(str(strings[name]), _integer(start), _integer(stop), _integer(number))
        yield _integer(begin), _integer(end), kernel


class _Launches:
    """Launches in order of their begin, looked up by time."""

    def __init__(self, launches: Sequence[tuple[int, int, Kernel]]) -> None:
        self._launches = launches
        self._begins = [begin for begin, _, _ in launches]

    def within(self, start: int, end: int) -> tuple[Kernel, ...]:
        first, last = bisect_right(self._begins, start), bisect_right(self._begins, end)
        return tuple(kernel for _, done, kernel in self._launches[first:last] if done < end)


def _thread(kind: int, owner: object) -> int:
    """The thread in a CUpti_ActivityObjectKindId: process and thread, 32 bits each."""
    if kind != _OBJECT_THREAD or not isinstance(owner, bytes):
        return 0
    _, thread = struct.unpack_from("<II", owner)
    return int(thread)


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{type(value).__name__} where a number is expected")
    return value


def _reason(error: Exception) -> str:
    return f"no entry {error}" if isinstance(error, KeyError) else str(error)


def _not_nvprof(path: str | os.PathLike[str], why: str) -> InstrcountError:
    return InstrcountError(
        "nvprof",
        f"{printable(os.fspath(path))} is no trace of nvprof: {printable(why)}",
        "nvprof -o trace.nvvp python your_program.py",
    )
