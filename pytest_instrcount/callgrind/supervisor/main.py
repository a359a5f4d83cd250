"""The process between pytest and Valgrind: it starts the zygote, hands out work, watches, ends.

It is nobody's child (a test that calls ``os.wait()`` must not find it) and Valgrind's only
parent. It has one thread, waits in one place, and ends when pytest does, however pytest ends.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from pytest_instrcount.callgrind.channel import Channel, ChannelClosed
from pytest_instrcount.callgrind.orders import FromPytest, Order, Start
from pytest_instrcount.callgrind.process import (
    Valgrind,
    adopt_orphans,
    end_orphans,
    kill,
    own_children,
)
from pytest_instrcount.callgrind.scratch import Scratch, take_scratch
from pytest_instrcount.callgrind.supervisor.collecting import Files
from pytest_instrcount.callgrind.supervisor.running import Runs
from pytest_instrcount.callgrind.supervisor.runs import FileChild, Run, Starting, Test
from pytest_instrcount.callgrind.supervisor.send_queue import SendQueue, Stopped
from pytest_instrcount.callgrind.supervisor.starting import Zygotes
from pytest_instrcount.callgrind.supervisor.state import State
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.procfs import open_pidfd

#: The loop looks up so often; a clock that jumps by more has run while this process was stopped.
_POLL_SECONDS = 1.0


@dataclass(slots=True)
class Supervisor:
    """The event loop. ``native`` is the channel to pytest."""

    native: Channel
    setup: Start
    scratch: Scratch
    state: State = field(init=False)
    zygotes: Zygotes = field(init=False)
    files: Files = field(init=False)
    runs: Runs = field(init=False)
    #: When the loop last looked what there is.
    looked: float = 0.0

    def __post_init__(self) -> None:
        selector = selectors.DefaultSelector()
        queue = SendQueue(self.native.socket, selector)
        self.state = State(self.setup, queue, selector, self.scratch)
        self.files = Files(self.state, self.on_alone)
        self.zygotes = Zygotes(self.state, self.files.begin_alone, self.on_zygote_end)
        self.runs = Runs(self.state, self.files, self.zygotes.note_result)

    # The loop.

    def run(self) -> None:
        """Serve until pytest says stop or ends."""
        self.state.listen(self.native, self.on_native)
        native = open_pidfd(self.setup.pid)
        if native >= 0:
            self.state.listen(native, self.on_native_end)
        try:
            for number in range(1 + self.setup.layouts):
                self.zygotes.start(number)
            self.take_orders()  # some may have come with the setup: no event will tell of them
            while True:
                self.schedule()
                self.answer_events()
                self.enforce_deadlines()
        except Stopped:
            pass
        except Exception:
            self.state.send_queue.send({"kind": "broken", "why": traceback.format_exc()})
            raise
        finally:
            self.end_all()
            self.state.send_queue.flush()

    def answer_events(self) -> None:
        """Answer what has happened, after a while at most."""
        selector = self.state.selector
        for key, _ in self.wait_for_events():
            if selector.get_map().get(key.fd) is key:
                key.data()

    def wait_for_events(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait a while at most; time in which this process did not look is nobody's."""
        limited = self.limited()
        seconds = None
        before = time.monotonic()
        if limited:
            first = min(each.deadline for each in limited)
            seconds = min(max(0.0, first - before), _POLL_SECONDS)
        events = self.state.selector.select(seconds)
        after = time.monotonic()
        late = before - self.looked
        if seconds is not None:
            late += max(0.0, after - before - seconds)
        if self.looked and late > _POLL_SECONDS:
            for each in limited:
                each.deadline += late
        self.looked = after
        return events

    def limited(self) -> list[Run | Starting | FileChild]:
        """Everything that has a deadline."""
        return [*self.runs.current, *self.zygotes.starting, *self.files.collecting()]

    def enforce_deadlines(self) -> None:
        now = time.monotonic()
        for each in (self.runs, self.files, self.zygotes):
            each.end_late(now)

    def on_native(self) -> None:
        try:
            self.native.fill()
        except ChannelClosed as error:
            raise Stopped from error
        self.take_orders()

    def take_orders(self) -> None:
        message: FromPytest | None
        while (message := self.native.pop()) is not None:
            if message["kind"] == "stop":
                raise Stopped
            for index, order in enumerate(message["tests"], message["first"]):
                self.state.waiting.put(Test(index, Order(**order)))

    def on_native_end(self) -> None:
        raise Stopped

    def end_all(self) -> None:
        self.zygotes.end_all()
        self.files.end_all()
        while own_children():  # each that ends may leave its own to us
            end_orphans(lambda pid: False)
        for run in self.runs.current:
            self.runs.take_maps(run)
        self.state.scratch.remove()
        with contextlib.suppress(Stopped):
            self.state.send_queue.send({"kind": "cpu", "seconds": sum(os.times()[:4])})

    # Scheduling.

    def schedule(self) -> None:
        """Start as much as there are cores for, in the order in which pytest wants the results.

        What went down with others runs with none beside it: so the guilty one is known.
        """
        withheld = []
        waiting, current = self.state.waiting, self.runs.current
        while waiting and self.busy() < self.setup.jobs:
            if current and (waiting.first.suspect or any(run.test.suspect for run in current)):
                break
            test = waiting.take()
            if not self.advance(test):
                withheld.append(waiting.withhold(test))
        for tests in withheld:
            waiting.put_back(tests)
        self.files.close_idle()
        self.zygotes.end_idle(
            lambda zygote: self.files.has_forked(zygote) or waiting.wants_zygote(zygote.number)
        )

    def busy(self) -> int:
        """The number of processes at work."""
        starting = sum(
            start.only is not None or start.number != 0 for start in self.zygotes.starting
        )
        return len(self.runs.current) + len(self.files.collecting()) + starting

    def advance(self, test: Test) -> bool:
        """Take the next step for a test; False if it has to wait for something."""
        if test.alone:
            self.zygotes.start(test.zygote, test)
            return True
        zygote = self.zygotes.alive.get(test.zygote)
        if zygote is None:
            self.zygotes.have_started(test.zygote)
            return False
        forks = test.order.forks
        if zygote.threads > 1 and not forks:
            test.threads, test.started = True, zygote.started
            return self.advance(test)
        file = self.files.open.get(test.file)
        if file is None:
            self.open_file(test, zygote)
            return False
        if file.collected is None:
            return False
        if file.collected["threads"] > 1 and not file.collected["problem"] and not forks:
            test.threads, test.started = True, file.collected["started"]
            return self.advance(test)
        if self.files.has(test, file):
            self.runs.start(file, test)
        return True

    def open_file(self, test: Test, zygote: Valgrind) -> None:
        try:
            self.files.fork(test.file, zygote)
        except ChannelClosed:
            self.on_zygote_end(zygote)
            self.zygotes.have_started(test.zygote)  # no event is to come that would ask for it

    def on_alone(self, file: FileChild, test: Test) -> None:
        """A process of its own is ready to run a test."""
        self.runs.start(file, test)

    def on_zygote_end(self, zygote: Valgrind) -> None:
        """A zygote is gone, and all its children with it: the next test that needs it starts it afresh."""
        if zygote not in self.zygotes.alive.values():
            return
        words = self.zygotes.bury(zygote)
        self.files.close_below(zygote)
        runs = self.runs.below(zygote)
        for run in runs:
            run.test.why = words
            kill(run.pid)
            self.runs.finish(run)
        self.zygotes.count_death(zygote.number, runs, words)


def main(arguments: list[str]) -> None:
    """Leave the process that started us, then serve the socket whose descriptor we were given.

    The second argument is the folder in which to make that of the run.
    """
    if os.fork():
        os._exit(0)
    sock = socket.socket(fileno=int(arguments[0]))
    sock.set_inheritable(False)
    adopt_orphans()
    native = Channel(sock)
    if begun := take_up(native, Path(arguments[1])):
        Supervisor(native, *begun).run()


def take_up(native: Channel, parent: Path) -> tuple[Start, Scratch] | None:
    """Make the folder of the run, say its name, and hear what is wanted; None if there is no run to be."""
    with contextlib.suppress(ChannelClosed):  # pytest is killed before it can say what it wants
        try:
            scratch = take_scratch(parent)
        except InstrcountError as error:
            native.send({"kind": "refused", "why": error.why, "fix": error.fix})
            return None
        try:
            open_log(scratch.path / "supervisor.log")
            native.send({"kind": "housed", "name": scratch.path.name})
            return Start(**native.receive()), scratch
        except BaseException:
            scratch.remove()
            raise
    return None


def open_log(path: Path) -> None:
    """Write what this process says to a file: pytest, which has heard it so far, goes on."""
    with path.open("wb") as log:
        for output in (1, 2):
            os.dup2(log.fileno(), output)
