"""Callgrind's own format, written: dumps joined into one file, and files made of counts of ours.

The format is described in Valgrind's manual ("Callgrind Format Specification"). Each file has one
part, since callgrind_annotate warns of the headers of further ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_instrcount.counts.totals import damaged

_POSITIONS = re.compile(rb"^positions:.*$", re.MULTILINE)
_EVENTS = re.compile(rb"^events:.*$\n?", re.MULTILINE)
_SUMMARY = re.compile(rb"^summary:.*\n", re.MULTILINE)
_TOTALS = re.compile(rb"^totals:(.*)\n", re.MULTILINE)


def header_lines(what: str, descriptions: Iterable[str]) -> list[str]:
    """The first lines of a file: ``what`` is shown as the command that was profiled.

    >>> header_lines("test_x.py::test_a", ["Calls: 3"])[2:]
    ['creator: pytest-instrcount', 'cmd: test_x.py::test_a', 'desc: Calls: 3', '']
    """
    told = [f"desc: {_in_one_line(each)}" for each in descriptions]
    first = ["# callgrind format", "version: 1", "creator: pytest-instrcount"]
    return [*first, f"cmd: {_in_one_line(what)}", *told, ""]


def join_dumps(dumps: Sequence[Path], header: Sequence[str]) -> bytes:
    """Dumps of one process as one file that holds their sum, under another header.

    A process numbers its names once, so lines can stand below each other as they are. Raises
    InstrcountError "profile-damaged" for a file that is no whole dump, and OSError.
    """
    bodies: list[bytes] = []
    shapes: list[tuple[bytes, bytes]] = []
    totals: list[int] = []
    for dump in dumps:
        content = dump.read_bytes()
        events, end = _EVENTS.search(content), _TOTALS.search(content)
        if events is None or end is None or end.start() < events.end():
            raise damaged(dump, ValueError("it has no events or no totals"))
        positions = _POSITIONS.search(content, 0, events.start())
        shapes.append((positions[0] if positions else b"positions: line", events[0].strip()))
        if shapes[-1] != shapes[0]:
            raise damaged(dump, ValueError("it counts other events than the first"))
        bodies.append(_SUMMARY.sub(b"", content[events.end() : end.start()]))
        try:
            found = [int(word) for word in end[1].split()]
        except ValueError as error:
            raise damaged(dump, error) from None
        longer, shorter = sorted((totals, found), key=len, reverse=True)
        totals = [sum(pair) for pair in zip(longer, shorter)] + longer[len(shorter) :]
    sums = " ".join(map(str, totals)).encode()
    first = [*(line.encode(errors="backslashreplace") for line in header), *shapes[0]]
    return b"\n".join([*first, b"summary: " + sums, b"", *bodies, b"totals: " + sums, b""])


@dataclass(frozen=True, slots=True)
class Function:
    """A function as the format knows it; ``line`` is where its own cost is put, 0 if not known."""

    file: str
    name: str
    obj: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """All calls from one function to another, and what they cost with all that they called."""

    caller: Function
    called: Function
    number: int
    cost: int
    #: where the caller calls, 0 if not known
    line: int = 0


def write_costs(
    header: Sequence[str], event: str, own: Mapping[Function, int], calls: Iterable[Call]
) -> bytes:
    """A file of own costs and of calls; ``event`` is what is counted.

    >>> f, g = Function("a.c", "f"), Function("a.c", "g")
    >>> print(write_costs([], "Ir", {f: 2, g: 3}, [Call(f, g, 1, 3)]).decode())
    positions: line
    events: Ir
    summary: 5
    <BLANKLINE>
    fl=(1) a.c
    fn=(1) f
    0 2
    cfi=(1)
    cfn=(2) g
    calls=1 0
    0 3
    <BLANKLINE>
    fl=(1)
    fn=(2)
    0 3
    <BLANKLINE>
    totals: 5
    <BLANKLINE>
    """
    files, functions, objects = _Numbers(), _Numbers(), _Numbers()
    made: dict[Function, list[Call]] = {}
    named = set(own)
    for call in calls:
        made.setdefault(call.caller, []).append(call)
        named |= {call.caller, call.called}
    total = sum(own.values())
    lines = [*header, "positions: line", f"events: {event}", f"summary: {total}", ""]
    with_objects = any(function.obj for function in named)
    for function in dict.fromkeys((*own, *made)):
        if with_objects:
            lines.append(f"ob={objects.of(function.obj or '???')}")
        lines += [f"fl={files.of(function.file)}", f"fn={functions.of(function.name)}"]
        if own.get(function):
            lines.append(f"{function.line} {own[function]}")
        for call in made.get(function, ()):
            if with_objects:
                lines.append(f"cob={objects.of(call.called.obj or '???')}")
            lines.append(f"cfi={files.of(call.called.file)}")
            lines.append(f"cfn={functions.of(call.called.name)}")
            lines += [f"calls={call.number} {call.called.line}", f"{call.line} {call.cost}"]
        lines.append("")
    lines += [f"totals: {total}", ""]
    return "\n".join(lines).encode(errors="backslashreplace")


class _Numbers:
    """Names are written out once, then referred to."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, name: str) -> str:
        if name in self._known:
            return f"({self._known[name]})"
        self._known[name] = number = len(self._known) + 1
        return f"({number}) {_in_one_line(name)}"


def _in_one_line(text: str) -> str:
    return " ".join(text.split("\n")).replace("\r", " ").strip() or "???"
