"""Tests that start processes and threads, end their own, or hinder those of the plugin."""

from __future__ import annotations

import pytest

from tests.faults.conftest import Compared, Fault, Place, compare, faulty_file

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

SLEEP = '[sys.executable, "-c", "import time; time.sleep(600)"]'
TIMEOUT = "@pytest.mark.instrcount(timeout=8)"
ONCE = "@pytest.mark.instrcount(warmup=1, calls=1)"

FAULTS = {
    "leaves_a_process": Fault(f"subprocess.Popen({SLEEP})"),
    "leaves_a_daemon": Fault(
        """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 4096)
                time.sleep(600)
            os._exit(0)
        os.wait()
        """,
        marker=ONCE,
    ),
    "leaves_a_fork_that_ignores_signals": Fault(
        """
        if os.fork() == 0:
            os.setpgid(0, 0)
            for number in (1, 2, 3, 6, 15): signal.signal(number, signal.SIG_IGN)
            time.sleep(600)
        """,
        marker=ONCE,
    ),
    "forks_and_returns_twice": Fault(
        """
        if os.fork() == 0:
            return
        os.wait()
        """
    ),
    "leaves_a_thread": Fault(
        "threading.Thread(target=threading.Event().wait, daemon=True).start()", marker=ONCE
    ),
    "leaves_a_thread_that_is_waited_for": Fault(
        "threading.Thread(target=threading.Event().wait).start()", marker=ONCE
    ),
    "pool_by_fork": Fault(
        """
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, 2]) == [1, 2]
        """,
        marker=ONCE,
    ),
    "pool_by_spawn": Fault(
        """
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.map(abs, [-1, 2]) == [1, 2]
        """,
        marker=ONCE,
    ),
    "pool_by_forkserver": Fault(
        """
        with multiprocessing.get_context("forkserver").Pool(1) as pool:
            assert pool.map(abs, [-1, 2]) == [1, 2]
        """,
        marker=ONCE,
    ),
    "leaves_a_pool": Fault(
        'CALLS.append(multiprocessing.get_context("fork").Pool(1))', marker=ONCE
    ),
    "event_loop": Fault("asyncio.run(asyncio.sleep(0))", marker=ONCE),
    "leaves_an_event_loop": Fault("CALLS.append(asyncio.new_event_loop())", marker=ONCE),
    "new_session": Fault("os.setsid() if os.getsid(0) != os.getpid() else None"),
    "exits_at_once": Fault("os._exit(0)", "failed", "exited with status 0 before the test ended"),
    "aborts": Fault("os.abort()", "failed", "was killed by SIGABRT"),
    "crashes": Fault("ctypes.string_at(0)", "failed", "was killed by SIGSEGV"),
    "kills_itself": Fault("os.kill(os.getpid(), 9)", "failed", "was killed by SIGKILL"),
    "terminates_itself": Fault("os.kill(os.getpid(), 15)", "failed", "was killed by SIGTERM"),
    "kills_its_repetition": Fault(
        """
        CALLS.append(1)
        if len(CALLS) > 3: os.kill(os.getpid(), 9)
        """,
        "failed",
        "killed by SIGKILL while it was counted, or TMPDIR is full (df -h) [not-measured]",
    ),
    "crashes_when_repeated": Fault(
        """
        CALLS.append(1)
        if len(CALLS) > 3: ctypes.string_at(0)
        """,
        "failed",
        "its process was killed by SIGSEGV while it was counted [not-measured]",
    ),
    "kills_the_process_of_its_file": Fault(
        "os.kill(os.getppid(), 9); time.sleep(60)",
        "failed",
        "went down with the zygote before the test ended",
    ),
    "kills_its_group": Fault("os.killpg(0, 9)", "failed", "before the test ended"),
    "stops_the_process_of_its_file": Fault("os.kill(os.getppid(), signal.SIGSTOP)"),
    "stops_itself": Fault(
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "failed",
        "did not end within 8 s",
        marker=TIMEOUT,
    ),
    "never_returns": Fault("while True: pass", "failed", "did not end within 8 s", marker=TIMEOUT),
    "sleeps": Fault("time.sleep(600)", "failed", "did not end within 8 s", marker=TIMEOUT),
    "leaves_a_process_that_prints": Fault(
        """subprocess.Popen([sys.executable, "-c", "while 1: print('x' * 9999)"])""", marker=ONCE
    ),
}

#: Beside tests that end, and sweep what they left, one needs its daemon to the end.
DAEMON = """
import os, socket, time, pytest

@pytest.mark.instrcount(warmup=0, calls=1)
def test_needs_its_daemon():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    server.accept()[0].sendall(b"here")
            os._exit(0)
        os.wait()
    for _ in range(20):
        with socket.create_connection(address) as client:
            assert client.recv(4) == b"here"
        time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def compared(module_place: Place) -> Compared:
    """All faults in one run."""
    module_place.write("test_daemon.py", DAEMON)
    module_place.write("test_faults.py", faulty_file(FAULTS))
    return compare(module_place)


@pytest.mark.parametrize("name", FAULTS)
def test_fault(compared: Compared, name: str) -> None:
    compared.assert_fault(name, FAULTS[name])


def test_the_others_are_equal(compared: Compared) -> None:
    compared.assert_others_equal()


def test_a_daemon_in_use_is_let_be(compared: Compared) -> None:
    """Tests that end beside it sweep what they left, and no more."""
    assert compared.faulty.verdict("test_needs_its_daemon") == "new", compared.faulty.output


def test_nothing_is_left(compared: Compared) -> None:
    compared.place.assert_nothing_left(compared.tree)
