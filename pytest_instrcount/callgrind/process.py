"""Processes under Valgrind as the supervisor sees them: started, given orders, reaped, ended."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_instrcount.callgrind.channel import BECOME, FORK, Channel, ChannelClosed
from pytest_instrcount.callgrind.endings import TAIL_LINES, read_lines, valgrinds_words
from pytest_instrcount.callgrind.messages import Hello
from pytest_instrcount.host.patience import Patience
from pytest_instrcount.host.procfs import ORDER_SECONDS, parent_of, state_of

_STOPPED_SECONDS = 1.0

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

#: Ints up to this one are made when CPython starts, and last.
_LARGEST_KEPT_INT = 256


def prctl(option: int, value: int) -> None:
    """``prctl(2)``; errors are ignored, as both options are safety nets."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill(pid: int) -> None:
    """SIGKILL, if the process still is."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def abort(pid: int) -> bool:
    """Have a process write down where it is, and end; False if it is gone, or was never there."""
    if not pid:
        return False
    try:
        os.kill(pid, signal.SIGABRT)
    except ProcessLookupError:
        return False
    return True


@dataclass(slots=True, eq=False)
class Parent:
    """A process that forks on order: the root zygote, or a file's child."""

    pid: int
    channel: Channel
    hand: socket.socket

    def fork(self) -> Parent:
        """Order a fork; returns the child. Raises ChannelClosed."""
        return self._order_child(FORK)

    def become(self) -> Parent:
        """Order the process to go on as its own child; returns it under its new line."""
        return self._order_child(BECOME)

    def _order_child(self, order: bytes) -> Parent:
        self.order(order)
        return hand_line(self.pid, self.hand)

    def order(self, order: bytes) -> None:
        """Send one order. Raises ChannelClosed."""
        try:
            self.channel.socket.sendall(order)
        except OSError as error:
            raise ChannelClosed from error

    def close(self) -> None:
        """Give the line up; the process finds its end closed."""
        self.channel.close()
        self.hand.close()


def hand_line(parent: int, hand: socket.socket) -> Parent:
    """Hand a new line to a child of ``parent``, who reads ``hand``, and wait for who it is.

    Raises ChannelClosed.
    """
    ours, theirs = socket.socketpair()
    our_hand, their_hand = socket.socketpair()
    try:
        socket.send_fds(hand, [b"L"], [theirs.fileno(), their_hand.fileno()])
        theirs.close()
        their_hand.close()
        channel = Channel(ours)
        pid = int(_receive_from(parent, channel)["pid"])
    except (OSError, ChannelClosed) as error:
        for each in (ours, theirs, our_hand, their_hand):
            each.close()
        raise ChannelClosed from error
    return Parent(pid, channel, our_hand)


def _receive_from(parent: int, channel: Channel) -> Hello:
    """The first message on a new line. A parent that somebody has stopped is told to go on."""
    patience, began = Patience(ORDER_SECONDS), time.monotonic()
    channel.socket.settimeout(_STOPPED_SECONDS)
    while True:
        try:
            message: Hello = channel.receive()
        except TimeoutError:
            if time.monotonic() - began > patience.seconds and not patience.more():
                raise
            if state_of(parent) == "T":
                os.kill(parent, signal.SIGCONT)
        else:
            channel.socket.settimeout(None)
            return message


@dataclass(slots=True, eq=False)
class Valgrind:
    """One Valgrind process that the supervisor started, and the pytest that waits in it."""

    process: subprocess.Popen[bytes]
    parent: Parent
    log: Path
    output: Path
    #: that of a zygote, see ``runs.zygote_of``
    number: int = 0
    threads: int = 1
    #: who its other threads are
    started: Sequence[str] = ()
    compiled: int = 0

    def end(self) -> None:
        """Kill the process and everything it forked that has not left its group."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.parent.close()

    def last_words(self, pid: int) -> str:
        """The end of what Valgrind said of one process, and of what was printed, by whomever."""
        printed = [line for line in read_lines(self.output) if "aspacem" not in line]
        first = [line for line in printed[:-TAIL_LINES] if line.startswith("MemoryError")]
        return "\n".join([*self.said_of(pid), *first[:1], *printed[-TAIL_LINES:]]).strip()

    def said_of(self, pid: int) -> list[str]:
        """The end of what Valgrind said of one process."""
        return valgrinds_words(read_lines(self.log), pid)


def skip_small_ids() -> None:
    """Have the next process get an id above those that CPython has an int for at all times.

    In a new container they begin at 1. A process with an id up to 256 makes one object less for
    it than any other, and another heap gives other counts. Threads use up ids as well, and cost least.
    """
    found: list[int] = []
    for _ in range(_LARGEST_KEPT_INT):
        thread = threading.Thread(target=lambda: found.append(threading.get_native_id()))
        try:
            thread.start()
        except RuntimeError:  # no thread is to be had: then no process will be, either
            return
        thread.join()
        if found[-1] > _LARGEST_KEPT_INT:
            return


def start_valgrind(
    command: list[str], environment: dict[str, str], folder: str, log: Path, output: Path
) -> Valgrind:
    """Start a zygote in a process group of its own. Its line waits for it on standard input."""
    skip_small_ids()
    hand, their_hand = socket.socketpair()
    ours, theirs = socket.socketpair()
    our_hand, next_hand = socket.socketpair()
    socket.send_fds(hand, [b"L"], [theirs.fileno(), next_hand.fileno()])
    with output.open("ab") as printed:
        process = subprocess.Popen(
            command,
            stdin=their_hand.fileno(),
            stdout=printed,
            stderr=printed,
            env=environment,
            cwd=folder,
            preexec_fn=_prepare,
        )
    for each in (hand, their_hand, theirs, next_hand):
        each.close()
    return Valgrind(process, Parent(process.pid, Channel(ours), our_hand), log, output)


def answer_signals() -> None:
    """Between fork and exec: let no signal be ignored or held back, however pytest was started.

    ``nohup``, and a shell that puts a command into the background, have signals ignored, which the
    interpreter and ``asyncio.run`` look at.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def _prepare() -> None:
    """Between fork and exec: die with the supervisor, stand apart from Ctrl-C, leave no core."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer_signals()


def end_orphans(known: Callable[[int], bool]) -> None:
    """Kill and collect children of this process that it does not know: what tests left behind."""
    for pid in own_children():
        if not known(pid):
            kill(pid)
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass


def own_children() -> list[int]:
    """Process ids of this process's children, by ``/proc``."""
    own = os.getpid()
    try:
        return [int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        pass
    return [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if parent_of(pid) == own
    ]
