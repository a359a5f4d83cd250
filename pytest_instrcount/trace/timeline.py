"""A recording as columns: one row per call or range, parents before their children."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pytest_instrcount.host.text import cut, escape_unprintable
from pytest_instrcount.trace.columns import CountedRows, Task

#: A bit of the column ``flags`` beside those of `Flag`: the event stands beside the tree, since it
#: overlaps another one or ended on another thread.
ASYNC = 256
_LONGEST_NAME = 1_000


def column(values: Iterable[int] = ()) -> array[int]:
    """A column of 64-bit integers.

    >>> column([1, 2])
    array('q', [1, 2])
    """
    return array("q", values)


def printable(text: str) -> str:
    r"""A name that can be shown and written anywhere: one line, no control characters, not endless.

    >>> print(printable("a\nb\udc80"))
    a\nb\udc80
    """
    return escape_unprintable(cut(text, _LONGEST_NAME))


@dataclass(frozen=True, slots=True)
class Label:
    """The subject of an event: a function, or a range of that name.

    >>> Label("json.loads", "python", "json/__init__.py", 299).location
    'json/__init__.py(299): json.loads'
    """

    #: ``module.qualname``, or the name of the range
    name: str
    #: "python", "c" or "range"
    kind: str = "python"
    #: where it is defined; empty for C functions and ranges
    file: str = ""
    #: first line of the function; 0 if it has none
    line: int = 0

    @property
    def location(self) -> str:
        """File, line and name, as a stack shows it; the name alone without a file."""
        return f"{self.file}({self.line}): {self.name}" if self.file else self.name


@dataclass(frozen=True, slots=True)
class Track:
    """One stack of calls: a thread, or a greenlet on a thread."""

    #: name of the thread; two may share one
    name: str
    #: ``threading.get_ident()`` of the thread
    ident: int = 0
    #: process that it belongs to: 0 is this one, others have handed their events over
    node_id: int = 0


@dataclass(frozen=True, slots=True)
class Detail:
    """Optional fields of an event."""

    #: track on which the range ended, if it is another one
    end_track: int | None = None
    #: shapes of the arguments, one tuple per argument; empty for what has no shape
    input_shapes: tuple[tuple[int, ...], ...] = ()
    #: bytes that were allocated and not freed within, or None: not measured
    memory: int | None = None
    #: the text that was given along with the range's name; of a call arguments and value
    args: str = ""
    #: class of the recognised object and which of its class: "Linear #2"
    module: str = ""
    #: number that ties an event to another one, or -1
    sequence_nr: int = -1
    #: what made the range: 0 a function, 7 the user; others are the recorder's
    scope: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in time with a name."""

    name: str
    track: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class MemorySample:
    """The number of traced bytes in use at a time."""

    at_ns: int
    in_use: int
    track: int = 0


@dataclass(frozen=True, slots=True)
class Flow:
    """A thread or task was started here, and began there."""

    name: str
    from_track: int
    from_ns: int
    to_track: int
    to_ns: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """The requested contents: exporting anything else is an error."""

    shapes: bool = False
    stack: bool = False
    modules: bool = False
    memory: bool = False


@dataclass(frozen=True, slots=True)
class Timeline(CountedRows):
    """Columns of equal length, a row per event, in order of start; times in ns of one clock.

    A parent's row comes before its children's, lies on their track, and encloses their times. Where
    rows are folded, their times say nothing but their order.

    >>> timeline = Timeline(*map(column, ([-1], [5], [9], [0])), labels=(Label("f"),), label=column([0]))
    >>> timeline.ns(0), timeline.stack(0)
    (4, ('f',))
    """

    labels: tuple[Label, ...] = ()
    tracks: tuple[Track, ...] = ()
    label: array[int] = field(default_factory=column)
    track: array[int] = field(default_factory=column)
    #: row of an event loop -> the task whose step it is; not in the JSON of `plain`
    tasks: Mapping[int, Task] = field(default_factory=dict)
    #: row -> what only some rows have
    details: Mapping[int, Detail] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()
    memory: tuple[MemorySample, ...] = ()
    flows: tuple[Flow, ...] = ()
    #: start and end of each recording, ns
    windows: tuple[tuple[int, int], ...] = ()
    recorded: Recorded = Recorded()
    #: process that recorded, and its ``time.time_ns()`` when ``perf_counter_ns()`` was 0; 0: unknown
    pid: int = 0
    epoch_ns: int = 0
    #: the recorder ran into its bound: rows are folded, counts are exact, the order is lost
    truncated: bool = False
    #: pid and command of other processes; pid is their ``node_id``. Not in the JSON of `plain`
    commands: tuple[tuple[int, str], ...] = ()

    @property
    def origin(self) -> int:
        """The time that exports call 0: when recording began, or the first thing happened."""
        firsts = [start for start, _ in self.windows]
        firsts += self.start[:1]
        firsts += [mark.at_ns for mark in self.marks]
        firsts += [sample.at_ns for sample in self.memory]
        return min(firsts, default=0)

    def by_task(self) -> Timeline:
        """The same with what runs in the steps of a task on a track of that task, for viewers."""
        tracks, track, parent = list(self.tracks), self.track[:], self.parent[:]
        known: dict[tuple[int, Task], int] = {}
        for row, above in enumerate(self.parent):
            task = self.tasks.get(above)
            if task is not None:
                track[row] = known.setdefault((self.track[above], task), len(tracks))
                parent[row] = -1
                if track[row] == len(tracks):
                    tracks.append(replace(tracks[self.track[above]], name=printable(task.cls)))
            elif above >= 0:
                track[row] = track[above]
        return replace(self, tracks=tuple(tracks), track=track, parent=parent)

    def stack(self, row: int, depth: int = sys.maxsize) -> tuple[str, ...]:
        """``file(line): name`` of a row and of what it ran in, the first ``depth`` of them."""
        frames: list[str] = []
        while row >= 0 and len(frames) < depth:
            frames.append(self.labels[self.label[row]].location)
            row = self.parent[row]
        return tuple(frames)
