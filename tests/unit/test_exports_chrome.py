"""The trace of Chrome and Perfetto: loads with no dropped slice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.check import broken_rules
from pytest_instrcount.trace.columns import Flag, Folded, Task
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.export.chrome import microseconds
from pytest_instrcount.trace.timeline import (
    ASYNC,
    Detail,
    Flow,
    Mark,
    MemorySample,
    Timeline,
    Track,
    column,
)
from tests.perfetto import Loaded, load, nanoseconds
from tests.timelines import call, deep, ranged, timeline_of, timelines

ONE_FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def exported(timeline: Timeline, folder: Path, **bounds: float) -> Loaded:
    path = folder / "trace.json"
    EventList(timeline).export_chrome_trace(path, **bounds)  # type: ignore[arg-type]
    return load(path)


def test_what_is_written(tmp_path: Path) -> None:
    """Calls, a range beside them, a mark, memory, an arrow, names: each as the format has it."""
    timeline = replace(
        timeline_of(
            call("f", 1_000, 9_000, flags=Flag.ERROR),
            ranged("r", 2_500, 12_000, detail=Detail(args="n=1", memory=9, input_shapes=((2,),))),
            call("g", 3_000, 4_000, track=1),
        ),
        marks=(Mark("here", 0, 2_000),),
        memory=(MemorySample(5_000, 77, 0),),
        flows=(Flow("start", 0, 2_000, 1, 2_100),),
    )
    path = tmp_path / "deep" / "trace.json"
    EventList(timeline).export_chrome_trace(path)
    document = json.loads(path.read_text())
    assert document["otherData"] == {"truncated": False, "recorder": "pytest-instrcount"}
    events = [event for event in document["traceEvents"] if event["ph"] != "M"]
    assert events == [
        {
            "ph": "X",
            "cat": "python",
            "name": "f",
            "pid": 1,
            "tid": 1,
            "ts": 1.0,
            "dur": 8.0,
            "args": {"raised": True},
        },
        {
            "ph": "b",
            "cat": "range",
            "name": "r",
            "id": "0x1",
            "pid": 1,
            "tid": 1,
            "ts": 2.5,
            "args": {"args": "n=1", "input shapes": "((2,),)", "bytes": 9},
        },
        {"ph": "e", "cat": "range", "name": "r", "id": "0x1", "pid": 1, "tid": 1, "ts": 12.0},
        {
            "ph": "X",
            "cat": "python",
            "name": "g",
            "pid": 1,
            "tid": 2,
            "ts": 3.0,
            "dur": 1.0,
        },
        {"ph": "i", "s": "t", "cat": "mark", "name": "here", "pid": 1, "tid": 1, "ts": 2.0},
        {"ph": "C", "name": "memory", "pid": 1, "tid": 1, "ts": 5.0, "args": {"bytes": 77}},
        {"ph": "s", "cat": "start", "name": "start", "id": 1, "pid": 1, "tid": 1, "ts": 2.0},
        {
            "ph": "f",
            "bp": "e",
            "cat": "start",
            "name": "start",
            "id": 1,
            "pid": 1,
            "tid": 2,
            "ts": 3.0,
        },
    ]
    loaded = load(path)
    assert (loaded.dropped, loaded.flows) == ([], 1)
    assert loaded.threads == {(1, 1): "MainThread", (1, 2): "Thread-1"}


def test_microseconds_have_three_decimals(tmp_path: Path) -> None:
    """And start at the begin of the recording."""
    timeline = replace(
        timeline_of(call("f", 5_000_250, 5_000_750)), windows=((5_000_000, 6_000_000),)
    )
    EventList(timeline).export_chrome_trace(tmp_path / "trace.json")
    assert '"ts":0.250,"dur":0.500}' in (tmp_path / "trace.json").read_text()


def test_times_and_processes_are_those_of_the_machine(tmp_path: Path) -> None:
    """So files of several processes can be joined; of a clock that ran for months no nanosecond is lost."""
    period = 4 * 10**15
    timeline = replace(
        timeline_of(call("f", 3 * period + 1_001, 3 * period + 5_000)),
        windows=((3 * period + 1_000, 3 * period + 9_000),),
        tracks=(Track("MainThread", 1), Track("other", 1, 2)),
        pid=77,
        epoch_ns=5_000,
    )
    path = tmp_path / "trace.json"
    loaded = exported(timeline, tmp_path)
    assert loaded.slices == {(77, 1): [(1_001, 3_999, "f", 0)]}
    document = json.loads(path.read_text())
    assert document["baseTimeNanoseconds"] == 3 * period + 5_000
    assert {event["pid"] for event in document["traceEvents"]} == {77, 77 * 256 + 3}
    exported(replace(timeline, epoch_ns=0, pid=0), tmp_path)
    document = json.loads(path.read_text())
    assert "baseTimeNanoseconds" not in document
    assert document["traceEvents"][1]["ts"] == pytest.approx(0.001)


@given(st.integers(0, 5 * 10**15))
def test_perfetto_reads_the_same_nanosecond(ns: int) -> None:
    """It cuts off what a double loses; rounding gives the same."""
    from decimal import Decimal

    assert nanoseconds(Decimal(microseconds(ns))) == ns
    assert ns > 10**15 or round(float(microseconds(ns)) * 1000) == ns


@given(timeline=timelines(), data=st.data())
def test_steps_of_tasks_nest_on_their_tracks(timeline: Timeline, data: st.DataObject) -> None:
    """Whatever rows are steps: the rules hold, and no row is on a track of a step that it is not in."""
    rows = [row for row, flags in enumerate(timeline.flags) if not flags & ASYNC]
    chosen = data.draw(st.sets(st.sampled_from(rows)) if rows else st.just(set()))
    # no step of a task runs within another one of the same task
    depths = {row: len(timeline.stack(row)) for row in chosen}
    tasks = {row: Task(f"task {depth}", depth) for row, depth in depths.items()}
    moved = replace(timeline, tasks=tasks).by_task()
    assert broken_rules(moved) == ""
    for row, track in enumerate(moved.track):
        above = timeline.parent[row]
        while above >= 0 and above not in tasks:
            above = timeline.parent[above]
        name = tasks[above].cls if above >= 0 else timeline.tracks[timeline.track[row]].name
        assert moved.tracks[track].name == name


@ONE_FILE
@given(timeline=timelines().filter(len))
def test_no_slice_is_dropped(timeline: Timeline, tmp_path: Path) -> None:
    """However calls, ranges, marks and flows lie; all are there, with their times."""
    loaded = exported(timeline, tmp_path)
    rows = range(len(timeline))
    beside = [row for row in rows if timeline.flags[row] & ASYNC]
    assert loaded.dropped == []
    assert loaded.complete == len(timeline) - len(beside)
    assert len(loaded.pairs) == len(beside)
    assert len(loaded.instants) == len(timeline.marks)
    assert len(loaded.counters) == len(timeline.memory)
    times = sorted(
        (start, length) for track in loaded.slices.values() for start, length, _, _ in track
    )
    assert times == sorted(
        (timeline.start[row] - timeline.origin, timeline.ns(row))
        for row in rows
        if not timeline.flags[row] & ASYNC
    )


def test_recursion_100_000_deep(tmp_path: Path) -> None:
    """Every 500 levels have a track: Perfetto drops what lies more than 512 deep."""
    loaded = exported(deep(100_000), tmp_path)
    assert (loaded.dropped, loaded.complete) == ([], 100_000)
    assert len(loaded.threads) == 200
    assert loaded.threads[1, 2] == "MainThread (500 calls deep)"


def test_several_processes(tmp_path: Path) -> None:
    """Each has a pid and a name."""
    timeline = replace(
        timeline_of(call("f", 0, 1), call("g", 0, 1, track=1)),
        tracks=(Track("MainThread"), Track("MainThread", 0, 3)),
    )
    EventList(timeline).export_chrome_trace(tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    assert '{"ph":"M","pid":4,"name":"process_name","args":{"name":"python, node 3"}}' in text


def test_flow_without_a_slice_is_left_out(tmp_path: Path) -> None:
    """Perfetto counts it as an error."""
    timeline = replace(
        timeline_of(call("f", 0, 5)), flows=(Flow("a", 0, 9, 0, 2), Flow("b", 0, 2, 1, 3))
    )
    loaded = exported(timeline, tmp_path)
    assert (loaded.dropped, loaded.flows) == ([], 0)


def test_flow_starts_in_the_innermost_slice_that_is_open(tmp_path: Path) -> None:
    """Also where a deeper one has just ended."""
    timeline = replace(
        timeline_of(call("f", 0, 50), call("g", 1, 9), call("h", 2, 8), call("k", 30, 40, track=1)),
        flows=(Flow("a", 0, 20, 1, 25), Flow("b", 0, 8, 1, 31)),
    )
    loaded = exported(timeline, tmp_path)
    assert (loaded.dropped, loaded.flows) == ([], 2)


@pytest.mark.parametrize(
    ("bounds", "names"),
    [
        ({}, ["f", "g", "h", "k"]),
        ({"min_duration": 4e-9}, ["f", "g"]),
        ({"max_depth": 1}, ["f", "k"]),
        ({"max_depth": 2}, ["f", "g", "k"]),
        ({"max_depth": 2, "min_duration": 5e-9}, ["f", "g"]),
        ({"max_depth": 0}, []),
        ({"min_duration": 1.0}, []),
    ],
)
def test_bounds(bounds: dict[str, float], names: list[str], tmp_path: Path) -> None:
    """What is left out is left out with all within it."""
    timeline = timeline_of(call("f", 0, 20), call("g", 1, 9), call("h", 2, 3), call("k", 30, 33))
    loaded = exported(timeline, tmp_path, **bounds)
    assert loaded.dropped == []
    assert [row[2] for rows in loaded.slices.values() for row in rows] == names


@pytest.mark.parametrize(
    "bounds", [{"min_duration": -1.0}, {"max_depth": -1}, {"min_duration": float("nan")}]
)
def test_bounds_without_sense(bounds: dict[str, float], tmp_path: Path) -> None:
    """Are refused."""
    with pytest.raises(InstrcountError) as error:
        exported(timeline_of(call("f", 0, 20)), tmp_path, **bounds)
    assert error.value.slug == "profile-bounds"
    assert list(tmp_path.iterdir()) == []


def test_more_than_a_viewer_can_show(tmp_path: Path) -> None:
    """A million slices need a bound; with one they are written."""
    rows = 1_000_001
    one = timeline_of(call("f", 0, 1))
    many = replace(
        one,
        label=column([0]) * rows,
        parent=column([-1]) * rows,
        start=column(range(rows)),
        end=column(range(1, rows + 1)),
        track=column([0]) * rows,
        flags=column([0]) * rows,
    )
    for export in (EventList(many).export_chrome_trace, EventList(many).export_speedscope):
        with pytest.raises(InstrcountError) as error:
            export(tmp_path / "trace.json")
        assert error.value.slug == "profile-slices"
        assert "1,000,001 slices" in str(error.value)
    assert exported(many, tmp_path, min_duration=1.0).complete == 0


def test_folded_rows_have_no_timeline(tmp_path: Path) -> None:
    """It is said, with what can be written."""
    timeline = replace(
        timeline_of(call("f", 0, 1)), folded={0: Folded(9, 0, 0, 99)}, truncated=True
    )
    with pytest.raises(InstrcountError) as error:
        exported(timeline, tmp_path)
    assert error.value.slug == "profile-truncated"
    assert "export_pstats" in error.value.fix
