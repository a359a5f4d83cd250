"""Functions that give away why a count differs: name -> what it is, and what helps. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLUES = tuple(
    (re.compile(pattern), what, fix)
    for pattern, what, fix in (
        (
            r"\bclock_gettime|\bgettimeofday|\btime_(?:time|monotonic|perf_counter)|:time \[libc"
            r"|[Pp]yTime_\w*(?:Clock|Perf|Now|Monotonic)|strftime|localtime|py_get_system_clock"
            r"|py_get_monotonic_clock",
            "it reads the clock",
            "hand the time in as an argument, or freeze it in a fixture",
        ),
        (
            r"\bgetrandom|py_?u?random\b|_Py?OS_URandom|\burandom|getentropy",
            "it takes random bytes that have no seed",
            "hand the bytes in, or use random, which is seeded before each call",
        ),
        (
            r"\bpthread_create|thread_PyThread_start|\bstart_thread",
            "it starts threads",
            "count the work of one thread, or join before the call ends",
        ),
        (
            r"\b_?_?(?:connect|recv(?:from|msg)?|send(?:to|msg)?|poll|epoll_wait|select)\b",
            "it waits for a socket",
            "a fake in the place of the service",
        ),
        (r"\b_?_?getpid\b", "it asks for its process id", "give names a constant length"),
        (
            r"\b_?_?(?:open(?:at)?64?|openat|opendir|getdents(?:64)?|readdir(?:64)?|fstat(?:at)?64|stat64)\b",
            "it reads files or folders",
            "read them in a fixture, and count what comes after",
        ),
    )
)


def find_hints(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Interpret function names: the cause, the first function that shows it, and the remedy.

    >>> find_hints(["timemodule.c:time_time", "ceval.c:eval"])[0][:2]
    ('it reads the clock', 'timemodule.c:time_time')
    """
    found = []
    functions = sorted(names)
    for pattern, what, fix in _CLUES:
        for name in functions:
            if pattern.search(name):
                found.append((what, name, fix))
                break
    return found
