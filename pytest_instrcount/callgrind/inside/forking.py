"""Processes below pytest that fork when they are told to, and end at once."""

from __future__ import annotations

import ctypes
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_instrcount.callgrind.channel import BECOME, FORK, REAP, Channel, open_socket
from pytest_instrcount.callgrind.real import os

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


def process_name() -> str:
    """The process id in ten digits: of constant length, like all that is made before a count."""
    return f"{os.getpid():010}"


@dataclass(frozen=True, slots=True)
class Line:
    """A process's connection to the supervisor: a channel, and the socket on which children get theirs."""

    channel: Channel
    hand: socket.socket

    @classmethod
    def take(cls, hand: socket.socket) -> Line:
        """Take a line of one's own from the parent's ``hand``, and say who has it."""
        _, descriptors, _, _ = socket.recv_fds(hand, 1, 2)
        for descriptor in descriptors:  # what a test executes is not to have them
            os.set_inheritable(descriptor, False)
        channel, own_hand = map(open_socket, descriptors)
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


def _fork_for_nothing() -> None:
    """Fork and wait, in vain as well: what a process changes by its first fork, all its children are to find.

    Functions that modules have registered for a fork leave free blocks in another order. CPython keeps
    the first tuple that waitpid returns: the collector counts one object more, and runs earlier. Where there
    is nobody to wait for, an exception comes and goes.
    """
    pid = os.fork()
    if pid == 0:
        end()
    reap(pid)
    reap(pid)


def serve(line: Line) -> Line:
    """Fork a child for each order; returns in the child, with its line.

    Between two forks the process reads one byte, and nothing that it makes outlives the round:
    the last child finds the heap that the first one found.
    """
    orders = line.channel.fileno()
    has_forked = False
    while True:
        order = os.read(orders, 1)
        if order == FORK:
            del order  # its place is free in each child, and the next one takes it
            if not has_forked:
                has_forked = True
                _fork_for_nothing()
            if os.fork() == 0:
                die_with_parent()
                break
            continue
        if order == BECOME:
            break
        if order != REAP:
            end()
        reap(_ANY)
        del order
    child = Line.take(line.hand)
    line.close()
    return child


def positions() -> list[int]:
    """Positions of stdout and stderr in the files that capture them; -1 for anything but a file."""
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


def thread_count() -> int:
    """Threads of this process, those that Python does not know included."""
    return len(os.listdir("/proc/self/task"))
