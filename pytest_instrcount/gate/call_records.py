"""The results of traced tests, as records for every kind of report."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.compare import Difference
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.calls import Edge, Edges


@dataclass(frozen=True, slots=True)
class CallChange:
    """A function that was called more or less often than before."""

    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """A function that another one called, or a generator that it resumed, more or less often than before."""

    #: "" if nobody called it in the trace
    caller: str
    callee: str
    #: before and now
    calls: tuple[int, int]
    resumes: tuple[int, int]

    @property
    def edge(self) -> Edge:
        """Caller and callee."""
        return self.caller, self.callee

    @property
    def size(self) -> int:
        """By how much it changed."""
        return max(abs(now - before) for before, now in (self.calls, self.resumes))


@dataclass(frozen=True, slots=True)
class CallsResult:
    """The call counts of one traced test, and their verdict."""

    #: pytest's id of the test
    nodeid: str
    verdict: Verdict
    #: all calls now; None unless measured
    calls: int | None
    #: all calls in the baseline; None without a readable one
    baseline_calls: int | None
    limit: Limit
    #: growth of all calls as a fraction; None where there is nothing to compare
    delta: Fraction | None = None
    #: functions whose number of calls changed, the largest change first
    changes: tuple[CallChange, ...] = ()
    #: generators and coroutines whose number of resumes changed
    resumed: tuple[CallChange, ...] = ()
    #: edges whose calls or resumes changed, the largest change first
    edges: tuple[EdgeChange, ...] = ()
    #: functions that have another name now: before, now
    renamed: tuple[tuple[str, str], ...] = ()
    #: all edges in the baseline, under the names of now, and all of now
    before: Edges = field(default_factory=dict)
    now: Edges = field(default_factory=dict)
    #: facts of the environment that differ from the baseline's
    differences: tuple[Difference, ...] = ()
    #: ceilings that were passed: pattern, ceiling, calls
    too_many: tuple[tuple[str, int, int], ...] = ()
    #: ranges that hold more memory than is allowed, in bytes
    memory: tuple[CallChange, ...] = ()
    memory_limit: Limit | None = None
    #: edges that were used differently often in two repetitions
    varying: tuple[Edge, ...] = ()
    #: whether this run stored the table, or found it stored by another update
    written: bool = False
    #: why there is none
    reason: str = ""
    #: as of a `TestResult`
    cause: Cause | None = None
