"""Guesses from its functions what a nondeterministic test waits for. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Names of libc's functions, which are known whatever Python was built by. A loop releases the
#: interpreter's lock at each turn as well, so it is looked for first.
_HINTS = (
    (
        re.compile(r"\b_*(epoll_p?wait|ppoll|poll|select)\b|\bselect_(epoll|poll|select)_"),
        "one polled more often, as event loops and pools do: for time, a network or a process;",
        "put a fake in the place of what answers late",
    ),
    (
        re.compile(r"\b_*(pthread_cond_(timed|clock)?wait|sem_(timed|clock)?wait|start_thread)\b"),
        "threads waited for each other at other points: how they hand over is up to the system;",
        "count what one of them does, or give an absolute limit",
    ),
)


def waiting(unsteady: Sequence[str]) -> list[str]:
    """Two lines on what the test waits for; none if the functions that differ do not say.

    >>> waiting(["ceval.c:_PyEval_EvalFrameDefault", "epoll_wait"])[1]
    'put a fake in the place of what answers late'
    """
    for pattern, *lines in _HINTS:
        if any(map(pattern.search, unsteady)):
            return lines
    return []
