"""Changes by C function -> lines for a terminal, and the numbers that all causes are told in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from pytest_instrcount.gate.compare import FunctionDelta
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.report.table import NARROWEST_NAME
from pytest_instrcount.report.words import cut_left, cut_right, percent, quotient

_PROBING = re.compile(
    r"dictobject\.c:\w*(?:lookup|lookdict|find_empty_slot)\w*|setobject\.c:set_(?:add_entry|lookkey)\w*"
)
#: So many functions of each kind are named in the text of a failure.
MOST_CAUSES = 3


def c_lines(result: TestResult, width: int, *, grew: bool) -> list[str]:
    """The C functions that a change is in, as part of the text of a failure."""
    sign = 1 if grew else -1
    changed = [delta for delta in result.functions if delta.ir * sign > 0][:MOST_CAUSES]
    if not changed:
        return []
    whole = change_by_c(result)
    head, rows = (
        "by C function, its own and with what it calls",
        function_lines(result, changed, width - 2),
    )
    if whole * sign > 0:
        head = "by C function, share of the change, its own and with what it calls"
        rows = function_lines(result, changed, width - 2, whole)
    return [f"{head}:", *(f"  {line}" for line in rows)]


def function_lines(
    result: TestResult, deltas: Iterable[FunctionDelta], width: int, whole: Fraction = Fraction(0)
) -> list[str]:
    """A line for each: its own change, with what it calls, calls before and after, name.

    Changes are shares of the ``whole`` change if there is one, else growth in percent of the test before.
    """

    def sized(number: Fraction | None) -> str:
        if number is None:
            return ""
        return (
            share_text(number / whole)
            if whole
            else grown_text(number, Fraction(result.baseline_ir or 0))
        )

    cells = [
        (
            sized(each.ir),
            sized(each.inclusive),
            calls_text(each.calls_before, each.calls_after),
            each,
        )
        for each in deltas
    ]
    if not cells:
        return []
    own_width = max(len(own) for own, *_ in cells)
    whole_width = max(len(whole) for _, whole, *_ in cells)
    calls_width = max(len(calls) for *_, calls, _ in cells)
    if whole_width:
        whole_width += 2
    left = width - own_width - whole_width - calls_width - 4
    return [
        cut_right(
            f"{own:>{own_width}}{whole:>{whole_width}}  {calls:<{calls_width}}  "
            f"{cut_left(printable(each.name), max(NARROWEST_NAME, left))}",
            width,
        )
        for own, whole, calls, each in cells
    ]


def probing_lines(result: TestResult) -> list[str]:
    """What to know of a change that is mostly probing of dicts and sets that are asked as often."""
    change = change_by_c(result)
    probing = sum(
        each.ir
        for each in result.functions
        if each.calls_before == each.calls_after and _PROBING.fullmatch(each.name)
    )
    if result.by_chance or not change or probing / change <= Fraction(1, 2):
        return []
    why = "which keys do depends on the hash seed: fixed here, random for most users"
    if result.collisions is not None:
        moved = f"hash seeds move it by {percent(result.collisions).lstrip('+')} at most"
        why = f"{moved if result.collisions else 'no hash seed moves it'}: this is growth"
    return ["mostly probing: dicts or sets are asked as often, keys collide differently;", why]


def change_by_c(result: TestResult) -> Fraction:
    """The growth of one call of the test, as the sum of its C functions."""
    return sum((delta.ir for delta in result.functions), Fraction(0))


def explained_by_c(result: TestResult) -> Fraction:
    """The share of the change that is the first C functions' of that sign; at most 1."""
    change = change_by_c(result)
    if not change:
        return Fraction(0)
    same = [delta.ir for delta in result.functions if delta.ir * change > 0]
    return min(Fraction(1), sum(same[:MOST_CAUSES], Fraction(0)) / change)


def calls_text(before: Fraction, after: Fraction, unit: str = "call") -> str:
    """``51 -> 102 calls``, or that it is new, or gone, or is called as often as before.

    Nothing of what runs on, as CPython's loop of evaluation, and is not called.
    """
    plural = "entries" if unit == "entry" else f"{unit}s"
    if before and after and before != after:
        return f"{quotient(before)} -> {quotient(after)} {plural}"
    number = after or before
    word = "" if before == after else "new, " if after else "gone, "
    return f"{word}{quotient(number)} {unit if number == 1 else plural}" if number else ""


def grown_text(number: Fraction, base: Fraction) -> str:
    """Growth in percent of what there was before; without that the number itself."""
    return percent(number / base) if base else ("+" if number > 0 else "") + quotient(number)


def share_text(share: Fraction) -> str:
    """A share of a change in whole percent, never 100 unless it is all.

    >>> share_text(Fraction(9999, 10_000)), share_text(Fraction(1, 1000)), share_text(Fraction(-1, 8))
    ('99 %', '< 1 %', '-12 %')
    """
    number = int(share * 100)
    return "< 1 %" if not number and share > 0 else f"{number:,} %"
