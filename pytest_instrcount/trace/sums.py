"""Values derived from the columns of a timeline: children, and a node's own share without them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_instrcount.trace.columns import Flag
from pytest_instrcount.trace.timeline import ASYNC, Timeline, column

_PYTEST = ("_pytest.", "pluggy.")


class Children:
    """The children of each row, in their order, made of the parents of all rows.

    >>> list(Children([-1, 0, 0]).of(0))
    [1, 2]
    """

    def __init__(self, parents: Sequence[int]) -> None:
        # of -1, the roots, they come first
        self._first = column([0]) * (len(parents) + 2)
        for parent in parents:
            self._first[parent + 2] += 1
        for place in range(len(parents) + 1):
            self._first[place + 1] += self._first[place]
        free = self._first[:]
        self._rows = column([0]) * len(parents)
        for row, parent in enumerate(parents):
            self._rows[free[parent + 1]] = row
            free[parent + 1] += 1

    def of(self, row: int) -> array[int]:
        """Those of one row; of -1, the rows that have no parent."""
        return self._rows[self._first[row + 1] : self._first[row + 2]]


def self_times(timeline: Timeline) -> array[int]:
    """Nanoseconds of each row without its children; 0 for a row beside the tree.

    >>> self_times(Timeline())
    array('q')
    """
    ns = timeline.ns
    own = column([ns(row) for row in range(len(timeline))])
    for row, parent in enumerate(timeline.parent):
        if parent >= 0:
            own[parent] -= ns(row)
    for row, flags in enumerate(timeline.flags):
        if flags & ASYNC:
            own[row] = 0
    return own


def self_memory(timeline: Timeline) -> dict[int, int]:
    """Bytes of each measured row without the measured rows within; 0 for a row beside the tree.

    >>> self_memory(Timeline())
    {}
    """
    measured = {
        row: detail.memory for row, detail in timeline.details.items() if detail.memory is not None
    }
    if not measured:
        return {}
    own = dict(measured)
    # per row the nearest measured one at or above it
    nearest = column([-1]) * len(timeline)
    for row, parent in enumerate(timeline.parent):
        above = nearest[parent] if parent >= 0 else -1
        if row not in measured:
            nearest[row] = above
        elif timeline.flags[row] & ASYNC:
            own[row] = 0
        else:
            nearest[row] = row
            if above >= 0:
                own[above] -= measured[row]
    return own


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows that tables list, and those of them that ran in no other such row."""

    listed: bytearray
    top: bytearray


def list_rows(timeline: Timeline) -> Listing:
    """All rows but those on the stack before; and but pytest's, if it was there: it is not the subject.

    >>> from pytest_instrcount.trace.timeline import Label
    >>> rows = map(column, ([-1, 0], [0, 1], [9, 2], [int(Flag.START_FRAME), 0]))
    >>> labels = Label("_pytest.python.f"), Label("test_it.g")
    >>> listing = list_rows(Timeline(*rows, labels=labels, label=column([0, 1])))
    >>> list(listing.listed), list(listing.top)
    ([0, 1], [0, 1])
    """
    before = bytearray(
        bool(flags & Flag.START_FRAME) and not timeline.calls(row)
        for row, flags in enumerate(timeline.flags)
    )
    of_pytest = [label.name.startswith(_PYTEST) for label in timeline.labels]
    within_pytest = any(
        there and of_pytest[timeline.label[row]] for row, there in enumerate(before)
    )
    listed, top, below = bytearray(), bytearray(), bytearray()
    for row, parent in enumerate(timeline.parent):
        listed.append(not (before[row] or (within_pytest and of_pytest[timeline.label[row]])))
        below.append(parent >= 0 and (listed[parent] or below[parent]))
        top.append(listed[row] and not below[row])
    return Listing(listed, top)


@dataclass(slots=True)
class _Stack:
    rows: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    times: dict[int, int] = field(default_factory=dict)


class Stacks:
    """The stack of each track while one goes through the rows; tells recursion.

    >>> stacks = Stacks()
    >>> stacks.enter(0, row=0, parent=-1, number=7), stacks.enter(0, row=1, parent=0, number=7)
    (True, False)
    """

    def __init__(self) -> None:
        self._stacks: dict[int, _Stack] = {}

    def enter(self, track: int, row: int, parent: int, number: int) -> bool:
        """Put a row on its track's stack; whether no row of the same ``number`` is under it."""
        stack = self._stacks.get(track)
        if stack is None:
            stack = self._stacks[track] = _Stack()
        while stack.rows and stack.rows[-1] != parent:
            stack.rows.pop()
            stack.times[stack.numbers.pop()] -= 1
        stack.rows.append(row)
        stack.numbers.append(number)
        times = stack.times[number] = stack.times.get(number, 0) + 1
        return times == 1
