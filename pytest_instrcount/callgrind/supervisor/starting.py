"""Zygotes: started, and started again when somebody has killed them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_instrcount.callgrind.command import as_option
from pytest_instrcount.callgrind.endings import describe_popen
from pytest_instrcount.callgrind.messages import FromZygote
from pytest_instrcount.callgrind.process import Valgrind, start_valgrind
from pytest_instrcount.callgrind.supervisor.runs import Run, Starting, Test, is_late
from pytest_instrcount.callgrind.supervisor.settling import MOST_TRIES
from pytest_instrcount.callgrind.supervisor.state import LAST_MOMENT_SECONDS, State, next_message
from pytest_instrcount.host.patience import Patience

#: A zygote that dies so often without a single result in between will not do better next time.
_DEATHS_IN_A_ROW = 3

#: So many tests in a row that kill the zygote: it is not the tests.
_FELLED_IN_A_ROW = 10

#: A start that has compiled so many modules is told apart: pytest's plugins have no byte code.
_MANY_MODULES = 20


@dataclass(slots=True)
class Zygotes:
    """The zygotes that are alive, by number (see ``runs.zygote_of``), and those on their way.

    ``on_ready`` is called when a process for a single test is ready, ``on_end`` when a zygote has ended.
    """

    state: State
    on_ready: Callable[[Test, Valgrind], None]
    on_end: Callable[[Valgrind], None]
    alive: dict[int, Valgrind] = field(default_factory=dict)
    starting: list[Starting] = field(default_factory=list)
    _started: int = 0
    #: those that have been started twice, since the first start has written byte code
    _recompiled: set[int] = field(default_factory=set)
    #: by number: deaths since the last result
    _deaths: Counter[int] = field(default_factory=Counter)
    #: tests in a row that took a zygote with them
    _felled: int = 0

    def note_result(self) -> None:
        """A test has a result: what went wrong before it is over."""
        self._deaths.clear()
        self._felled = 0

    def have_started(self, number: int) -> None:
        """Start the zygote of a number, unless it is on its way already."""
        if all(start.only or start.number != number for start in self.starting):
            self.start(number)

    def start(self, number: int, only: Test | None = None) -> None:
        """Start one, for all tests that are forked of it or for a single one."""
        state, setup = self.state, self.state.setup
        self._started += 1
        state.restore_scratch()
        log = state.folder / f"valgrind{self._started:04}.log"
        output = state.folder / f"output{self._started:04}.log"
        plan = state.folder / ("fork.json" if only is None else "once.json")
        command = [
            part.replace("{log}", as_option(log)).replace("{plan}", str(plan))
            for part in (*setup.command, str(number))
        ]
        environment = dict(setup.environment)
        if number < 0:
            environment["PYTHONHASHSEED"] = str(-number)
        began, patience = time.monotonic(), Patience(setup.patience)
        if only is None:
            state.sweeper.empty(number)
        try:
            valgrind = start_valgrind(command, environment, setup.folder, log, output)
        except OSError as error:
            state.fatal(f"Valgrind could not be started: {error}")
            return
        state.sweeper.begin(valgrind.process.pid)
        start = Starting(number, valgrind, began + patience.usual, began, patience, only)
        self.starting.append(start)
        state.listen(valgrind.parent.channel, lambda: self._take(start))

    def end_late(self, now: float) -> None:
        """Give up those that are out of time."""
        for start in [start for start in self.starting if is_late(start, now)]:
            place, seconds = self.state.place, start.patience
            self._give_up(start, f"pytest was not ready {place} within {seconds}")

    def bury(self, zygote: Valgrind) -> str:
        """Know that a zygote has died, and end what is left of it; returns what it said last."""
        self.alive = {n: each for n, each in self.alive.items() if each is not zygote}
        words = zygote.last_words(zygote.process.pid)
        self._end(zygote)
        return words

    def count_death(self, number: int, runs: Sequence[Run], words: str) -> None:
        """Know which tests ran when a zygote died. Raises Stopped if it will not do better."""
        if not runs:
            self._deaths[number] += 1
        elif runs[0].test.tries >= MOST_TRIES:
            self._felled += 1
        if self._deaths[number] >= _DEATHS_IN_A_ROW or self._felled >= _FELLED_IN_A_ROW:
            self.state.fatal(
                f"the zygote died {self._deaths[number] or self._felled} times\n{words}"
            )

    def end_idle(self, is_needed: Callable[[Valgrind], bool]) -> None:
        """End those of other hash seeds that no test needs: there are many, and each takes its memory."""
        for number, zygote in list(self.alive.items()):
            if number < 0 and not is_needed(zygote):
                del self.alive[number]
                self._end(zygote)

    def end_all(self) -> None:
        """End all of them, and all that they have forked."""
        for each in [*self.alive.values(), *(start.valgrind for start in self.starting)]:
            each.end()

    def _take(self, start: Starting) -> None:
        """Read a message of a starting process: it is ready, or it says why not."""
        valgrind, state = start.valgrind, self.state
        message: FromZygote | None = next_message(valgrind.parent.channel)
        if message is None:
            return
        if message["kind"] != "ready":
            self._give_up(start, message["why"] if message["kind"] == "unready" else "")
            return
        state.ignore(valgrind.parent.channel)
        self.starting.remove(start)
        valgrind.number, valgrind.started = start.number, message["started"]
        valgrind.threads, valgrind.compiled = message["threads"], message["compiled"]
        compiles = valgrind.compiled > _MANY_MODULES and not state.writes_byte_code
        phase = "zygote start, compiling" if compiles else "zygote start"
        state.tell_spent(start.only, [(phase, start.began, time.monotonic())])
        if start.only is not None:
            self.on_ready(start.only, valgrind)
        elif valgrind.compiled and state.writes_byte_code and start.number not in self._recompiled:
            # Byte code was written on the way: from now on it is read, and the heap is another.
            self._recompiled.add(start.number)
            self._end(valgrind)
            self.start(start.number)
        else:
            self.alive[start.number] = valgrind
            state.listen(valgrind.parent.channel, lambda: self.on_end(valgrind))
            state.sweeper.settle(valgrind.process.pid)
            if not start.number:
                state.send_queue.send({"kind": "ready"})

    def _give_up(self, start: Starting, why: str) -> None:
        """A process is not ready: start it once more if somebody has killed it."""
        process = start.valgrind.process
        self.starting.remove(start)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0 if why else LAST_MOMENT_SECONDS)
        status = process.poll()
        self._end(start.valgrind)
        if status == -signal.SIGKILL and not why and self._may_start_again(start):
            return
        how = why or f"the process {describe_popen(status)}"
        text = "\n".join(filter(None, (how, start.valgrind.last_words(process.pid))))
        if start.only is None:
            self.state.fatal(text)
        else:
            self.state.give_problem(start.only, f"no process of its own could be started: {text}")

    def _may_start_again(self, start: Starting) -> bool:
        """True if a process that was killed on its way is started once more: it is not Valgrind's doing."""
        if start.only is not None:
            return self.state.put_again(start.only)
        self._deaths[start.number] += 1
        if self._deaths[start.number] >= _DEATHS_IN_A_ROW:
            return False
        self.start(start.number)
        return True

    def _end(self, valgrind: Valgrind) -> None:
        self.state.ignore(valgrind.parent.channel)
        valgrind.end()
        self.state.sweeper.forget(valgrind.process.pid)
