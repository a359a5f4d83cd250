"""Call counts of a traced test, compared and judged. The numbers are exact, and so is the gate."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from pytest_instrcount.gate.compare import Gated, differing
from pytest_instrcount.gate.gate import Verdict, judge_counts
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import CallChange, CallsResult
from pytest_instrcount.gate.store.calls import CallTable


def judge_calls(
    old: CallTable | None,
    new: CallTable,
    limit: Limit,
    too_many: tuple[tuple[str, int, int], ...] = (),
    memory_limit: Limit | None = None,
) -> CallsResult:
    """One table held against the stored one: the whole policy. ``too_many`` are ceilings that were passed.

    The total decides, so that a function may be renamed or split; a passed ceiling is a
    regression whatever the baseline says.

    >>> table = CallTable("t.py::a", {"m:f": 3}, {})
    >>> print(judge_calls(CallTable("t.py::a", {"m:f": 2}, {}), table, Limit(None, 0)).verdict)
    regressed
    """
    result = CallsResult(
        new.nodeid,
        Verdict.new,
        new.total,
        None,
        limit,
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
    gated, limit = Gated(Fraction(old.total), Fraction(new.total)), result.memory_limit
    return replace(
        result,
        verdict=judge_counts(gated, result.limit),
        delta=gated.fraction,
        changes=call_changes(old, new),
        memory=() if limit is None else memory_grown(old, new, limit),
    )


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


def call_changes(old: CallTable, new: CallTable) -> tuple[CallChange, ...]:
    """Functions whose number of calls changed, the largest change first.

    >>> call_changes(CallTable("t", {"m:f": 1, "m:g": 2}, {}), CallTable("t", {"m:f": 4}, {}))
    (CallChange(name='m:f', before=1, after=4), CallChange(name='m:g', before=2, after=0))
    """
    changes = (
        CallChange(name, old.calls.get(name, 0), new.calls.get(name, 0))
        for name in old.calls.keys() | new.calls.keys()
    )
    moved = [change for change in changes if change.before != change.after]
    return tuple(sorted(moved, key=lambda each: (-abs(each.after - each.before), each.name)))
