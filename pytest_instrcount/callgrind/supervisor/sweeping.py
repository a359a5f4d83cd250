"""Sweeps processes and files that tests have left behind, once nothing can need them.

Nothing says whose such a thing is, but when it came is known. What came while one of our processes
could make it, and that process still runs, may be needed.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from pytest_instrcount.callgrind.channel import REHEARSAL, rehearsal_name
from pytest_instrcount.callgrind.process import end_orphans
from pytest_instrcount.callgrind.scratch import remove_tree
from pytest_instrcount.host.procfs import now_since_boot, start_of

#: From when to when, in seconds of CLOCK_BOOTTIME.
Span = tuple[float, float]


@dataclass(slots=True)
class Sweeper:
    """Knows which of our processes run, and what came when into ``folder``, the temporary one."""

    folder: Path
    #: process id -> when it may have made what it needs
    _spans: dict[int, Span] = field(default_factory=dict)
    #: name in the folder -> the two looks between which it came
    _names: dict[str, Span] = field(default_factory=dict)
    _looked: float = 0.0

    def begin(self, pid: int) -> None:
        """From its start on, a process may make what it needs."""
        self._spans[pid] = start_of(pid), math.inf

    def settle(self, pid: int) -> None:
        """A process makes no more, and needs what it has made: from here on it only forks."""
        self._spans[pid] = start_of(pid), now_since_boot()
        self._look()

    def forget(self, pid: int) -> None:
        """A process is gone, and needs nothing."""
        self._spans.pop(pid, None)

    def empty(self, zygote: int) -> None:
        """Have the zygote of this number find what the first one found: no file that another has left.

        While others are at work, only what it would find in its own way goes.
        """
        for name in [rehearsal_name(zygote)] if self._spans else os.listdir(self.folder):
            remove_tree(self.folder / name)

    def sweep_processes(self) -> None:
        """End the children of this process that are not ours, and that nobody can need."""
        end_orphans(lambda pid: pid in self._spans or self._may_be_used(pid))

    def sweep_files(self, at_work: Collection[str]) -> None:
        """Delete what is in the folder and nobody can need; folders of tests at work stay."""
        self._look()
        for name, span in list(self._names.items()):
            kept = name in at_work or name.startswith(REHEARSAL)
            if not kept and not self._may_be_needed(span):
                remove_tree(self.folder / name)
                del self._names[name]

    def _look(self) -> None:
        """Know between which two looks each name came into the folder."""
        now = now_since_boot()
        with contextlib.suppress(OSError):
            for name in os.listdir(self.folder):
                self._names.setdefault(name, (self._looked, now))
        self._looked = now

    def _may_be_used(self, pid: int) -> bool:
        start = start_of(pid)
        return self._may_be_needed((start, start))

    def _may_be_needed(self, made: Span) -> bool:
        """True if what was made then may be of a process that still runs."""
        after, by = made
        return any(first <= by and after <= last for first, last in self._spans.values())
