"""Why a count changed -> lines for a terminal: Python functions, C functions, calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from pytest_instrcount.counts.python.blame import CalledMore, PythonBlame, PythonDelta
from pytest_instrcount.counts.python.source import Site, call_sites, is_installed
from pytest_instrcount.counts.python.tree import TRAMPOLINES
from pytest_instrcount.gate.compare import FunctionDelta
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.report.table import NARROWEST_NAME
from pytest_instrcount.report.trees import place_of, split_name
from pytest_instrcount.report.words import cut_left, cut_right, percent, quotient

#: So many functions of each kind are named in the text of a failure.
MOST_CAUSES = 3
# What is to blame for less than this share of the change is not named behind others.
_WORTH_NAMING = Fraction(1, 20)


def render_blame(result: TestResult, width: int) -> list[str]:
    """The functions that caused a growth, or that a test got cheaper; empty if unknown."""
    grew = result.verdict is not Verdict.improved
    lines = []
    if result.python is not None:
        lines += _python_lines(result.python, width, grew=grew)
    lines += _c_lines(result, width, grew=grew)
    lines += _work_lines(result)
    return lines


def _python_lines(blame: PythonBlame, width: int, *, grew: bool) -> list[str]:
    causes = blame.causes(grew=grew)[:MOST_CAUSES]
    how = "trampolines" if blame.how == TRAMPOLINES else "calls alone, by the tracer"
    if not causes:
        word = "dearer" if grew else "cheaper"
        return [f"by Python function ({how}): none of them got {word}"]
    agrees = blame.change > 0 if grew else blame.change < 0
    whole = abs(blame.change if agrees else causes[0].self_delta)
    first, *others = causes
    named = [first, *(each for each in others if abs(each.self_delta) > whole * _WORTH_NAMING)]
    if agrees:
        head = f"by Python function ({how}), share of the change:"
    else:
        # to be counted by function costs some per cent itself, which a smaller change drowns in
        word = "dearer" if grew else "cheaper"
        head = f"by Python function ({how}; by these counts the test as a whole got no {word}):"
    lines = [head]
    for each in named:
        size = (
            share_text(each.self_delta / blame.change)
            if agrees
            else _grown(each.self_delta, blame.before)
        )
        lines += _cause_lines(blame, each, size, width - 2, grew=grew)
    return lines


def _grown(number: Fraction, base: Fraction) -> str:
    """Growth in percent of what there was before; without that the number itself."""
    return percent(number / base) if base else ("+" if number > 0 else "") + quotient(number)


def _cause_lines(
    blame: PythonBlame, delta: PythonDelta, size: str, width: int, *, grew: bool
) -> Iterator[str]:
    """A function with the size of its change, what it does otherwise, and who calls it."""
    path, line = place_of(blame.new, delta.name)
    name = cut_left(shown_name(delta.name, line), width - len(size) - 2)
    yield f"  {size}  {name}"
    for one in _doing_lines(delta, path, line, width - 2, grew=grew):
        yield f"    {one}"
    for one in _origin_lines(blame, delta, path, width - 2):
        yield f"    {one}"


def _site_lines(text: str, sites: Sequence[Site], width: int) -> list[str]:
    """The called function, and the first place where it is called."""
    if not sites:
        return [cut_right(text, width)]
    more = f", and {len(sites) - 1} more" if len(sites) > 1 else ""
    shown = cut_right(f"{cut_right(text, width)} (line {sites[0].line}{more})", width)
    return [shown, *(f"  {printable(one)}" for one in sites[0].lines(width - 2))]


def _doing_lines(delta: PythonDelta, path: str, line: int, width: int, *, grew: bool) -> list[str]:
    """The reasons for a function's changed cost: more calls, fewer calls, or its own code."""
    sign = 1 if grew else -1
    lines: list[str] = []
    own = delta.self_delta - sum((each.cost for each in delta.called), Fraction(0))
    most = _most_called(delta, sign)
    if most is not None:
        callee = printable(most.name.rpartition(":")[2])
        sites = call_sites(path, delta.name.rpartition(":")[2], line, callee) if path else []
        lines = _site_lines(f"calls {callee} {_times(most)}", sites if most.after else [], width)
    if not lines and own * sign > 0:
        calls = _calls(delta.calls_before, delta.calls_after)
        lines.append(cut_right(f"in its own code and the C functions it calls; {calls}", width))
    return lines


def _most_called(delta: PythonDelta, sign: int) -> CalledMore | None:
    """The callee whose number of calls makes most of the change."""
    most = next((each for each in delta.called if each.cost * sign > 0), None)
    return most if most and most.cost * 2 * sign >= delta.self_delta * sign else None


def main_cause(result: TestResult, *, exact: bool = True) -> tuple[str, str]:
    """The function that explains most of a change, and its place with what it does otherwise; "" if unknown.

    ``("slugify", "slug.py:12 calls re.sub 20 -> 40 times")``; if not exact "more often", as in other tests.
    """
    grew = result.verdict is not Verdict.improved
    sign = 1 if grew else -1
    if result.python is not None and (causes := result.python.causes(grew=grew)):
        most = _most_called(causes[0], sign)
        path, _, qualname = causes[0].name.rpartition(":")
        line = place_of(result.python.new, causes[0].name)[1]
        what = ", its own code"
        if most:
            often = "more often" if most.after > most.before else "less often"
            what = f" calls {most.name.rpartition(':')[2]} {_times(most) if exact else often}"
        return qualname, (f"{path}:{line}" if line else path) + what
    for each in result.functions:
        if each.ir * sign > 0:
            path, _, name = each.name.rpartition(":")
            calls = _calls(each.calls_before, each.calls_after) if exact else ""
            return name, f"{path}, {calls}" if calls else path
    return "", ""


def shared_cause(result: TestResult) -> tuple[str, ...]:
    """The verdict, and the function behind most of it as all tests say it that it moved; empty if none is."""
    blame = result.python
    grew = result.verdict is not Verdict.improved
    if blame is None or (blame.change > 0) != grew or blame.explained(1) * 2 < 1:
        return ()
    return result.verdict, *main_cause(result, exact=False)


def _times(called: CalledMore) -> str:
    before, after = quotient(called.before), quotient(called.after)
    if not called.before:
        return f"({after} a call), before never"
    if not called.after:
        return f"no more, before {before} a call"
    return f"{before} -> {after} times"


def _origin_lines(blame: PythonBlame, delta: PythonDelta, path: str, width: int) -> list[str]:
    """The names that a function had before, and who of the project calls what is installed."""
    lines = []
    if delta.renamed:
        file, _, qualname = delta.name.rpartition(":")
        parts = [each.rpartition(":") for each in delta.renamed]
        stays = all(part[0] == file for part in parts)
        before = ", ".join(part[2] if stays else each for part, each in zip(parts, delta.renamed))
        lines.append(cut_right(f"renamed: {before} -> {qualname if stays else delta.name}", width))
    if path and is_installed(path):
        chain = blame.chain_to(delta.name)
        for caller, callee in reversed(list(itertools.pairwise(chain))):
            place, line = place_of(blame.new, caller)
            if not is_installed(place):
                sites = call_sites(place, split_name(caller)[0], line, split_name(callee)[0])
                where = f" (line {sites[0].line})" if sites else ""
                lines.append(cut_right(f"called from {shown_name(caller, line)}{where}", width))
                break
    return lines


def shown_name(name: str, line: int) -> str:
    """``shop/orders.py:42 Order.total``."""
    path, _, qualname = name.rpartition(":")
    return printable(f"{path}:{line} {qualname}" if line else f"{path} {qualname}")


def _c_lines(result: TestResult, width: int, *, grew: bool) -> list[str]:
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
            else _grown(number, Fraction(result.baseline_ir or 0))
        )

    cells = [
        (sized(each.ir), sized(each.inclusive), _calls(each.calls_before, each.calls_after), each)
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


def _calls(before: Fraction, after: Fraction) -> str:
    """``51 -> 102 calls``, or that it is new, or gone, or is called as often as before.

    Nothing of what runs on, as CPython's loop of evaluation, and is not called.
    """
    if before and after and before != after:
        return f"{quotient(before)} -> {quotient(after)} calls"
    number = after or before
    word = "" if before == after else "new, " if after else "gone, "
    return f"{word}{quotient(number)} call{'' if number == 1 else 's'}" if number else ""


def _work_lines(result: TestResult) -> list[str]:
    """Changes in countable work: calls added, and calls saved."""
    lines = []
    for word, sign in (("added", 1), ("saved", -1)):
        parts = [
            f"{kind} {quotient(old)} -> {quotient(new)}"
            for kind, old, new in result.work
            if (new - old) * sign > 0
        ]
        if parts:
            lines.append(f"calls {word}: {', '.join(parts)}")
    return lines


def share_text(share: Fraction) -> str:
    """A share of a change in whole percent, never 100 unless it is all.

    >>> share_text(Fraction(9999, 10_000)), share_text(Fraction(1, 1000)), share_text(Fraction(-1, 8))
    ('99 %', '< 1 %', '-12 %')
    """
    number = int(share * 100)
    return "< 1 %" if not number and share > 0 else f"{number:,} %"
