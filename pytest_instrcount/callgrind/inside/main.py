"""Pytest inside the zygote: the same configuration as outside, one file per child, one test per grandchild.

    root          configuration, plugins, rootdir's conftest
      file child  collects one test file with its own chain of conftests
        test child  runs one test, repeats and counts it, sends its reports, ends

Nothing here decides what a count means; that is done natively, from the dumps.
"""

from __future__ import annotations

import gc
import io
import marshal
import os
import random
import socket
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_instrcount.callgrind.channel import HUNG_UP, ChannelClosed
from pytest_instrcount.callgrind.inside.bystanders import say_first_run, start_no_server
from pytest_instrcount.callgrind.inside.canonical import take_late, take_options
from pytest_instrcount.callgrind.inside.collect import Collecting, case_of
from pytest_instrcount.callgrind.inside.forgetting import (
    find_tables,
    forget_adaptation,
    functions_alive,
    immortalize_names,
)
from pytest_instrcount.callgrind.inside.forking import (
    Line,
    die_with_parent,
    end,
    end_badly,
    serve,
    thread_count,
)
from pytest_instrcount.callgrind.inside.layout import disturb, renew_versions
from pytest_instrcount.callgrind.inside.loops import steady_loops
from pytest_instrcount.callgrind.inside.output import keep_last_words, restart_capture
from pytest_instrcount.callgrind.inside.places import open_arena
from pytest_instrcount.callgrind.inside.preparing import (
    prepare_collection,
    prepare_late,
    prepare_loop,
)
from pytest_instrcount.callgrind.inside.rehearsal import rehearse
from pytest_instrcount.callgrind.inside.runner import TestChild, top_level_modules
from pytest_instrcount.callgrind.requests import load_requests
from pytest_instrcount.callgrind.system_random import name_process, replace_system_random
from pytest_instrcount.config import compat
from pytest_instrcount.config.stash import INSIDE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_instrcount.callgrind.messages import (
        Broken,
        Collected,
        Threads,
        Unready,
        ZygoteReady,
    )
    from pytest_instrcount.callgrind.orders import FileOrder

#: A thread that waits for the interpreter asks for it after so long. In 5 ms, as it is elsewhere,
#: as much is done as the load of the machine allows, and each time it asks costs instructions.
SWITCH_SECONDS = 1.0


def main(plan: Mapping[str, Any], loader: Any) -> None:
    """Become the zygote: configure pytest once, then fork for whoever asks. Never returns."""
    die_with_parent()
    line = _take_line_from_standard_input()
    note_rewritten(loader)
    compat.leave_readline_out()
    replace_system_random()
    random.seed(0)
    sys.setswitchinterval(SWITCH_SECONDS)
    options, late = take_options(plan["options"])
    config = pytest.Config.fromdictargs(options, plan["args"])
    take_late(config, late)
    config.stash[INSIDE] = True
    zygote = Zygote(config, line, plan, loader, late)
    config.pluginmanager.register(zygote, "instrcount-zygote")
    start_no_server(config)
    status = config.hook.pytest_cmdline_main(config=config)
    # Only a session that could not be started comes back.
    unready: Unready = {"kind": "unready", "why": f"pytest ended with {status!r}"}
    line.channel.send(unready)
    end()


def note_rewritten(loader: Any) -> None:
    """Do what ``loader`` does for all other modules where assertions are rewritten, too."""

    def noted(code: CodeType) -> CodeType:
        loader.compiled += 1
        return cast(CodeType, marshal.loads(marshal.dumps(code)))

    compat.on_rewritten(noted, loader.seed)


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
        quiet = QuietReporter(compat.make_reporter(config, sink))
        config.pluginmanager.register(quiet, "terminalreporter")


class Zygote:
    """The plugin that takes over where pytest would collect and run."""

    def __init__(
        self,
        config: pytest.Config,
        line: Line,
        plan: Mapping[str, Any],
        loader: Any,
        late: dict[str, bytes],
    ) -> None:
        self._config = config
        self._line = line
        self._plan = plan
        self._loader = loader
        self._late = late
        self._sink = io.StringIO()
        self._functions: list[FunctionType] = []
        self._known: set[Any] = set()  # plugins that are there before a file is collected

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        silence_reporter(config, self._sink)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        prepare_collection(session)
        self._known = self._config.pluginmanager.get_plugins()
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_file(self, parent: pytest.Collector) -> None:
        take_late(self._config, self._late)
        prepare_late(parent.session, self._known)

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
        ready: ZygoteReady = {
            "kind": "ready",
            "compiled": self._loader.compiled,
            **threads_alive(),
        }
        self._line.channel.send(ready)
        line = serve(self._line)
        try:
            child = self._collect_file(session, line)
            line = serve(line)
            child.run(line.channel, self._plan["scratch"], requests)
        except ChannelClosed:
            end_badly(HUNG_UP)
        except BaseException as error:
            try:
                broken: Broken = {"kind": "broken", "why": described(error)}
                line.channel.send(broken)
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
        order: FileOrder = line.channel.receive()
        name_process(order["child"])
        keep_last_words(self._plan["scratch"], order["child"])
        path = order["path"]
        disturb(order["layout"])
        restart_capture(self._config)
        collecting = Collecting(path)
        self._config.pluginmanager.register(collecting)
        try:
            with compat.before_configuration(self._config):
                session.perform_collect([path])
        except pytest.UsageError as error:
            collecting.problems += map(str, error.args)
        self._config.pluginmanager.unregister(collecting)
        say_first_run(self._config)
        prepare_loop(session)
        child = TestChild(session, self._sink, self._loader, layout=order["layout"])
        self._config.pluginmanager.register(child, "instrcount-test-child")
        random.seed(0)
        steady_loops()
        immortalize_names()
        # what an import did with library code must not decide how a test finds it
        forget_adaptation([*self._functions, *functions_alive()])
        renew_versions(order["layout"])
        gc.collect()
        if self._plan["counts"]:
            open_arena()
            find_tables()
        gc.freeze()
        collected: Collected = {
            "kind": "collected",
            "ids": {nodeid: case_of(item) for nodeid, item in child.items.items()},
            "problem": "\n".join(collecting.problems).strip(),
            **threads_alive(),
            "compiled": self._loader.compiled,
            "modules": top_level_modules(0),
        }
        line.channel.send(collected)
        return child


def threads_alive() -> Threads:
    """The number of threads and, if there is more than one, a description of the others."""
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
