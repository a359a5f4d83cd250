"""Why a count changed -> lines for a terminal: Python functions, C functions, calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

from pytest_instrcount.counts.python.blame import PythonBlame, PythonDelta
from pytest_instrcount.counts.python.source import Site, call_sites, first_lines, is_installed
from pytest_instrcount.counts.python.tree import TRAMPOLINES
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import named, printable
from pytest_instrcount.report.c_functions import MOST_CAUSES, c_lines, grown_text, share_text
from pytest_instrcount.report.called import WORTH_NAMING, Called, called, own_calls
from pytest_instrcount.report.trees import place_of, split_name
from pytest_instrcount.report.words import cut_left, cut_right, quotient

# Where causes come to that share of a change, what went the other way is named, too.
_MORE_THAN_ALL = Fraction(11, 10)
# A name is not cut to fewer columns for what stands behind it.
_LEAST_NAME = 16
# Whose functions run what others have scheduled.
_LOOPS = frozenset(
    ("asyncio/base_events.py", "asyncio/events.py", "asyncio/runners.py", "trio/_core/_run.py")
)


def render_blame(result: TestResult, width: int) -> list[str]:
    """The functions that caused a growth, or that a test got cheaper; empty if unknown."""
    grew = result.verdict is not Verdict.improved
    lines = []
    if result.python is not None:
        lines += _python_lines(result.python, width, grew=grew)
    lines += c_lines(result, width, grew=grew)
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
    named = [first, *(each for each in others if abs(each.self_delta) > whole * WORTH_NAMING)]
    if agrees:
        head = f"by Python function ({how}), share of the change:"
    else:
        # to be counted by function costs some per cent itself, which a smaller change drowns in
        word = "dearer" if grew else "cheaper"
        head = f"by Python function ({how}; by these counts the test as a whole got no {word}):"
    lines = [head]
    for each in named:
        lines += _cause_lines(blame, each, _size(blame, each, agrees), width - 2, grew=grew)
    if agrees:
        lines += _against(blame, named, width, grew=grew)
    return lines


def _size(blame: PythonBlame, delta: PythonDelta, agrees: bool) -> str:
    """Its share of the change, or, where the whole went the other way, of what there was before."""
    if agrees:
        return share_text(delta.self_delta / blame.change)
    return grown_text(delta.self_delta, blame.before)


def _against(
    blame: PythonBlame, named: Sequence[PythonDelta], width: int, *, grew: bool
) -> Iterator[str]:
    """The function that did most against the change, where others come to more than all of it."""
    told = sum((each.self_delta for each in named), Fraction(0))
    if abs(told) > abs(blame.change) * _MORE_THAN_ALL:
        against = blame.causes(grew=not grew)
        most = max(against, key=lambda each: abs(each.self_delta), default=None)
        if most is not None:
            name = shown_name(most.name, place_of(blame.new, most.name)[1])
            yield cut_right(f"  {_size(blame, most, agrees=True)}  {name}, against it", width)


def _cause_lines(
    blame: PythonBlame, delta: PythonDelta, size: str, width: int, *, grew: bool
) -> Iterator[str]:
    """A function with the size of its change, what it does otherwise, and who calls it."""
    path, line = place_of(blame.new, delta.name)
    name = cut_left(shown_name(delta.name, line), width - len(size) - 2)
    yield f"  {size}  {name}"
    for one in _doing_lines(blame, delta, width - 2, grew=grew):
        yield f"    {one}"
    for one in _origin_lines(blame, delta, path, width - 2):
        yield f"    {one}"


def _call_lines(
    most: Called, caller: str, sites: Sequence[Site], width: int, *, source: bool
) -> list[str]:
    """The called function, and the place where it is called; of several nobody knows which is meant."""
    lines = _lines_of(sites)
    times = f"{most.times()}{_lines_text(lines)}"
    what = cut_left(most.what(caller), max(_LEAST_NAME, width - len(f"{most.verb}  {times}")))
    shown = cut_right(f"{most.verb} {what} {times}", width)
    if len(lines) != 1 or not source:
        return [shown]
    return [shown, *(f"  {printable(one)}" for one in sites[0].lines(width - 2))]


def _lines_of(sites: Sequence[Site]) -> list[str]:
    return [str(line) for line in sorted({site.line for site in sites})]


def _lines_text(lines: Sequence[str]) -> str:
    """`` (lines 3, 4, 5)``, or nothing."""
    if not lines:
        return ""
    return f" (line{'s' if len(lines) > 1 else ''} {named(lines, MOST_CAUSES)})"


def _doing_lines(blame: PythonBlame, delta: PythonDelta, width: int, *, grew: bool) -> list[str]:
    """The reasons for a function's changed cost: more calls, fewer calls, its own code; the largest first."""
    sign = 1 if grew else -1
    path, line = place_of(blame.new, delta.name)
    lines: list[str] = []
    shown = False
    for most in called(blame, delta, sign)[:MOST_CAUSES]:
        callee = printable(split_name(most.name)[0])
        here = path, split_name(delta.name)[0], line
        sites = call_sites(*here, callee) if path and most.after else []
        lines += _call_lines(most, delta.name, sites, width, source=not shown)
        shown = shown or bool(sites)
    own = delta.self_delta - sum((each.cost for each in delta.called), Fraction(0))
    if own * 2 * sign > delta.self_delta * sign or (own * sign > 0 and not lines):
        text = f"in its own code and the C functions it calls; {own_calls(blame, delta)}"
        namesakes = [] if line else first_lines(path, split_name(delta.name)[0])
        lines.insert(0, cut_right(text + _lines_text([*map(str, namesakes)]), width))
    return lines


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
        lines += [cut_right(each, width) for each in _project_lines(blame, delta)]
    return lines


def _project_lines(blame: PythonBlame, delta: PythonDelta) -> Iterator[str]:
    """Who of the project calls a function, or, of a thread or an event loop, what that runs of it."""
    runs = run_by(blame, delta)
    for each, line in runs:
        yield f"which runs {shown_name(each.name, line)}: {own_calls(blame, each)}"
    caller, line, sites = project_caller(blame, delta)
    if caller and not runs:
        yield f"called from {shown_name(caller, line)}{_lines_text(sites)}"


def project_caller(blame: PythonBlame, delta: PythonDelta) -> tuple[str, int, Sequence[str]]:
    """The nearest function of the project that calls another, its first line, and where it may call it.

    The line is 0, and the name is "", where they are not known.
    """
    chain = blame.chain_to(delta.name)
    for caller, callee in reversed(list(itertools.pairwise(chain))):
        place, line = place_of(blame.new, caller)
        if not is_installed(place):
            sites = call_sites(place, split_name(caller)[0], line, split_name(callee)[0])
            return caller, line, _lines_of(sites)
    return "", 0, ()


def _runs_others(blame: PythonBlame, delta: PythonDelta) -> bool:
    """True for what nobody calls, where a thread begins, and for an event loop."""
    is_outermost = (delta.name,) in blame.new.inclusive
    is_loop = split_name(delta.name)[1] in _LOOPS
    return is_outermost or is_loop or not (delta.calls_before or delta.calls_after)


def run_by(blame: PythonBlame, delta: PythonDelta) -> list[tuple[PythonDelta, int]]:
    """What a thread or an event loop runs of the project, with first lines.

    Those first that do most; nothing of another function.
    """
    if not _runs_others(blame, delta):
        return []
    sign = 1 if delta.self_delta > 0 else -1
    below = {path[-1] for path in blame.new.inclusive if delta.name in path[:-1]}

    def most(each: PythonDelta) -> Fraction:
        # steps that are run more often are the doing of the loop: what they cost is their own code's
        return max(each.own * sign, each.self_delta * sign)

    found = [each for each in blame.functions if most(each) > 0 and each.name in below]
    placed = [(each, *place_of(blame.new, each.name)) for each in found]
    mine = [(each, line) for each, path, line in placed if not is_installed(path)]
    return sorted(mine, key=lambda each: -most(each[0]))[:MOST_CAUSES]


def shown_name(name: str, line: int) -> str:
    """``shop/orders.py:42 Order.total``."""
    path, _, qualname = name.rpartition(":")
    return printable(f"{path}:{line} {qualname}" if line else f"{path} {qualname}")


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
