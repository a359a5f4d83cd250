"""Call counts of a traced test, compared and judged. The numbers are exact, and so is the gate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pytest_instrcount.gate.compare import Difference, Gated, GatedCount, differing
from pytest_instrcount.gate.gate import Verdict, judge_counts
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.calls import CallTable


@dataclass(frozen=True, slots=True)
class CallChange:
    """A function that was called more or less often than before."""

    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class CallsCompared:
    """The comparison of two tables of one test, and its verdict."""

    verdict: Verdict
    #: calls in the baseline; None without one
    before: int | None
    after: int
    #: functions whose number of calls changed, the largest change first
    changes: tuple[CallChange, ...] = ()
    #: facts of the environment that differ
    differences: tuple[Difference, ...] = ()
    #: ceilings that were passed: pattern, ceiling, calls
    too_many: tuple[tuple[str, int, int], ...] = ()
    #: ranges that hold more memory than the limit allows, in bytes
    memory: tuple[CallChange, ...] = ()

    @property
    def delta(self) -> Fraction | None:
        """Growth as a fraction of the baseline; None where there is nothing to compare."""
        if self.before is None or self.differences or (not self.before and self.after):
            return None
        return Fraction(self.after, self.before) - 1 if self.before else Fraction(0)


def judge_calls(
    old: CallTable | None,
    new: CallTable,
    limit: Limit,
    too_many: tuple[tuple[str, int, int], ...] = (),
    memory_limit: Limit | None = None,
) -> CallsCompared:
    """The verdict on one table: the whole policy. ``too_many`` are ceilings that were passed.

    The total decides, so that a function may be renamed or split; a passed ceiling is a
    regression whatever the baseline says.

    >>> table = CallTable("t.py::a", {"m:f": 3}, {})
    >>> print(judge_calls(CallTable("t.py::a", {"m:f": 2}, {}), table, Limit(None, 0)).verdict)
    regressed
    """
    if old is None:
        verdict = Verdict.regressed if too_many else Verdict.new
        return CallsCompared(verdict, None, new.total, too_many=too_many)
    differences = differing(old.environment, new.environment)
    if differences:
        verdict = Verdict.regressed if too_many else Verdict.incomparable
        return CallsCompared(
            verdict, old.total, new.total, differences=differences, too_many=too_many
        )
    verdict = judge_counts(Gated(GatedCount(old.total, 1), GatedCount(new.total, 1)), limit)
    memory = () if memory_limit is None else memory_grown(old, new, memory_limit)
    if too_many or memory:
        verdict = Verdict.regressed
    changes = call_changes(old, new)
    return CallsCompared(verdict, old.total, new.total, changes, (), too_many, memory)


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
