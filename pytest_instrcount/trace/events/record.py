"""Ranges as a Chrome trace, recorded by a with-block."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.files import write_output
from pytest_instrcount.trace.columns import Columns, ReplayStats
from pytest_instrcount.trace.events.build import build_timeline
from pytest_instrcount.trace.export.bounds import ALL
from pytest_instrcount.trace.export.chrome import chrome_chunks
from pytest_instrcount.trace.ranges.event import START_MARK, EventKind, ThreadEvents
from pytest_instrcount.trace.ranges.session import Session
from pytest_instrcount.trace.timeline import Recorded, Timeline, printable

_log = logging.getLogger("pytest_instrcount")


def of_ranges(threads: Iterable[ThreadEvents], begin_ns: int, end_ns: int) -> Timeline:
    """Ranges without calls; what did not end lasts until ``end_ns``."""
    stats = ReplayStats("none", started_ns=begin_ns, stopped_ns=end_ns)
    built = build_timeline(Columns(stats=stats), tuple(threads), Recorded(shapes=True))
    # times count from the begin, and processes from 1
    return replace(built, pid=0, epoch_ns=0)


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
    >>> '"name":"here"' in out.getvalue()
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
        begin = _start_of(threads)
        end = max(event.at_ns for one in threads for event in one.events)
        text = "".join(chrome_chunks(of_ranges(threads, begin, end), ALL))
        if isinstance(self.target, (str, os.PathLike)):
            write_output(Path(self.target), text.encode())
        else:
            self.target.write(text)
            self.target.flush()
