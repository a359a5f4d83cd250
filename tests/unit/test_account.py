"""The account of a run: phases, records, what is said once, and the folder to look into."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_instrcount.host.account as public
from pytest_instrcount.host.account import current as book
from pytest_instrcount.host.account.current import (
    Account,
    close_account,
    current,
    open_account,
    phase,
    timed,
)
from pytest_instrcount.host.account.debug import LOG, DebugFolder
from pytest_instrcount.host.account.once import REMEMBERED, Once
from pytest_instrcount.host.account.randomness import keep_random_state
from pytest_instrcount.host.account.records import RECORDS, MeasurementRecord
from pytest_instrcount.host.account.render import advise, render_account, timings_csv
from pytest_instrcount.host.account.timings import (
    WAITING,
    PhaseTime,
    Span,
    Timings,
    apportion,
    process_start,
)


class Clock:
    """Says what it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def account(clock: Clock) -> Iterator[Account]:
    """An account of a run that goes on."""
    account = Account(Timings(clock))
    open_account(account)
    yield account
    close_account(account)


def walls(timings: Timings) -> dict[str, float]:
    return {row.phase: row.wall for row in timings.rows()}


# --- phases ---------------------------------------------------------------------------------------


def test_each_moment_counts_once(account: Account, clock: Clock) -> None:
    """It belongs to the innermost phase; by context manager and by decorator alike."""

    @timed("parse")
    def parse(seconds: float) -> float:
        clock.now += seconds
        return seconds

    clock.now += 1
    with phase("report"):
        clock.now += 2
        assert parse(5) == 5
        parse(6)
        clock.now += 3
    clock.now += 4
    assert walls(account.timings) == {"parse": 11, "report": 5, "other": 5}
    assert account.timings.explained() == 16 / 21
    (row,) = (row for row in account.timings.rows(by_function=True) if row.function)
    assert (row.phase, row.times) == ("parse", 2)
    assert row.function.endswith("parse")


def test_an_error_ends_its_phases(account: Account, clock: Clock) -> None:
    """What comes after it belongs to those around it."""

    @timed("parse")
    def fail() -> None:
        clock.now += 1
        raise ZeroDivisionError

    with phase("report"):
        with pytest.raises(ZeroDivisionError):
            fail()
        clock.now += 2
    assert walls(account.timings) == {"report": 2, "parse": 1}


def test_without_an_account_nothing_is_kept() -> None:
    """What is timed runs as ever."""

    @timed("parse")
    def parse() -> int:
        return 3

    assert current() is None
    with phase("report"):
        assert parse() == 3


def test_a_wait_belongs_to_what_processes_do(account: Account, clock: Clock) -> None:
    """In equal parts where two are at work; what is left is waiting; a process counts whole."""
    with phase(WAITING):
        clock.now += 10
    clock.now += 1
    account.spent(Span("fixtures", 98.0, 102.0), "a")
    account.spent(Span("count", 101.0, 104.0), "a")
    account.spent(Span("count", 109.0, 200.0), "b")
    rows = {row.phase: (row.wall, row.total, row.times) for row in account.timings.rows()}
    assert rows == {
        "waiting": (5.0, 5.0, 1),
        "count": (3.5, 94.0, 2),
        "fixtures": (1.5, 4.0, 1),
        "other": (1.0, 1.0, 0),
    }
    assert account.seconds_of("a") == {"fixtures": 4.0, "count": 3.0}
    assert account.seconds_of("a") == {}


@given(
    waits=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), max_size=5),
    spans=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 30)), max_size=8
    ),
)
def test_no_more_is_apportioned_than_was_waited(
    waits: list[tuple[int, int]], spans: list[tuple[str, int, int]]
) -> None:
    """Each moment of a wait in which anything went on is given away once, whole."""
    apart: list[tuple[float, float]] = []
    for start, length in sorted(waits):
        if not apart or start >= apart[-1][1]:
            apart.append((start, start + length))
    given_spans = [Span(name, start, start + length) for name, start, length in spans]
    found = apportion(apart, given_spans)
    busy = sum(
        any(start <= moment < end for start, end in apart)
        and any(span.start <= moment < span.end for span in given_spans)
        for moment in range(100)
    )
    assert sum(found.values()) == pytest.approx(busy)
    assert all(seconds > 0 for seconds in found.values())


def test_the_purpose_is_that_of_the_innermost(account: Account) -> None:
    """What is asked of processes stands for what it is asked for."""
    with phase("layouts"), phase("parse"):
        assert account.timings.purpose == "layouts"
        with phase("calls"):
            assert account.timings.purpose == "calls"
    assert account.timings.purpose == ""


def test_the_start_of_this_process() -> None:
    """It was before now, and after the machine's."""
    start = process_start()
    assert start is not None
    assert 0 < start < time.monotonic()


# --- as text --------------------------------------------------------------------------------------


def test_the_table(account: Account, clock: Clock) -> None:
    """Phases by their share, counters by category, records, and the setting to change."""
    with phase("tests, natively"):
        clock.now += 3
    clock.now += 1
    account.counters["verdicts"].update(unchanged=2, new=1)
    account.elsewhere["gw0"] = [PhaseTime("parse", 1.0, 2.0, 7)]
    lines = render_account(account)
    assert lines[2].split() == ["tests,", "natively", "3.00", "s", "75.0", "%", "3.00", "s", "1"]
    assert [line.split()[0] for line in lines[2:5]] == ["tests,", "other", "parse"]
    assert lines[5:] == [
        "explained: 75.0 % of 4.00 s",
        "verdicts: 1 new, 2 unchanged",
        "records: 0 of 0 kept",
        "most of it: tests, natively, 75.0 %",
        "  change: --instrcount-only    (leaves out the tests that are not measured)",
    ]


@pytest.mark.parametrize(
    ("rows", "records", "ends"),
    [
        ([("layouts", 2.0), ("count", 1.0)], (1, 1), "  change: max_delta="),
        ([("parse", 2.0), ("count", 1.0)], (1, 1), "  change: --instrcount-calls=1"),
        (
            [("zygote start, compiling", 2.0)],
            (1, 1),
            "  change: unset PYTHONDONTWRITEBYTECODE ",
        ),
        (
            [("parse", 2.0)],
            (64, 100),
            "  change: pytest_instrcount.host.account.set_record_limit(100)",
        ),
    ],
)
def test_it_ends_in_the_setting_to_change(
    rows: list[tuple[str, float]], records: tuple[int, int], ends: str
) -> None:
    """That of the longest phase that has one; of the records, if some are gone."""
    times = [PhaseTime(name, wall, wall, 1) for name, wall in rows]
    assert advise(times, sum(wall for _, wall in rows), *records)[-1].startswith(ends)


def test_nothing_to_change() -> None:
    assert advise([PhaseTime("parse", 1.0, 1.0, 1)], 1.0, 1, 1) == []


def test_csv(account: Account, clock: Clock) -> None:
    """Each phase and function, workers by name; read back it is the same numbers."""

    @timed("parse, all of it")
    def parse() -> None:
        clock.now += 0.125

    parse()
    account.elsewhere["gw0"] = [PhaseTime("count", 0.0, 2.5, 7)]
    rows = list(csv.DictReader(io.StringIO(timings_csv(account))))
    assert [row["phase"] for row in rows] == ["parse, all of it", "count"]
    assert rows[0]["function"].endswith("parse")
    assert float(rows[0]["wall_seconds"]) == 0.125
    assert (rows[1]["worker"], rows[1]["process_seconds"], rows[1]["times"]) == (
        "gw0",
        "2.500000",
        "7",
    )


# --- records and counters -------------------------------------------------------------------------


def test_report(account: Account, clock: Clock) -> None:
    """By function, the longest first, as pstats has it; of the latest run after its end, too."""
    for number in (1, 2):
        with account.timings.phase("parse", "read"):
            clock.now += number
    with account.timings.phase("store", "write"):
        clock.now += 5
    clock.now += 9
    lines = public.report().splitlines()
    assert [line.split() for line in (lines[0], *lines[2:])] == [
        ["ncalls", "tottime", "percall", "phase(function)"],
        ["1", "5.000", "5.000", "store(write)"],
        ["2", "3.000", "1.500", "parse(read)"],
    ]


def test_records_are_bounded(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """64, unless another number is set; the latest are kept, and the limit outlives the run."""
    monkeypatch.setattr(book, "_limit", RECORDS)
    for number in range(RECORDS + 6):
        account.measured(MeasurementRecord(str(number), ir=number, verdict="new"))
    kept = public.get_records()
    assert (len(kept), kept[0].nodeid, kept[-1].ir) == (64, "6", 69)
    assert public.get_counters()["first counts"] == {"new": 70}
    public.set_record_limit(2)
    assert [record.nodeid for record in public.get_records()] == ["68", "69"]
    assert Account().records.maxlen == 2
    assert account.seen == 70
    public.clear_records()
    assert public.get_records() == []
    with pytest.raises(ValueError, match="not -1"):
        public.set_record_limit(-1)


def test_a_run_within_a_run(account: Account, clock: Clock) -> None:
    """It has an account of its own, and the outer one goes on."""
    inner = Account(Timings(clock))
    open_account(inner)
    with phase("parse"):
        clock.now += 1
    close_account(inner)
    close_account(inner)
    assert current() is account
    assert "parse" not in walls(account.timings)
    assert walls(inner.timings) == {"parse": 1}


# --- once -----------------------------------------------------------------------------------------


def test_once() -> None:
    """4,096 things are remembered; what was said lately, the longest."""
    assert REMEMBERED == 4096
    said = Once(3)
    assert [said.first(each) for each in "abcab"] == [True, True, True, False, False]
    assert said.first("d")
    assert [said.first(each) for each in "abd"] == [False, False, False]
    assert said.first("c")


# --- random numbers -------------------------------------------------------------------------------


def draw() -> None:
    random.random()


def reseed() -> None:
    random.seed(7)
    random.gauss(0, 1)


@pytest.mark.parametrize("disturb", [draw, reseed])
def test_random_state_is_kept(disturb: Callable[[], None]) -> None:
    """After an error, too."""
    random.seed(3)
    random.gauss(0, 1)
    state = random.getstate()

    @keep_random_state()
    def work() -> None:
        disturb()
        assert random.getstate() != state
        raise KeyError

    with pytest.raises(KeyError):
        work()
    assert random.getstate() == state


# --- the folder -----------------------------------------------------------------------------------


def test_the_folder_of_a_run(tmp_path: Path) -> None:
    """Named by date and process; two at one moment are two, and nothing is overwritten."""
    now = datetime(2026, 11, 21, 14, 5, 6, 789)
    folders = [DebugFolder(tmp_path / "debug", now) for _ in range(2)]
    for folder in folders:
        folder.failed(MeasurementRecord("t.py::test_a[1/2]", problem="timeout"), "where it was")
        folder.failed(MeasurementRecord("t.py::test_a[1/2]", problem="no-dump"), "")
        folder.write("timings.csv", "phase\n")
        folder.write("timings.csv", "more\n")
        folder.close()
    name = f"run_2026_11_21_14_05_06_000789-pid_{os.getpid()}"
    assert [folder.path.name for folder in folders] == [name, f"{name}-2"]
    found = sorted(str(path.relative_to(folders[0].path)) for path in folders[0].path.rglob("*.*"))
    assert found == [
        "failed/t.py__test_a_1_2_-2.json",
        "failed/t.py__test_a_1_2_.json",
        "instrcount.log",
        "timings-2.csv",
        "timings.csv",
    ]
    record = json.loads((folders[0].path / "failed/t.py__test_a_1_2_.json").read_text())
    assert (record["nodeid"], record["problem"]) == ("t.py::test_a[1/2]", "timeout")
    assert record["detail"] == "where it was"
    assert (folders[0].path / "timings.csv").read_text() == "phase\n"


def test_logging_is_left_as_it_was_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While the folder is open all is written there, and nowhere else."""
    before = list(LOG.handlers)
    with caplog.at_level(logging.DEBUG):
        account = Account(debug=DebugFolder(tmp_path))
        open_account(account)
        LOG.debug("a line of ours")
        account.measured(MeasurementRecord("t.py::test_a", problem="timeout", why="too long"))
        close_account(account)
    assert LOG.handlers == before
    assert not caplog.records
    assert account.debug is not None
    text = (account.debug.path / "instrcount.log").read_text()
    assert "DEBUG a line of ours" in text
    assert "t.py::test_a: timeout, ir None too long" in text


def test_logs_of_processes_are_kept(tmp_path: Path) -> None:
    """Those that say something, of each zygote apart."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "valgrind0001.log").write_text("==1== words")
    (scratch / "empty.log").touch()
    folder = DebugFolder(tmp_path / "debug")
    folder.keep_logs(scratch)
    folder.keep_logs(scratch)
    folder.close()
    kept = sorted(folder.path.rglob("*.log"))
    assert [str(path.relative_to(folder.path)) for path in kept] == [
        "instrcount.log",
        "processes1/valgrind0001.log",
        "processes2/valgrind0001.log",
    ]
    assert kept[1].read_text() == "==1== words"


def test_what_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    """In the log: a debug folder is no reason to fail a run."""
    folder = DebugFolder(tmp_path)
    (folder.path / "failed").write_text("a file")
    for _ in range(2):
        folder.failed(MeasurementRecord("t.py::test_a"), "")
    folder.close()
    assert (folder.path / "instrcount.log").read_text().count("cannot be written") == 1
