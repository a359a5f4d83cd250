"""The processes of a run, as /proc shows them: of which kind each is, its CPU time, memory, descriptors."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: By their distance from the supervisor; what is further away is a test's, too.
KINDS = ("pytest", "supervisor", "launcher", "zygote", "file child", "test child")
_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")


def adopt_orphans() -> None:
    """Become the parent of what loses its own: of supervisors, and of what a run leaves behind."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def children() -> dict[int, list[int]]:
    """Process id -> those of its children, of the whole machine."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))):
            found.setdefault(int(stat[1]), []).append(int(name))
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name: state, parent, ..."""
    try:
        text = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


@dataclass(slots=True)
class Use:
    """What processes of one kind used; of memory and descriptors, the most that one of them had."""

    cpu: float = 0.0
    peak: int = 0
    descriptors: int = 0
    processes: int = 0


@dataclass(slots=True)
class Watch:
    """Looks at a run again and again; ``uses`` is what was seen, by kind."""

    pid: int
    uses: dict[str, Use] = field(default_factory=lambda: {kind: Use() for kind in KINDS})
    _seen: dict[int, str] = field(default_factory=dict)

    def look(self) -> None:
        """Look once, and let those go that have ended."""
        for pid, kind in self._processes():
            if pid not in self._seen:
                self.uses[kind].processes += 1
            self._seen[pid] = kind
            use = self.uses[kind]
            use.peak = max(use.peak, _peak(pid))
            use.descriptors = max(use.descriptors, _descriptors(pid))
        self._collect()

    def _processes(self) -> Iterator[tuple[int, str]]:
        below = children()
        yield self.pid, "pytest"
        level = [pid for pid in below.get(os.getpid(), ()) if pid != self.pid]
        for kind in (*KINDS[1:], *[KINDS[-1]] * 5):
            yield from ((pid, kind) for pid in level)
            level = [each for pid in level for each in below.get(pid, ())]

    def _collect(self) -> None:
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            # the run's own end is for who started it
            if ended is None or ended.si_pid == self.pid:
                return
            self.note_end(ended.si_pid)
            os.waitpid(ended.si_pid, 0)

    def note_end(self, pid: int) -> None:
        """Add what an ended process used itself, its children not included."""
        stat = _stat(pid)
        kind = "pytest" if pid == self.pid else self._seen.get(pid, "supervisor")
        self.uses[kind].cpu += sum(map(int, stat[11:13])) / _TICKS


def _peak(pid: int) -> int:
    """Bytes of memory that a process had at most."""
    try:
        text = Path("/proc", str(pid), "status").read_text(errors="replace")
    except OSError:
        return 0
    _, _, rest = text.partition("VmHWM:")
    return int(rest.split()[0]) * 1024 if rest else 0


def _descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0
