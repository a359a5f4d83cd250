"""Events that a session of ranges records, in one list per thread."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_instrcount.errors import InstrcountError

#: The version of plain values; an event of another version is refused.
PLAIN_VERSION = 1
#: Marks that a session sets itself: its first event and its last one.
START_MARK = "__start_profile"
STOP_MARK = "__stop_profile"


class EventKind(enum.IntEnum):
    """Kinds of event; the numbers are used in plain values."""

    #: a point in time with a name
    MARK = 0
    #: a range began
    PUSH = 1
    #: a range ended
    POP = 2
    #: what a range allocated; stands just before its POP
    MEMORY = 3


class Scope(enum.IntEnum):
    """Sources of a range; the numbers are those of torch."""

    #: a decorated function
    FUNCTION = 0
    #: a with-block
    USER = 7


#: Index of each field in an event's plain values, from 0 on; an index is never reused.
PlainIndex = enum.IntEnum(
    "PlainIndex",
    "VERSION KIND NAME THREAD HANDLE NODE_ID AT_NS IN_USE DELTA PEAK SEQUENCE_NR ORIGIN_THREAD SCOPE "
    "IS_ASYNC FAILED SHAPES ARGS",
    start=0,
)


# Not a frozen dataclass, which takes 1.5 us to make: there are two to three of these per range.
class Event(NamedTuple):
    """One thing that happened in a session: a mark, a range's begin or end, or its memory.

    Numbers of threads count within a process (``node_id``), in the order of their first event.

    >>> event = Event(EventKind.PUSH, "load", 0, handle=1, at_ns=5)
    >>> Event.from_plain(event.to_plain()) == event._replace(remote=True)
    True
    """

    kind: EventKind
    #: of the mark or the range
    name: str
    #: number of the thread on which it happened; that of a POP may not be that of its PUSH
    thread: int
    #: the same for all events of a range, and of no other range of its process; -1 for marks
    handle: int = -1
    #: process that it happened in; 0 is the one that recorded
    node_id: int = 0
    #: ``time.perf_counter_ns()``
    at_ns: int = 0
    #: bytes that tracemalloc knew to be in use; 0 without ``profile_memory``
    in_use: int = 0
    #: of MEMORY: bytes allocated within the range and not freed; negative if more were freed
    delta: int = 0
    #: of MEMORY: the most that was in use within the range, in bytes above its begin
    peak: int = 0
    #: of PUSH: handle of the range that it was opened in, maybe on another thread; -1: none
    sequence_nr: int = -1
    #: of PUSH: number of the thread that range, or whatever began this thread, ran on
    origin_thread: int = -1
    #: of PUSH: a `Scope`
    scope: int = Scope.USER
    #: it may overlap others: an async or generator function, or ended by a future
    is_async: bool = False
    #: of POP: left by an exception
    failed: bool = False
    #: of PUSH: shapes of its arguments, one tuple each, () for what has none; see ``record_shapes``
    shapes: tuple[tuple[int, ...], ...] = ()
    #: of PUSH: the text that was given along with the name
    args: str = ""
    #: it comes from plain values, and so from elsewhere
    remote: bool = False

    def to_plain(self) -> list[object]:
        """The event as a flat list of int, str, bool and lists of these; `PlainIndex` says where.

        >>> Event(EventKind.MARK, "here", 0).to_plain()[:3]
        [1, 0, 'here']
        """
        shapes = [list(shape) for shape in self.shapes]
        head = [int(self.kind), *self[1:11], int(self.scope), self.is_async, self.failed]
        return [PLAIN_VERSION, *head, shapes, self.args]

    @classmethod
    def from_plain(cls, plain: object) -> Event:
        """The event of plain values, as JSON, execnet or pickle hand them over.

        Raises InstrcountError (slug "event-plain") if they are too short, of wrong types, or of
        another version. What a later release puts at the end is left out.

        >>> Event.from_plain([1, 0])
        Traceback (most recent call last):
        pytest_instrcount.errors.InstrcountError: instrcount: no event: 2 values, 17 are needed [event-plain]
          fix: record and read with the same release of pytest-instrcount
        """
        values = _checked(plain)
        shapes = _shapes(values[PlainIndex.SHAPES])
        rest = values[PlainIndex.NAME : PlainIndex.SHAPES]
        return cls._make(
            (_KINDS[values[PlainIndex.KIND]], *rest, shapes, values[PlainIndex.ARGS], True)
        )


@dataclass(frozen=True, slots=True)
class ThreadEvents:
    """The events of one thread, in their order.

    A range that ended on another thread has its POP here, too, with that thread's number.
    """

    #: as in ``Event.thread``
    number: int
    #: a label, not unique
    name: str
    #: ``threading.get_ident()``; the system may use it again once the thread has ended
    ident: int
    #: process that it is a thread of; 0 is the one that recorded
    node_id: int
    events: tuple[Event, ...]


_KINDS: dict[object, EventKind] = {int(kind): kind for kind in EventKind}
_TYPES: dict[PlainIndex, type] = dict.fromkeys(PlainIndex, int) | {
    PlainIndex.NAME: str,
    PlainIndex.IS_ASYNC: bool,
    PlainIndex.FAILED: bool,
    PlainIndex.SHAPES: list,
    PlainIndex.ARGS: str,
}


def _checked(plain: object) -> Sequence[object]:
    if not isinstance(plain, (list, tuple)):
        raise not_plain(f"{type(plain).__name__}, not a list")
    if len(plain) < len(PlainIndex):
        raise not_plain(f"{len(plain)} values, {len(PlainIndex)} are needed")
    for index, kind in _TYPES.items():
        value = list(plain[index]) if isinstance(plain[index], tuple) else plain[index]
        # bool is an int for isinstance
        if type(value) is not kind:
            raise not_plain(f"{index.name} is {type(value).__name__}, not {kind.__name__}")
        if kind is int and not fits(value):
            raise not_plain(f"{index.name} is beyond 64 bits")
    if plain[PlainIndex.VERSION] != PLAIN_VERSION:
        raise not_plain(f"version {plain[PlainIndex.VERSION]}, not {PLAIN_VERSION}")
    if plain[PlainIndex.KIND] not in _KINDS:
        raise not_plain(f"there is no kind {plain[PlainIndex.KIND]}")
    return plain


def fits(number: object) -> bool:
    """True if an integer fits into 64 bits, so that sums of these can be written out."""
    return isinstance(number, int) and -(2**63) <= number < 2**63


def _shapes(plain: object) -> tuple[tuple[int, ...], ...]:
    shapes = []
    for shape in plain if isinstance(plain, (list, tuple)) else ():
        if not isinstance(shape, (list, tuple)) or not all(
            type(size) is int and fits(size) for size in shape
        ):
            raise not_plain("a shape is no list of int")
        shapes.append(tuple(shape))
    return tuple(shapes)


def not_plain(why: str) -> InstrcountError:
    """The error for values that are not what `Event.to_plain` gives."""
    return InstrcountError(
        "event-plain",
        f"no event: {why}",
        "record and read with the same release of pytest-instrcount",
    )
