"""The process of one test: it runs it, has it counted, and sends its reports."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from pytest_instrcount.callgrind.channel import Channel
from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.callgrind.inside.child import Counter
from pytest_instrcount.callgrind.inside.offspring import running_beside
from pytest_instrcount.callgrind.inside.output import (
    keep_last_words,
    print_nowhere,
    restart_capture,
)
from pytest_instrcount.callgrind.inside.preparing import (
    RUN_BY_PROJECT,
    announce,
    have_modules,
    is_run_by_project,
)
from pytest_instrcount.callgrind.inside.repeat import Phase, Repeater, noting_first, run_phase
from pytest_instrcount.callgrind.inside.reports import is_passed, sendable
from pytest_instrcount.callgrind.inside.trampolines import make_trampolines
from pytest_instrcount.callgrind.requests import Requests
from pytest_instrcount.callgrind.system_random import name_process
from pytest_instrcount.config import compat
from pytest_instrcount.config.stash import BENCHMARK, COUNTING
from pytest_instrcount.fixtures.instrcount import InstrCount, remarks_of
from pytest_instrcount.host.foreign import plain

if TYPE_CHECKING:
    from pytest_instrcount.callgrind.messages import AskPresentation, Ended, EndedResult, Result
    from pytest_instrcount.callgrind.orders import TestOrder


def top_level_modules(start: int) -> list[str]:
    """Names of what was imported after so many modules, without the standard library's."""
    names = {name.partition(".")[0] for name in islice(sys.modules, start, None)}
    return sorted(names - sys.stdlib_module_names)


class TestChild:
    """Runs one test through pytest's protocol, counts it and reports. Pytest collects no class of a plugin."""

    __test__ = False

    def __init__(
        self,
        session: pytest.Session,
        sink: io.StringIO,
        loader: Any,
        *,
        rehearses: bool = False,
        layout: int = 0,
    ) -> None:
        self._rehearses = rehearses
        self._layout = layout
        self.items = {item.nodeid: item for item in session.items}
        self._session = session
        self._config = session.config
        self._sink = sink
        self._loader = loader
        self._reports: list[Any] = []
        self._warnings: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._compiled = loader.compiled
        self._modules = len(sys.modules)
        self._problem = ""
        self._traced: dict[str, Any] | None = None
        self._group: str | None = None
        self._extra_info: dict[str, Any] = {}
        self._unused = False
        self._beside = ""
        self._benchmark: Any = None
        self._fixture: InstrCount | None = None
        self._count_last: Callable[[], None] | None = None

    # The story of a test.

    def run(self, channel: Channel, scratch: str, requests: Requests) -> None:
        """Take the order, run the test and send the result; the process is to end then."""
        self._channel = channel
        order: TestOrder = channel.receive()
        self._order = order
        item = self.items[order["nodeid"]]
        dumps = os.path.join(scratch, "dumps")
        self._prepare_process(
            order["child"], os.path.join(temporary_folder(scratch), order["child"])
        )
        if not self._rehearses:
            keep_last_words(scratch, order["child"])
        self._counter = Counter(
            channel,
            requests,
            pilot=bool(order["pilot"]),
            rehearses=self._rehearses,
            layout=self._layout,
            # not under a count that is gated: they change how Python calls
            trampolines=make_trampolines(dumps) if order["by_python"] else None,
        )
        if not order["trace"]:
            self._config.stash[COUNTING] = self._make_fixture
        ended: Ended = {}
        try:
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        except pytest.exit.Exception as error:
            ended = {"ended": "exit", "why": str(error.msg), "code": error.returncode}
        except KeyboardInterrupt:
            ended = {"ended": "interrupt"}
        result: EndedResult = {**self._result(), **ended}
        channel.send(result)
        if self._count_last is not None:
            if not self._rehearses:
                print_nowhere()
            have_modules()
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=None)

    def _prepare_process(self, child: str, basetemp: str) -> None:
        name_process(child)
        restart_capture(self._config)
        compat.renew_tmp_path_factory(self._config, basetemp)

    def _result(self) -> Result:
        serialize = self._config.hook.pytest_report_to_serializable
        return {
            "kind": "result",
            "reports": [
                sendable(serialize(config=self._config, report=each)) for each in self._reports
            ],
            "warnings": list(self._warnings.values()),
            "shown": self._sink.getvalue(),
            "problem": self._problem,
            "expected": self._counter.used or self._count_last is not None,
            "modules": top_level_modules(self._modules),
            "compiled": self._loader.compiled - self._compiled,
            "traced": self._traced,
            "group": self._group,
            "extra_info": self._extra_info,
            "unused": self._unused,
            "remarks": [*remarks_of(self._benchmark), *filter(None, [self._beside])],
        }

    def _trace(self, item: Any, repeater: Repeater) -> None:
        """Count calls instead of instructions; not under Valgrind, where this costs too much."""
        from pytest_instrcount.fixtures.trace.hooks import trace_by_function, trace_twice

        try:
            if self._order["by_python"]:
                self._traced = {"rows": trace_by_function(repeater)}
            else:
                self._traced = trace_twice(item, repeater)
                unused = "the test takes the trace_profile fixture and never uses it"
                self._problem = "" if self._traced else unused
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            self._problem = f"it passed once and failed when it was traced: {error}"

    # Hooks that are ours while the one test runs.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Function) -> bool:
        if self._count_last is not None:
            self._count_last()
            return True
        repeater, order = Repeater(item), self._order
        if ran := is_run_by_project(item):
            passed = all(map(is_passed, self._reports))
        else:
            passed = self._run(item, repeater)
        self._note_benchmark(item.stash.get(BENCHMARK, None))
        if passed and not self._counter.used:
            if ran and self._fixture is None:
                self._problem = RUN_BY_PROJECT
            elif order["trace"]:
                self._trace(item, repeater)
            else:
                self._count(repeater)
        with self._showing_fixtures():
            self._finish(item)
        return True

    def _run(self, item: pytest.Function, repeater: Repeater) -> bool:
        """The test, once; True if it has passed."""
        announce(item)
        order = self._order
        compat.explain_assertions(self._config, order["verbose"])
        with self._showing_fixtures():
            passed = self._phase(item, "setup")
            if passed:
                self._show_test(item)
                # of a count that is gated, the first call is left alone
                counted = bool(order["by_python"] and not order["trace"]) and self._fixture is None
                with noting_first(item, self._counter, counted=counted):
                    passed = self._phase(item, "call")
                self._beside = running_beside()
            return self._phase(item, "teardown", repeater.sibling) and passed

    def _note_benchmark(self, benchmark: Any) -> None:
        self._benchmark = benchmark
        if benchmark is not None and benchmark.group is not None:
            self._group = str(plain(benchmark.group))
        if benchmark is not None:
            info = plain(benchmark.extra_info)
            self._extra_info = info if isinstance(info, dict) else {"extra_info": info}

    def _count(self, repeater: Repeater) -> None:
        """Count a test that has not had itself counted by the fixture, if it does not take that."""
        counter = self._counter
        if self._fixture is not None:
            self._unused = self._benchmark is not None and not self._fixture.called
            self._problem = "" if self._unused else self._fixture.why_uncounted()
        elif self._layout % 2 or not repeater.has_nothing_to_renew(self._reports):
            # In odd layouts every test: phases leave the cache of methods colder, which is to be
            # noise, for a test may get its first fixture.
            repeater.count_phases(counter)
        else:
            self._count_last = lambda: repeater.count_call(counter)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        self._reports.append(report)

    @pytest.hookimpl
    def pytest_warning_recorded(
        self, warning_message: Any, when: str, nodeid: str, location: Any
    ) -> None:
        if when != "runtest":
            return  # collection and configuration warn outside as well
        category = warning_message.category
        message: dict[str, Any] = {
            "text": str(warning_message.message),
            "module": category.__module__,
            "category": category.__qualname__,
            "filename": warning_message.filename,
            "lineno": warning_message.lineno,
            "nodeid": nodeid,
            "when": when,
        }
        self._warnings[tuple(message.values())] = message

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self) -> bool:
        """pytest-timeout's clock is off: all is slower here, and the supervisor has a limit."""
        return True

    # Phases.

    def _phase(self, item: Any, when: Phase, nextitem: Any = None) -> bool:
        """One phase as pytest runs it; True unless it failed, or was skipped before its teardown."""
        if when == "setup":
            compat.ensure_request(item)
        call = run_phase(item, when, nextitem)
        if call.excinfo is not None:
            self._present_failure()
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)
        return is_passed(report)

    def _finish(self, item: Any) -> None:
        """Finalise what is still set up: fixtures of wider scope. An error there is the teardown's."""
        call = compat.end_setups(self._session, None)
        if call.excinfo is not None:
            self._present_failure()
            report = item.ihook.pytest_runtest_makereport(item=item, call=call)
            self._reports = [each for each in self._reports if each.when != "teardown"]
            self._reports.append(report)

    def _make_fixture(self, request: pytest.FixtureRequest) -> InstrCount:
        self._fixture = InstrCount(request.node.nodeid, self._counter)
        return self._fixture

    # What the user asked to see. It comes after the fork and only where it is needed, so that
    # no choice of presentation changes a count.

    @contextmanager
    def _showing_fixtures(self) -> Iterator[None]:
        """Fixtures are always shown, and outside it is decided who sees it."""
        option = self._config.option
        before, option.setupshow = getattr(option, "setupshow", False), True
        yield
        option.setupshow = before

    def _present_failure(self) -> None:
        ask: AskPresentation = {"kind": "presentation"}
        self._channel.send(ask)
        for name, value in self._channel.receive().items():
            setattr(self._config.option, name, value)

    def _show_test(self, item: Any) -> None:
        used = ", ".join(sorted(item.fixturenames))
        self._sink.write(f"\n        {item.nodeid}")
        self._sink.write(f" (fixtures used: {used})" if used else "")
