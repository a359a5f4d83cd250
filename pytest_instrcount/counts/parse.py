"""callgrind.out -> Profile: pure, streaming, and never anything raised but InstrcountError.

The format is described in Valgrind's manual ("Callgrind Format Specification"); where that is
silent, what ``callgrind/dump.c`` writes counts:

- ``fl=`` holds until the next ``fl=``, whatever ``fi=`` and ``fe=`` come between: those only say
  which file the following lines of code were inlined from.
- ``cfi=`` and ``cob=`` hold for one call. Left out, they mean the file that is current (``fi=``
  included) and the object of the calling function. A call that cost nothing has no ``calls=``.
- ``summary:`` is of no use after client requests (0, or a negative number as an unsigned one).
  ``totals:`` is what Callgrind added up while printing: a sum that differs from it is damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pytest_instrcount.counts.compressed import UNKNOWN, Names, key_of, plain_name
from pytest_instrcount.counts.profile import NOTHING, Profile, Row, add_row
from pytest_instrcount.counts.totals import count_in, damaged, ir_column

# What cost lines begin with: a line number, an address, or a distance to the one before.
_COST = frozenset("0123456789+-*")
# Names are put together of three, and a line that refers to them has a few bytes: a file of long ones
# could fill the memory. All names that are kept have so many characters per byte of the file at most;
# in what Callgrind writes it is less than one.
_NAMES_PER_BYTE = 16
_LEAST_NAMES = 1 << 20
# Cost lines below this length, with their end, come again and again, in every file: their costs are
# held in one table, so long as it is not too large.
_SHORT = 9
_MOST_COSTS = 1 << 16
_costs: dict[str, int] = {"\n": 0}
# Lines of the body that hold neither a count nor a name of ours.
_IGNORED = ("#", "rec", "ln=", "bb=", "summary:")
# Lines that open a part; each part that was opened must reach its totals.
_OPENING = ("part:", "positions:", "events:")
# Lines of names that come again: the file that code was inlined from, the file of a call, its object.
_CURRENT, _CALLED, _OBJECT = range(3)
_NAMING = {"fi": _CURRENT, "fe": _CURRENT, "cfi": _CALLED, "cfl": _CALLED, "cob": _OBJECT}
# Those that refer to a name are below this length; one that defines it does not come again.
_SHORT_NAME = 16


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]


def parse_profile(
    source: Path | Iterable[str], source_file: Callable[[str], str] = _base_name
) -> Profile:
    """Read a callgrind.out, from its file or its lines; several parts are summed.

    ``source_file`` makes the file of a name from its path. Raises InstrcountError ``profile-damaged`` for
    whatever is not a complete one.

    >>> lines = ["events: Ir", "fl=(1) /src/a.c", "fn=(1) f", "12 7", "totals: 7"]
    >>> parse_profile(lines).rows
    {'a.c:f': Row(ir=7, calls=0)}
    """
    try:
        if isinstance(source, Path):
            # numbers are ASCII, names may hold any byte
            with source.open(encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                reading = _Reading(os.fstat(file.fileno()).st_size, source_file)
                reading.read_parts(file)
        else:
            source = list(source)
            reading = _Reading(sum(map(len, source)), source_file)
            reading.read_parts(iter(source))
        return reading.profile()
    except (OSError, ValueError) as error:
        raise damaged(source, error) from error


class _Reading:
    """One pass over a file: what was counted so far, and the tables of names.

    The tables outlive a part: appended dumps (--combine-dumps) do not repeat names.
    """

    def __init__(self, size: int, source_file: Callable[[str], str]) -> None:
        self._total = 0
        self._parts = 0
        #: how many characters of names may still be kept
        self._room = size * _NAMES_PER_BYTE + _LEAST_NAMES
        # All by names that still have the marks of recursion.
        self._ir: dict[str, int] = {}
        self._called_ir: dict[str, int] = {}
        #: (called, calling) -> [calls, what they cost]
        self._edges: dict[tuple[str, str], list[int]] = {}
        #: lines that name a file or an object -> what they say, and of which
        self._lines: dict[str, tuple[int, str]] = {}
        forget = self._lines.clear
        self._objects = Names(_base_name, forget)
        self._files = Names(source_file, forget)
        self._functions = Names(lambda name: name, forget)

    def profile(self) -> Profile:
        self._check()
        rows: dict[str, Row] = {}
        callers: dict[str, dict[str, Row]] = {}
        plain = {name: plain_name(name) for name in self._ir}
        for name, cost in self._ir.items():
            add_row(rows, plain[name], Row(cost, 0))
        for (called, caller), (number, cost) in self._edges.items():
            name = plain.get(called) or plain_name(called)
            add_row(rows, name, Row(0, number))
            # levels of a recursion come to one name
            add_row(callers.setdefault(name, {}), plain[caller], Row(cost, number))
        # only a recursion that Callgrind was told not to keep apart can come to more
        inclusive = {
            name: min(cost, self._total) for name, cost in self._outermost().items() if cost
        }
        rows = {name: row for name, row in rows.items() if row != NOTHING}
        return Profile(self._total, rows, callers, inclusive)

    def _check(self) -> None:
        if not self._parts:
            raise ValueError("it has no totals")
        numbers = (*self._ir.values(), *(number for number, _ in self._edges.values()))
        if min(numbers, default=0) < 0:
            raise ValueError("a count is negative")
        found = sum(self._ir.values())
        if found != self._total:
            raise ValueError(f"its lines add up to {found} instructions, not {self._total}")

    def _take_room(self, characters: int) -> None:
        self._room -= characters
        if self._room < 0:
            raise ValueError("its names are too many and too long for its size")

    def _outermost(self) -> dict[str, int]:
        """Inclusive counts, of the outermost level of each function that was counted.

        That is a deeper one where the others ran before the count began, and not again. Where it was
        called from, the call lines say it. Its own lines can hold more: ZERO_STATS forgets what was
        counted in skipped PLT entries (see tests/data/callgrind/README.md).
        """
        # a mark is a number behind the name: of equal names the shortest is the outermost level
        names = sorted(self._ir, key=lambda name: (len(name), name), reverse=True)
        outermost = {plain_name(name): name for name in names}
        marked = {name: plain for plain, name in outermost.items()}
        called: dict[str, int] = {}
        for (name, caller), (_, cost) in self._edges.items():
            plain = marked.get(name)
            if plain is not None and name != caller:
                called[plain] = called.get(plain, 0) + cost
        running = {
            plain: self._ir[name] + self._called_ir.get(name, 0)
            for plain, name in outermost.items()
        }
        return running | called

    def read_parts(self, lines: Iterator[str]) -> None:
        """All parts of a file; lines between the totals of one and the next are skipped."""
        for line in lines:
            if line.startswith(_OPENING):
                self._read_part(line, lines)
            elif line.startswith("version:") and line.split()[1:] != ["1"]:
                raise ValueError(f"a format of another version: {line[:40]!r}")

    def _read_part(self, line: str, lines: Iterator[str]) -> None:
        positions = 1
        while not line.startswith("events:"):
            if line.startswith("positions:"):
                positions = len(line.split()) - 1
            line = next(lines, "totals:")
            if line.startswith("totals:"):
                raise ValueError("it names no events")
        events = line.split()[1:]
        column = ir_column(events)

        def cost(line: str) -> int:
            return count_in(line.split()[positions:], column)

        # the usual case has a faster way
        usual = events == ["Ir"] and positions == 1
        totals = self._read_body(lines, None if usual else cost)
        self._total += count_in(totals.split()[1:], column)
        self._parts += 1

    def _read_body(self, lines: Iterator[str], cost: Callable[[str], int] | None) -> str:
        """The lines up to ``totals:``, which is returned. One loop, for speed.

        ``cost`` reads a cost line; without one it is what stands behind its first space.
        """
        files, objects, functions = self._files, self._objects, self._functions
        ir_of, called_ir = self._ir, self._called_ir
        edges, known, starts = self._edges, self._lines, _COST
        obj = file = current_file = UNKNOWN
        function = key_of(UNKNOWN, UNKNOWN, UNKNOWN)
        called = called_file = called_obj = ""
        ir = 0
        # two lines of three are cost lines, and most of these are short ones that come again
        costs = _table_of_costs() if cost is None else {"\n": 0}
        for line in lines:
            own = costs.get(line)
            if own is not None:
                ir += own
                continue
            told = known.get(line)
            if told is None:
                if line[:1] in starts:
                    own = cost(line) if cost is not None else int(line.partition(" ")[2])
                    ir += own
                    if len(line) < _SHORT:
                        costs[line] = own
                    continue
                kind, _, rest = line.partition("=")
                if kind in _NAMING:
                    what = _NAMING[kind]
                    told = what, (objects if what == _OBJECT else files)[rest]
                    if len(line) < _SHORT_NAME:
                        known[line] = told
            if told is not None:
                what, name = told
                if what == _CURRENT:
                    current_file = name
                elif what == _CALLED:
                    called_file = name
                else:
                    called_obj = name
                continue
            if kind == "cfn":
                called = key_of(called_file or current_file, functions[rest], called_obj or obj)
                called_file = called_obj = ""
            elif kind == "calls":
                if not called:
                    raise ValueError("a call of nothing")
                edge = called, function
                number = int(rest.partition(" ")[0])
                # what the called function cost inclusively is not the caller's own
                line = next(lines, "")
                if line[:1] not in starts:
                    raise ValueError("a call without its cost")
                whole = cost(line) if cost is not None else int(line.partition(" ")[2])
                made = edges.get(edge)
                if made is None:
                    self._take_room(len(called))
                    edges[edge] = [number, whole]
                else:
                    made[0] += number
                    made[1] += whole
                if called != function:  # --separate-recs=1: that is within the outermost one
                    called_ir[function] = called_ir.get(function, 0) + whole
                called = ""
            elif kind == "fn":
                ir_of[function] = ir_of.get(function, 0) + ir
                ir = 0
                function, current_file = key_of(file, functions[rest], obj), file
                if function not in ir_of:
                    self._take_room(len(function))
            elif kind == "fl":
                file = files[rest]
            elif kind == "ob":
                obj = objects[rest]
            elif kind in ("jump", "jcnd"):
                # followed by where the jump starts, without a cost
                _skip_cost(lines)
            elif line.startswith("totals:"):
                ir_of[function] = ir_of.get(function, 0) + ir
                return line
            elif kind == "jfi":
                files[rest]
            elif kind in ("jfn", "frfn"):
                functions[rest]
            elif not line.isspace() and line and not line.startswith(_IGNORED):
                raise ValueError(f"a line that says nothing: {line[:40]!r}")
        raise ValueError("it has no totals")


def _table_of_costs() -> dict[str, int]:
    """A cache of short cost lines of all files; emptied when a hostile file has filled it."""
    if len(_costs) > _MOST_COSTS:
        _costs.clear()
        _costs["\n"] = 0
    return _costs


def _skip_cost(lines: Iterator[str]) -> None:
    if next(lines, "")[:1] not in _COST:
        raise ValueError("a call without its cost")
