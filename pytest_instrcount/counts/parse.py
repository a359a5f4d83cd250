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
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pytest_instrcount.counts.profile import NOTHING, Profile, Row
from pytest_instrcount.errors import InstrcountError

# What cost lines begin with: a line number, an address, or a distance to the one before.
_COST = frozenset("0123456789+-*")
_UNKNOWN = "???"
# Characters of a name; what C++ makes of templates is far below.
_LONGEST_NAME = 1 << 16
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
# "'2" behind a name: Callgrind keeps the deeper levels of a recursion apart (--separate-recs).
_RECURSION = re.compile(r"'[0-9]+(?= \[|$)")
_REFERENCE = re.compile(r"\([0-9]+\)")
# Lines of the body that hold neither a count nor a name of ours.
_IGNORED = ("#", "rec", "ln=", "bb=", "summary:")
# Lines that open a part; each part that was opened must reach its totals.
_OPENING = ("part:", "positions:", "events:")
# Lines of names that come again: the file that code was inlined from, the file of a call, its object.
_CURRENT, _CALLED, _OBJECT = range(3)
_NAMING = {"fi": _CURRENT, "fe": _CURRENT, "cfi": _CALLED, "cfl": _CALLED, "cob": _OBJECT}
# Those that refer to a name are below this length; one that defines it does not come again.
_SHORT_NAME = 16
_HEADER = re.compile(rb"^(part|positions|events|totals):(.*)", re.MULTILINE)


def parse_profile(source: Path | Iterable[str]) -> Profile:
    """Read a callgrind.out, from its file or its lines; several parts are summed.

    Raises InstrcountError ``profile-damaged`` for whatever is not a complete one.

    >>> lines = ["events: Ir", "fl=(1) /src/a.c", "fn=(1) f", "12 7", "totals: 7"]
    >>> parse_profile(lines).rows
    {'a.c:f': Row(ir=7, calls=0)}
    """
    try:
        if isinstance(source, Path):
            # numbers are ASCII, names may hold any byte
            with source.open(encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                reading = _Reading(os.fstat(file.fileno()).st_size)
                reading.read_parts(file)
        else:
            source = list(source)
            reading = _Reading(sum(map(len, source)))
            reading.read_parts(iter(source))
        return reading.profile()
    except (OSError, ValueError) as error:
        raise _damaged(source, error) from error


def read_total(path: Path) -> int:
    """Only the instructions of a whole callgrind.out, without its functions.

    Raises InstrcountError ``profile-damaged`` like parse_profile, but looks at the totals alone.
    """
    try:
        return _sum_totals(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(source: Path | Iterable[str], error: Exception) -> InstrcountError:
    where = str(source) if isinstance(source, Path) else "the dump"
    return InstrcountError(
        "profile-damaged",
        f"{where} is not a complete Callgrind profile: {error}",
        "look for free memory and disk space (free -h; df -h), then: pytest --instrcount",
    )


def _sum_totals(content: bytes) -> int:
    total = 0
    column: int | None = None
    opened = ended = False
    for found in _HEADER.finditer(content):
        kind, words = found[1].decode(), found[2].decode("ascii", "replace").split()
        if kind == "totals":
            if column is None and opened:
                raise ValueError("it names no events")
            if column is None:
                continue
            # without the end of its line, the number may be cut short
            if found.end() == len(content):
                raise ValueError("it ends within its totals")
            total += _count(words, column)
            column, opened, ended = None, False, True
        elif column is not None:
            raise ValueError("a part has no totals")
        else:
            opened = True
            if kind == "events":
                column = _ir_column(words)
    if opened or not ended:
        raise ValueError("it has no totals")
    return total


def _ir_column(events: list[str]) -> int:
    if "Ir" not in events:
        raise ValueError("it does not count instructions (Ir)")
    return events.index("Ir")


def _count(costs: list[str], column: int) -> int:
    """One event of a line; Callgrind leaves out zeros at the end of a line, but never all."""
    if not costs:
        raise ValueError("a line without a count")
    return int(costs[column]) if column < len(costs) else 0


class _Names:
    """A table of compressed names: ``(12) name`` defines, ``(12)`` refers, ``name`` is itself.

    It is asked with the end of the line: to cut that off of each line would cost a fifth of all.
    """

    def __init__(self, shorten: Callable[[str], str], forget: Callable[[], None]) -> None:
        self._shorten = shorten
        #: to be called where a name is defined anew
        self._forget = forget
        self._known: dict[str, str] = {}

    def __getitem__(self, text: str) -> str:
        return self._known.get(text) or self._define(text)

    def _define(self, text: str) -> str:
        reference, _, name = text.rstrip().partition(" ")
        if not _REFERENCE.fullmatch(reference):
            reference = name = text.rstrip()
        if len(name) > _LONGEST_NAME:
            raise ValueError(f"a name of {len(name):,} characters: {name[:40]!r}")
        short = (self._shorten(name) or _UNKNOWN) if name else self._known.get(reference)
        if not short:
            raise ValueError(f"a name that was never defined: {text[:40]!r}")
        # a name may be defined anew: under another text it would stay what it was
        if reference in self._known:
            self._forget()
        self._known[reference] = self._known[f"{reference}\n"] = short
        return short


def _plain(name: str) -> str:
    """Without the mark of a deeper level of a recursion."""
    return _RECURSION.sub("", name) if "'" in name else name


def _key(file: str, function: str, obj: str) -> str:
    return f"{file}:{function} [{obj}]" if file == _UNKNOWN else f"{file}:{function}"


class _Reading:
    """One pass over a file: what was counted so far, and the tables of names.

    The tables outlive a part: appended dumps (--combine-dumps) do not repeat names.
    """

    def __init__(self, size: int) -> None:
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
        self._objects = _Names(lambda path: path.rpartition("/")[2], forget)
        self._files = _Names(lambda path: path.rpartition("/")[2], forget)
        self._functions = _Names(lambda name: name, forget)

    def profile(self) -> Profile:
        if not self._parts:
            raise ValueError("it has no totals")
        numbers = (*self._ir.values(), *(number for number, _ in self._edges.values()))
        if min(numbers, default=0) < 0:
            raise ValueError("a count is negative")
        found = sum(self._ir.values())
        if found != self._total:
            raise ValueError(f"its lines add up to {found} instructions, not {self._total}")
        ir: dict[str, int] = {}
        calls: dict[str, int] = {}
        callers: dict[str, dict[str, Row]] = {}
        inclusive: dict[str, int] = {}
        plain = {name: _plain(name) for name in self._ir}
        for name, cost in self._ir.items():
            ir[plain[name]] = ir.get(plain[name], 0) + cost
        for name, cost in self._outermost().items():
            if cost:
                # only a recursion that Callgrind was told not to keep apart can come to more
                inclusive[name] = min(cost, self._total)
        for (called, caller), (number, cost) in self._edges.items():
            name = plain.get(called) or _plain(called)
            calls[name] = calls.get(name, 0) + number
            made = callers.setdefault(name, {})
            before = made.get(plain[caller])
            if before is not None:  # other levels of a recursion
                cost, number = before.ir + cost, before.calls + number
            made[plain[caller]] = Row(cost, number)
        rows = {name: Row(ir.get(name, 0), calls.get(name, 0)) for name in ir | calls}
        return Profile(
            self._total,
            {name: row for name, row in rows.items() if row != NOTHING},
            callers,
            inclusive,
        )

    def _take_room(self, characters: int) -> None:
        self._room -= characters
        if self._room < 0:
            raise ValueError("its names are too many and too long for its size")

    def _outermost(self) -> dict[str, int]:
        """Inclusive counts, of the outermost level of each function.

        Where it was called from, the call lines say it. Its own lines can hold more: ZERO_STATS
        forgets what was counted in skipped PLT entries (see tests/data/callgrind/README.md).
        """
        called: dict[str, int] = {}
        for (name, caller), (_, cost) in self._edges.items():
            if name != caller and _plain(name) == name:
                called[name] = called.get(name, 0) + cost
        running = {
            name: cost + self._called_ir.get(name, 0)
            for name, cost in self._ir.items()
            if _plain(name) == name
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
        column = _ir_column(events)

        def cost(line: str) -> int:
            return _count(line.split()[positions:], column)

        # the usual case has a faster way
        usual = events == ["Ir"] and positions == 1
        totals = self._read_body(lines, None if usual else cost)
        self._total += _count(totals.split()[1:], column)
        self._parts += 1

    def _read_body(self, lines: Iterator[str], cost: Callable[[str], int] | None) -> str:
        """The lines up to ``totals:``, which is returned. One loop, for speed.

        ``cost`` reads a cost line; without one it is what stands behind its first space.
        """
        files, objects, functions = self._files, self._objects, self._functions
        ir_of, called_ir = self._ir, self._called_ir
        edges, known, starts = self._edges, self._lines, _COST
        obj = file = current_file = _UNKNOWN
        function = _key(_UNKNOWN, _UNKNOWN, _UNKNOWN)
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
                called = _key(called_file or current_file, functions[rest], called_obj or obj)
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
                function, current_file = _key(file, functions[rest], obj), file
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
    """What short cost lines of all files cost; begun anew where a hostile file has filled it."""
    if len(_costs) > _MOST_COSTS:
        _costs.clear()
        _costs["\n"] = 0
    return _costs


def _skip_cost(lines: Iterator[str]) -> None:
    if next(lines, "")[:1] not in _COST:
        raise ValueError("a call without its cost")
