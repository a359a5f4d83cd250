"""The traced tests of a measured run: their calls are counted apart."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Iterable, Sequence

import pytest

from pytest_instrcount.callgrind.inside.collect import case_of
from pytest_instrcount.callgrind.messages import Answer
from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.zygote import Problem, Zygote
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import is_traced
from pytest_instrcount.errors import as_started
from pytest_instrcount.fixtures.trace.ceilings import idle_ceilings, passed_ceilings
from pytest_instrcount.fixtures.trace.hooks import wish_of
from pytest_instrcount.fixtures.trace.ignore import describe
from pytest_instrcount.fixtures.trace.settings import TRACE_MARKER, TraceWish
from pytest_instrcount.gate.call_rulings import TracedCount
from pytest_instrcount.gate.calls import edge_changes
from pytest_instrcount.gate.store.calls import CallTable
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.time_limit import PhaseLimits


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
    """Asks a zygote without Valgrind how often functions are called in the traced tests of a run."""

    def __init__(self, zygote: Zygote, items: Sequence[pytest.Item], settings: Settings) -> None:
        self._zygote: Zygote | None = zygote
        self._timeout = settings.timeout
        self._items = {item.nodeid: item for item in items}
        self.limits = PhaseLimits(self._items, settings.timeout)
        self._wishes = {item.nodeid: wish_of(item) for item in items}
        self._numbers: dict[str, int] = {}

    def ask(self, nodeids: Iterable[str]) -> None:
        """Ask for the counts of these tests, where they are traced."""
        assert self._zygote is not None
        wanted = [self._items[nodeid] for nodeid in nodeids if nodeid in self._items]
        first = self._zygote.ask([self._order(item) for item in wanted])
        self._numbers |= {item.nodeid: number for number, item in enumerate(wanted, first)}

    def _order(self, item: pytest.Item) -> Order:
        return Order(
            nodeid=item.nodeid,
            case=case_of(item),
            path=str(item.path),
            isolation="fork",
            timeout=self._timeout,
            warmup=1,
            calls=1,
            pilot=False,
            verbose=0,
            trace=True,
        )

    def rule(
        self,
        findings: Findings,
        poll: Callable[[str], Callable[[], None]],
        ran: Callable[[str], bool],
    ) -> None:
        """Wait for all counts and hand them on; ``ran``: whether the test itself has passed."""
        assert self._zygote is not None
        for nodeid, number in self._numbers.items():
            answer = self._zygote.wait(number, poll(nodeid))
            if not ran(nodeid):
                continue
            counted = self._counted(nodeid, answer)
            if isinstance(counted, str):
                findings.fail_calls(nodeid, self._wishes[nodeid].max_delta, counted)
                continue
            findings.rule_calls(counted)
            for each in counted.idle:
                findings.note(f"{nodeid}: {each} [max-calls]")

    def _counted(self, nodeid: str, answer: Answer | Problem) -> TracedCount | str:
        """The counts, or why there are none."""
        if isinstance(answer, Problem):
            remedy = answer.remedy(shlex.quote(nodeid))
            parts = (
                f"{answer.why} [{answer.slug}]",
                answer.detail,
                remedy and f"fix: {as_started(remedy)}",
            )
            return "\n".join(filter(None, parts))
        if answer["problem"] or not answer["traced"]:
            return answer["problem"] or "it did not pass where it was to be traced"
        traced, wish = answer["traced"], self._wishes[nodeid]
        first, second = ({(a, b): (n, m) for a, b, n, m in traced[k]} for k in ("first", "second"))
        varying = tuple(sorted(each.edge for each in edge_changes(first, second)))
        return TracedCount(
            CallTable(nodeid, second, trace_facts(wish), traced["memory"]),
            wish.max_delta,
            wish.max_memory_delta,
            too_many=passed_ceilings(traced["calls"], wish),
            idle=() if varying else idle_ceilings(traced["calls"], wish),
            varying=varying,
        )

    def end(self) -> None:
        """End the zygote."""
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.end()


def trace_facts(wish: TraceWish) -> dict[str, str]:
    """Facts that two comparable call tables share."""
    return {
        "implementation": platform.python_implementation(),
        "python": platform.python_version(),
        "tracer": wish.tracer,
        "c_calls": str(wish.c_calls),
        "ignore": describe(wish.ignore),
        "phases": " ".join(wish.phases) if wish.marked else "-",
    }
