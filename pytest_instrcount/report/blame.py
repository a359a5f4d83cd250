"""Why a count grew -> lines for a terminal: Python functions, C functions, added calls."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from pytest_instrcount.blame.blame import PythonBlame, PythonDelta
from pytest_instrcount.blame.source import call_sites
from pytest_instrcount.blame.tree import TRAMPOLINES
from pytest_instrcount.gate.compare import FunctionDelta
from pytest_instrcount.gate.names import printable
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.report.table import NARROWEST_NAME
from pytest_instrcount.report.trees import place_of
from pytest_instrcount.report.words import cut_left, cut_right, percent, quotient

#: So many functions of each kind are named in the text of a failure.
MOST_CAUSES = 3
# What is to blame for less than this share of the change is not named behind others.
_WORTH_NAMING = Fraction(1, 20)


def render_blame(result: TestResult, width: int) -> list[str]:
    """Whose doing a growth is; nothing that is not known."""
    lines = []
    if result.python is not None:
        lines += _python_lines(result.python, width)
    lines += _c_lines(result, width)
    lines += _work_lines(result)
    return lines


def _python_lines(blame: PythonBlame, width: int) -> list[str]:
    named = [each for each in blame.functions if each.doing > 0]
    if not named or blame.change <= 0:
        return []
    named = [
        each
        for number, each in enumerate(named[:MOST_CAUSES])
        if not number or each.doing > blame.change * _WORTH_NAMING
    ]
    how = "trampolines" if blame.how == TRAMPOLINES else "calls alone, by the tracer"
    share = percent_of(blame.explained(len(named)))
    lines = [f"by Python function ({how}; {share} of the change):"]
    for each in named:
        grown = percent(each.doing / blame.before) if blame.before else quotient(each.doing)
        path, line = place_of(blame.new, each.name)
        lines.append(f"  {grown}  {cut_left(shown_name(each.name, line), width - len(grown) - 4)}")
        lines += [f"    {one}" for one in _doing_lines(each, path, line, width - 4)]
    return lines


def _doing_lines(delta: PythonDelta, path: str, line: int, width: int) -> list[str]:
    """What a function does that costs more: what it calls more often, or its own code."""
    lines = []
    called = [each for each in delta.called if each.cost > 0]
    own = delta.doing - sum((each.cost for each in delta.called), Fraction(0))
    for each in called[:1]:
        if each.cost * 2 < delta.doing:
            continue
        before, after = quotient(each.before), quotient(each.after)
        times = f"{before} -> {after} times" if each.before else f"({after} a call), before never"
        callee = printable(each.name.rpartition(":")[2])
        lines.append(cut_right(f"calls {callee} {times}", width))
        sites = call_sites(path, delta.name.rpartition(":")[2], line, callee) if path else []
        for site in sites[:1]:
            more = f", and {len(sites) - 1} more" if len(sites) > 1 else ""
            lines[-1] = cut_right(f"{lines[-1]} (line {site.line}{more})", width)
            lines += [f"  {printable(one)}" for one in site.lines(width - 2)]
    if not lines and own > 0:
        calls = _calls(delta.calls_before, delta.calls_after)
        lines.append(cut_right(f"in its own code and the C functions it calls; {calls}", width))
    return lines


def shown_name(name: str, line: int) -> str:
    """``shop/orders.py:42 Order.total``."""
    path, _, qualname = name.rpartition(":")
    return printable(f"{path}:{line} {qualname}" if line else f"{path} {qualname}")


def _c_lines(result: TestResult, width: int) -> list[str]:
    grown = [delta for delta in result.functions if delta.ir > 0][:MOST_CAUSES]
    if not grown:
        return []
    head = "by C function, its own and with what it calls"
    if sum(delta.ir for delta in result.functions) > 0:
        head += f" ({percent_of(explained_by_c(result))} of the change)"
    return [f"{head}:", *(f"  {line}" for line in function_lines(result, grown, width - 2))]


def explained_by_c(result: TestResult) -> Fraction:
    """The share of the change that is the first C functions' of that sign; at most 1."""
    change = sum((delta.ir for delta in result.functions), Fraction(0))
    if not change:
        return Fraction(0)
    same = [delta.ir for delta in result.functions if delta.ir * change > 0]
    return min(Fraction(1), sum(same[:MOST_CAUSES], Fraction(0)) / change)


def function_lines(result: TestResult, deltas: Iterable[FunctionDelta], width: int) -> list[str]:
    """A line for each: growth of its own count, with what it calls, calls before and after, name."""
    base = Fraction(result.baseline_ir or 0)

    def grown(number: Fraction | None) -> str:
        if number is None:
            return ""
        if base:
            return percent(number / base)
        return ("+" if number > 0 else "") + quotient(number)

    cells = [
        (grown(each.ir), grown(each.inclusive), _calls(each.calls_before, each.calls_after), each)
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
    """``51 -> 102 calls``, or that it is new, or gone, or is called as often as before."""
    if before and after and before != after:
        return f"{quotient(before)} -> {quotient(after)} calls"
    number = after or before
    word = "" if before == after else "new, " if after else "gone, "
    return f"{word}{quotient(number)} call{'' if number == 1 else 's'}"


def _work_lines(result: TestResult) -> list[str]:
    """One line: how often what can be counted in calls happens now."""
    if not result.work:
        return []
    parts = [f"{kind} {quotient(old)} -> {quotient(new)}" for kind, old, new in result.work]
    return [f"calls added: {', '.join(parts)}"]


def percent_of(share: Fraction) -> str:
    """A share in whole percent, never 100 unless it is all."""
    number = int(share * 100) if share < 1 else 100
    return f"{number} %"
