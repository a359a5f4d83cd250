"""The threads that are alive beside the one that forks, by name and by who started them."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from typing import Any

_TASKS = "/proc/self/task"


def describe_threads() -> list[str]:
    """Each of them: its name, and what it runs; of one that Python does not know, what the system calls it."""
    known = {
        thread.native_id: thread
        for thread in threading.enumerate()
        if thread is not threading.main_thread()
    }
    found = []
    for task in sorted(map(int, os.listdir(_TASKS))):
        if task in known:
            found.append(_described(known[task]))
        elif task not in (os.getpid(), threading.get_native_id()):
            found.append(f"{_system_name(task)}, of a C library")
    return found


def _described(thread: threading.Thread) -> str:
    target: Any = getattr(thread, "_target", None)  # gone once it has returned
    runs = type(thread) if target is None else target
    while hasattr(runs, "func"):  # a partial function
        runs = runs.func
    module = getattr(runs, "__module__", None) or "?"
    name = getattr(runs, "__qualname__", type(runs).__qualname__)
    file = getattr(sys.modules.get(module), "__file__", None)
    where = f" in {os.path.basename(file)}" if file else ""
    return f"{thread.name}, which runs {module}.{name}{where}"


def _system_name(task: int) -> str:
    try:
        with open(f"{_TASKS}/{task}/comm") as file:
            return file.read().strip()
    except OSError:  # it has just ended
        return "a thread"


def fork_all_the_same() -> None:
    """Have CPython 3.12 and later not warn of a fork beside threads: the supervisor orders it."""
    warnings.filterwarnings("ignore", ".*multi-threaded.*fork", DeprecationWarning)
