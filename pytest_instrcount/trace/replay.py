"""Streams -> rows: by the order of events, and never with an assertion about it."""

from __future__ import annotations

from array import array
from types import CodeType
from typing import Final

from pytest_instrcount.trace.columns import RESUMED, Flag, RecognizedObject
from pytest_instrcount.trace.core import load_native
from pytest_instrcount.trace.keys import BOOTSTRAP, HIDDEN, TRANSPARENT, KeyTable
from pytest_instrcount.trace.newcomers import STARTERS
from pytest_instrcount.trace.stream import LEAVING, VOIDED, CFunction, Mark, Stream, Switch

#: On a stack, besides rows: nothing is below; nothing above is shown; only ``run`` above is shown;
#: -5 minus a row (or -1): a frame that is not shown, what it calls is that row's.
_GROUND: Final = -1
_HIDE: Final = -2
_RUN_ONLY: Final = -3
_ALIAS: Final = -5
#: Not put on the stack at all.
_SKIP: Final = -(1 << 40)

_ENTER_BITS: Final = RESUMED | int(Flag.START_FRAME)
_EXIT_BITS: Final = int(Flag.YIELD | Flag.ERROR)


class Rows:
    """The rows of one thread, made from its events; more events can follow."""

    def __init__(
        self, table: KeyTable, *, clock: bool, unpaired: bool = False, min_ns: int = 0
    ) -> None:
        self._table = table
        self.clock = clock
        #: shorter calls that call nothing are no rows
        self.min_ns = min_ns
        #: is the exit of a builtin that was not entered a call of it? python/cpython#122029:
        #: of a bound method around a builtin sys.setprofile sees the exit only
        self.unpaired = unpaired
        self.key, self.parent = array("i"), array("i")
        self.start, self.end = array("q"), array("q")
        self.flags = array("H")
        self.objects: dict[int, RecognizedObject] = {}
        #: row -> its arguments, and what it returned
        self.values: dict[int, str] = {}
        #: (first row, greenlet) of each stretch that runs in one greenlet
        self.greenlets: list[tuple[int, int]] = [(0, 0)]
        self.events = self.unmatched_exits = self.unfinished = 0
        # row and function of each frame that is open, by greenlet; a stack begins with a sentinel
        self._stacks: dict[int, tuple[list[int], list[object]]] = {0: ([_GROUND], [None])}
        self._greenlet = 0
        self.last = 0

    def feed(self, stream: Stream) -> None:
        """Take in the events of a stream, in their order; it has none then."""
        native = None if stream.has_text else load_native()
        if native is None:
            self._feed(stream.objs, stream.times)
        else:
            native.feed(self, stream.objs, stream.times, stream.lane)
        stream.objs.clear()
        del stream.times[:]

    def _feed(self, objs: list[object], times: array[int]) -> None:
        """The same without the core in C. One loop, for speed."""
        index, clock, min_ns = self._table.index, self.clock, self.min_ns
        key, parent, flags = self.key.append, self.parent.append, self.flags.append
        start, end = self.start.append, self.end.append
        starts, ends, all_flags = self.start, self.end, self.flags
        stack, functions = self.current()
        rows, last, events = len(self.key), self.last, 0
        reading = iter(times)
        bits = 0
        told = -1
        seen: RecognizedObject | None = None
        for obj in objs:
            kind = type(obj)
            if kind is Mark:
                bits |= obj.bits  # type: ignore[attr-defined]
                continue
            if kind is not CodeType and kind is not CFunction:
                if kind is Switch:
                    stack, functions = self.switch(obj.greenlet, rows)  # type: ignore[attr-defined]
                elif isinstance(obj, str):
                    if told >= 0:
                        self.values[told] = self.values.get(told, "") + obj
                elif isinstance(obj, RecognizedObject):
                    seen = obj
                continue
            events += 1
            told = -1
            if clock:
                now = next(reading, 0)
                if now < 0:
                    now = -now
                    bits |= LEAVING
                # what stands at one reading of the clock happened one after the other
                last = now if now > last else last + 1
            else:
                last += 1
            if not bits & LEAVING:
                number = index.get(id(obj))
                if number is None:
                    number = self._table.add(obj)
                top = stack[-1]
                if number < 0 or top < _GROUND:
                    top = _place(number, top, obj, started=not bits & Flag.START_FRAME)
                    if top == _SKIP:
                        bits = 0
                        continue
                    if top < _GROUND:
                        stack.append(top)
                        functions.append(obj)
                        bits = 0
                        seen = None
                        continue
                key(number)
                parent(top)
                start(last)
                end(last)
                flags(bits & _ENTER_BITS)
                if seen is not None:
                    self.objects[rows] = seen
                    seen = None
                stack.append(rows)
                functions.append(obj)
                told = rows
                rows += 1
            elif functions[-1] is obj or self._unwind(stack, functions, obj, last):
                functions.pop()
                told = row = stack.pop()
                if row >= 0:
                    ends[row] = last
                    if bits != LEAVING:
                        all_flags[row] |= bits & _EXIT_BITS
                    # was it none? it called nothing, nor was there a switch meanwhile
                    if (
                        bits & VOIDED or (min_ns and last - starts[row] < min_ns)
                    ) and self.stretch <= row == rows - 1:
                        self._drop_last()
                        rows -= 1
                        told = -1
            elif self.unpaired and kind is CFunction and stack[-1] >= _GROUND:
                number = self._number(obj)
                if number >= 0:
                    key(number)
                    parent(stack[-1])
                    start(last)
                    end(last)
                    flags(bits & _EXIT_BITS)
                    rows += 1
            bits = 0
        self.last = last
        self.events += events

    def open_rows(self) -> list[int]:
        """Rows that were entered and not left, callers first."""
        return sorted(row for stack, _ in self._stacks.values() for row in stack if row >= 0)

    def current(self) -> tuple[list[int], list[object]]:
        """The stack of the greenlet that runs."""
        return self._stacks.setdefault(self._greenlet, ([_GROUND], [None]))

    def switch(self, greenlet: int, rows: int) -> tuple[list[int], list[object]]:
        """The same of another one, which runs from this row on."""
        self._greenlet = greenlet
        self.greenlets.append((rows, greenlet))
        return self.current()

    def meaning(self, obj: object) -> tuple[int, int]:
        """For the core in C: the kind of an object of a stream, and its number or bits."""
        if isinstance(obj, Mark):
            return 2, obj.bits
        if isinstance(obj, Switch):
            return 3, obj.greenlet
        if isinstance(obj, (CodeType, CFunction)):
            return int(isinstance(obj, CFunction)), self._number(obj)
        return (4 if isinstance(obj, RecognizedObject) else 5), 0

    def place(self, number: int, top: int, function: object, started: int) -> int:
        """For the core in C."""
        return _place(number, top, function, started=bool(started))

    @property
    def stretch(self) -> int:
        """The first row of the greenlet that runs, since it does."""
        return self.greenlets[-1][0]

    def _unwind(self, stack: list[int], functions: list[object], left: object, now: int) -> bool:
        """Find a frame that is left though it is not on top; what is above it was left unseen."""
        c = type(left) is CFunction
        depth = len(functions) - 1
        # a C function calls no C function: its exit says nothing about Python frames
        while depth > 0 and functions[depth] is not left:
            if c and type(functions[depth]) is not CFunction:
                break
            depth -= 1
        if depth <= 0 or functions[depth] is not left:
            # our own frames are left right after the start
            self.unmatched_exits += self._number(left) >= 0
            return False
        while len(functions) - 1 > depth:
            functions.pop()
            row = stack.pop()
            if row >= 0:
                self.end[row] = now
                self.flags[row] |= Flag.UNFINISHED
                self.unfinished += 1
        return True

    def _number(self, function: object) -> int:
        number = self._table.index.get(id(function))
        return self._table.add(function) if number is None else number

    def _drop_last(self) -> None:
        """Forget a row that was none."""
        for column in (self.key, self.parent, self.start, self.end, self.flags):
            column.pop()
        self.objects.pop(len(self.key), None)
        self.values.pop(len(self.key), None)

    def keep_open(self) -> None:
        """Forget all rows but those that are open; they become the first ones, in their order."""
        kept = self.open_rows()
        place = {row: number for number, row in enumerate(kept)}
        parents = [place.get(self.parent[row], _GROUND) for row in kept]
        for name in ("key", "start", "end", "flags"):
            column = getattr(self, name)
            column[:] = array(column.typecode, [column[row] for row in kept])
        self.parent[:] = array("i", parents)
        self.objects = {place[row]: each for row, each in self.objects.items() if row in place}
        self.values = {place[row]: each for row, each in self.values.items() if row in place}
        self.greenlets = [(0, self._greenlet)]
        for stack, _ in self._stacks.values():
            stack[:] = [_moved(value, place) for value in stack]


def _place(number: int, top: int, function: object, *, started: bool) -> int:
    """The stack entry for a function that is not simply shown; or the row of its caller."""
    if number == BOOTSTRAP:
        return _RUN_ONLY if top in (_GROUND, _RUN_ONLY) else _HIDE
    if number < 0 and not started:
        return _SKIP
    if number == HIDDEN or top == _HIDE:
        return _HIDE
    if top == _RUN_ONLY:
        return _place_in_thread(number, function)
    if number == TRANSPARENT:
        return top if top <= _ALIAS - _GROUND else _ALIAS - top
    if type(function) is CFunction and function.qualname not in STARTERS:
        # a builtin called by a frame of ours is our affair
        return _HIDE
    return _ALIAS - top


def _place_in_thread(number: int, function: object) -> int:
    """The same of what the start of a thread calls: of that only ``run`` is shown."""
    is_context = type(function) is CFunction and function.qualname == "Context.run"
    # what carries a session into the thread, or from 3.14 on its context, calls run()
    if number == TRANSPARENT or is_context:
        return _RUN_ONLY
    is_run = type(function) is CodeType and function.co_name == "run"
    return _GROUND if is_run and number >= 0 else _HIDE


def _moved(value: int, place: dict[int, int]) -> int:
    """A value of a stack after rows got other numbers."""
    if value >= 0:
        return place[value]
    if value >= _ALIAS - _GROUND:
        return value
    return _ALIAS - place.get(_ALIAS - value, _GROUND)
