"""Two updates of the same baselines at once: both land, or one says so."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store import updating as module
from pytest_instrcount.gate.store.textfile import write_data
from pytest_instrcount.gate.store.updating import updating
from tests.faults.conftest import UPDATE, Place, wait_for

#: What it counts depends on who runs it; the one that waits has read its baselines by then.
TESTS = """
import os, time, pytest
from pathlib import Path
SIZE = int(os.environ.get("SIZE", "100"))
FLAGS = Path(__file__).parent.parent

@pytest.mark.instrcount
@pytest.mark.parametrize("number", range(4))
def test_good(number): assert sum(range(SIZE + number))

def test_waits():
    if "WAITS" in os.environ:
        (FLAGS / "waits").touch()
        while not (FLAGS / "goes").exists(): time.sleep(0.05)
"""


def stored(place: Place) -> dict[str, int]:
    """The counts in all baselines, each of which must be whole."""
    files = place.path.joinpath("instrcount_baselines").rglob("*.json")
    found = [json.loads(file.read_text()) for file in files]
    return {baseline["nodeid"]: baseline["totals"][0] for baseline in found}


@pytest.mark.long
@pytest.mark.valgrind
def test_two_updates_of_one_code(place: Place) -> None:
    """Equal counts, new or grown: both land, and neither minds the other."""
    place.write("test_a.py", TESTS)
    place.write("pytest.ini", "[pytest]\ninstrcount_env = SIZE\n")
    for size in ("100", "3000"):
        runs = [start_beside(place, name, size) for name in "ab"]
        for run in runs:
            output, _ = run.communicate(timeout=300)
            assert run.returncode == 0, output
        assert len(stored(place)) == 4
        done = place.run(SIZE=size)
        assert {test["verdict"] for test in done.tests.values()} == {"unchanged"}, done.output


@pytest.mark.valgrind
@pytest.mark.long
def test_two_updates_of_two_codes(place: Place) -> None:
    """The one that comes second stores nothing, says so, and ends with code 4."""
    place.write("test_a.py", TESTS)
    place.write("pytest.ini", "[pytest]\ninstrcount_env = SIZE\n")
    flags = place.path.parent
    slow = start_beside(place, "slow", "100", WAITS="1")
    wait_for(lambda: (flags / "waits").exists() or slow.poll() is not None, seconds=200)
    quick = start_beside(place, "quick", "3000")
    output, _ = quick.communicate(timeout=300)
    assert quick.returncode == 0, output
    landed = stored(place)
    assert len(landed) == 4
    (flags / "goes").touch()
    output, _ = slow.communicate(timeout=300)
    assert slow.returncode == 4, output
    assert "[baseline-changed]" in output
    assert "this run has stored nothing" in output
    assert stored(place) == landed


def start_beside(place: Place, name: str, size: str, **env: str) -> subprocess.Popen[str]:
    """An update whose reports are its own."""
    other = Place.__new__(Place)
    other.path, other.temporary, other.has_junit = place.path, place.temporary, False
    other.report = place.path.parent / f"{name}.json"
    other.junit = place.junit
    return other.start(*UPDATE, SIZE=size, **env)


def test_all_or_nothing(tmp_path: Path) -> None:
    """An error on the way leaves what was, and no temp file."""
    (tmp_path / "a").write_text("old")
    with pytest.raises(ZeroDivisionError), updating(tmp_path) as update:  # noqa: PT012
        update.begin()
        update.add(tmp_path / "a", b"new")
        update.add(tmp_path / "b" / "c", b"new")
        raise ZeroDivisionError
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]
    with updating(tmp_path) as update:
        update.begin()
        update.add(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_text() == "new"


def test_a_full_disk_is_looked_for_in_a_folder_that_is_there(tmp_path: Path) -> None:
    """The one that the update had just made goes with it."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(InstrcountError, match=f"df {tmp_path}$"), updating(tmp_path) as update:  # noqa: PT012
        update.begin()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
        try:
            write_data(tmp_path / "cp311" / "a.json", b"long", update.add)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def test_nothing_is_made_for_nothing(tmp_path: Path) -> None:
    """A run that stores nothing makes no folder."""
    with updating(tmp_path / "baselines"):
        pass
    assert not list(tmp_path.iterdir())


WRITER = """
import sys
from pathlib import Path
from pytest_instrcount.gate.store.updating import updating
root, mine = Path(sys.argv[1]), sys.argv[2].encode()
for _ in range(30):
    with updating(root) as update:
        update.begin()
        found = {path.read_bytes()[:1] for path in root.glob("file*")}
        assert len(found) <= 1, found  # of one run, whole
        for number in range(20):
            update.add(root / f"file{number}", mine * 10_000)
"""


def test_updates_take_turns(tmp_path: Path) -> None:
    """Three at once, each of many files: nobody finds the files of two."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)]
    writers = [subprocess.Popen([*command, letter]) for letter in "abc"]
    assert [writer.wait(300) for writer in writers] == [0, 0, 0]
    files = list(tmp_path.iterdir())
    assert len(files) == 20
    assert len({file.read_bytes() for file in files}) == 1


def test_another_update_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for without end."""
    monkeypatch.setattr(module, "_TURN_SECONDS", 0.2)
    with updating(tmp_path) as update:
        update.begin()
        with pytest.raises(InstrcountError) as caught, updating(tmp_path) as late:
            late.begin()
    assert caught.value.slug == "baseline-busy"


def test_signals_wait_for_the_last_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two renames: all are made, then it comes, whichever thread the system gives it to."""
    real = os.replace
    end = threading.Event()
    another = threading.Thread(target=end.wait)

    def replace(source: Path, target: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    another.start()
    try:
        with pytest.raises(KeyboardInterrupt), updating(tmp_path) as update:  # noqa: PT012
            update.begin()
            for number in range(5):
                update.add(tmp_path / str(number), b"new")
    finally:
        end.set()
        another.join()
    assert len(list(tmp_path.iterdir())) == 5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
