"""Which leftovers of tests are swept, and which may still be needed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pytest_instrcount.callgrind.channel import rehearsal_name
from pytest_instrcount.callgrind.supervisor import sweeping
from pytest_instrcount.callgrind.supervisor.sweeping import Sweeper

ZYGOTE, FILE, TEST, OTHER, ORPHAN = range(10, 15)


class Clock:
    """Seconds since boot, and the processes that have started."""

    def __init__(self) -> None:
        self.now = 0.0
        self.starts: dict[int, float] = {}
        self.ended: list[int] = []

    def read(self) -> float:
        self.now += 1
        return self.now

    def start(self, *pids: int) -> None:
        self.now += 10
        self.starts |= dict.fromkeys(pids, self.now)
        self.now += 10

    def end_orphans(self, known: object) -> None:
        assert callable(known)
        self.ended += [pid for pid in self.starts if not known(pid)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sweeping, "now_since_boot", clock.read)
    monkeypatch.setattr(sweeping, "start_of", lambda pid: clock.starts.get(pid, math.inf))
    monkeypatch.setattr(sweeping, "end_orphans", clock.end_orphans)
    return clock


@pytest.fixture
def sweeper(tmp_path: Path, clock: Clock) -> Sweeper:
    """A zygote that is ready, and has a file of its own."""
    sweeper = Sweeper(tmp_path)
    clock.start(ZYGOTE)
    sweeper.begin(ZYGOTE)
    make(sweeper, "zygote's")
    sweeper.settle(ZYGOTE)
    clock.now += 10
    return sweeper


def make(sweeper: Sweeper, name: str) -> None:
    (sweeper.folder / name).mkdir()
    (sweeper.folder / name / "file").touch()


def names(sweeper: Sweeper) -> set[str]:
    return {path.name for path in sweeper.folder.iterdir()}


def begin(sweeper: Sweeper, clock: Clock, *pids: int) -> None:
    clock.start(*pids)
    for pid in pids:
        sweeper.begin(pid)


def test_files_of_a_test_go_with_it(sweeper: Sweeper, clock: Clock) -> None:
    """What the zygote had made before stays as long as the zygote."""
    begin(sweeper, clock, TEST)
    make(sweeper, "test's")
    clock.now += 10
    sweeper.sweep_files(())
    assert names(sweeper) == {"zygote's", "test's"}
    sweeper.forget(TEST)
    sweeper.sweep_files(())
    assert names(sweeper) == {"zygote's"}
    sweeper.forget(ZYGOTE)
    sweeper.sweep_files(())
    assert not names(sweeper)


def test_what_may_be_of_another_stays(sweeper: Sweeper, clock: Clock) -> None:
    """Nothing says whose a file is that came while two tests ran."""
    begin(sweeper, clock, TEST, OTHER)
    make(sweeper, "somebody's")
    sweeper.forget(TEST)
    sweeper.sweep_files(())
    assert "somebody's" in names(sweeper)
    begin(sweeper, clock, TEST)  # it came before this one
    sweeper.forget(OTHER)
    sweeper.sweep_files(())
    assert names(sweeper) == {"zygote's"}


def test_folders_of_tests_at_work_stay(sweeper: Sweeper) -> None:
    for name in ("child", rehearsal_name(1), "left"):
        make(sweeper, name)
    sweeper.sweep_files({"child"})
    assert names(sweeper) == {"zygote's", "child", rehearsal_name(1)}


def test_a_folder_that_is_gone(sweeper: Sweeper, tmp_path: Path) -> None:
    """A test may delete it; what it held is made again elsewhere."""
    sweeper.folder = tmp_path / "none"
    sweeper.sweep_files(())


@pytest.mark.parametrize(
    ("in_use", "left"), [(False, set()), (True, {"zygote's"})], ids=["idle", "in use"]
)
def test_a_new_zygote(sweeper: Sweeper, in_use: bool, left: set[str]) -> None:
    """It finds no file, or none of those that it makes itself."""
    make(sweeper, rehearsal_name(2))
    if not in_use:
        sweeper.forget(ZYGOTE)
    sweeper.empty(2)
    assert names(sweeper) == left


def test_orphans(sweeper: Sweeper, clock: Clock) -> None:
    """One ends once no process runs that could have started it; known ones never."""
    begin(sweeper, clock, FILE)
    sweeper.settle(FILE)
    begin(sweeper, clock, TEST)
    clock.start(ORPHAN)
    sweeper.sweep_processes()
    assert not clock.ended
    sweeper.forget(TEST)
    sweeper.sweep_processes()
    assert clock.ended == [TEST, ORPHAN]


def test_a_process_that_a_file_needs(sweeper: Sweeper, clock: Clock) -> None:
    """It was started while the file was imported."""
    begin(sweeper, clock, FILE)
    clock.start(ORPHAN)
    sweeper.settle(FILE)
    begin(sweeper, clock, TEST)
    sweeper.forget(TEST)
    sweeper.sweep_processes()
    assert ORPHAN not in clock.ended
