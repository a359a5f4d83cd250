"""Tests that misbehave, and processes that die: the rest is measured, and nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.callgrind.conftest import valgrind_processes

pytestmark = pytest.mark.valgrind


def test_each_fault_is_one_error(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """A segfault, exits, a hang and a fork that goes on: each an error, the others measured."""
    project.makepyfile(
        test_faults="""
        import ctypes, os, subprocess, sys, threading, time, pytest
        pytestmark = pytest.mark.instrcount

        def test_before(): assert sum(range(100))
        def test_segfault(): ctypes.string_at(0)
        def test_exits_at_once(): os._exit(3)
        def test_system_exit(): sys.exit(4)
        @pytest.mark.instrcount(timeout=3)
        def test_never_returns():
            while True: pass
        def test_forks():
            if os.fork() == 0:
                return
            os.wait()
        def test_leaves_a_process():
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        def test_starts_a_thread():
            thread = threading.Thread(target=lambda: None)
            thread.start()
            thread.join()
        @pytest.mark.instrcount(isolation="process")
        def test_alone(): assert sum(range(100))
        def test_after(): assert sum(range(100))
        """,
        test_threads="""
        import threading, pytest
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        @pytest.mark.instrcount
        def test_beside_a_thread(): assert sum(range(100))
        """,
    )
    result, tests = run("--instrcount-timeout=30")
    text = " ".join(result.stdout.str().split())
    verdicts = {nodeid.partition("::")[2]: test["verdict"] for nodeid, test in tests.items()}
    assert verdicts.pop("test_segfault") == "failed"
    assert "was killed by SIGSEGV" in text
    assert verdicts.pop("test_exits_at_once") == "failed"
    assert "exited with status 3" in text
    assert verdicts.pop("test_never_returns") == "failed"
    assert "did not end within 3 s" in text
    assert "FAILED test_faults.py::test_system_exit - SystemExit: 4" in text
    assert set(verdicts.values()) == {"new"}, verdicts
    assert {"test_before", "test_after", "test_alone", "test_beside_a_thread"} <= set(verdicts)
    assert "threads were alive, so it had a process of its own" in text
    assert not valgrind_processes(project.path)


@pytest.mark.long
def test_a_file_that_cannot_be_forked(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """As where processes are limited: it is imported again some times, and not for ever."""
    project.makepyfile(
        test_no_fork="""
        import os, pytest
        def killed():
            if "INSTRCOUNT_CHILD" in os.environ:
                os.kill(os.getpid(), 9)
        os.register_at_fork(before=killed)
        @pytest.mark.instrcount
        def test_here(): pass
        @pytest.mark.instrcount
        def test_there(): pass
        """,
        test_beside="""
        import pytest
        @pytest.mark.instrcount
        def test_measured(): pass
        """,
    )
    result, _ = run("--instrcount-blame=off")
    result.assert_outcomes(passed=1, errors=2)
    assert result.stdout.str().count("was killed by SIGKILL when it was to fork") >= 2


def test_the_limit_of_a_test_is_none_for_the_start(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """Nor for the import of its file: a loaded machine takes long for both."""
    project.makeconftest("import time; time.sleep(5)")
    project.makepyfile(
        test_it="""
        import os, time, pytest
        if "INSTRCOUNT_CHILD" in os.environ:
            time.sleep(5)
        @pytest.mark.instrcount(warmup=0, calls=1)
        def test_it(): pass
        """
    )
    result, tests = run("--instrcount-timeout=4")
    assert [test["verdict"] for test in tests.values()] == ["new"], result.stdout.str()


@pytest.mark.long
def test_where_it_was_is_said(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """The user's line, each in its own failure, of what crashed or was out of time."""
    project.makepyfile(
        test_faults="""
        import ctypes, time, pytest
        pytestmark = pytest.mark.instrcount

        def crash(): ctypes.string_at(0)
        def spin():
            while True: pass
        def test_crashes():
            crash()
        @pytest.mark.instrcount(timeout=8)
        def test_spins():
            spin()
        @pytest.mark.instrcount(timeout=8)
        def test_sleeps():
            time.sleep(100)
        CALLS = []
        def second_call_hangs():
            CALLS.append(1)
            while len(CALLS) > 1: pass
        @pytest.mark.instrcount(timeout=8)
        def test_counts(instrcount):
            instrcount(second_call_hangs)
        """,
        test_import="""
        import os, time, pytest
        if "INSTRCOUNT_CHILD" in os.environ:
            time.sleep(100)
        @pytest.mark.instrcount
        def test_never(): pass
        """,
    )
    project.makeconftest(
        "from pytest_instrcount.host import patience\npatience.START_SECONDS = 20.0\n"
    )
    result, tests = run("--instrcount-timeout=30")
    assert {test["verdict"] for test in tests.values()} == {"failed"}
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR at setup of test_crashes _*",
            "Fatal Python error: Segmentation fault",
            "  File *test_faults.py*, line 4 in crash",
            "  File *test_faults.py*, line 8 in test_crashes",
            "  fix: *-m pytest test_faults.py::test_crashes *",
            "*_ ERROR at setup of test_spins _*",
            "  File *test_faults.py*, line 6 in spin",
            "  File *test_faults.py*, line 11 in test_spins",
            "  fix: *-m pytest --instrcount --instrcount-timeout=SECONDS test_faults.py::*    # timeout=*wins",
            "*_ ERROR at setup of test_sleeps _*",
            "  File *test_faults.py*, line 14 in test_sleeps",
            "*_ ERROR at setup of test_counts _*",
            "*did not end within 8 s*",
            "  File *test_faults.py*, line 18 in second_call_hangs",
            "*_ ERROR at setup of test_never _*",
            "instrcount: importing its file took longer than * s under Valgrind [[]timeout]",
            "  File *test_import.py*, line 3 in <module>",
        ]
    )
    assert "inside.py" not in result.stdout.str()
    assert "Aborted" not in result.stdout.str()


def _wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")


@pytest.fixture
def slow_run(project: pytest.Pytester) -> Any:
    """A run that is busy for long: six tests, of which the first takes seconds."""
    project.makepyfile(
        test_slow="""
        import pytest
        @pytest.mark.instrcount(warmup=0, calls=1)
        @pytest.mark.parametrize("size", [300_000] + [100] * 5)
        def test_sum(size): assert sum(i for i in range(size))
        """
    )
    options = ["--instrcount-update-baseline", "--instrcount-blame=off", "-v"]
    command = [sys.executable, "-m", "pytest", *options]
    return subprocess.Popen(
        command, cwd=project.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_interrupt_leaves_nothing(project: pytest.Pytester, slow_run: Any) -> None:
    """Ctrl-C: no process stays, no baseline is written."""
    _wait_for(lambda: len(valgrind_processes(project.path)) > 3)
    slow_run.send_signal(signal.SIGINT)
    output, _ = slow_run.communicate(timeout=60)
    assert slow_run.returncode == 2
    assert "KeyboardInterrupt" in output
    assert "no baseline was written" in output
    _wait_for(lambda: not valgrind_processes(project.path))
    assert not project.path.joinpath("instrcount_baselines").exists()


def test_kill_leaves_nothing(project: pytest.Pytester, slow_run: Any) -> None:
    """SIGKILL of pytest itself: the processes under Valgrind end all the same."""
    _wait_for(lambda: len(valgrind_processes(project.path)) > 3)
    slow_run.kill()
    slow_run.communicate(timeout=60)
    _wait_for(lambda: not valgrind_processes(project.path))


@pytest.mark.long
def test_killed_zygotes_are_replaced(project: pytest.Pytester, slow_run: Any) -> None:
    """SIGKILL of all processes under Valgrind, then of those in their place on their way: all is measured."""
    killed: set[int] = set()

    def others(least: int) -> set[int]:
        found = set(valgrind_processes(project.path)) - killed
        return found if len(found) >= least else set()

    for least in (4, 2):
        pids = _wait_for(partial(others, least))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(pids)
    output, _ = slow_run.communicate(timeout=240)
    measured = re.search(r"^instrcount: (\d+) new", output, re.MULTILINE)
    assert measured is not None, output
    assert int(measured[1]) == 6, output


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        *[
            (f"ulimit -v {size};", f"is given {size * 1.024e-3:.0f} MB of memory (ulimit -v)")
            for size in (80_000, 100_000, 110_000, 120_000)
        ],
        ("ulimit -d 100000;", "is given 102 MB of memory (ulimit -d)"),
        ("PATH=/nowhere;", "no 'valgrind'"),
    ],
)
def test_valgrind_that_cannot_run(project: pytest.Pytester, prefix: str, said: str) -> None:
    """One message that ends in the command that mends it; exit 4. Who misses memory first does not matter."""
    project.makepyfile(test_a="import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    done = subprocess.run(
        ["/bin/sh", "-c", f"{prefix} exec {sys.executable} -m pytest --instrcount"],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert "fix: " in done.stdout + done.stderr
    assert not valgrind_processes(project.path)
