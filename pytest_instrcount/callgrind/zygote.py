"""The native side: starts the supervisor, asks it for measurements, hands back what it says."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_instrcount.callgrind.channel import ChannelClosed
from pytest_instrcount.callgrind.command import python_command, valgrind_command
from pytest_instrcount.callgrind.endings import read_lines
from pytest_instrcount.callgrind.failing import broken_supervisor, met_limit, why_and_remedy
from pytest_instrcount.callgrind.launch import (
    PACKAGE_FOLDER,
    ZygoteSetup,
    open_supervisor,
    write_plan,
)
from pytest_instrcount.callgrind.messages import Answer, FromSupervisor, SpanOf
from pytest_instrcount.callgrind.orders import Measure, Order, Start, Stop
from pytest_instrcount.callgrind.scratch import remove_abandoned, scratch_parent
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.account.current import current, keep_logs, phase, timed
from pytest_instrcount.host.account.timings import WAITING, Span

#: How often a waiting pytest looks up, in seconds: to show progress, and to see Ctrl-C.
_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Problem:
    """A test that could not be measured, and why."""

    slug: str
    why: str
    detail: str

    def remedy(self, test: str) -> str:
        """The command to type, if there is one; ``test`` as quoted for a shell."""
        limit = met_limit(f"{self.why}\n{self.detail}")
        if limit is not None:
            why, remedy = limit
            return f"{remedy}    # {why}"
        if self.slug == "timeout":
            return f"pytest --instrcount --instrcount-timeout=SECONDS {test}"
        if self.slug == "process-died":
            return f"pytest {test}    # without --instrcount: does it end there, too?"
        if self.slug == "profile-damaged":
            return "df -h; free -h    # is there space?"
        return ""


class ZygoteFailed(InstrcountError):
    """No zygote could be started, or none stays alive."""


class Zygote:
    """The measuring side of a run. Started at once, asked later, always to be ended."""

    def __init__(self, setup_in: Callable[[Path], ZygoteSetup]) -> None:
        self._results: dict[int, Answer | Problem] = {}
        self._sent = 0
        self._purpose = _purpose()
        #: what each was asked for, and of which test
        self._asked: list[tuple[str, str]] = []
        self.ready = False
        self.running: set[int] = set()
        parent = scratch_parent()
        try:
            with contextlib.ExitStack() as undo:
                self._channel, said = open_supervisor(parent)
                undo.callback(self._channel.close)  # the folder of the run goes with it
                self._scratch = scratch = parent / self._hear_name(said)
                self._inode = scratch.stat().st_ino
                setup = setup_in(scratch)
                write_plan(setup, scratch)
                undo.pop_all()
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stdout", "") or str(error)
            why, remedy = met_limit(said) or (said, "df -h    # is there space?")
            why = f"nothing can be started in {parent}: {why}"
            raise InstrcountError("scratch", why, remedy) from error
        self._place = "under Valgrind" if setup.valgrind else "in a process that counts calls"
        self._counts = bool(setup.valgrind)
        command = [
            *(
                valgrind_command(setup.valgrind, scratch, Path("{log}"), setup.options_of_valgrind)
                if setup.valgrind
                else ()
            ),
            *python_command(
                sys.executable, PACKAGE_FOLDER, Path("{plan}"), setup.options_of_python
            ),
        ]
        environment = dict(setup.environment)
        environment.pop("PYTHONPATH", None)
        start = Start(
            pid=os.getpid(),
            command=command,
            environment=environment,
            folder=setup.folder,
            presentation=setup.presentation,
            patience=setup.patience,
            place=self._place,
            jobs=setup.jobs,
            layouts=setup.layouts,
            dont_write_bytecode=sys.dont_write_bytecode,
        )
        self._channel.send(asdict(start))

    def _hear_name(self, said: str) -> str:
        """The name of the folder that the supervisor has made. Raises InstrcountError if it has not."""
        try:
            message: FromSupervisor = self._channel.receive()
        except ChannelClosed as error:
            raise ZygoteFailed("zygote-failed", *broken_supervisor(said)) from error
        if message["kind"] == "refused":
            raise InstrcountError("scratch", message["why"], message["fix"])
        assert message["kind"] == "housed"
        return message["name"]

    def ask(self, orders: Sequence[Order]) -> int:
        """Ask for measurements; returns the number under which the first result can be had."""
        first = self._sent
        self._sent += len(orders)
        purpose = _purpose()
        self._asked += [(purpose, order.nodeid) for order in orders]
        tests = [asdict(order) for order in orders]
        measure: Measure = {"kind": "measure", "first": first, "tests": tests}
        with contextlib.suppress(ChannelClosed):  # wait() says why
            self._channel.send(measure)
        return first

    def wait(self, index: int, poll: Callable[[], None]) -> Answer | Problem:
        """Wait for one result. ``poll`` is called a few times a second meanwhile.

        Raises ZygoteFailed when no zygote can be had.
        """
        with phase(WAITING):
            self._wait(lambda: index in self._results, poll)
        return self._results.pop(index)

    def wait_ready(self, poll: Callable[[], None] = lambda: None) -> None:
        """Wait until it could measure. Raises ZygoteFailed when no zygote can be had."""
        self._wait(lambda: self.ready, poll)

    def _wait(self, is_there: Callable[[], bool], poll: Callable[[], None]) -> None:
        self._channel.socket.settimeout(_POLL_SECONDS)
        while not is_there():
            try:
                self._take(self._channel.receive())
            except TimeoutError:
                poll()
            except ChannelClosed as error:
                said = "\n".join(read_lines(self._scratch / "supervisor.log")[-5:])
                raise ZygoteFailed("zygote-failed", *broken_supervisor(said)) from error
        self._channel.socket.settimeout(None)

    def _take(self, message: FromSupervisor) -> None:
        if message["kind"] == "ready":
            self.ready = True
        elif message["kind"] == "fatal":
            told = why_and_remedy(message["why"], self._place, valgrind=self._counts)
            raise ZygoteFailed("zygote-failed", *told)
        elif message["kind"] == "broken":
            raise ZygoteFailed("zygote-failed", *broken_supervisor(message["why"]))
        elif message["kind"] == "started":
            self.running.add(message["index"])
        elif message["kind"] == "spent":
            self._note_spent(message["index"], message["spans"])
        elif message["kind"] == "result":
            self._give(message["index"], message["result"])
        elif message["kind"] == "problem":
            problem = Problem(message["slug"], message["why"], message["detail"])
            self._give(message["index"], problem)

    def _give(self, index: int, answer: Answer | Problem) -> None:
        self.running.discard(index)
        self._results[index] = answer

    def _note_spent(self, index: int | None, spans: Sequence[SpanOf]) -> None:
        account = current()
        purpose, nodeid = (self._purpose, "") if index is None else self._asked[index]
        if account is not None:
            for name, start, end in spans:
                account.spent(Span(purpose or name, start, end), nodeid)

    @timed("end of Valgrind")
    def end(self) -> None:
        """End everything that was started and remove the scratch folder. Waits until it is so."""
        keep_logs(self._scratch)
        self._channel.socket.settimeout(None)
        try:
            stop: Stop = {"kind": "stop"}
            self._channel.send(stop)
            while True:
                message: FromSupervisor = self._channel.receive()
                if message["kind"] == "spent":
                    self._note_spent(message["index"], message["spans"])
                elif message["kind"] == "cpu" and (account := current()) is not None:
                    account.cpu_beside += message["seconds"]
        except ChannelClosed:
            pass
        self._channel.close()
        remove_abandoned(self._scratch, self._inode)


def _purpose() -> str:
    """The purpose of present requests in the account of the run."""
    account = current()
    return account.timings.purpose if account is not None else ""
