"""Ranges as a Chrome trace: written to a stream, or recorded into a file by a with-block."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TextIO

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.files import write_output
from pytest_instrcount.trace.export.chrome import microseconds
from pytest_instrcount.trace.ranges.event import (
    START_MARK,
    STOP_MARK,
    Event,
    EventKind,
    ThreadEvents,
)
from pytest_instrcount.trace.ranges.session import Session
from pytest_instrcount.trace.timeline import printable

# Perfetto drops what lies more than 512 deep; an asynchronous range lies nowhere.
_LEVELS = 500
_log = logging.getLogger("pytest_instrcount")


def write_events(stream: TextIO, threads: Iterable[ThreadEvents]) -> None:
    """Write ranges and marks as Chrome's JSON, which Perfetto shows; times count from the start.

    Ranges that nest are slices of their thread; others, and those that ended on another thread, are
    asynchronous ones. A range without an end lasts until the last event, and says so. Nothing is
    written before all is known to be well. Raises InstrcountError: slug "trace-no-start" without the
    mark of a session's start, "unmatched-pop" if a range ended whose begin is not there.

    >>> import io
    >>> from pytest_instrcount.trace.ranges.session import start
    >>> out = io.StringIO()
    >>> write_events(out, start().stop())
    >>> list(json.loads(out.getvalue()))
    ['displayTimeUnit', 'traceEvents']
    """
    stream.write(chrome_text(threads))


def chrome_text(threads: Iterable[ThreadEvents]) -> str:
    """The value that `write_events` writes."""
    threads = tuple(threads)
    origin = _start_of(threads)
    last = max(event.at_ns for one in threads for event in one.events)
    return "".join(document(row for one in threads for row in _rows(one, origin, last)))


def document(rows: Iterable[dict[str, object]]) -> Iterator[str]:
    """Chrome's JSON of these events, in pieces.

    >>> print("".join(document([{"ph": "M"}])), end="")
    {"displayTimeUnit": "ns", "traceEvents": [
    {"ph": "M"}
    ]}
    """
    yield '{"displayTimeUnit": "ns", "traceEvents": ['
    comma = "\n"
    for row in rows:
        yield comma + json.dumps(row)
        comma = ",\n"
    yield "\n]}\n"


def _start_of(threads: Iterable[ThreadEvents]) -> int:
    for one in threads:
        for event in one.events:
            if event.kind is EventKind.MARK and event.name == START_MARK and not event.node_id:
                return event.at_ns
    raise InstrcountError(
        "trace-no-start",
        f"these events have no mark {START_MARK}: they are no session, or the rest of one",
        "write all that the first stop() gave",
    )


def _rows(one: ThreadEvents, origin: int, last: int) -> Iterator[dict[str, object]]:
    process = "this process" if not one.node_id else f"node {one.node_id}"
    yield from name_rows(one.node_id, process, {one.number: one.name})
    yield from event_rows(one, origin, last)


def place(node_id: int, number: int) -> dict[str, int]:
    """``pid`` and ``tid``: 0 is the idle thread to Perfetto.

    >>> place(0, 0)
    {'pid': 1, 'tid': 1}
    """
    return {"pid": node_id + 1, "tid": number + 1}


def name_rows(
    node_id: int, process: str, threads: Mapping[int, str]
) -> Iterator[dict[str, object]]:
    """Names of a process and of its threads, by number, in the viewer."""
    for number, name in threads.items():
        at = place(node_id, number)
        yield {"ph": "M", "name": "process_name", **at, "args": {"name": printable(process)}}
        yield {"ph": "M", "name": "thread_name", **at, "args": {"name": printable(name)}}


def event_rows(one: ThreadEvents, origin: int, last: int) -> Iterator[dict[str, object]]:
    """The ranges, marks and memory of a thread, with times from ``origin``.

    What has no end lasts until ``last``. Raises InstrcountError (slug "unmatched-pop").
    """
    thread = place(one.node_id, one.number)
    # In order of begin, the outer one first: so the processor of Perfetto can nest what begins at once.
    rows: list[Iterable[dict[str, object]]] = []
    opened: dict[int, tuple[Event, int, int]] = {}
    for event in one.events:
        at = {"ts": to_us(event.at_ns - origin), **thread}
        if event.kind is EventKind.PUSH:
            opened[event.handle] = event, len(rows), len(opened)
            rows.append(())
        elif event.kind is EventKind.POP:
            if event.handle not in opened:
                raise _unmatched(event)
            nests = next(reversed(opened)) == event.handle and event.thread == one.number
            push, at_row, depth = opened.pop(event.handle)
            is_async = event.is_async or not nests or depth >= _LEVELS
            rows[at_row] = _range(push, event.at_ns, origin, thread, _args(push, event), is_async)
        elif event.kind is EventKind.MEMORY:
            row = {"ph": "C", "name": "traced memory", **at, "args": {"bytes": event.in_use}}
            rows.append([row])
        elif event.name not in (START_MARK, STOP_MARK):
            rows.append([{"ph": "i", "name": printable(event.name), **at, "s": "t"}])
    for push, at_row, depth in opened.values():
        args = {**_args(push, None), "unfinished": True}
        is_async = push.is_async or depth >= _LEVELS
        rows[at_row] = _range(push, last, origin, thread, args, is_async)
    yield from chain.from_iterable(rows)


def _range(
    push: Event,
    end_ns: int,
    origin: int,
    thread: dict[str, int],
    args: dict[str, object],
    is_async: bool,
) -> Iterator[dict[str, object]]:
    name, begin = printable(push.name), to_us(push.at_ns - origin)
    if is_async:
        tie = {"cat": "range", "id": f"{push.node_id}.{push.handle}", "name": name, **thread}
        yield {"ph": "b", "ts": begin, **tie, "args": args}
        yield {"ph": "e", "ts": to_us(end_ns - origin), **tie}
    else:
        long = to_us(end_ns - push.at_ns)
        yield {"ph": "X", "name": name, "ts": begin, "dur": long, **thread, "args": args}


def _args(push: Event, pop: Event | None) -> dict[str, object]:
    found: dict[str, object] = {}
    if push.args:
        found["args"] = printable(push.args)
    if push.shapes:
        found["shapes"] = [list(shape) for shape in push.shapes]
    if pop is not None and pop.failed:
        found["failed"] = True
    if pop is not None and pop.thread != push.thread:
        found["ended on thread"] = pop.thread + 1
    return found


def to_us(ns: int) -> float:
    """Microseconds, which Perfetto reads back as the very nanoseconds.

    >>> to_us(1500)
    1.5
    """
    # what another process did before this session began is before 0
    return float(microseconds(ns)) if ns >= 0 else -float(microseconds(-ns))


def _unmatched(pop: Event) -> InstrcountError:
    return InstrcountError(
        "unmatched-pop",
        f"the range {printable(pop.name)!r} ended, and these events do not say that it began",
        "write all that was recorded, of all calls of stop()",
    )


class RecordProfile:
    """Record the ranges of a with-block into a Chrome trace: a file, or a text stream.

    The end never raises: what went wrong (a full disk, a closed stream) is logged, and kept as
    ``error``. A file is there whole or not at all. Raises InstrcountError (slug "session-on") at the
    begin if ranges are recorded here already.

    >>> import io
    >>> out = io.StringIO()
    >>> from pytest_instrcount.trace.ranges.session import mark
    >>> with RecordProfile(out):
    ...     mark("here")
    >>> '"name": "here"' in out.getvalue()
    True
    """

    def __init__(self, target: str | os.PathLike[str] | TextIO) -> None:
        self.target = target
        #: why there is no trace, after the end; None if there is one
        self.error: Exception | None = None
        self._session: Session | None = None

    def __enter__(self) -> RecordProfile:
        session = Session()
        session.begin()
        self._session, self.error = session, None
        return self

    def __exit__(self, *error: object) -> None:
        session, self._session = self._session, None
        try:
            self._write(() if session is None else session.stop())
        except Exception as problem:
            self.error = problem
            _log.error("the trace could not be written: %s", printable(str(problem)))

    def _write(self, threads: tuple[ThreadEvents, ...]) -> None:
        if isinstance(self.target, (str, os.PathLike)):
            write_output(Path(self.target), chrome_text(threads).encode())
        else:
            write_events(self.target, threads)
            self.target.flush()
