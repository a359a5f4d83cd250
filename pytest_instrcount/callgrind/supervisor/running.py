"""Tests that are being measured: forked, listened to, ended, and what is left of them read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pytest_instrcount.callgrind.channel import (
    REAP,
    ChannelClosed,
    ChannelGarbled,
)
from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.callgrind.endings import (
    read_lines,
    unaborted,
    wait_status_of,
    where_it_was,
)
from pytest_instrcount.callgrind.orders import TestOrder
from pytest_instrcount.callgrind.perf_map import take_names
from pytest_instrcount.callgrind.process import Valgrind, abort, kill
from pytest_instrcount.callgrind.scratch import remove_tree
from pytest_instrcount.callgrind.supervisor.collecting import Files
from pytest_instrcount.callgrind.supervisor.runs import FileChild, Run, Test, child_name
from pytest_instrcount.callgrind.supervisor.settling import AGAIN, Ended
from pytest_instrcount.callgrind.supervisor.state import (
    LAST_MOMENT_SECONDS,
    LAST_WORDS_SECONDS,
    State,
)
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.procfs import (
    ends_within,
    exit_status,
    open_pidfd,
    state_of,
    wait_for_end,
)


@dataclass(slots=True)
class Runs:
    """The tests that are being measured. ``on_result`` is called after each that has a result."""

    state: State
    files: Files
    on_result: Callable[[], None]
    current: list[Run] = field(default_factory=list)

    def start(self, file: FileChild, test: Test) -> None:
        """Fork a process that runs the test, once it is told which; it waits again if none can be had."""
        state, order = self.state, test.order
        child = child_name(order.nodeid, order.layout)
        told: TestOrder = {
            "nodeid": order.nodeid,
            "child": child,
            "pilot": int(order.pilot),
            "verbose": order.verbose,
            "trace": int(order.trace),
            "by_python": int(order.by_python),
        }
        state.restore_scratch()
        try:
            parent = file.parent.fork() if file.only is None else file.parent.become()
            parent.channel.send(told)
        except ChannelClosed:
            if file.only is None:
                state.waiting.put(test)
            self.files.give_up(file, "")
            return
        self.files.killed.pop(file.key, None)
        test.tries += 1
        file.running += 1
        deadline = time.monotonic() + order.timeout
        started = {"started": time.monotonic()}
        run = Run(test, parent, file, deadline, child, state.folder / "dumps", started)
        run.pidfd = open_pidfd(run.pid)
        run.disturbances = state.disturbances
        self.current.append(run)
        state.listen(run.channel, lambda: self._take(run))
        if run.pidfd >= 0:
            state.listen(run.pidfd, lambda: self.finish(run))
        state.sweeper.begin(run.pid)
        state.send_queue.send({"kind": "started", "index": test.index})

    def below(self, zygote: Valgrind) -> list[Run]:
        """Those that were forked of this zygote."""
        return [run for run in self.current if run.file.valgrind is zygote]

    def end_late(self, now: float) -> None:
        """Have those that are out of time say where they are; end those that were told so."""
        for run in [run for run in self.current if run.deadline <= now]:
            if (
                run.timed_out or state_of(run.counter or run.pid) == "T"
            ):  # a stopped one says nothing
                run.timed_out = True
                self.finish(run)
                continue
            run.timed_out, run.deadline = True, now + LAST_WORDS_SECONDS
            if not abort(run.counter):  # which is at work, while the other waits for it
                abort(run.pid)

    def finish(self, run: Run) -> None:
        """The process of a test is gone: give its result, or say how it ended."""
        if run not in self.current:
            return
        self.state.restore_scratch()
        run.disturbed = run.disturbances != self.state.disturbances
        self.current.remove(run)
        self.state.ignore(run.channel)
        kill(run.pid)
        run.channel.socket.settimeout(0)
        try:
            while not run.failed:
                run.channel.fill()
                self._take_all(run)
        except (ChannelClosed, OSError):
            pass
        run.parent.close()
        if run.pidfd >= 0:
            self.state.ignore(run.pidfd)
            os.close(run.pidfd)
        run.file.running -= 1
        status = self._wait_status(run)
        self.state.sweeper.forget(run.pid)
        self.state.tell_spent(run.test, run.spans())
        self._sweep(run)
        self._settle(run, status)
        self.state.words(run.child).unlink(missing_ok=True)

    def _take(self, run: Run) -> None:
        try:
            run.channel.fill()
            self._take_all(run)
        except ChannelClosed:
            run.hung_up = run.pidfd >= 0 and not ends_within(run.pidfd, LAST_MOMENT_SECONDS)
            self.finish(run)

    def _take_all(self, run: Run) -> None:
        """Take what the process of a test has said so far."""
        try:
            while (message := run.channel.pop()) is not None:
                run.take(message, self.state.setup.presentation)
        except InstrcountError as error:
            run.failed = error.slug, error.why
        except (ChannelGarbled, KeyError, TypeError, ValueError):
            run.failed = "channel", "it wrote to a descriptor that is the plugin's"
        except OSError:  # it is gone, or has closed its end
            return
        if run.failed:
            raise ChannelClosed

    def _wait_status(self, run: Run) -> int | None:
        """The wait status of the child, from its parent; None if the parent is gone as well."""
        valgrind = run.file.valgrind
        if run.file.only is not None:
            valgrind.end()
            return wait_status_of(valgrind.process.returncode)
        wait_for_end(run.pid)
        status = exit_status(run.pid)
        try:
            run.file.parent.order(REAP)
        except ChannelClosed:
            return None
        return status

    def _settle(self, run: Run, status: int | None) -> None:
        """Decide what becomes of the test."""
        if run.file.only is not None:
            self.files.close(run.file)
        state = self.state
        ended = Ended(
            run, status, state.place, lambda: self._last_words(run), state.writes_byte_code
        )
        message = ended.message()
        if message == AGAIN:
            state.waiting.put(run.test)
            return
        if message["kind"] == "result":
            self.on_result()
        state.send_queue.send(message)

    def _last_words(self, run: Run) -> str:
        """The last messages of Valgrind about a test's process, and where the test was."""
        words = unaborted(read_lines(self.state.words(run.child)), run.timed_out)
        return "\n".join([*run.file.valgrind.said_of(run.pid), *where_it_was(words)])

    def _sweep(self, run: Run) -> None:
        """Keep of what a test has left behind what is to be read, and end and delete the rest."""
        state = self.state
        remove_tree(Path(temporary_folder(str(state.folder)), run.child))
        self.take_maps(run)
        run.keep_counted()
        state.sweeper.sweep_processes()
        state.sweeper.sweep_files({each.child for each in self.current})

    def take_maps(self, run: Run) -> None:
        """Move the maps of a test that has ended into the run's folder: CPython writes them elsewhere."""
        if run.test.order.by_python:
            maps = [take_names(int(pid), run.folder) for pid in (run.pid, run.counter)]
            run.names = [str(path) for path in maps if path is not None]
