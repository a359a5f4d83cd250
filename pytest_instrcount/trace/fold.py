"""Calling contexts: rows of one function with the same callers become one, with exact counts."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from time import perf_counter_ns

from pytest_instrcount.trace.columns import NOT_A_CALL, RESUMED, Flag
from pytest_instrcount.trace.keys import KeyTable
from pytest_instrcount.trace.replay import Rows
from pytest_instrcount.trace.stream import Stream


@dataclass(slots=True)
class Contexts:
    """A tree of calling contexts that grows; the index of one is larger than its parent's."""

    key: array[int] = field(default_factory=lambda: array("i"))
    parent: array[int] = field(default_factory=lambda: array("i"))
    calls: array[int] = field(default_factory=lambda: array("q"))
    resumes: array[int] = field(default_factory=lambda: array("q"))
    errors: array[int] = field(default_factory=lambda: array("q"))
    ns: array[int] = field(default_factory=lambda: array("q"))
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    flags: array[int] = field(default_factory=lambda: array("H"))
    _known: dict[tuple[int, int], int] = field(default_factory=dict)

    def child(self, parent: int, key: int, now: int) -> int:
        """The context of a function called in another one (-1: by nobody)."""
        found = self._known.get((parent, key))
        if found is None:
            found = self._known[parent, key] = len(self.key)
            self.key.append(key)
            self.parent.append(parent)
            for column in (self.calls, self.resumes, self.errors, self.ns):
                column.append(0)
            self.start.append(now)
            self.end.append(now)
            self.flags.append(0)
        return found

    def absorb(self, rows: Rows, carried: list[int]) -> list[int]:
        """Add rows; the first are still open ones of before, in these contexts. -> those still open."""
        places = array("i", carried)
        still = rows.open_rows()
        is_open = set(still)
        before = len(carried)
        for row, (key, parent, flags) in enumerate(zip(rows.key, rows.parent, rows.flags)):
            if row < before:
                place = places[row]
            else:
                place = self.child(places[parent] if parent >= 0 else -1, key, rows.start[row])
                places.append(place)
                if flags & RESUMED:
                    self.resumes[place] += 1
                elif not flags & NOT_A_CALL:
                    self.calls[place] += 1
                else:
                    self.flags[place] |= Flag.START_FRAME
            if row not in is_open:
                self.errors[place] += 1 if flags & Flag.ERROR else 0
                self.ns[place] += rows.end[row] - rows.start[row]
                self.end[place] = max(self.end[place], rows.end[row])
        return [places[row] for row in still]


class Folder:
    """Makes room when a trace gets too long: what was recorded becomes contexts."""

    def __init__(self, *, clock: bool, unpaired: bool = False, min_ns: int = 0) -> None:
        self.table = KeyTable()
        self._clock, self._unpaired, self._min_ns = clock, unpaired, min_ns
        self._folded: dict[int, tuple[Rows, Contexts, list[int]]] = {}

    def _rows(self) -> Rows:
        return Rows(self.table, clock=self._clock, unpaired=self._unpaired, min_ns=self._min_ns)

    def fold(self, stream: Stream) -> None:
        """Take in all events of a stream, which has none then.

        What runs meanwhile has not taken the time that this takes.
        """
        began = perf_counter_ns()
        rows = self._take_in(stream)
        if self._clock:
            spent = perf_counter_ns() - began
            rows.start[:] = array(rows.start.typecode, [each + spent for each in rows.start])

    def _take_in(self, stream: Stream) -> Rows:
        """-> the rows that are open, and no others."""
        rows, contexts, carried = self._folded.get(id(stream)) or (
            self._rows(),
            Contexts(),
            [],
        )
        rows.feed(stream)
        carried = contexts.absorb(rows, carried)
        rows.keep_open()
        self._folded[id(stream)] = rows, contexts, carried
        return rows

    def rows_of(self, stream: Stream, stop: int) -> tuple[Rows, Contexts | None]:
        """All that a stream came to; its contexts, if it was folded before. What runs ends at ``stop``."""
        if id(stream) in self._folded:
            self._take_in(stream)
            rows, contexts, carried = self._folded[id(stream)]
            if self._clock:
                for row, place in enumerate(carried):
                    contexts.ns[place] += max(stop, rows.last) - rows.start[row]
                    contexts.end[place] = max(stop, rows.last)
            return rows, contexts
        rows = self._rows()
        rows.feed(stream)
        return rows, None
