"""Calls of a traced test, compared and judged. The numbers are exact, and so is the gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from pytest_instrcount.gate.call_records import CallChange, CallsResult, EdgeChange
from pytest_instrcount.gate.call_renames import find_renames, renamed_edges
from pytest_instrcount.gate.compare import Gated, differing
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.calls import CallTable, Edges


def judge_calls(
    old: CallTable | None,
    new: CallTable,
    limit: Limit,
    too_many: tuple[tuple[str, int, int], ...] = (),
    memory_limit: Limit | None = None,
) -> CallsResult:
    """One table held against the stored one: the whole policy. ``too_many`` are ceilings that were passed.

    The limit holds for the sum of all calls, for each function and for each edge, and for resumes
    likewise: what grew is not made up for by what fell. A passed ceiling is a regression whatever
    the baseline says.

    >>> table = CallTable("t.py::a", {("", "m:f"): (3, 0)}, {})
    >>> print(judge_calls(CallTable("t.py::a", {("", "m:f"): (2, 0)}, {}), table, Limit(None, 0)).verdict)
    regressed
    """
    result = CallsResult(
        new.nodeid,
        Verdict.new,
        new.total,
        None,
        limit,
        now=new.edges,
        too_many=too_many,
        memory_limit=memory_limit,
    )
    if old is not None:
        result = _compare(result, old, new)
    return replace(result, verdict=Verdict.regressed) if too_many or result.memory else result


def _compare(result: CallsResult, old: CallTable, new: CallTable) -> CallsResult:
    """The result, with what the stored table says."""
    result = replace(result, baseline_calls=old.total)
    differences = differing(old.environment, new.environment)
    if differences:
        return replace(result, verdict=Verdict.incomparable, differences=differences)
    renamed = find_renames(old.edges, new.edges)
    memory = {renamed.get(name, name): bytes_ for name, bytes_ in old.memory.items()}
    old = replace(old, edges=renamed_edges(old.edges, renamed), memory=memory)
    limit, names = result.memory_limit, new.calls.keys() | new.resumes.keys()
    result = replace(
        result,
        delta=Gated(Fraction(old.total), Fraction(new.total)).fraction,
        changes=changes_of(old.calls, new.calls),
        resumed=changes_of(old.resumes, new.resumes),
        edges=edge_changes(old.edges, new.edges),
        renamed=tuple((was, name) for was, name in renamed.items() if name in names),
        before=old.edges,
        memory=() if limit is None else memory_grown(old, new, limit),
    )
    return replace(result, verdict=_judge(result, old.total, new.total))


def _judge(result: CallsResult, before: int, now: int) -> Verdict:
    """Regressed if anything grew beyond the limit, improved if anything fell by more."""
    pairs = [(before, now), *_pairs(result)]
    if any(result.limit.exceeded(was, 1, is_, 1) for was, is_ in pairs):
        return Verdict.regressed
    if any(result.limit.undercut(was, 1, is_, 1) for was, is_ in pairs):
        return Verdict.improved
    return Verdict.unchanged


def _pairs(result: CallsResult) -> Iterator[tuple[int, int]]:
    for change in (*result.changes, *result.resumed):
        yield change.before, change.after
    for edge in result.edges:
        yield from (edge.calls, edge.resumes)


def memory_grown(old: CallTable, new: CallTable, limit: Limit) -> tuple[CallChange, ...]:
    """Ranges that hold more bytes than ``limit`` allows; new ranges have nothing to be held against.

    >>> old, new = CallTable("t", {}, {}, {"load": 1000}), CallTable("t", {}, {}, {"load": 1011})
    >>> memory_grown(old, new, Limit(Fraction(1, 100), None))
    (CallChange(name='load', before=1000, after=1011),)
    """
    return tuple(
        CallChange(name, old.memory[name], bytes_now)
        for name, bytes_now in sorted(new.memory.items())
        if name in old.memory and limit.exceeded(old.memory[name], 1, bytes_now, 1)
    )


def changes_of(old: Mapping[str, int], new: Mapping[str, int]) -> tuple[CallChange, ...]:
    """Functions whose number changed, the largest change first.

    >>> changes_of({"m:f": 1, "m:g": 2}, {"m:f": 4})
    (CallChange(name='m:f', before=1, after=4), CallChange(name='m:g', before=2, after=0))
    """
    changes = (
        CallChange(name, old.get(name, 0), new.get(name, 0)) for name in old.keys() | new.keys()
    )
    moved = [change for change in changes if change.before != change.after]
    return tuple(sorted(moved, key=lambda each: (-abs(each.after - each.before), each.name)))


def edge_changes(old: Edges, new: Edges) -> tuple[EdgeChange, ...]:
    """Edges whose calls or resumes changed, the largest change first.

    >>> edge_changes({("t", "m:f"): (1, 3)}, {("t", "m:f"): (1, 9)})
    (EdgeChange(caller='t', callee='m:f', calls=(1, 1), resumes=(3, 9)),)
    """
    changes = []
    for edge in old.keys() | new.keys():
        was, is_ = old.get(edge, (0, 0)), new.get(edge, (0, 0))
        if was != is_:
            changes.append(EdgeChange(*edge, (was[0], is_[0]), (was[1], is_[1])))
    return tuple(sorted(changes, key=lambda each: (-each.size, each.edge)))
