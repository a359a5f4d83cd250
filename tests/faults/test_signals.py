"""pytest itself is interrupted, ended, killed or stopped, at every stage of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.faults.conftest import UPDATE, Place, wait_for

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

#: What a test may take; enough beside a loaded machine.
LIMIT = 15

#: Two tests, and one of no plugin's that says when they have been counted.
TESTS = """
import time, pytest
from pathlib import Path

@pytest.mark.instrcount
@pytest.mark.parametrize("number", range(2))
def test_good(number): assert sum(range(100 + number))

@pytest.mark.instrcount(warmup=0, calls=1)
def test_long(): time.sleep(1)
"""

#: Stage -> the line after which it is on.
STAGES = {
    "start": "test session starts",
    "measuring": "measuring 3 tests under Valgrind",
    "counted": "test_good[1]",
    "layouts": "measuring 3 tests again",
    "attributing": "by Python function",
}


def read_until(run: subprocess.Popen[str], words: str) -> str:
    """What a run says up to a line with these words."""
    assert run.stdout is not None
    said = ""
    for line in run.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(f"it never said {words!r}:\n{said}")


@pytest.mark.parametrize(
    ("stage", "name"),
    [
        *((stage, "SIGINT") for stage in STAGES),
        ("start", "SIGTERM"),
        ("measuring", "SIGTERM"),
        ("layouts", "SIGTERM"),
        ("measuring", "SIGHUP"),
        ("start", "SIGKILL"),
        ("measuring", "SIGKILL"),
        ("attributing", "SIGKILL"),
    ],
)
def test_pytest_is_ended(place: Place, stage: str, name: str) -> None:
    """All processes end, all temporary files go, and no baseline is stored."""
    place.write("test_a.py", TESTS)
    tree = place.tree()
    run = place.start("--instrcount-update-baseline")
    said = read_until(run, STAGES[stage])
    run.send_signal(getattr(signal, name))
    done = place.end(run)
    if name == "SIGINT":
        assert done.code == 2, said + done.output
    else:
        assert done.code == -getattr(signal, name), said + done.output
    place.assert_nothing_left(tree)


def test_the_watching_process_is_killed(place: Place) -> None:
    """Said with code 4; what it had started ends with it."""
    place.write("test_a.py", TESTS)
    tree = place.tree()
    run = place.start("--instrcount-update-baseline")
    read_until(run, STAGES["measuring"])
    os.kill(supervisor_of(place), signal.SIGKILL)
    done = place.end(run)
    assert done.code == 4, done.output
    assert "the process that watches over Valgrind ended" in done.output
    place.assert_nothing_left(tree)


def supervisor_of(place: Place) -> int:
    """The process between pytest and Valgrind."""
    found = supervisors_of(place)
    assert found
    return min(found)


def supervisors_of(place: Place) -> list[int]:
    """It, and a process that it forks: that is called like it until it has become Valgrind."""
    lines = place.processes()
    return [int(line.split()[0]) for line in lines if "callgrind.supervisor" in line]


def test_pytest_is_stopped(place: Place) -> None:
    """Ctrl-Z for longer than a test may take, with more results than a socket holds: none is late."""
    place.write(
        "test_a.py",
        f"""
        import pytest
        @pytest.mark.instrcount(timeout={LIMIT})
        @pytest.mark.parametrize("number", range(12))
        def test_prints(number): print("x" * 100_000)
        """,
    )
    tree = place.tree()
    good = place.run()
    run = place.start()
    read_until(run, "measuring 12 tests under Valgrind")
    run.send_signal(signal.SIGSTOP)
    # all are counted meanwhile
    wait_for(lambda: is_idle(place), place.processes, 300)
    time.sleep(LIMIT)
    run.send_signal(signal.SIGCONT)
    done = place.end(run)
    assert done.code == 0, done.output
    assert done.counts() == good.counts()
    assert len(good.counts()) == 12
    place.assert_nothing_left(tree)


def is_idle(place: Place) -> bool:
    """Whether nobody counts, and somebody has."""
    dumps = list(place.temporary.glob("instrcount-*/dumps/counted.*"))
    return len(dumps) >= 24 and len(place.processes()) <= 5


def test_all_is_stopped(place: Place) -> None:
    """A container is paused for longer than a test may take: nothing was late."""
    place.write("test_a.py", TESTS.replace("instrcount\n", f"instrcount(timeout={LIMIT})\n"))
    tree = place.tree()
    run = place.start()
    read_until(run, "test_good[1]")
    supervisor = supervisor_of(place)
    pids = [int(line.split()[0]) for line in place.processes()]
    others = [pid for pid in pids if pid not in (run.pid, supervisor)]
    for pid in (supervisor, *others):
        os.kill(pid, signal.SIGSTOP)
    try:
        run.wait(LIMIT + 4)
        raise AssertionError("it has gone on")
    except subprocess.TimeoutExpired:
        pass
    for pid in (*others, supervisor):
        os.kill(pid, signal.SIGCONT)
    done = place.end(run)
    assert done.code == 0, done.output
    assert len(done.counts()) == 3
    place.assert_nothing_left(tree)


def test_a_temp_file_of_a_killed_update_is_swept(place: Place) -> None:
    """A kill between the writing and the renaming leaves one; the next update takes it away."""
    place.write("test_a.py", "import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    folder = place.path / "instrcount_baselines" / "cp311"
    folder.mkdir(parents=True)
    Path(folder, ".0123456789ab.instrcount-tmp").write_text("half of a")
    assert place.run(*UPDATE).code == 0
    assert not list(place.path.rglob("*tmp*"))
