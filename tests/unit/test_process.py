"""What is known of a process that ended badly: where its Python code was."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_instrcount.callgrind import process
from pytest_instrcount.callgrind.endings import where_it_was
from pytest_instrcount.callgrind.process import abort

OURS = Path(process.__file__).parent / "inside.py"
MACHINERY = [
    '  File "/lib/_pytest/python.py", line 166 in pytest_pyfunc_call',
    '  File "/lib/pluggy/_callers.py", line 121 in _multicall',
    f'  File "{OURS}", line 153 in pytest_runtestloop',
    '  File "<frozen importlib._bootstrap>", line 690 in _load_unlocked',
]


def frames(number: int) -> list[str]:
    return [f'  File "/p/test_a.py", line {line} in f' for line in range(number)]


def test_frames_of_the_user_are_shown() -> None:
    """The error, then the frames that are neither pytest's nor ours."""
    lines = [
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x00007f (most recent call first):",
        *frames(2),
        *MACHINERY,
        "",
        "Extension modules: _cffi_backend (total: 1)",
    ]
    assert where_it_was(lines) == [
        "Fatal Python error: Segmentation fault",
        "most recent call first:",
        *frames(2),
    ]


def test_each_thread_of_the_user_is_shown() -> None:
    """And none that has only machinery."""
    thread = "Thread 0x00007f (most recent call first):"
    lines = [thread, *frames(1), thread, *MACHINERY, thread, *frames(2)]
    first = "most recent call first:"
    assert where_it_was(lines) == [first, *frames(1), first, *frames(2)]


def test_a_deep_recursion_is_short() -> None:
    """Where it was, and which test it was."""
    shown = where_it_was(["Current thread 0x1 (most recent call first):", *frames(99), *MACHINERY])
    assert shown[1:9] == frames(99)[:8]
    assert shown[9:] == ["  ... and 88 more", *frames(99)[-3:]]


@pytest.mark.parametrize("lines", [[], [""], MACHINERY])
def test_nothing_of_the_user_is_nothing(lines: list[str]) -> None:
    """A process that ended without a word."""
    assert where_it_was(lines) == []


def test_abort_says_whether_there_was_a_process() -> None:
    """A process that is no more, or never was, hinders nothing."""
    sleeper = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], stderr=subprocess.DEVNULL
    )
    assert abort(sleeper.pid)
    assert sleeper.wait() == -signal.SIGABRT
    assert not abort(sleeper.pid)
    assert not abort(0)


def test_no_signal_is_ignored_or_held_back() -> None:
    """However pytest was started: by nohup, or in the background of a script."""
    seen = (
        "import signal as s; print(s.getsignal(s.SIGINT) is s.default_int_handler, "
        "s.getsignal(s.SIGHUP) is s.SIG_DFL, len(s.pthread_sigmask(s.SIG_BLOCK, ())))"
    )
    code = f"""
import signal, subprocess, sys
from pytest_instrcount.callgrind.process import answer_signals
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
subprocess.run([sys.executable, "-c", {seen!r}], check=True, preexec_fn=answer_signals)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "0"]
