"""Callgrind's output with a frame for each Python function -> CallTree. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters

from pytest_instrcount.counts.profile import NOTHING, Profile, Row, add_row
from pytest_instrcount.counts.python.tree import TRAMPOLINES, CallTree, Path, Place
from pytest_instrcount.errors import InstrcountError

# The dynamic linker's own functions are left alone: Callgrind treats some of them apart, and an
# assertion of its fails if these are skipped. They begin with _dl.
_SKIPPED = (
    *ascii_letters,
    *(f"_{letter}" for letter in ascii_letters + "_" if letter != "d"),
    *(f"_d{letter}" for letter in ascii_letters + "_" if letter != "l"),
)

#: For Valgrind: all that has a name is counted as part of what called it, so that only trampolines
#: (which have none) remain, each with the whole chain of them that led to it.
VALGRIND_OPTIONS = (
    "--separate-callers=250",
    *(f"--fn-skip={start}*" for start in _SKIPPED),
)

# of 64 bits an address, of 32 a line: longer numbers are not what an interpreter writes
_LINE = re.compile(r"([0-9a-f]{1,16}) [0-9a-f]{1,16} py:([0-9]{0,10}):(.*)")


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function as a map names it."""

    qualname: str
    filename: str
    #: its first line, 0 if the map does not say
    line: int


def parse_names(lines: Iterable[str]) -> dict[int, Function]:
    """The map of a process: address -> function; what is no Python function is left out.

    >>> parse_names(["7f20 b py::Order.total:/shop/orders.py"])
    {32544: Function(qualname='Order.total', filename='/shop/orders.py', line=0)}
    """
    found = {}
    for line in lines:
        match = _LINE.match(line)
        if match is not None:
            qualname, _, filename = match[3].rstrip("\n").partition(":")
            # the same files are in the maps of all tests
            place = sys.intern(filename), int(match[2] or 0)
            found[int(match[1], 16)] = Function(qualname, *place)
    return found


def tree_from(
    profiles: Sequence[Profile],
    functions: Mapping[int, Function],
    counted: int,
    name_of: Callable[[Function], str | None],
) -> CallTree:
    """The tree of a test, from its dumps.

    ``name_of`` gives a function its name, or None if it stands above the test: what it costs is none
    of the test's. Raises InstrcountError "no-trampolines" if there is no Python function in it.
    """
    names = {address: name_of(each) or "" for address, each in functions.items()}
    nodes: dict[Path, Row] = {}
    for profile in profiles:
        for key, row in profile.rows.items():
            frames = [*_innermost(key)][::-1]
            path = _below_the_test(frames, names)
            if path:
                # what has no name of ours is part of what called it, and no call
                is_call = frames[-1] in names
                itself = _calls_of_itself(profile, key, path, names) if is_call else 0
                add_row(nodes, path, Row(row.ir, row.calls - itself if is_call else 0))
                if itself:
                    add_row(nodes, (*path, path[-1]), Row(0, itself))
    nodes = {path: row for path, row in nodes.items() if row != NOTHING}
    if not nodes:
        raise InstrcountError(
            "no-trampolines",
            "Callgrind saw no Python function",
            "pytest --instrcount --instrcount-blame=tracer",
        )
    return CallTree(TRAMPOLINES, counted, nodes, _places(functions, names))


def _places(functions: Mapping[int, Function], names: Mapping[int, str]) -> dict[str, Place]:
    """Name -> file and first line; of namesakes, such as a property's getter and setter, no line."""
    found: dict[str, Place] = {}
    for address, each in functions.items():
        _, line = found.setdefault(names[address], (each.filename, each.line))
        if line != each.line:
            found[names[address]] = each.filename, 0
    return found


def _below_the_test(frames: Sequence[int], names: Mapping[int, str]) -> Path:
    """The frames below the last one without a name; a function that calls itself appears once."""
    path: list[str] = []
    for name in (names[frame] for frame in frames if frame in names):
        if not name:
            path.clear()
        elif path[-1:] != [name]:
            path.append(name)
    return tuple(path)


def _calls_of_itself(profile: Profile, key: str, path: Path, names: Mapping[int, str]) -> int:
    """How often a function was called where the last one that ran was itself."""
    callers = profile.callers.get(key, {}).items()
    return sum(
        made.calls
        for caller, made in callers
        if next((names[each] for each in _innermost(caller) if each in names), "") == path[-1]
    )


def _innermost(key: str) -> Iterator[int]:
    """The addresses in a key, the innermost first."""
    return map(_frame, key.partition(":")[2].partition(" [")[0].split("'"))


def _frame(text: str) -> int:
    """The address that a function without a name has for one; -1 for any other."""
    if not text.startswith("0x"):
        return -1
    try:
        return int(text, 16)
    except ValueError:
        return -1
