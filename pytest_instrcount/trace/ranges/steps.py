"""Steps of a loop, counted once however many report them."""

from __future__ import annotations

import threading
import warnings
from typing import ClassVar

from pytest_instrcount.trace.ranges.session import mark


class StepTracker:
    """Counts steps when several parts of a program report each of them.

    A training loop and its two optimizers may all say that a step was done. The count is that of
    the requester that is furthest; each time it grows, the session that is on gets a mark,
    ``step 1``, ``step 2`` and so on. There is one count per process, and threads may share it.

    >>> StepTracker.init("loop"); StepTracker.init("optimizer")
    >>> StepTracker.increment("loop") == StepTracker.increment("optimizer")
    True
    >>> StepTracker.erase("loop"), StepTracker.erase("optimizer"), StepTracker.erase("optimizer")
    (True, True, False)
    """

    _current: ClassVar[int] = 0
    _steps: ClassVar[dict[str, int]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def init(cls, requester: str) -> None:
        """Let ``requester`` start at the present count."""
        with cls._lock:
            cls._steps[requester] = cls._current

    @classmethod
    def erase(cls, requester: str) -> bool:
        """Forget ``requester``, and say whether it was known; the count stays."""
        with cls._lock:
            return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment(cls, requester: str) -> int:
        """Say that ``requester`` has done a step; gives the count.

        A requester that is not known starts at the present count. Warns if the count grows by more
        than 1, as it does when a requester has gone on while the count was not kept.
        """
        with cls._lock:
            cls._steps[requester] = cls._steps.get(requester, cls._current) + 1
            before, now = cls._current, max(cls._steps.values())
            steps = dict(cls._steps)
            cls._current = max(before, now)
        for step in range(before + 1, now + 1):
            mark(f"step {step}")
        if now - before > 1:
            warnings.warn(
                f"instrcount: the step count went from {before} to {now} at once; steps: {steps}",
                stacklevel=2,
            )
        return max(before, now)

    @classmethod
    def current(cls) -> int:
        """The count: steps of the requester that is furthest."""
        return cls._current
