"""Pytest inside the zygote: the same configuration as outside, one file per child, one test per grandchild.

    root          configuration, plugins, rootdir's conftest
      file child  collects one test file with its own chain of conftests
        test child  runs one test, repeats and counts it, sends its reports, ends

Nothing here decides what a count means; that is done natively, from the dumps.
"""

from __future__ import annotations

import base64
import faulthandler
import gc
import io
import marshal
import os
import pickle
import random
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import CodeType, FunctionType
from typing import Any, cast

import pytest

from pytest_instrcount.callgrind.channel import (
    DEEPEST,
    HUNG_UP,
    PADDING,
    Channel,
    ChannelClosed,
    Message,
)
from pytest_instrcount.callgrind.command import CHILD_VARIABLE, temporary_folder
from pytest_instrcount.callgrind.inside.child import (
    Counter,
    Line,
    Trampolines,
    die_with_parent,
    end,
    end_badly,
    serve,
    thread_count,
    without_middle,
)
from pytest_instrcount.callgrind.inside.collect import only_collect
from pytest_instrcount.callgrind.inside.layout import disturb, renew_versions, settle
from pytest_instrcount.callgrind.inside.loops import steady_loops
from pytest_instrcount.callgrind.inside.rehearsal import rehearse
from pytest_instrcount.callgrind.inside.repeat import Phase, Repeater, run_phase
from pytest_instrcount.callgrind.requests import Requests, load_requests
from pytest_instrcount.config import compat
from pytest_instrcount.config.stash import BENCHMARK, COUNTING, INSIDE
from pytest_instrcount.fixtures.benchmark.info import plain_info
from pytest_instrcount.fixtures.instrcount import InstrCount, remarks_of

#: A thread that waits for the interpreter asks for it after so long. In 5 ms, as it is elsewhere,
#: as much is done as the load of the machine allows, and each time it asks costs instructions.
SWITCH_SECONDS = 1.0


def main(plan: Message, loader: Any) -> None:
    """Become the zygote: configure pytest once, then fork for whoever asks. Never returns."""
    die_with_parent()
    line = _take_line_from_standard_input()
    note_rewritten(loader)
    compat.leave_readline_out()
    random.seed(0)
    sys.setswitchinterval(SWITCH_SECONDS)
    config = pytest.Config.fromdictargs(
        {name: pickle.loads(base64.b64decode(value)) for name, value in plan["options"]},
        plan["args"],
    )
    config.stash[INSIDE] = True
    config.pluginmanager.register(Zygote(config, line, plan, loader), "instrcount-zygote")
    status = config.hook.pytest_cmdline_main(config=config)
    # Only a session that could not be started comes back.
    line.channel.send({"kind": "unready", "why": f"pytest ended with {status!r}"})
    end()


def note_rewritten(loader: Any) -> None:
    """Have it noted when a file with rewritten assertions is compiled, as for all other byte code."""

    def noted(code: CodeType) -> CodeType:
        loader.compiled += 1
        return cast(CodeType, marshal.loads(marshal.dumps(code)))

    compat.on_rewritten(noted)


def _take_line_from_standard_input() -> Line:
    """The supervisor is on descriptor 0; tests find nothing there."""
    hand = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    line = Line.take(hand)
    hand.close()
    return line


class QuietReporter:
    """Stands where plugins look for the terminal reporter; has no hooks, so it prints nothing."""

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter

    def __dir__(self) -> list[str]:
        return []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("pytest_"):
            raise AttributeError(name)
        return getattr(self._reporter, name)


def silence_reporter(config: pytest.Config, sink: io.StringIO) -> None:
    """Have the terminal reporter write nothing but what it is asked to write, and that to ``sink``."""
    reporter = config.pluginmanager.unregister(name="terminalreporter")
    if reporter is not None:
        quiet = QuietReporter(type(reporter)(config, sink))
        config.pluginmanager.register(quiet, "terminalreporter")


class Zygote:
    """The plugin that takes over where pytest would collect and run."""

    def __init__(self, config: pytest.Config, line: Line, plan: Message, loader: Any) -> None:
        self._config = config
        self._line = line
        self._plan = plan
        self._loader = loader
        self._sink = io.StringIO()
        self._functions: list[FunctionType] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        silence_reporter(config, self._sink)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        requests = load_requests()
        if self._plan["rehearse"]:
            self._leave_to_child()
            rehearse(
                self._plan["zygote"],
                self._plan["scratch"],
                requests,
                TestChild,
                silence_reporter,
            )
        random.seed(0)
        gc.unfreeze()  # the rehearsal has frozen all that there was
        gc.collect()
        self._functions = functions_alive()
        gc.freeze()
        self._line.channel.adopt()
        self._line.channel.send(
            {"kind": "ready", "compiled": self._loader.compiled, **threads_alive()}
        )
        line = serve(self._line)
        try:
            child = self._collect_file(session, line)
            line = serve(line)
            child.run(line.channel, self._plan["scratch"], requests)
        except ChannelClosed:
            end_badly(HUNG_UP)
        except BaseException as error:
            try:
                line.channel.send({"kind": "broken", "why": described(error)})
            finally:  # nothing of the session that it is a copy of may go on here
                end_badly(1)
        end()
        return True

    def _leave_to_child(self) -> None:
        """Go on in a fork, which then has the code after a fork translated for all its own."""
        if thread_count() == 1 and (pid := os.fork()):
            os.waitpid(pid, 0)
            end()
        die_with_parent()

    def _collect_file(self, session: pytest.Session, line: Line) -> TestChild:
        """Collect the file that the supervisor names; returns what will run one of its tests."""
        order = line.channel.receive()
        os.environ[CHILD_VARIABLE] = order["child"]
        keep_last_words(self._plan["scratch"], order["child"])
        path = order["path"]
        disturb(order["layout"])
        restart_capture(self._config)
        random.seed(0)
        listener = CollectListener()
        self._config.pluginmanager.register(listener)
        why = ""
        try:
            with only_collect(path, self._config), compat.unchecked_markers():
                session.perform_collect([path])
        except pytest.UsageError as error:
            why = "\n".join(map(str, error.args))
        self._config.pluginmanager.unregister(listener)
        child = TestChild(session, self._sink, self._loader, layout=order["layout"])
        self._config.pluginmanager.register(child, "instrcount-test-child")
        random.seed(0)
        steady_loops()
        # what an import did with library code must not decide how a test finds it
        forget_adaptation([*self._functions, *functions_alive()])
        renew_versions(order["layout"])
        gc.collect()
        gc.freeze()
        line.channel.send(
            {
                "kind": "collected",
                "ids": list(child.items),
                "problem": "\n".join([*listener.problems, why]).strip(),
                **threads_alive(),
                "compiled": self._loader.compiled,
                "modules": top_level_modules(0),
            }
        )
        return child


def threads_alive() -> Message:
    """How many there are, and of more than one who the others are."""
    number = thread_count()
    if number == 1:
        return {"threads": 1, "started": []}
    from pytest_instrcount.callgrind.threads import describe_threads, fork_all_the_same

    fork_all_the_same()
    return {"threads": number, "started": describe_threads()}


def described(error: BaseException) -> str:
    """The kind of an error and its text, if it has one."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return type(error).__name__


class CollectListener:
    """Keeps the text of collectors that failed."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(str(report.longrepr))


def functions_alive() -> list[FunctionType]:
    """The Python functions that the collector knows and has not frozen."""
    return [each for each in gc.get_objects() if type(each) is FunctionType]


def forget_adaptation(functions: list[FunctionType]) -> None:
    """Give functions code that has not adapted to anything yet."""
    made: dict[int, tuple[CodeType, CodeType]] = {}

    def fresh(code: CodeType) -> CodeType:
        if id(code) not in made:
            consts = tuple(fresh(c) if type(c) is CodeType else c for c in code.co_consts)
            made[id(code)] = code, code.replace(co_consts=consts)
        return made[id(code)][1]

    for each in functions:
        each.__code__ = fresh(each.__code__)


def top_level_modules(start: int) -> list[str]:
    """Names of what was imported after so many modules, without the standard library's."""
    names = {name.partition(".")[0] for name in islice(sys.modules, start, None)}
    return sorted(names - sys.stdlib_module_names)


def with_padded_times(report: Message) -> Message:
    """The report with its times as text: nanoseconds, and `PADDING`, so in 20 digits.

    A float's text has one length or another, as the clock has it, and where the result is made
    before the count, so would be the heap. No text in between may be shorter, either: to fill up
    with zeros would begin with one that is.
    """
    times = {
        name: str(PADDING + int(value * 1_000_000_000))
        for name, value in report.items()
        if type(value) is float
    }
    return report | times | {"padded": list(times)}


def shortened(value: Any, depth: int = 0) -> Any:
    """A report without the middle of texts that nobody reads: what a test printed 100 MB of.

    One that has none is handed back as it is, after so many steps as it has parts.
    """
    if type(value) is str:
        return without_middle(value)
    if depth == DEEPEST:
        return value
    if type(value) is dict:
        for key, each in value.items():
            value[key] = shortened(each, depth + 1)
    elif type(value) is list:
        value[:] = [shortened(each, depth + 1) for each in value]
    elif type(value) is tuple:
        return tuple(shortened(each, depth + 1) for each in value)
    return value


def print_nowhere() -> None:
    """What is printed from now on has been printed once, and kept."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(nothing, descriptor)
        os.close(nothing)
    except OSError:  # the test has left no descriptor
        pass


def keep_last_words(scratch: str, child: str) -> None:
    """Have faulthandler, if it is on, write to a file of this process's own: errors are everybody's."""
    if faulthandler.is_enabled():
        path = os.path.join(scratch, "dumps", f"words.{child}")
        faulthandler.enable(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND))


def restart_capture(config: pytest.Config) -> None:
    """Open capture files of this process's own: inherited ones share their position in the file."""
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is not None:
        manager.stop_global_capturing()
        manager.start_global_capturing()
        manager.suspend_global_capture()


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
        self._warnings: dict[tuple[Any, ...], Message] = {}
        self._compiled = loader.compiled
        self._modules = len(sys.modules)
        self._problem = ""
        self._traced: Message | None = None
        self._group: str | None = None
        self._extra_info: Message = {}
        self._unused = False
        self._benchmark: Any = None
        self._fixture: InstrCount | None = None
        self._count_last: Callable[[], None] | None = None

    # The story of a test.

    def run(self, channel: Channel, scratch: str, requests: Requests) -> None:
        """Take the order, run the test and send the result; the process is to end then."""
        self._channel = channel
        self._order = order = channel.receive()
        item = self.items[order["nodeid"]]
        self._prepare_process(
            order["child"], os.path.join(temporary_folder(scratch), order["child"])
        )
        settle(self._layout)
        if not self._rehearses:
            keep_last_words(scratch, order["child"])
        self._counter = Counter(
            channel,
            requests,
            pilot=bool(order["pilot"]),
            rehearses=self._rehearses,
            trampolines=self._trampolines(scratch) if order["by_python"] else None,
        )
        if not order["trace"]:
            self._config.stash[COUNTING] = self._make_fixture
        ended = {}
        try:
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        except pytest.exit.Exception as error:
            ended = {"ended": "exit", "why": str(error.msg), "code": error.returncode}
        except KeyboardInterrupt:
            ended = {"ended": "interrupt"}
        channel.send(self._result() | ended)
        if self._count_last is not None:
            if not self._rehearses:
                print_nowhere()
            self._count_last()

    def _prepare_process(self, child: str, basetemp: str) -> None:
        os.environ[CHILD_VARIABLE] = child
        restart_capture(self._config)
        compat.renew_tmp_path_factory(self._config, basetemp)
        random.seed(0)

    def _result(self) -> Message:
        serialize = self._config.hook.pytest_report_to_serializable
        return {
            "kind": "result",
            "reports": [
                with_padded_times(shortened(serialize(config=self._config, report=each)))
                for each in self._reports
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
            "remarks": remarks_of(self._fixture, self._benchmark),
        }

    def _trampolines(self, scratch: str) -> Trampolines:
        """Not under a count that is gated: this changes how Python calls."""
        from pytest_instrcount.callgrind.inside.trampolines import make_trampolines

        return make_trampolines(os.path.join(scratch, "dumps"))

    def _trace(self, item: Any, repeater: Repeater) -> None:
        """Count calls in the place of instructions; not under Valgrind, where this costs too much."""
        from pytest_instrcount.fixtures.trace.hooks import trace_by_function, trace_twice

        try:
            if self._order["by_python"]:
                self._traced = {"rows": trace_by_function(repeater)}
            else:
                self._traced = trace_twice(item, repeater)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            self._problem = f"it passed once and failed when it was traced: {error}"

    # Hooks that are ours while the one test runs.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Function) -> bool:
        repeater = Repeater(item)
        with self._presented():
            passed = self._phase(item, "setup")
            if passed:
                self._show_test(item)
                passed = self._phase(item, "call")
            passed = self._phase(item, "teardown", repeater.sibling) and passed
        self._note_benchmark(item.stash.get(BENCHMARK, None))
        if passed and self._order["trace"]:
            self._trace(item, repeater)
        elif passed and not self._counter.used:
            self._count(repeater)
        with self._presented():
            self._finish(item)
        return True

    def _note_benchmark(self, benchmark: Any) -> None:
        self._benchmark = benchmark
        if benchmark is not None and benchmark.group is not None:
            self._group = str(benchmark.group)
        if benchmark is not None and benchmark.extra_info:
            self._extra_info = plain_info(dict(benchmark.extra_info))

    def _count(self, repeater: Repeater) -> None:
        """Count a test that has not had itself counted by the fixture, if it does not take that."""
        counter = self._counter
        if self._fixture is not None:
            self._unused = self._benchmark is not None and not self._fixture.called
            self._problem = "" if self._unused else self._fixture.why_uncounted()
        elif repeater.has_nothing_to_renew():
            self._count_last = lambda: repeater.count_call(counter)
        else:
            repeater.count_phases(counter)

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
        message: Message = {
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
        """One phase as pytest runs it; returns whether it passed (an expected failure did not)."""
        if when == "setup":
            compat.ensure_request(item)
        call = run_phase(item, when, nextitem)
        if call.excinfo is not None:
            self._present_failure()
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)
        return bool(report.passed) and not hasattr(report, "wasxfail")

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
    def _presented(self) -> Iterator[None]:
        """Verbosity as outside; fixtures are always shown, and outside it is decided who sees it."""
        option = self._config.option
        before = option.verbose, option.setupshow
        option.verbose, option.setupshow = self._order["verbose"], True
        yield
        option.verbose, option.setupshow = before

    def _present_failure(self) -> None:
        self._channel.send({"kind": "presentation"})
        for name, value in self._channel.receive().items():
            setattr(self._config.option, name, value)

    def _show_test(self, item: Any) -> None:
        used = ", ".join(sorted(item.fixturenames))
        self._sink.write(f"\n        {item.nodeid}")
        self._sink.write(f" (fixtures used: {used})" if used else "")
