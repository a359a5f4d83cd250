"""The innermost open range of the current context, carried into threads and tasks that it starts."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from pytest_instrcount.trace.ranges.carry import Carrier
from pytest_instrcount.trace.ranges.event import Event, EventKind
from pytest_instrcount.trace.ranges.memory import Measured, Watched

if TYPE_CHECKING:
    from pytest_instrcount.trace.ranges.session import Session

next_handle = itertools.count(1).__next__


class Stream:
    """The raw events of one thread: cheap to append to, read by the session."""

    __slots__ = ("ident", "name", "number", "records")

    def __init__(self, number: int) -> None:
        thread = threading.current_thread()
        #: of the thread in its session
        self.number = number
        self.name = thread.name
        self.ident = threading.get_ident()
        self.records: list[object] = []


class Place:
    """A range, from its begin on; or the root of a session, which is open as long as that is on.

    It is its own record: in the stream once when it begins, and once more when it ends.
    """

    # Class attributes, not slots: a range sets six of them, not twenty.
    #: whether it has not ended
    open = True
    #: whether the session has given its begin away
    taken = False
    handle = -1
    is_async = False
    failed = False
    shapes: tuple[tuple[int, ...], ...] = ()
    args = ""
    start_ns = 0
    end_ns = 0
    #: of the thread on which it ended, if it is another one
    end_stream: Stream | None = None
    watched: Watched | None = None
    #: bytes in use at its begin
    in_use = 0
    #: None: not measured, or not ended
    memory: Measured | None = None

    def __init__(
        self, session: Session, stream: Stream, name: str, before: Place | None, scope: int
    ) -> None:
        self.session = session
        #: of the thread on which it began, and where it is recorded
        self.stream = stream
        self.name = name
        #: the innermost place where this one was opened
        self.before = before
        self.scope = scope


#: The place of this context; None: no session was ever on. Tasks inherit it, threads get it.
PLACE: ContextVar[Place | None] = ContextVar("instrcount_place", default=None)
CARRIER = Carrier(PLACE)


def still_on(place: Place | None) -> Place | None:
    """The innermost place, from this one outwards, that is open in a session that is on.

    >>> still_on(None)
    """
    while place is not None and not (place.open and place.session.on):
        place = place.before
    return place


def leave(place: Place) -> None:
    """Leave this place in the current context, even if its range has not ended."""
    if PLACE.get() is place:
        PLACE.set(place.before)


class _ThisThread(threading.local):
    """An object per thread that no later thread has; idents are used again."""

    def __init__(self) -> None:
        self.token = object()


_this_thread = _ThisThread()


def here() -> tuple[int, object, object]:
    """The process, its present thread, and the asyncio task that runs on it, if one does.

    A forked process goes on with its parent's thread: it has inherited what that began.

    >>> here() == here()
    True
    """
    asyncio = sys.modules.get("asyncio")
    try:
        task = None if asyncio is None else asyncio.current_task()
    except (AttributeError, RuntimeError):  # it is being imported; no loop runs
        task = None
    return os.getpid(), _this_thread.token, task


def events_of(record: object) -> Iterator[Event]:
    """A mark as it is; of a range its PUSH when it is read first, then its MEMORY and POP."""
    if isinstance(record, Event):
        yield record
    elif isinstance(record, Place):
        if not record.taken:
            record.taken = True
            yield _push(record)
            return
        _, in_use, delta, peak = record.memory or (0, 0, 0, 0)
        thread = (record.end_stream or record.stream).number
        both = Event(
            EventKind.POP, record.name, thread, record.handle,
            at_ns=record.end_ns, in_use=in_use, is_async=record.is_async, failed=record.failed,
        )  # fmt: skip
        if record.memory is not None:
            yield both._replace(kind=EventKind.MEMORY, delta=delta, peak=peak)
        yield both


def _push(place: Place) -> Event:
    before = place.before
    return Event(
        EventKind.PUSH, place.name, place.stream.number, place.handle,
        at_ns=place.start_ns, in_use=place.in_use, scope=place.scope, is_async=place.is_async,
        shapes=place.shapes, args=place.args,
        sequence_nr=-1 if before is None else before.handle,
        origin_thread=-1 if before is None else before.stream.number,
    )  # fmt: skip


def shape_of(value: object) -> tuple[int, ...]:
    """The ``shape`` of an array, or ().

    >>> shape_of(memoryview(b"abc")), shape_of("abc")
    ((3,), ())
    """
    try:
        return tuple(int(size) for size in value.shape)  # type: ignore[attr-defined]
    except Exception:  # whatever a foreign object says instead
        return ()
