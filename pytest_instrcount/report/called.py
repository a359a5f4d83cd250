"""What a function calls more or less often than before, as its source says it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import filterfalse

from pytest_instrcount.counts.python.blame import CalledMore, PythonBlame, PythonDelta
from pytest_instrcount.counts.python.source import is_decorated, is_resumed, mentions
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.report.c_functions import calls_text
from pytest_instrcount.report.trees import place_of, split_name
from pytest_instrcount.report.words import quotient

#: What is to blame for less than this share of a change is not named behind others.
WORTH_NAMING = Fraction(1, 20)
# Calls are the cause of a change, and not the code about them, from this share of it on.
_CALLS_TELL = Fraction(1, 4)
# From this share on those of what was never called before, or is called no more.
_NEW_CALLS_TELL = Fraction(1, 10)
# So many frames may stand between a call and what is decorated.
_DEEPEST = 3
_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Called:
    """Calls that a function makes more, or less, often than before; per call of the test."""

    #: what the source names: where it is decorated, a wrapper is what was called
    name: str
    before: Fraction
    after: Fraction
    cost: Fraction
    #: "calls" or "enters"
    verb: str

    def what(self, caller: str) -> str:
        """Who is called, for a sentence on its caller."""
        if self.name == caller:
            return "itself"
        name, path = split_name(self.name)
        return f"{name} of {path}" if name == split_name(caller)[0] else name

    def times(self) -> str:
        """``20 -> 40 times``."""
        before, after = quotient(self.before), quotient(self.after)
        if not self.before and not self.after:
            return "and goes on with it"  # it ran before the count began
        if not self.before:
            return f"({after} a call), before never"
        if not self.after:
            return f"no more, before {before} a call"
        return f"{before} -> {after} times"


def called(blame: PythonBlame, delta: PythonDelta, sign: int) -> list[Called]:
    """The callees whose number of calls makes a part of the change that is worth naming, largest first."""
    called_more = list(filterfalse(_is_as_often, delta.called))
    named = {each.name: _named(blame, delta.name, each) for each in called_more}
    # what a decorator's file calls besides, as often, is the same call in the source
    also = {
        _same_call(each): named[each.name]
        for each in called_more
        if named[each.name] not in ("", each.name)
    }
    found: dict[str, Called] = {}
    for each in called_more:  # those that cost most first
        name = named[each.name] or also.get(_same_call(each), each.name)
        verb = "enters" if name == each.name and is_entered(blame, name) else "calls"
        first = found.setdefault(name, Called(name, each.before, each.after, _NOTHING, verb))
        found[name] = replace(first, cost=first.cost + each.cost)
    least = delta.self_delta * sign * WORTH_NAMING
    most = [each for each in found.values() if each.cost * sign > least]
    return sorted(most, key=lambda each: -each.cost * sign)


def _is_as_often(each: CalledMore) -> bool:
    """Calls that cost more where they are made now, and less where they were."""
    return each.before == each.after != 0


def _named(blame: PythonBlame, caller: str, each: CalledMore) -> str:
    """As `_name_in_source`; but what is wrapped now, and was called before, is not called more often."""
    name = _name_in_source(blame.new, caller, each.name)
    if name in ("", each.name) or (each.before and each.after):
        return name
    return each.name if name in blame.old.functions() else name


def _same_call(each: CalledMore) -> tuple[str, Fraction, Fraction]:
    return split_name(each.name)[1], each.before, each.after


def telling(blame: PythonBlame, delta: PythonDelta, sign: int) -> Called | None:
    """The first of them, where they make a good part of the change: each costs its caller, too."""
    every = called(blame, delta, sign) if delta.self_delta * sign > 0 else []
    new = [each for each in every if not (each.before and each.after)]
    for found, least in ((every, _CALLS_TELL), (new, _NEW_CALLS_TELL)):
        together = sum((each.cost for each in found), _NOTHING)
        if found and together * sign >= delta.self_delta * sign * least:
            return found[0]
    return None


def own_calls(blame: PythonBlame, delta: PythonDelta) -> str:
    """``45 -> 60 entries``."""
    unit = "entry" if is_entered(blame, delta.name) else "call"
    return calls_text(delta.calls_before, delta.calls_after, unit)


def is_entered(blame: PythonBlame, name: str) -> bool:
    """True for a generator and a coroutine: to be resumed is one more entry of its frame."""
    path, line = place_of(blame.new, name)
    return is_resumed(path, split_name(name)[0], line)


def _name_in_source(tree: CallTree, caller: str, callee: str) -> str:
    """The callee, or the one function that it wraps, if a caller's source names that; else ""."""
    path, line = place_of(tree, caller)
    here = path, split_name(caller)[0], line
    if not path or mentions(*here, split_name(callee)[0]):
        return callee
    calls = [path for path in tree.inclusive if path[-2:] == (caller, callee)]
    _, *below = tree.levels(calls, 1 + _DEEPEST)
    for level in below:
        mentioned = {path[-1] for path in level if mentions(*here, split_name(path[-1])[0])}
        wrapped = [each for each in mentioned if _is_decorated(tree, each)]
        if wrapped:
            return wrapped[0] if len(wrapped) == 1 else ""
    return ""


def _is_decorated(tree: CallTree, name: str) -> bool:
    path, line = place_of(tree, name)
    return is_decorated(path, split_name(name)[0], line)
