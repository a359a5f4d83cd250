"""The traced tests of a measured run: count their calls apart, compare, store, say what changed."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from pytest_instrcount.callgrind.channel import Message
from pytest_instrcount.callgrind.zygote import Order, Problem, Zygote
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.calls import CallStore, CallTable, judge_calls
from pytest_instrcount.gate.gate import Verdict, should_write
from pytest_instrcount.gate.records import CallsResult
from pytest_instrcount.gate.rulings import Policy
from pytest_instrcount.settings import Settings
from pytest_instrcount.stash import is_traced
from pytest_instrcount.tracing.ceilings import idle_ceilings
from pytest_instrcount.tracing.fixture import passed_ceilings
from pytest_instrcount.tracing.hooks import wish_of
from pytest_instrcount.tracing.limits import PhaseLimits
from pytest_instrcount.tracing.settings import TRACE_MARKER, TraceWish


def find_traced(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Tests with the marker or the fixture. Raises pytest.UsageError for a wrong marker."""
    found = []
    for item in items:
        if not is_traced(item):
            continue
        names = getattr(item, "fixturenames", ())
        if (
            TRACE_MARKER in names
            and item.get_closest_marker("instrcount") is not None
            and "instrcount" not in names
        ):
            raise pytest.UsageError(
                f"instrcount: {item.nodeid} traces calls within what is counted [traced-count]\n"
                "  fix: make two tests of it, or count one call with the instrcount fixture"
            )
        found.append(item)
    return found


class TracedTests:
    """Asks a zygote without Valgrind for call counts, and holds them against their baselines."""

    def __init__(
        self,
        zygote: Zygote,
        items: Sequence[pytest.Item],
        settings: Settings,
        store: CallStore,
        policy: Policy,
    ) -> None:
        self._zygote: Zygote | None = zygote
        self._store = store
        self._policy = policy
        self.items = {item.nodeid: item for item in items}
        self.limits = PhaseLimits(self.items, settings.timeout)
        self._wishes = {item.nodeid: wish_of(item) for item in items}
        self.results: dict[str, CallsResult] = {}
        self._tables: dict[str, CallTable] = {}
        #: to be said below the table
        self.notes: list[str] = []
        self._first = zygote.ask(
            [
                Order(
                    nodeid=item.nodeid,
                    path=str(item.path),
                    isolation="fork",
                    timeout=settings.timeout,
                    warmup=1,
                    calls=1,
                    pilot=False,
                    verbose=0,
                    trace=True,
                )
                for item in self.items.values()
            ]
        )

    def rule(self, glance: Callable[[str], Callable[[], None]], ran: Callable[[str], bool]) -> None:
        """Wait for all counts and judge them; ``ran``: whether the test itself has passed."""
        assert self._zygote is not None
        for number, nodeid in enumerate(self.items, self._first):
            answer = self._zygote.wait(number, glance(nodeid))
            if ran(nodeid):
                try:
                    self._rule(nodeid, answer)
                except InstrcountError as error:
                    self._fail(nodeid, str(error).removeprefix("instrcount: "))

    def _rule(self, nodeid: str, answer: Message | Problem) -> None:
        if isinstance(answer, Problem):
            remedy = answer.remedy(shlex.quote(nodeid))
            parts = f"{answer.why} [{answer.slug}]", answer.detail, remedy and f"fix: {remedy}"
            self._fail(nodeid, "\n".join(filter(None, parts)))
            return
        if answer["problem"] or not answer["traced"]:
            self._fail(nodeid, answer["problem"] or "it did not pass where it was to be traced")
            return
        first, second = answer["traced"]["first"], answer["traced"]["second"]
        wish = self._wishes[nodeid]
        if first != second:
            varying = sorted(
                name
                for name in first.keys() | second.keys()
                if first.get(name, 0) != second.get(name, 0)
            )
            self.results[nodeid] = CallsResult(
                nodeid, Verdict.nondeterministic, None, None, wish.max_delta, varying=tuple(varying)
            )
            return
        table = CallTable(nodeid, second, trace_facts(wish), answer["traced"]["memory"])
        compared = judge_calls(
            self._store.read(nodeid),
            table,
            wish.max_delta,
            passed_ceilings(second, wish),
            wish.max_memory_delta,
        )
        self._tables[nodeid] = table
        self.notes += [f"{nodeid}: {each} [max-calls]" for each in idle_ceilings(second, wish)]
        self.results[nodeid] = CallsResult(
            nodeid,
            compared.verdict,
            compared.after,
            compared.before,
            wish.max_delta,
            delta=compared.delta,
            changes=compared.changes,
            differences=compared.differences,
            too_many=compared.too_many,
            memory=compared.memory,
            memory_limit=wish.max_memory_delta,
            branches=tuple(answer["traced"]["branches"]),
        )

    def _fail(self, nodeid: str, reason: str) -> None:
        limit = self._wishes[nodeid].max_delta
        self.results[nodeid] = CallsResult(nodeid, Verdict.failed, None, None, limit, reason=reason)

    def write(self) -> int:
        """Store what the policy says; returns how many files changed."""
        if self._policy.update is None:
            return 0
        changed = 0
        for nodeid, table in self._tables.items():
            result = self.results[nodeid]
            known = result.baseline_calls is not None
            if not result.too_many and should_write(result.verdict, self._policy.update, known):
                written = self._store.write(table)
                changed += written
                self.results[nodeid] = replace(result, written=written)
        return changed

    def failing(self) -> list[CallsResult]:
        """The results that fail the run."""
        return self._policy.failing(self.results.values())

    def end(self) -> None:
        """End the zygote."""
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.end()


def trace_facts(wish: TraceWish) -> dict[str, str]:
    """What two call tables must share to be compared."""
    return {
        "implementation": platform.python_implementation(),
        "python": platform.python_version(),
        "tracer": wish.tracer,
        "c_calls": str(wish.c_calls),
        "phases": " ".join(wish.phases) if wish.marked else "-",
    }
