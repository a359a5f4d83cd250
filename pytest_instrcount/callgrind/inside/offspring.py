"""Processes that a test starts, and those that a counted call waits for: Callgrind counts none of them."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_instrcount.callgrind.real import os

_TASKS = "/proc/self/task"


def waited_for() -> tuple[int, int, int]:
    """Resources used by all children that this process has waited for; it grows with each."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_minflt, used.ru_nvcsw, used.ru_nivcsw


def running_beside() -> str:
    """What is to be said of processes that this one has started and not waited for; "" if there are none."""
    tracker = sys.modules.get("multiprocessing.resource_tracker")
    helper = "" if tracker is None else str(tracker._resource_tracker._pid)
    try:
        tasks = os.listdir(_TASKS)
    except OSError:  # the test has left no descriptor
        return ""
    found = [pid for task in tasks for pid in _children(task) if pid != helper]
    if not found:
        return ""
    number = "a process runs" if len(found) == 1 else f"{len(found)} processes run"
    return f"{number} beside it, and what is done there is not counted"


def _children(task: str) -> list[str]:
    try:
        descriptor = os.open(f"{_TASKS}/{task}/children", os.O_RDONLY)
    except OSError:  # the thread has ended, or the kernel does not tell
        return []
    try:
        return os.read(descriptor, 1 << 16).decode().split()
    finally:
        os.close(descriptor)


class Starts:
    """Notes each start of a process while it is on. A hook for audits cannot be taken away again."""

    def __init__(self) -> None:
        self._on = False
        self._found: Counter[str] = Counter()

    def _note(self, event: str, _: object) -> None:
        if self._on:
            self._found[event] += 1

    @contextmanager
    def noted(self) -> Iterator[None]:
        """While it lasts."""
        sys.addaudithook(self._note)
        self._on = True
        try:
            yield
        finally:
            self._on = False

    @property
    def number(self) -> int:
        """The number of processes started; 0 if Python reported none of them."""
        found = self._found
        # subprocess tells of itself, and then of what it spawns by
        spawned = max(found["subprocess.Popen"], found["os.posix_spawn"])
        return spawned + found["os.fork"] + found["os.forkpty"] + found["os.system"]


def describe_offspring(number: int) -> str:
    """The text about them in a verdict.

    >>> describe_offspring(1), describe_offspring(0)
    ('1 process of its own, not counted', 'processes of its own, not counted')
    """
    if number == 1:
        return "1 process of its own, not counted"
    return f"{number or ''} processes of its own, not counted".strip()
