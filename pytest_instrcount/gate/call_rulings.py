"""The rulings on traced tests: each table of calls against the stored one, then what is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.calls import judge_calls
from pytest_instrcount.gate.cause import Cause, cause_of
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.policy import Policy
from pytest_instrcount.gate.store.baseline import changed_meanwhile
from pytest_instrcount.gate.store.baseline_json import OLDER
from pytest_instrcount.gate.store.calls import CallStore, CallTable, Edge
from pytest_instrcount.gate.store.updating import Update


@dataclass(frozen=True, slots=True)
class TracedCount:
    """The calls and resumes of each edge in a test, and its limits."""

    table: CallTable
    limit: Limit
    memory_limit: Limit | None = None
    #: ceilings that were passed: pattern, ceiling, calls
    too_many: tuple[tuple[str, int, int], ...] = ()
    #: warnings about ceilings that hold nothing back
    idle: tuple[str, ...] = ()
    #: edges that were used differently often in two repetitions
    varying: tuple[Edge, ...] = ()


@dataclass(slots=True)
class CallRulings:
    """Collects one result per traced test. Writes tables only when told to."""

    store: CallStore
    policy: Policy
    results: dict[str, CallsResult] = field(default_factory=dict)
    #: tables whose tests are gone
    stale: dict[str, CallsResult] = field(default_factory=dict)
    _tables: dict[str, CallTable] = field(default_factory=dict)
    #: what was stored before the tests ran; where that could not be read, when the test was judged
    _read: dict[str, CallTable | None] = field(default_factory=dict)

    def expect(self, nodeid: str) -> None:
        """Read the table of a test before the tests run.

        Raises InstrcountError where it is of an older format: so are all others. Whatever else is
        wrong with it is said of this test.
        """
        try:
            self._read[nodeid] = self._stored(nodeid)
        except InstrcountError as error:
            if error.slug == OLDER:
                raise

    def _stored(self, nodeid: str) -> CallTable | None:
        return self.store.read(nodeid, updating=self.policy.update is not None)

    def rule(self, count: TracedCount) -> CallsResult:
        """Judge one table. Raises InstrcountError as `CallStore.read` does."""
        nodeid = count.table.nodeid
        if count.varying:
            result = CallsResult(
                nodeid, Verdict.nondeterministic, None, None, count.limit, varying=count.varying
            )
            self.results[nodeid] = result
            return result
        if nodeid not in self._read:
            self._read[nodeid] = self._stored(nodeid)
        stored = self._read[nodeid]
        result = judge_calls(stored, count.table, count.limit, count.too_many, count.memory_limit)
        if result.verdict is Verdict.incomparable:
            result = replace(result, cause=cause_of(result.differences))
        self._tables[nodeid] = count.table
        self.results[nodeid] = result
        return result

    def fail(self, nodeid: str, limit: Limit, reason: str) -> None:
        """Record a test whose calls could not be counted, and why."""
        self.results[nodeid] = CallsResult(nodeid, Verdict.failed, None, None, limit, reason=reason)

    def write(self, update: Update) -> dict[str, CallsResult]:
        """Have stored what the policy says; returns the results that then hold.

        Raises InstrcountError as for baselines.
        """
        stored: dict[str, CallsResult] = {}
        for nodeid, table in self._tables.items():
            result = self.results[nodeid]
            known = result.baseline_calls is not None
            # of what is the same under other names, the names are stored
            renamed = self.policy.update == "changed" and result.renamed and not result.edges
            writes = renamed or self.policy.writes(result, known=known)
            if writes and not result.too_many:
                update.begin()
                written = self.store.write(table, update.add)
                read = self._read[nodeid]
                if written and self.store.read(nodeid, updating=True) != read:
                    raise changed_meanwhile(self.store.path(nodeid))
                written = written or result.verdict is not Verdict.unchanged
                stored[nodeid] = replace(result, written=written)
        return stored

    def failing(self) -> list[CallsResult]:
        """The results that fail the run."""
        return self.policy.failing([*self.results.values(), *self.stale.values()])

    def compared(self) -> bool:
        """True if any table was compared with a stored one."""
        return any(result.delta is not None for result in self.results.values())

    def find_stale(self, cause_for: Callable[[str], Cause | None], limit: Limit) -> list[Path]:
        """Record tables whose test is gone, or is no longer traced; returns their files."""
        gone = []
        for path, owner in self.store.list():
            cause = cause_for(owner)
            if cause is not None:
                if cause is not Cause.uncollected:
                    gone.append(path)
                self.stale[owner] = CallsResult(
                    owner, Verdict.stale, None, None, limit, cause=cause
                )
        return gone
