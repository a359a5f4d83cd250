"""What the supervisor keeps of a run."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.supervisor import runs
from pytest_instrcount.callgrind.supervisor.collecting import Files
from pytest_instrcount.host import procfs


def a_run(folder: Path, index: int, pid: int) -> runs.Run:
    """A run whose process has counted: two dumps behind a pilot's three."""
    unused: Any = None
    order = Order("test_a.py::test", "test_a.py", "fork", 60.0, None, None, pilot=True, verbose=0)
    run = runs.Run(runs.Test(index, order), unused, unused, 0.0, "child", folder, {})
    run.parent = type("Process", (), {"pid": pid})()
    run.counter, run.wanted_dumps = pid, [3, 4]
    for number in range(1, 6):
        (folder / f"out.{pid}.{number}").write_text(f"{index} {number}")
    (folder / f"out.{pid}").touch()
    return run


def test_dumps_outlive_their_process_id(tmp_path: Path) -> None:
    """Ids come round: a process that has the id of one before takes away nothing of it."""
    first = a_run(tmp_path, 7, pid=300)
    first.keep_counted()
    second = a_run(tmp_path, 8, pid=300)
    second.keep_counted()
    kept = [[Path(path).read_text() for path in run.counted_dumps] for run in (first, second)]
    assert kept == [["7 4", "7 5"], ["8 4", "8 5"]]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(
    ("work", "pilot", "chosen", "once"),
    [
        ((5.0, 5.5), True, (0, 1), 100.0),  # it sleeps
        ((5.0, 104.9), True, (20, 3), 0.0),  # it is at work, or the machine is loaded
        ((5.0, 5.5), False, (20, 3), 0.0),  # a baseline has said how often
        ((None, None), True, (20, 3), 0.0),  # a kernel that does not say
    ],
)
def test_what_waits_is_not_repeated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    work: tuple[float | None, float | None],
    pilot: bool,
    chosen: tuple[int, int],
    once: float,
) -> None:
    """By the time of its pilot, in which it neither ran nor stood in line for a processor."""
    told: list[bytes] = []
    line = SimpleNamespace(socket=SimpleNamespace(sendall=told.append))
    run = a_run(tmp_path, 1, pid=300)
    run.parent.channel = line  # type: ignore[assignment]
    known = (None, None) if pilot else chosen
    run.test.order = replace(run.test.order, pilot=pilot, warmup=known[0], calls=known[1])
    clock, at_work = iter([50.0, 150.0]), iter(work)
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(runs, "seconds_at_work", lambda pid: next(at_work))
    monkeypatch.setattr(runs, "read_pilot", lambda dumps: 300_000)
    run.times = defaultdict(float)
    clock = iter([0.0, 50.0, 0.0, 150.0])
    run.take(
        {"kind": "pilot", "pid": "300", "warmup": None, "rounds": None, "iterations": 1},
        {},
    )
    run.take({"kind": "ask"}, {})
    assert (run.chosen, run.once) == (chosen, once)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("rounds", "iterations", "ordered", "counted"),
    [
        (None, 10, 30, 30),  # what 3 rounds of 10 gave is counted again as it was
        (None, 10, 1, 10),  # one call that stands for all
        (None, 7, 30, 35),
        (4, 5, 30, 20),  # the test's own number wins
        (None, 1, 3, 3),
    ],
)
def test_an_order_is_in_calls(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rounds: int | None,
    iterations: int,
    ordered: int,
    counted: int,
) -> None:
    """As a baseline says them; a test makes them in whole rounds."""
    run = a_run(tmp_path, 1, pid=300)
    run.parent.channel = SimpleNamespace(  # type: ignore[assignment]
        socket=SimpleNamespace(sendall=lambda packed: None)
    )
    run.test.order = replace(run.test.order, pilot=False, warmup=2, calls=ordered)
    monkeypatch.setattr(runs, "seconds_at_work", lambda pid: 0.0)
    run.take(
        {"kind": "pilot", "pid": "300", "warmup": None, "rounds": rounds, "iterations": iterations},
        {},
    )
    run.take({"kind": "ask"}, {})
    run.take({"kind": "counted"}, {})
    assert run.counted == [2, counted]
    assert len(run.wanted_dumps) == counted // iterations + 1


def test_time_at_work() -> None:
    """Of a process that sleeps it stands still."""
    before = procfs.seconds_at_work(os.getpid())
    time.sleep(1.0)
    after = procfs.seconds_at_work(os.getpid())
    assert before is None or 0 <= after - before < 0.9  # type: ignore[operator]
    assert procfs.seconds_at_work(-1) is None


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        ({"a.py::1": "test_one"}, []),
        (
            {"a.py::1": "test_two"},
            ["here a.py::1 is test_one", "here it is not a.py::1 is test_two"],
        ),
        ({"a.py::2": "test_one"}, ["here this test is a.py::1", "here it is not its file has"]),
    ],
)
def test_an_id_of_another_test_is_none(ids: dict[str, str], why: list[str]) -> None:
    """A conftest may number ids by their place among all tests, which is another one in each process."""
    told: list[str] = []
    state: Any = SimpleNamespace(
        place="here it is not", give_problem=lambda _, text: told.append(text)
    )
    order = Order("a.py::1", "a.py", "fork", 60.0, None, None, True, 0, case="test_one")
    file: Any = SimpleNamespace(collected={"problem": ""}, ids=ids)
    files = Files(state, lambda *_: None)
    assert files.has(runs.Test(0, order), file) is not bool(why)
    assert [line for text in told for line in text.splitlines()][:2] == why
