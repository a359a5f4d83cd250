"""The result of a trace: a row per call, as columns."""

from __future__ import annotations

import enum
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

#: Objects of one class that are told apart.
MOST_OBJECTS = 100


class Flag(enum.IntFlag):
    """Flags for the way a row was entered and left; none for a call that simply returned."""

    #: on the stack before the trace began: shown, not counted
    START_FRAME = 1
    #: a generator or coroutine went on here: counted as a resume, not as a call
    RESUME = 2
    #: it went on by ``throw()`` (``sys.monitoring`` only): a resume, too
    THROW = 4
    #: it went on by ``close()`` or ``del`` (``sys.monitoring`` only): a resume, too
    CLOSE = 8
    #: left by ``yield`` or ``await``
    YIELD = 16
    #: left by an exception
    ERROR = 32
    #: its exit was never seen; closed when a caller of it was left
    UNFINISHED = 64
    #: still running when the trace stopped
    OPEN = 128
    #: a ``__del__`` or a callback of the garbage collector, or called by one: it runs whenever
    #: memory happens to be freed
    FINALIZER = 256


@dataclass(frozen=True, slots=True)
class Key:
    """A called function, wherever it was called from.

    >>> Key("python", "json", "loads", "json/__init__.py", 299).name
    'json.loads'
    """

    #: "python"; "c" for a builtin function or method
    kind: Literal["python", "c"]
    #: dotted name; of an ``exec``-uted string its file name, "<string>"
    module: str
    #: as ``__qualname__``: "JSONDecoder.decode", "f.<locals>.g"; of C methods the defining class
    qualname: str
    #: source file without the part that differs between machines; "" for C
    file: str = ""
    #: line of ``def`` or of the first decorator; 0 for C
    firstlineno: int = 0

    @property
    def name(self) -> str:
        """``module.qualname``: what patterns match."""
        return f"{self.module}.{self.qualname}"


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread whose calls were traced, or a greenlet in one."""

    #: in the order of their first event, from 0: the thread that started the trace
    number: int
    #: a label, not unique
    name: str
    #: ``threading.get_ident()``; the system may have used it for several threads in a row
    ident: int
    #: number of the greenlet in its thread, from 1; 0: no greenlet, or the main one
    greenlet: int = 0


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a recognised object; fields that it does not have are empty."""

    name: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    #: the gradient, if there is one
    gradient: Parameter | None = None
    #: an optimizer's state of this parameter
    state: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class RecognizedObject:
    """The ``self`` of a recognised call."""

    #: name of its class, without the module
    cls: str
    #: in the order of first calls among the objects of this class, from 0
    number: int
    #: as they were at the first call
    parameters: tuple[Parameter, ...] = ()

    @property
    def name(self) -> str:
        """Class and number; those beyond a bound share a name, so that trees and tables have an end.

        >>> RecognizedObject("Linear", 2).name, RecognizedObject("Linear", 7_000).name
        ('Linear #2', 'Linear #100 and on')
        """
        if self.number < MOST_OBJECTS:
            return f"{self.cls} #{self.number}"
        return f"{self.cls} #{MOST_OBJECTS} and on"


class Task(RecognizedObject):
    """A task of asyncio, a step of which an event loop ran; ``cls`` is its name and its coroutine's."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Folded:
    """A row after folding: all calls of one function in one calling context."""

    calls: int
    resumes: int
    #: how many of both were left by an exception
    errors: int
    #: inclusive nanoseconds of all; 0 without a clock
    ns: int


@dataclass(frozen=True, slots=True)
class ReplayStats:
    """Facts about a trace; none of them is an error."""

    #: "monitoring" or "setprofile"
    backend: str
    #: recorded enters and exits
    events: int = 0
    #: exits of calls that were never entered
    unmatched_exits: int = 0
    #: rows whose exit was never seen
    unfinished: int = 0
    #: rows still running at the end, start frames left out
    open_at_stop: int = 0
    #: more events than the bound: rows were folded, counts are exact, times and order are sums
    truncated: bool = False
    #: when the trace began and ended, ``time.perf_counter_ns``
    started_ns: int = 0
    stopped_ns: int = 0


#: Plain numbers: an enum costs too much in a loop.
RESUMED = int(Flag.RESUME | Flag.THROW | Flag.CLOSE)
NOT_A_CALL = RESUMED | int(Flag.START_FRAME)
LEFT_BY_ERROR = int(Flag.ERROR)


def _numbers() -> array[int]:
    return array("q")


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Columns of equal length, a row per call: what every store of rows has.

    The index of a row is its id, and is larger than its parent's. Arrays must not be changed.
    """

    #: row of the caller; -1 for what nobody called in the trace
    parent: array[int] = field(default_factory=_numbers)
    #: with a clock ``perf_counter_ns``, strictly increasing in a thread; else numbers of events
    start: array[int] = field(default_factory=_numbers)
    end: array[int] = field(default_factory=_numbers)
    #: a union of ``Flag``
    flags: array[int] = field(default_factory=_numbers)
    #: row -> what it stands for, if it is not one call; empty unless truncated
    folded: Mapping[int, Folded] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start)

    def calls(self, row: int) -> int:
        """The number of calls in a row: 1, or 0 for a resume or a start frame."""
        if self.folded and row in self.folded:
            return self.folded[row].calls
        return 0 if self.flags[row] & NOT_A_CALL else 1

    def resumes(self, row: int) -> int:
        """The number of generator and coroutine resumes in a row."""
        if self.folded and row in self.folded:
            return self.folded[row].resumes
        return 1 if self.flags[row] & RESUMED else 0

    def errors(self, row: int) -> int:
        """The number of its calls and resumes that ended with an exception."""
        if self.folded and row in self.folded:
            return self.folded[row].errors
        return 1 if self.flags[row] & LEFT_BY_ERROR else 0

    def ns(self, row: int) -> int:
        """From start to end."""
        if self.folded and row in self.folded:
            return self.folded[row].ns
        return self.end[row] - self.start[row]


R = TypeVar("R", bound=CountedRows)


def reordered(rows: R, order: Sequence[int]) -> R:
    """The rows of ``order``, in that order; parents are among them."""
    place = array("q", [-1]) * (len(rows) + 1)  # the last one is that of parent -1
    for new, old in enumerate(order):
        place[old] = new
    moved: dict[str, Any] = {}
    for name in (each.name for each in fields(rows)):
        values = getattr(rows, name)
        if isinstance(values, array):
            moved[name] = array(values.typecode, [values[row] for row in order])
        elif isinstance(values, dict):
            moved[name] = {place[row]: one for row, one in values.items() if place[row] >= 0}
    moved["parent"] = array(rows.parent.typecode, map(place.__getitem__, moved["parent"]))
    return replace(rows, **moved)


@dataclass(frozen=True, slots=True)
class Columns(CountedRows):
    """All rows of a trace, in start order."""

    keys: tuple[Key, ...] = ()
    #: index into ``keys``
    key: array[int] = field(default_factory=_numbers)
    #: index into ``threads``
    thread: array[int] = field(default_factory=_numbers)
    threads: tuple[Thread, ...] = ()
    stats: ReplayStats = ReplayStats("none")
    #: are ``start`` and ``end`` nanoseconds?
    clock: bool = True
    #: row -> ``self`` of a recognised call
    objects: Mapping[int, RecognizedObject] = field(default_factory=dict)
    #: row of the event loop -> the task whose step it is
    tasks: Mapping[int, Task] = field(default_factory=dict)
    #: row -> its arguments and what it returned: "n=3 -> 9"
    values: Mapping[int, str] = field(default_factory=dict)

    def ns(self, row: int) -> int:
        """Inclusive nanoseconds; 0 without a clock."""
        return CountedRows.ns(self, row) if self.clock else 0


def leave_out(columns: Columns, is_left_out: Callable[[Key], bool]) -> Columns:
    """The columns without rows of such functions; what these call is called by their callers.

    >>> from pytest_instrcount.trace.tracer import TraceOptions, trace_call
    >>> import json
    >>> _, columns = trace_call(TraceOptions(start_frames=0), json.dumps, [1])
    >>> list(columns.parent), list(leave_out(columns, lambda key: ".encode" in key.qualname).parent)
    ([-1, 0, 1], [-1, 0])
    """
    out = [is_left_out(key) for key in columns.keys]
    #: of each row the nearest caller that stays, or itself
    stays = array("q", [-1]) * (len(columns) + 1)  # the last one is that of parent -1
    parents = array("q")
    for row, (key, parent) in enumerate(zip(columns.key, columns.parent)):
        parents.append(stays[parent])
        stays[row] = stays[parent] if out[key] else row
    order = [row for row, key in enumerate(columns.key) if not out[key]]
    return reordered(replace(columns, parent=parents), order)
