"""Inside Valgrind, below pytest: forking, and counting the repetitions of one call."""

from __future__ import annotations

import ctypes
import functools
import gc
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_instrcount.callgrind.channel import (
    BECOME,
    FORK,
    REAP,
    REPETITION,
    Channel,
    framed,
)
from pytest_instrcount.callgrind.inside.awaiting import count_awaited, count_awaited_rounds
from pytest_instrcount.callgrind.inside.loops import hold_loops
from pytest_instrcount.callgrind.inside.offspring import Starts, waited_for
from pytest_instrcount.callgrind.inside.seeding import RandomState, repeat_here, seed_random
from pytest_instrcount.callgrind.real import os
from pytest_instrcount.callgrind.requests import Request, Requests
from pytest_instrcount.fixtures.rounds import Rounds

#: After the collector ran, free lists and pools fill up again: these calls are not counted.
SETTLING_CALLS = 2
#: The switch alone is counted after as many calls as the slowest interpreter needs to specialise.
_SWITCH_WARM_UP = 20

#: To make JSON of 100 MB, which a test has printed or raised, takes minutes here.
LONGEST_TEXT = 1_000_000

_PR_SET_PDEATHSIG = 1

#: To ``waitpid``: any child.
_ANY = -1


def die_with_parent() -> None:
    """Have the kernel end this process when the one that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


# this module is imported on other systems, too, by those who repeat a call and count something else
_prctl: Any = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def end() -> None:
    """End this process at once: nothing inherited is finalised, and Callgrind writes no last dump."""
    os.kill(os.getpid(), signal.SIGKILL)


def end_badly(status: int) -> None:
    """End this process at once when it cannot go on as ordered."""
    os._exit(status)


@dataclass(frozen=True, slots=True)
class Line:
    """What a process has of the supervisor: a channel, and the socket on which children get theirs."""

    channel: Channel
    hand: socket.socket

    @classmethod
    def take(cls, hand: socket.socket) -> Line:
        """Take a line of one's own from the parent's ``hand``, and say who has it."""
        _, descriptors, _, _ = socket.recv_fds(hand, 1, 2)
        for descriptor in descriptors:  # what a test executes is not to have them
            os.set_inheritable(descriptor, False)
        channel, own_hand = (socket.socket(fileno=descriptor) for descriptor in descriptors)
        line = cls(Channel(channel), own_hand)
        line.channel.send({"kind": "hello", "pid": process_name()})
        return line

    def close(self) -> None:
        """Give the line up; it stays open in the parent."""
        self.channel.close()
        self.hand.close()


def reap(pid: int) -> None:
    """Let one ended child go, if nobody has: a file may ignore SIGCHLD when it is imported."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass


def serve(line: Line) -> Line:
    """Fork a child for each order; returns in the child, with its line.

    Between two forks the process reads one byte, and nothing that it makes outlives the round:
    the last child finds the heap that the first one found.
    """
    orders = line.channel.fileno()
    # The first tuple that waitpid returns is new, and CPython keeps it: the collector has counted one
    # object more in all children that are forked after it, and runs earlier. So nobody is waited for now.
    reap(os.getpid())
    while True:
        order = os.read(orders, 1)
        if order == FORK:
            if os.fork() == 0:
                die_with_parent()
                break
        elif order == REAP:
            reap(_ANY)
        elif order == BECOME:
            break
        else:
            end()
        del order  # before the next is made, which so takes the very same place
    child = Line.take(line.hand)
    line.close()
    return child


def without_middle(text: str) -> str:
    """The text, or the ends of one that is so long that nobody reads it."""
    if len(text) <= LONGEST_TEXT:
        return text
    kept = LONGEST_TEXT // 2
    left_out = f"[... {len(text) - 2 * kept:,} characters left out by pytest-instrcount ...]"
    return "\n".join((text[:kept], left_out, text[-kept:]))


def positions() -> list[int]:
    """Where the next output goes in the files that capture it; -1 where it is no file."""
    found = []
    for descriptor in (1, 2):
        try:
            found.append(os.lseek(descriptor, 0, os.SEEK_CUR))
        except OSError:
            found.append(-1)
    return found


def cut_back(places: Sequence[int]) -> None:
    """Forget what repetitions have printed: a test prints once."""
    for descriptor, place in zip((1, 2), places, strict=True):
        try:
            if place >= 0 and os.lseek(descriptor, 0, os.SEEK_CUR) > place:
                os.ftruncate(descriptor, place)
                os.lseek(descriptor, place, os.SEEK_SET)
        except OSError:
            pass


def process_name() -> str:
    """The process id in ten digits: of constant length, like all that is made before a count."""
    return f"{os.getpid():010}"


def thread_count() -> int:
    """Threads of this process, those that Python does not know included."""
    return len(os.listdir("/proc/self/task"))


class Trampolines(Protocol):
    """What tells Python functions apart (``callgrind.trampolines``)."""

    def learn(self) -> AbstractContextManager[None]:
        """Around one repetition: what it calls is what is told apart."""

    def start(self) -> None:
        """From now on each Python function has a frame of its own."""

    def stop(self) -> None:
        """New calls have none."""


#: ``repeat(times, before, after)``: so many repetitions, with the two requests right before and
#: right after what is counted.
Repeat = Callable[[int, Request, Request], object]
#: The arguments of such a call.
Step = tuple[int, Request, Request]


class Counter:
    """Counts the repetitions of one call under Callgrind.

    What happens is the same whether the number of repetitions is known beforehand or found by
    a pilot: a request that is not wanted is replaced by one that does nothing, at the same cost.
    START throws all translated code away, so a pilot and the short warm-up after it share one;
    a long warm-up is quicker between STOP and another START.
    """

    def __init__(
        self,
        channel: Channel,
        requests: Requests,
        *,
        pilot: bool,
        rehearses: bool = False,
        trampolines: Trampolines | None = None,
    ) -> None:
        self._channel = channel
        self._pilot = pilot
        self._requests = requests
        self._ends = False
        self._rehearses = rehearses
        self._trampolines = trampolines
        #: Whether something was counted, or failed to be.
        self.used = False

    def count_call(
        self, target: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Count ``target(*args, **kwargs)`` in a fork, for the test to go on as if called once."""
        call = target, tuple(args), dict(kwargs)
        self.fork(
            lambda: self.count(
                lambda times, before, after: repeat_call(times, before, after, *call)
            )
        )

    def count_rounds(self, rounds: Rounds) -> None:
        """Count the calls of ``pedantic``, without set-up and tear-down, in a fork."""
        repeat = repeat_once if rounds.once else repeat_round
        self.fork(
            lambda: self.count(
                lambda times, before, after: repeat(times, before, after, rounds),
                warmup=rounds.warmup_rounds,
                calls=rounds.rounds,
                iterations=rounds.iterations,
                apart=True,
                once=rounds.once,
            )
        )

    async def count_awaited(
        self, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Count ``await target(*args, **kwargs)``, as ``count_call`` does."""
        await count_awaited(self, target, args, kwargs)

    async def count_awaited_rounds(self, rounds: Rounds) -> None:
        """Count the awaited calls of ``pedantic``, as ``count_rounds`` does."""
        await count_awaited_rounds(self, rounds)

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
        calls: int | None = None,
        iterations: int = 1,
        apart: bool = False,
        anew: bool = False,
        once: bool = False,
    ) -> Generator[Step, None, None]:
        """What is to be repeated, one after the other. ``warmup`` and ``calls`` are what the test insists on.

        Leaves dumps of all counted calls in one, or of each in one of its own if other code runs
        between them (``apart``: Callgrind counts calls even while it collects no cost); and of
        the switches of one such dump with nothing in between. The others are a pilot's.

        ``anew``: START comes after the warm-up whether there was a pilot or not. Where calls return
        into frames from before START, as a coroutine into its loop, Callgrind gives their cost to
        one function or another, by what has happened since.

        ``once``: the call can be made a single time, and that one is counted.
        """
        # Looked up once and for all, wanted or not: a look-up fills caches that others use.
        requests = self._requests
        start, stop, dump = requests.start, requests.stop, requests.dump
        toggle, nothing = requests.toggle, requests.nothing
        switch_only = functools.partial(switch)  # called by C, as what is repeated is
        repeat_here()
        others, tries = waited_for(), 0 if once else 1
        # What is said at the end is made here: behind START each new piece of code is translated
        # at many times the cost.
        done = framed({"kind": "counted", "iterations": iterations, "apart": apart})
        channel = self._channel.fileno()
        state = RandomState.save()
        collecting = gc.isenabled()
        if self._trampolines is not None:
            with self._trampolines.learn():
                yield tries, nothing, nothing
            self._trampolines.start()
        pilot = self._pilot and (warmup is None or calls is None)
        self._channel.send(
            {"kind": "pilot", "pid": process_name(), "warmup": warmup, "calls": calls}
        )
        # Calls that are made while no cost is collected are not reset by a dump. So whatever
        # runs behind START is collected and then dumped, wanted or not.
        start_pilot, toggle_pilot, dump_pilot = (
            (start, toggle, dump) if pilot else (nothing, nothing, nothing)
        )
        try:
            start_pilot()
            toggle_pilot()
            yield tries, dump_pilot, dump_pilot
            toggle_pilot()
            warmup, calls, long = self._channel.ask(REPETITION)
            short = pilot and not long and not anew
            stop_pilot = stop if pilot and not short else nothing
            start_counted = nothing if short else start
            toggle_warmup = toggle if short else nothing
            stop_pilot()
            toggle_warmup()
            switch_only(_SWITCH_WARM_UP, nothing, nothing)
            yield warmup, nothing, nothing
            gc.collect()
            gc.freeze()
            gc.disable()
            yield min(SETTLING_CALLS, warmup), nothing, nothing
            toggle_warmup()
            start_counted()
            dump_pilot()
            if apart:
                toggle()
                yield calls, dump, dump
                switch_only(1, dump, dump)
            else:
                yield calls, toggle, toggle
                dump()
                switch_only(calls, toggle, toggle)
                dump()
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


def switch(times: int, before: Request, after: Request) -> None:
    """The switch with nothing in between: what is counted here is subtracted."""
    for _ in range(times):
        seed_random()
        before()
        after()


def repeat_call(
    times: int,
    before: Request,
    after: Request,
    target: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Call the target so often, each time with the same random numbers before it."""
    for _ in range(times):
        seed_random()
        before()
        target(*args, **kwargs)
        after()


def repeat_once(times: int, before: Request, after: Request, rounds: Rounds) -> None:
    """Make the one round that there can be, and keep what the call returns."""
    for _ in range(times):
        seed_random()
        args, kwargs = rounds.set_up()
        before()
        rounds.value = rounds.target(*args, **kwargs)
        after()


def repeat_round(times: int, before: Request, after: Request, rounds: Rounds) -> None:
    """Make so many rounds, with the switch around the calls of each."""
    target, iterations = rounds.target, rounds.iterations
    for _ in range(times):
        seed_random()
        args, kwargs = rounds.set_up()
        if iterations == 1:
            before()
            target(*args, **kwargs)
            after()
        else:
            before()
            for _ in range(iterations):
                target(*args, **kwargs)
            after()
        rounds.tear_down(args, kwargs)
