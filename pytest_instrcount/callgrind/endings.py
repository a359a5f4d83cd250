"""Descriptions of how a process ended, and where it was."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

#: Lines that are shown of what was printed last.
TAIL_LINES = 12
#: How Valgrind begins to say that it failed itself, and its stack of functions without names.
_VALGRINDS_OWN = (
    "VALGRIND INTERNAL ERROR",
    "valgrind: the 'impossible' happened",
    "valgrind: Unrecognised instruction",
)
_FRAMES = ("   at 0x", "   by 0x")
#: Frames of one thread that are shown: the innermost, where it was, and the outermost, the test.
_INNER_FRAMES, _OUTER_FRAMES = 8, 3
_NOT_THE_USERS = (
    "/_pytest/",
    "/pluggy/",
    "/importlib/__init__.py",
    "<frozen importlib",
    f"{Path(__file__).parents[1]}/",
)


def where_it_was(lines: Sequence[str]) -> list[str]:
    """Of what faulthandler wrote, the user's part: no frames of pytest's or of ours.

    >>> where_it_was(["Current thread 0x1 (most recent call first):", '  File "/a.py", line 3 in f'])
    ['most recent call first:', '  File "/a.py", line 3 in f']
    """
    words: list[str] = []
    frames: list[str] = []

    def end_thread() -> None:
        if frames:
            words.append("most recent call first:")
        left = len(frames) - _INNER_FRAMES - _OUTER_FRAMES
        if left > 0:
            frames[_INNER_FRAMES:-_OUTER_FRAMES] = [f"  ... and {left} more"]
        words.extend(frames)
        frames.clear()

    for line in lines:
        if line.startswith("  "):
            if not any(part in line for part in _NOT_THE_USERS):
                frames.append(line)
            continue
        end_thread()
        if line and not line.startswith(("Current thread", "Thread 0x", "Extension modules")):
            words.append(line)
    end_thread()
    return words


def valgrinds_words(log: Sequence[str], pid: int) -> list[str]:
    """The end of what Valgrind said of one process; where it failed itself, the beginning of that.

    >>> valgrinds_words(["==7== one", "==8== two", "valgrind: three"], 7)
    ['one', 'valgrind: three']
    """
    own = f"=={pid}==", f"--{pid}--", "valgrind:"
    said = [
        line.removeprefix(own[0]).removeprefix(own[1]).removeprefix(" ")
        for line in log
        if line.startswith(own)
    ]
    for number, line in enumerate(said):
        if line.startswith(_VALGRINDS_OWN):
            return [each for each in said[number:] if not each.startswith(_FRAMES)][:TAIL_LINES]
    return said[-TAIL_LINES:]


def read_lines(path: Path, start: int = 0) -> list[str]:
    """The lines of a file from a byte on; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, path.stat().st_size - (1 << 16)))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []


def describe_status(status: int) -> str:
    """Describe how a process ended.

    >>> describe_status(11), describe_status(3 << 8)
    ('was killed by SIGSEGV', 'exited with status 3')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return f"was killed by {signal.Signals(number).name}"
        except ValueError:
            return f"was killed by signal {number}"
    return f"exited with status {os.waitstatus_to_exitcode(status)}"


def wait_status_of(code: int) -> int:
    """Convert a return code of Popen into a wait status, as from waitpid().

    >>> wait_status_of(-9), wait_status_of(3)
    (9, 768)
    """
    return -code if code < 0 else code << 8


def describe_popen(code: int | None) -> str:
    """Describe how the process of a Popen ended."""
    if code is None:
        return "is still there"
    return describe_status(wait_status_of(code))


def unaborted(words: list[str], aborted: object) -> list[str]:
    """The output of faulthandler without the line about our own abort signal."""
    return [line for line in words if not (aborted and line.startswith("Fatal Python error"))]
