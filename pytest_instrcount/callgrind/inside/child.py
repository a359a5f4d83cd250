"""Inside Valgrind, below pytest: the repetitions of one call are counted."""

from __future__ import annotations

import functools
import gc
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, Protocol

from pytest_instrcount.callgrind.channel import REPETITION, Channel, framed
from pytest_instrcount.callgrind.inside.awaiting import count_awaited, count_awaited_rounds
from pytest_instrcount.callgrind.inside.forgetting import empty_tables, specialized_anew
from pytest_instrcount.callgrind.inside.forking import (
    cut_back,
    die_with_parent,
    end,
    positions,
    process_name,
    thread_count,
)
from pytest_instrcount.callgrind.inside.loops import hold_loops, remarks_on_left
from pytest_instrcount.callgrind.inside.offspring import Starts, waited_for
from pytest_instrcount.callgrind.inside.places import settle
from pytest_instrcount.callgrind.inside.repeating import CallCounter, Repeat, Step, switch
from pytest_instrcount.callgrind.inside.reports import without_middle
from pytest_instrcount.callgrind.inside.seeding import (
    RandomState,
    repeat_here,
    stop_hypothesis_clock,
)
from pytest_instrcount.callgrind.real import os
from pytest_instrcount.callgrind.requests import Requests
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.fixtures.rounds import Rounds

#: After the collector ran, free lists and pools fill up again: these calls are not counted.
SETTLING_CALLS = 2
#: The switch alone is counted after as many calls as the slowest interpreter needs to specialise.
_SWITCH_WARM_UP = 20


class Trampolines(Protocol):
    """Gives Python functions frames of their own (``callgrind.inside.trampolines``)."""

    def learn(self) -> AbstractContextManager[None]:
        """Around one repetition: what it calls is what is told apart."""

    def start(self) -> None:
        """From now on each Python function has a frame of its own."""

    def stop(self) -> None:
        """New calls have none."""


class Counter(CallCounter):
    """Counts the repetitions of one call under Callgrind.

    What happens is the same whether the number of repetitions is known beforehand or found by
    a pilot: a request that is not wanted is replaced by one that does nothing, at the same cost.
    All that is not counted is done between STOP and another START, though both throw all translated
    code away: what makes the memory equal takes four times as long while Callgrind instruments it.
    """

    def __init__(
        self,
        channel: Channel,
        requests: Requests,
        *,
        pilot: bool,
        rehearses: bool = False,
        layout: int = 0,
        trampolines: Trampolines | None = None,
    ) -> None:
        self._channel = channel
        self._pilot = pilot
        self._requests = requests
        self._ends = False
        self._rehearses = rehearses
        self._layout = layout
        self._trampolines = trampolines
        #: Whether something was counted, or failed to be.
        self.used = False

    @property
    def _tells(self) -> bool:
        """Whether what else there is to say is read: of other layouts, and by function, only counts are."""
        return not self._layout and self._trampolines is None

    async def count_awaited(
        self, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Count ``await target(*args, **kwargs)``, as ``count_call`` does."""
        await count_awaited(self, target, args, kwargs)

    async def count_awaited_rounds(self, rounds: Rounds) -> None:
        """Count the awaited calls of ``pedantic``, as ``count_rounds`` does."""
        await count_awaited_rounds(self, rounds)

    def begin_first(self) -> None:
        """Count the first call, too, by Python function: a count that is gated is not disturbed by it."""
        if self._trampolines is not None:
            self._requests.start()
            self._requests.toggle()

    def end_first(self) -> None:
        """Leave a dump of the first call."""
        if self._trampolines is not None:
            self._requests.dump()
            self._requests.stop()

    def fork(self, work: Callable[[], None]) -> None:
        """Do the counting in a fork of this process, and wait for its end.

        What is counted leaves nothing behind here, and the code that Valgrind has translated
        stays, which START throws away. With threads alive there is no fork: they would be missing.
        """
        with self.forked() as here:
            if here:
                work()

    @contextmanager
    def forked(self) -> Iterator[bool]:
        """Around the counting, as ``fork`` does it: whether it is to be done in this process."""
        self.used = True
        if thread_count() > 1:
            with self._attempting():
                yield True
            self._requests.stop()
            return
        outputs = positions()
        take_loops_along = hold_loops()
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent()
                self._channel.adopt()
                take_loops_along()
                with self._attempting(last=True):
                    yield True
            finally:
                end()
        yield False
        try:
            _, status = os.waitpid(pid, 0)
        except ChildProcessError:  # the test ignores or collects children that end
            status = signal.SIGKILL
        cut_back(outputs)
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            self._say_problem(f"the process that repeated the call ended with status {status:#x}")

    def attempt(self, work: Callable[[], None], *, last: bool = False) -> None:
        """Do the counting here; tell the supervisor if it failed.

        If it is the ``last`` thing that this process does, it ends with the last dump.
        """
        with self._attempting(last=last):
            work()

    @contextmanager
    def _attempting(self, *, last: bool = False) -> Iterator[None]:
        self.used = True
        self._ends = last and not self._rehearses
        try:
            yield
        except InstrcountError as error:
            self._say_problem(str(error).removeprefix("instrcount: "))
        except BaseException:
            self._say_problem(f"it passed once and failed when it was repeated\n{_traceback()}")

    def _say_problem(self, why: str) -> None:
        self._channel.send({"kind": "problem", "why": without_middle(why)})

    def count(self, repeat: Repeat, **how: Any) -> None:
        """Count: take the ``steps`` of such a repetition."""
        # A function that C calls: Callgrind knows no frame that was there before START, and
        # would give the cost of the evaluation loop to whatever returns into it.
        repeat = functools.partial(repeat)
        with closing(self.steps(**how)) as steps:
            for step in steps:
                repeat(*step)

    def steps(
        self,
        *,
        warmup: int | None = None,
        rounds: int | None = None,
        iterations: int = 1,
        once: bool = False,
    ) -> Generator[Step, None, None]:
        """Steps of a repetition. ``warmup`` and ``rounds`` are the numbers that the test itself sets.

        Leaves a dump of what was before each counted call, which is to be forgotten (Callgrind counts
        calls even while it collects no cost; its request to zero all leaves some), and one of the call;
        then two more with nothing in between. The others are a pilot's.

        ``once``: the call can be made a single time, and that one is counted.
        """
        # Looked up once and for all, wanted or not: a look-up fills caches that others use.
        requests = self._requests
        start, stop, dump = requests.start, requests.stop, requests.dump
        toggle, nothing = requests.toggle, requests.nothing
        switch_only = functools.partial(switch)  # called by C, as what is repeated is
        repeat_here()
        stop_hypothesis_clock()
        others, tries = waited_for(), 0 if once else 1
        # What is said at the end is made here: behind START each new piece of code is translated
        # at many times the cost.
        done = framed({"kind": "counted"})
        channel = self._channel.fileno()
        state = RandomState.save()
        collecting = gc.isenabled()
        if self._trampolines is not None:
            with self._trampolines.learn():
                yield tries, nothing, nothing
            self._trampolines.start()
        empty_tables(once=once)
        pilot = self._pilot and (warmup is None or rounds is None)
        wishes = {"warmup": warmup, "rounds": rounds, "iterations": iterations}
        self._channel.send({"kind": "pilot", "pid": process_name(), **wishes})
        # Calls that are made while no cost is collected are not reset by a dump. So whatever
        # runs behind START is collected and then dumped, wanted or not.
        start_pilot, toggle_pilot, dump_pilot, stop_pilot = (
            (start, toggle, dump, stop) if pilot else (nothing,) * 4
        )
        try:
            start_pilot()
            toggle_pilot()
            yield tries, dump_pilot, dump_pilot
            toggle_pilot()
            warmup, rounds = self._channel.ask(REPETITION)
            stop_pilot()
            switch_only(_SWITCH_WARM_UP, nothing, nothing)
            anew = min(1, warmup)
            with specialized_anew():
                yield anew, nothing, nothing
            yield warmup - anew, nothing, nothing
            gc.collect()
            gc.disable()
            settling = min(SETTLING_CALLS, warmup)
            settle(self._layout, settling + rounds)
            gc.freeze()  # what the collector looks at before each call is little
            yield settling, nothing, nothing
            start()
            toggle()
            yield rounds, dump, dump
            switch_only(1, dump, dump)
            if self._tells:
                for text in (*self.first_remarks(), *remarks_on_left()):
                    self._channel.send({"kind": "remark", "text": text})
                if waited_for() != others:
                    starts = Starts()
                    with starts.noted():
                        yield tries, nothing, nothing
                    self._channel.send({"kind": "offspring", "number": starts.number})
            os.write(channel, done)
            if self._ends:
                end()
        finally:
            if self._trampolines is not None:
                self._trampolines.stop()
            if collecting:
                gc.enable()
            state.restore()


def _traceback() -> str:
    """The traceback of what is being handled, without this package's own frames at its start."""
    kind, error, entries = sys.exc_info()
    here = os.path.dirname(__file__)
    while entries is not None and entries.tb_next is not None:
        if os.path.dirname(entries.tb_frame.f_code.co_filename) != here:
            break
        entries = entries.tb_next
    return "".join(traceback.format_exception(kind, error, entries)).rstrip()
