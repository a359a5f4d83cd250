"""All that was recorded as plain lists and numbers, with a version; and its reader.

Version 1: the first.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any, TypeVar, cast

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.check import broken_rules
from pytest_instrcount.trace.columns import Folded
from pytest_instrcount.trace.timeline import (
    Detail,
    Flow,
    Label,
    Mark,
    MemorySample,
    Recorded,
    Timeline,
    Track,
    column,
    printable,
)

#: What the file calls itself.
FORMAT = "pytest-instrcount trace"
#: The version that is written, and the newest that is read.
VERSION = 1

_COLUMNS = ("label", "parent", "start", "end", "track", "flags")
_KEYS = {
    *("format", "version", "recorded", "truncated", "pid", "epoch_ns", "windows", "labels"),
    *("tracks", "columns", "folded", "details", "marks", "memory", "flows"),
}

T = TypeVar("T")


def plain_chunks(timeline: Timeline) -> Iterator[str]:
    """The file in pieces. Times are ns of ``time.perf_counter_ns()``.

    >>> print("".join(plain_chunks(Timeline()))[:48])
    {"format": "pytest-instrcount trace", "version":
    """
    head = {
        "format": FORMAT,
        "version": VERSION,
        "recorded": astuple(timeline.recorded),
        "truncated": timeline.truncated,
        "pid": timeline.pid,
        "epoch_ns": timeline.epoch_ns,
        "windows": timeline.windows,
        "labels": [astuple(label) for label in timeline.labels],
        "tracks": [astuple(track) for track in timeline.tracks],
        "folded": [(row, *astuple(one)) for row, one in sorted(timeline.folded.items())],
        "details": [(row, *astuple(one)) for row, one in sorted(timeline.details.items())],
        "marks": [astuple(mark) for mark in timeline.marks],
        "memory": [astuple(sample) for sample in timeline.memory],
        "flows": [astuple(flow) for flow in timeline.flows],
    }
    yield json.dumps(head)[:-1] + ', "columns": {'
    for number, name in enumerate(_COLUMNS):
        yield (", " if number else "") + f'"{name}": '
        yield json.dumps(list(getattr(timeline, name)))
    yield "}}\n"


def read_timeline(path: Path) -> Timeline:
    """The timeline in a file; ".gz" is unpacked.

    Raises InstrcountError: slug "trace-unreadable", "trace-damaged" or "trace-newer".

    >>> read_timeline(Path("no.json"))
    Traceback (most recent call last):
    pytest_instrcount.errors.InstrcountError: instrcount: 'no.json' cannot be read: ...
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or printable(str(error))
        raise InstrcountError(
            "trace-unreadable",
            f"{printable(str(path))!r} cannot be read: {why}",
            "give the path of a file that export_json wrote",
        ) from error
    return parse_timeline(data, printable(str(path)))


def parse_timeline(data: bytes, name: str = "the trace") -> Timeline:
    """The timeline in the content of a file; raises InstrcountError as `read_timeline` does.

    >>> parse_timeline("".join(plain_chunks(Timeline())).encode()) == Timeline()
    True
    """
    try:
        document = json.loads(data)
        _expect(isinstance(document, dict), "it is no JSON object")
        _expect(document.get("format") == FORMAT, "it is of another format")
        version = document.get("version")
        _expect(type(version) is int and version >= 1, "it has no version")
        if version > VERSION:
            raise InstrcountError(
                "trace-newer",
                f"{name!r} is of version {str(version)[:20]}, and this release reads {VERSION}",
                "pip install --upgrade pytest-instrcount",
            )
        _expect(document.keys() == _KEYS, "its keys are others")
        timeline = _timeline(document)
        rule = broken_rules(timeline)
        _expect(not rule, rule)
    except (ValueError, TypeError, OverflowError, RecursionError, KeyError) as error:
        raise InstrcountError(
            "trace-damaged",
            f"{name!r} is no trace, or a damaged one: {printable(str(error))[:200]}",
            "export_json again",
        ) from error
    return timeline


def _timeline(document: dict[str, object]) -> Timeline:
    columns = document["columns"]
    _expect(isinstance(columns, dict), "its columns are no object")
    named: dict[str, Any] = {
        name: column(_numbers(cast("dict[str, object]", columns)[name])) for name in _COLUMNS
    }
    windows = [_numbers(window) for window in _list(document["windows"])]
    _expect(all(len(window) == 2 for window in windows), "a recording has a start and an end")
    return Timeline(
        labels=_records(Label, document["labels"], str, str, str, int),
        tracks=_records(Track, document["tracks"], str, int, int),
        **named,
        folded=dict(_records(_folded, document["folded"], int, int, int, int, int)),
        details=dict(
            _records(_detail, document["details"], int, int, list, int, str, str, int, int)
        ),
        marks=_records(Mark, document["marks"], str, int, int),
        memory=_records(MemorySample, document["memory"], int, int, int),
        flows=_records(Flow, document["flows"], str, int, int, int, int),
        windows=tuple((start, end) for start, end in windows),
        recorded=_records(Recorded, [document["recorded"]], bool, bool, bool, bool)[0],
        truncated=_typed(document["truncated"], bool),
        pid=_typed(document["pid"], int),
        epoch_ns=_typed(document["epoch_ns"], int),
    )


def _folded(row: int, *numbers: int) -> tuple[int, Folded]:
    return row, Folded(*numbers)


def _detail(
    row: int, end_track: int | None, shapes: list[object], *rest: object
) -> tuple[int, Detail]:
    shape = tuple(tuple(_numbers(sizes)) for sizes in shapes)
    return row, Detail(end_track, shape, *rest)  # type: ignore[arg-type]


def _records(make: Callable[..., T], rows: object, *types: type) -> tuple[T, ...]:
    """One record per row; ``None`` only where a `Detail` may have it."""
    made = []
    for row in _list(rows):
        values = _list(row)
        _expect(len(values) == len(types), f"a {make.__name__.strip('_')} has other fields")
        nullable = (1, 3) if make is _detail else ()
        for at, (value, kind) in enumerate(zip(values, types)):
            if not (value is None and at in nullable):
                _typed(value, kind)
        made.append(make(*values))
    return tuple(made)


def _numbers(values: object) -> list[int]:
    return [_typed(value, int) for value in _list(values)]


def _list(value: object) -> list[object]:
    return _typed(value, list)


def _typed(value: object, kind: type[T]) -> T:
    """The value, if it is exactly of that type: True is no number."""
    _expect(type(value) is kind, f"a {kind.__name__} is missing")
    return cast("T", value)


def _expect(holds: bool, why: str) -> None:
    if not holds:
        raise ValueError(why)
