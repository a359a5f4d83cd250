"""Counts by function, as values that can be added, subtracted, renamed, picked from and denoised."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, overload

from pytest_instrcount.counts.rules import rule_of
from pytest_instrcount.counts.standardize import standardize
from pytest_instrcount.host.text import several

#: A repr shows so many rows of the largest and of the smallest.
_HEAD = _TAIL = 9
#: However narrow the terminal is, so much of a name is shown.
_NARROWEST = 12
_CUT = " ... "


class _Named(NamedTuple):
    count: int  # type: ignore[assignment] # tuple.count, as in torch
    function: str


class FunctionCount(_Named):
    """The cost of one function: a named tuple of its count and its name.

    As a tuple it is those two alone; ``calls`` and ``denoised`` come along where counts are added,
    renamed and picked from, and are not compared.

    >>> row = FunctionCount(210, "obmalloc.c:PyObject_Malloc", calls=3, denoised=180)
    >>> count, function = row
    >>> row == (210, "obmalloc.c:PyObject_Malloc"), row.calls
    (True, 3)
    """

    #: instructions
    count: int
    #: ``file:function``, or ``file:function [object]`` where the object matters
    function: str
    #: from all call sites
    calls: int
    #: the instructions that `FunctionCounts.denoise` leaves
    denoised: int

    def __new__(
        cls, count: int, function: str, calls: int = 0, denoised: int | None = None
    ) -> Self:
        """``denoised`` is by default the count, or 0 of a function that is noise by its name."""
        made = super().__new__(cls, count, function)
        made.calls = calls
        if denoised is None:
            denoised = 0 if rule_of(standardize(function)) else count
        made.denoised = denoised
        return made

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override] # of its _NT
        return cls(*iterable)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionCounts:
    """Counts of many functions, the largest first; all inclusive or all exclusive.

    Two are equal if they hold the same counts, denoised and not, in whatever order. A function of
    which both come to 0 is not held after any operation.

    >>> a = FunctionCounts((FunctionCount(7, "f", 1), FunctionCount(3, "g", 1)), inclusive=False)
    >>> b = FunctionCounts((FunctionCount(7, "f", 1),), inclusive=False)
    >>> a - b
    FunctionCounts: 1 function, exclusive
      3  g
    Total: 3
    """

    rows: tuple[FunctionCount, ...]
    #: with what the function called; else without
    inclusive: bool
    #: whether a repr leaves out the middle of many rows; a slice shows all of its own
    truncate_rows: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))

    def __iter__(self) -> Iterator[FunctionCount]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, item: int) -> FunctionCount: ...
    @overload
    def __getitem__(self, item: slice) -> FunctionCounts: ...
    def __getitem__(self, item: int | slice) -> FunctionCount | FunctionCounts:
        if isinstance(item, slice):
            return FunctionCounts(self.rows[item], self.inclusive, truncate_rows=False)
        return self.rows[item]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FunctionCounts):
            return NotImplemented
        return self.inclusive == other.inclusive and _compared(self) == _compared(other)

    def __hash__(self) -> int:
        return hash((self.inclusive, _compared(self)))

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        if not isinstance(other, FunctionCounts):
            return NotImplemented
        return self._merged(other, 1)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        if not isinstance(other, FunctionCounts):
            return NotImplemented
        return self._merged(other, -1)

    def __mul__(self, factor: float) -> FunctionCounts:
        if not isinstance(factor, (int, float)):
            return NotImplemented
        return self._with(_scaled(row, factor) for row in self.rows)

    __rmul__ = __mul__

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """The counts under other names; functions that come to share one are added up.

        What is noise stays known: ``denoise`` may come before or after.

        >>> counts = FunctionCounts((FunctionCount(2, "/a/x.c:f"), FunctionCount(3, "/b/x.c:f")), False)
        >>> counts.transform(lambda name: name.rpartition("/")[2])[0].count
        5
        """
        names = [map_fn(row.function) for row in self.rows]
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"transform: the new name is a str, not {type(name).__name__}")
        return self._with(
            FunctionCount(row.count, name, row.calls, row.denoised)
            for row, name in zip(self.rows, names)
        )

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """Only the functions that ``filter_fn`` says yes to, by name.

        >>> counts = FunctionCounts((FunctionCount(2, "x.c:f"), FunctionCount(3, "y.c:g")), False)
        >>> counts.filter(lambda name: name.startswith("x.c:")).sum()
        2
        """
        kept = tuple(row for row in self.rows if filter_fn(row.function))
        return FunctionCounts(kept, self.inclusive)

    def sum(self) -> int:
        """All counts added up; of inclusive ones, what is called is in it once for each caller.

        >>> FunctionCounts((FunctionCount(2, "f"), FunctionCount(-3, "g")), False).sum()
        -1
        """
        return sum(row.count for row in self.rows)

    def denoise(self) -> FunctionCounts:
        """The counts without what depends on where things lie in memory.

        Exclusive: a function that a rule knows (allocators, look-ups in dicts, libc's copying) has
        the price of its rule for each call from elsewhere, or goes, where that is 0. Inclusive: such
        functions go; what they cost stays in the counts of their callers. It is linear, and twice is
        once: the denoised difference is the difference of what is denoised.

        >>> within = FunctionCount(210, "obmalloc.c:pymalloc_alloc", calls=3)
        >>> FunctionCounts((within, FunctionCount(500, "a.c:f", 1)), False).denoise().sum()
        500
        """
        return self._with(
            FunctionCount(row.denoised, row.function, row.calls, row.denoised) for row in self.rows
        )

    def _merged(self, other: FunctionCounts, sign: int) -> FunctionCounts:
        if self.inclusive != other.inclusive:
            raise ValueError("inclusive and exclusive counts cannot be mixed")
        return self._with((*self.rows, *(_scaled(row, sign) for row in other.rows)))

    def _with(self, rows: Iterable[FunctionCount]) -> FunctionCounts:
        added = [
            FunctionCount(count, name, *more) for name, (count, *more) in _summed(rows).items()
        ]
        added.sort(key=lambda row: (-row.count, row.function))
        return FunctionCounts(tuple(added), self.inclusive)

    def __repr__(self) -> str:
        kind = "inclusive" if self.inclusive else "exclusive"
        number = several(len(self), "function")
        digits = max((len(str(row.count)) for row in self.rows), default=0)
        space = max(shutil.get_terminal_size().columns - digits - 4, _NARROWEST)
        lines = [f"  {row.count:>{digits}}  {_fitted(row.function, space)}" for row in self.rows]
        if self.truncate_rows and len(lines) > _HEAD + _TAIL:
            lines[_HEAD:-_TAIL] = ["...".rjust(digits + 2)]
        # inclusive counts hold one another: their sum says nothing
        total = [] if self.inclusive else [f"Total: {self.sum()}"]
        return "\n".join([f"FunctionCounts: {number}, {kind}", *lines, *total])


def _summed(rows: Iterable[FunctionCount]) -> dict[str, tuple[int, int, int]]:
    """By function: count, calls and denoised count; without those that come to nothing."""
    sums: dict[str, tuple[int, int, int]] = {}
    for row in rows:
        count, calls, denoised = sums.get(row.function, (0, 0, 0))
        sums[row.function] = count + row.count, calls + row.calls, denoised + row.denoised
    return {name: numbers for name, numbers in sums.items() if numbers[0] or numbers[2]}


def _compared(rows: Iterable[FunctionCount]) -> frozenset[tuple[str, int, int]]:
    return frozenset(
        (name, count, denoised) for name, (count, _, denoised) in _summed(rows).items()
    )


def _scaled(row: FunctionCount, factor: float) -> FunctionCount:
    """Cut to whole numbers, since counts are."""
    count, calls, denoised = (int(n * factor) for n in (row.count, row.calls, row.denoised))
    return FunctionCount(count, row.function, calls, denoised)


def _fitted(name: str, space: int) -> str:
    """A name that is too long, without its middle."""
    if len(name) <= space:
        return name
    left = (space - len(_CUT)) // 2
    right = space - len(_CUT) - left
    return f"{name[:left]}{_CUT}{name[-right:]}"
