"""Why a count changed -> lines for a terminal: Python functions, C functions, calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

from pytest_instrcount.counts.python.blame import CalledMore, PythonBlame, PythonDelta
from pytest_instrcount.counts.python.source import Site, call_sites, is_installed, is_resumed
from pytest_instrcount.counts.python.tree import TRAMPOLINES
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.report.c_functions import (
    MOST_CAUSES,
    c_lines,
    calls_text,
    grown_text,
    share_text,
)
from pytest_instrcount.report.trees import place_of, split_name
from pytest_instrcount.report.words import cut_left, cut_right, quotient

# Calls are the cause of a change, and not the code about them, from this share of it on.
_CALLS_TELL = Fraction(1, 4)
# From this share on those of what was never called before, or is called no more.
_NEW_CALLS_TELL = Fraction(1, 10)
# Where causes come to that share of a change, what went the other way is named, too.
_MORE_THAN_ALL = Fraction(11, 10)
# What is to blame for less than this share of the change is not named behind others.
_WORTH_NAMING = Fraction(1, 20)


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
    named = [first, *(each for each in others if abs(each.self_delta) > whole * _WORTH_NAMING)]
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
        for each in blame.causes(grew=not grew)[:1]:
            name = shown_name(each.name, place_of(blame.new, each.name)[1])
            yield cut_right(f"  {_size(blame, each, agrees=True)}  {name}, against it", width)


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


def _site_lines(text: str, sites: Sequence[Site], width: int, *, source: bool) -> list[str]:
    """The called function, and the place where it is called; of several nobody knows which is meant."""
    if not sites:
        return [cut_right(text, width)]
    lines = list(dict.fromkeys(str(site.line) for site in sites))
    more = f", and {len(lines) - MOST_CAUSES} more" if len(lines) > MOST_CAUSES else ""
    where = f"line{'s' if len(lines) > 1 else ''} {', '.join(lines[:MOST_CAUSES])}{more}"
    shown = cut_right(f"{cut_right(text, width)} ({where})", width)
    if len(lines) > 1 or not source:
        return [shown]
    return [shown, *(f"  {printable(one)}" for one in sites[0].lines(width - 2))]


def _doing_lines(blame: PythonBlame, delta: PythonDelta, width: int, *, grew: bool) -> list[str]:
    """The reasons for a function's changed cost: more calls, fewer calls, its own code; the largest first."""
    sign = 1 if grew else -1
    path, line = place_of(blame.new, delta.name)
    lines: list[str] = []
    shown = False
    for most in _called(delta, sign)[:MOST_CAUSES]:
        callee = printable(most.name.rpartition(":")[2])
        sites = call_sites(path, delta.name.rpartition(":")[2], line, callee) if path else []
        verb = "enters" if _is_resumed(blame, most.name) else "calls"
        text, sites = f"{verb} {callee} {_times(most)}", sites if most.after else []
        lines += _site_lines(text, sites, width, source=not shown)
        shown = shown or bool(sites)
    own = delta.self_delta - sum((each.cost for each in delta.called), Fraction(0))
    if own * 2 * sign > delta.self_delta * sign or (own * sign > 0 and not lines):
        calls = _own_calls(blame, delta)
        lines.insert(0, cut_right(f"in its own code and the C functions it calls; {calls}", width))
    return lines


def _is_resumed(blame: PythonBlame, name: str) -> bool:
    """True for a generator and a coroutine: to be resumed is one more entry of its frame."""
    path, line = place_of(blame.new, name)
    return is_resumed(path, name.rpartition(":")[2], line)


def _own_calls(blame: PythonBlame, delta: PythonDelta) -> str:
    """``45 -> 60 entries``."""
    unit = "entry" if _is_resumed(blame, delta.name) else "call"
    return calls_text(delta.calls_before, delta.calls_after, unit)


def _called(delta: PythonDelta, sign: int) -> list[CalledMore]:
    """The callees whose number of calls makes a part of the change that is worth naming."""
    least = delta.self_delta * sign * _WORTH_NAMING
    return [each for each in delta.called if each.cost * sign > least]


def _most_called(delta: PythonDelta, sign: int) -> CalledMore | None:
    """The first callee, where new calls make a good part of the change: each costs its caller, too."""
    called = _called(delta, sign)
    new = [each for each in called if not (each.before and each.after)]
    for found, least in ((called, _CALLS_TELL), (new, _NEW_CALLS_TELL)):
        together = sum((each.cost for each in found), Fraction(0))
        if found and together * sign >= delta.self_delta * sign * least:
            return found[0]
    return None


def main_cause(result: TestResult, *, exact: bool = True) -> tuple[str, str]:
    """The function that explains most of a change, and its place with what it does otherwise; "" if unknown.

    ``("slugify", "slug.py:12 calls re.sub 20 -> 40 times")``; if not exact "more often", as in other tests.
    """
    grew = result.verdict is not Verdict.improved
    sign = 1 if grew else -1
    if result.python is not None and (causes := result.python.causes(grew=grew)):
        return _python_cause(result.python, causes[0], sign, exact=exact)
    for each in result.functions:
        if each.ir * sign > 0:
            path, _, name = each.name.rpartition(":")
            calls = calls_text(each.calls_before, each.calls_after) if exact else ""
            return name, f"{path}, {calls}" if calls else path
    return "", ""


def _python_cause(
    blame: PythonBlame, cause: PythonDelta, sign: int, *, exact: bool
) -> tuple[str, str]:
    """As `main_cause`."""
    first, line = _of_the_project(blame, cause)
    most = _most_called(first, sign) if first.self_delta * sign > 0 else None
    what = ", its own code"
    if most is not None:
        what = _more_calls(blame, most, exact=exact)
    elif first is not cause:
        what = f", {_own_calls(blame, first)}" if exact else ""
    elif first.calls_after and not first.calls_before:
        what = f", {_own_calls(blame, first) if exact else 'new'}"
    path, _, qualname = first.name.rpartition(":")
    return qualname, (f"{path}:{line}" if line else path) + what


def _of_the_project(blame: PythonBlame, cause: PythonDelta) -> tuple[PythonDelta, int]:
    """A cause with its line; of an event loop, which turns more often, what that runs of the project."""
    place, line = place_of(blame.new, cause.name)
    loops = place and is_installed(place) and _ran_before(cause)
    run = _run_by(blame, cause) if loops else []
    return run[0] if run else (cause, line)


def _more_calls(blame: PythonBlame, most: CalledMore, *, exact: bool) -> str:
    verb = "enters" if _is_resumed(blame, most.name) else "calls"
    often = "more often" if most.after > most.before else "less often"
    return f" {verb} {most.name.rpartition(':')[2]} {_times(most) if exact else often}"


def shared_cause(result: TestResult) -> tuple[str, ...]:
    """The verdict, and the function behind most of it as all tests say it that it moved; empty if none is."""
    blame = result.python
    grew = result.verdict is not Verdict.improved
    if blame is None or (blame.change > 0) != grew or blame.explained(1) * 2 < 1:
        return ()
    return result.verdict, *main_cause(result, exact=False)


def _times(called: CalledMore) -> str:
    before, after = quotient(called.before), quotient(called.after)
    if not called.before and not called.after:
        return "and goes on with it"  # it ran before the count began
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
        lines += [cut_right(each, width) for each in _project_lines(blame, delta)]
    return lines


def _project_lines(blame: PythonBlame, delta: PythonDelta) -> Iterator[str]:
    """Who of the project calls a function, or, where nobody does, what an event loop runs of it."""
    chain = blame.chain_to(delta.name)
    for caller, callee in reversed(list(itertools.pairwise(chain))):
        place, line = place_of(blame.new, caller)
        if not is_installed(place):
            sites = call_sites(place, split_name(caller)[0], line, split_name(callee)[0])
            where = f" (line {sites[0].line})" if sites else ""
            yield f"called from {shown_name(caller, line)}{where}"
            return
    for each, line in _run_by(blame, delta) if _ran_before(delta) else ():
        yield f"which runs {shown_name(each.name, line)}: {_own_calls(blame, each)}"


def _ran_before(delta: PythonDelta) -> bool:
    """True if the count began within a function, as within an event loop."""
    return not delta.calls_before and not delta.calls_after


def _run_by(blame: PythonBlame, delta: PythonDelta) -> list[tuple[PythonDelta, int]]:
    """What an event loop runs of the project, with first lines: those first whose own code costs most more."""
    sign = 1 if delta.self_delta > 0 else -1
    below = {path[-1] for path in blame.new.inclusive if delta.name in path[:-1]}
    found = [each for each in blame.functions if each.own * sign > 0 and each.name in below]
    placed = [(each, *place_of(blame.new, each.name)) for each in found]
    mine = [(each, line) for each, path, line in placed if not is_installed(path)]
    return sorted(mine, key=lambda each: -each[0].own * sign)[:MOST_CAUSES]


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
