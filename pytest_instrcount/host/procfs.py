"""Facts about processes from the kernel: state, start time, exit status, environment."""

from __future__ import annotations

import math
import os
import select
import time
from pathlib import Path

from pytest_instrcount.host.patience import Patience

#: A fork is answered in milliseconds; a parent that is stopped or swapped out gets this long.
ORDER_SECONDS = 60.0


def seconds_at_work(pid: int) -> float | None:
    """Seconds for which a process ran or waited for a processor; None if the kernel does not count these."""
    try:
        running, in_line, _ = Path("/proc", str(pid), "schedstat").read_text().split()
        return (int(running) + int(in_line)) / 1e9
    except (OSError, ValueError):
        return None


def state_of(pid: int) -> str:
    """The letter for what a process does (``T`` is stopped); "" if it is gone."""
    return _stat_fields(pid)[0]


def parent_of(pid: int) -> int:
    """The process id of a process's parent; 0 if it is gone."""
    return int(_stat_fields(pid)[1] or 0)


def environment_of(process: int | str) -> dict[str, str]:
    """What a process, or ``self``, was started with; nothing where that cannot be read."""
    try:
        pairs = os.fsdecode(Path("/proc", str(process), "environ").read_bytes()).split("\0")
    except OSError:  # not every process may read it, nor has every system the file
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def start_of(pid: int) -> float:
    """When a process started, in seconds of CLOCK_BOOTTIME; a time to come if it is gone."""
    ticks = _stat_fields(pid)[19]
    return int(ticks) / os.sysconf("SC_CLK_TCK") if ticks else math.inf


def now_since_boot() -> float:
    """The time as `start_of` has it, rounded up as much as the kernel rounds down."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) + 2 / os.sysconf("SC_CLK_TCK")


def _stat_fields(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` behind the name, from the state on; "" if it is gone."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return [""] * 50
    return stat.rpartition(")")[2].split()


def exit_status(pid: int) -> int | None:
    """The wait status of an ended process that its parent has not let go yet; None if unknown."""
    fields = _stat_fields(pid)
    return int(fields[-1]) if fields[0] == "Z" else None


def exit_status_within(pid: int, seconds: float) -> int | None:
    """The wait status of a process that ends in that time and is not let go by then; else None."""
    descriptor = open_pidfd(pid)
    if descriptor >= 0:
        ends_within(descriptor, seconds)
        os.close(descriptor)
    return exit_status(pid)


def wait_for_end(pid: int) -> None:
    """Wait until a killed process has ended; it stays a zombie until its parent lets it go."""
    descriptor = open_pidfd(pid)
    if descriptor >= 0:
        Patience(ORDER_SECONDS).spend(lambda seconds: ends_within(descriptor, seconds))
        os.close(descriptor)


def ends_within(pidfd: int, seconds: float) -> bool:
    """True if the process ends in that time."""
    waiting = select.poll()
    waiting.register(pidfd, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def open_pidfd(pid: int) -> int:
    """A descriptor that is readable once the process has ended, or -1 where the system has none."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1
