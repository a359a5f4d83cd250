"""A session of ranges: started and stopped, and what is recorded in between, in all its threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from time import perf_counter_ns

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.ranges.event import (
    START_MARK,
    STOP_MARK,
    Event,
    EventKind,
    Scope,
    ThreadEvents,
)
from pytest_instrcount.trace.ranges.memory import WATCH
from pytest_instrcount.trace.ranges.place import (
    CARRIER,
    PLACE,
    Place,
    Stream,
    events_of,
    here,
    next_handle,
    shape_of,
    still_on,
)
from pytest_instrcount.trace.ranges.remote import add_nodes

#: Plain numbers: an enum costs too much in a range.
FUNCTION = int(Scope.FUNCTION)
USER = int(Scope.USER)

_live: set[Session] = set()
_live_lock = threading.Lock()


class _Streams(threading.local):
    """The stream of the thread that asks, made when it asks first."""

    def __init__(self, new: Callable[[], Stream]) -> None:
        self.stream = new()


class Session:
    """Events of this context, and of the threads, executor calls and tasks that it starts.

    >>> session = start()
    >>> mark("here")
    >>> [event.name for event in session.stop()[0].events]
    ['__start_profile', 'here', '__stop_profile']
    """

    def __init__(self, *, profile_memory: bool = False, record_shapes: bool = False) -> None:
        self.record_shapes = record_shapes
        #: whether it records
        self.on = False
        #: how many ranges ended after the session did
        self.late = 0
        self._owner = here()
        self._lock = threading.Lock()
        self._streams: list[Stream] = []
        self._remote: tuple[ThreadEvents, ...] = ()
        self._here = _Streams(self._new_stream)
        self._memory = WATCH if profile_memory else None
        self._root = Place(self, self._here.stream, "", None, USER)

    @property
    def profile_memory(self) -> bool:
        """True if ranges are measured through tracemalloc."""
        return self._memory is not None

    def begin(self) -> None:
        """Start to record; raises InstrcountError (slug "session-on") if one is on here."""
        with _live_lock:
            if any(other._owner == self._owner for other in _live):
                raise InstrcountError(
                    "session-on",
                    "ranges are recorded here already, by another session or profile",
                    "stop() that one first, or record in a thread or task of your own",
                )
            _live.add(self)
        self._root.before = still_on(PLACE.get())
        if self._memory is not None:
            self._memory.begin()
        CARRIER.install()
        self.on = True
        PLACE.set(self._root)
        self.mark(START_MARK)

    def stop(self, *, consolidate: bool = True, cleanup: bool = True) -> tuple[ThreadEvents, ...]:
        """Stop to record, here and wherever it was carried; any thread may. Gives the events.

        ``consolidate=False`` gives none. ``cleanup=False`` takes the events out and goes on.
        Raises InstrcountError (slug "session-off") if it does not record.
        """
        with _live_lock:
            if self not in _live:
                raise session_off("this session is not on")
            if cleanup:
                _live.discard(self)
        if consolidate:
            self.mark(STOP_MARK)
        if cleanup:
            self.on = False
            CARRIER.remove()
            place = PLACE.get()
            if place is not None and place.session is self:
                PLACE.set(self._root.before)
            if self._memory is not None:
                self._memory.end()
        if consolidate:
            return self._take()
        if cleanup:
            # contexts that have inherited the session keep it, but not what it has recorded
            self._take()
        return ()

    def open(
        self,
        name: str,
        before: Place,
        scope: int,
        args: object = None,
        values: tuple[object, ...] = (),
        *,
        is_async: bool = False,
    ) -> Place:
        """Begin a range within ``before``; ``args`` is its text or, like ``values``, may have shapes."""
        memory = self._memory
        # before all that is allocated here
        watched = None if memory is None else memory.open()
        stream = self._here.stream
        opened = Place(self, stream, name, before, scope)
        opened.handle = next_handle()
        if is_async:
            opened.is_async = True
        if args is not None or values:
            self._note(opened, args, values)
        if watched is not None:
            opened.watched, opened.in_use = watched, watched.begin
        stream.records.append(opened)
        opened.start_ns = perf_counter_ns()
        if memory is not None and watched is not None:
            memory.own(watched.traced)
        return opened

    def close(self, place: Place, failed: bool) -> None:
        """End a range, on whatever thread; it is kept where it began."""
        if not self.on:
            place.open = False
            self.late += 1
            return
        memory, watched = self._memory, place.watched
        measured = None if memory is None or watched is None else memory.close(watched)
        place.end_ns = perf_counter_ns()
        place.open = False
        if failed:
            place.failed = True
        stream = self._here.stream
        if stream is not place.stream:
            place.end_stream = stream
        place.stream.records.append(place)
        if memory is not None and measured is not None:
            # what was allocated as our own is freed before it is measured, or kept
            place.memory, place.watched, watched = measured, None, None
            memory.own(measured.traced)

    def mark(self, name: str) -> None:
        """Record a point in time."""
        stream = self._here.stream
        in_use = 0 if self._memory is None else self._memory.in_use()
        now = perf_counter_ns()
        stream.records.append(Event(EventKind.MARK, name, stream.number, at_ns=now, in_use=in_use))

    def add(self, threads: Iterable[ThreadEvents], node_id: int | None = None) -> None:
        """Take over what another process has recorded; see `add_events`."""
        with self._lock:
            self._remote = add_nodes(self._remote, threads, node_id)

    def _note(self, place: Place, args: object, values: tuple[object, ...]) -> None:
        if isinstance(args, str):
            place.args = args
        elif isinstance(args, (tuple, list)):
            values = tuple(args)
        if self.record_shapes:
            place.shapes = tuple(map(shape_of, values))

    def _new_stream(self) -> Stream:
        with self._lock:
            stream = Stream(len(self._streams))
            self._streams.append(stream)
        return stream

    def _take(self) -> tuple[ThreadEvents, ...]:
        with self._lock:
            remote, self._remote = self._remote, ()
            streams = list(self._streams)
        taken = []
        for stream in streams:
            # Threads that go on may append meanwhile: what they do stays.
            records = stream.records[:]
            del stream.records[: len(records)]
            events = tuple(event for record in records for event in events_of(record))
            taken.append(ThreadEvents(stream.number, stream.name, stream.ident, 0, events))
        return (*taken, *remote)


def start(*, profile_memory: bool = False, record_shapes: bool = False) -> Session:
    """Record ranges and marks from here on, until ``stop()``.

    ``profile_memory`` measures each range through tracemalloc, which makes all code slower.
    Raises InstrcountError (slug "session-on") if this thread or task has started a session that
    still records. In one that has only inherited a session, events go to the new one from here on.

    >>> session = start()
    >>> len(stop())
    1
    """
    session = Session(profile_memory=profile_memory, record_shapes=record_shapes)
    session.begin()
    return session


def stop(*, consolidate: bool = True, cleanup: bool = True) -> tuple[ThreadEvents, ...]:
    """Stop the session that records here; see `Session.stop`.

    Raises InstrcountError (slug "session-off") if there is none.
    """
    return current().stop(consolidate=consolidate, cleanup=cleanup)


def current() -> Session:
    """The session that records here; raises InstrcountError (slug "session-off") if there is none."""
    place = still_on(PLACE.get())
    if place is None:
        raise session_off("no session is on here")
    return place.session


def mark(name: str) -> None:
    """Record a point in time with a name; does nothing where no session is on.

    >>> mark("loaded")
    """
    place = still_on(PLACE.get())
    if place is not None:
        place.session.mark(name)


def add_events(threads: Iterable[ThreadEvents], node_id: int | None = None) -> None:
    """Add what another process has recorded to the session that records here, after its own events.

    ``node_id`` is a number for that process; the next free one if None. Raises InstrcountError: slug
    "session-off" if no session is on here, "node-taken" if the number is another process's.
    """
    current().add(threads, node_id)


def session_off(why: str) -> InstrcountError:
    """The error for what needs a session."""
    return InstrcountError("session-off", why, "start() one first")
