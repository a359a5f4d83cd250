"""Lines of stacks, as flame graph tools read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.columns import Folded
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.export.collapsed import DEEPEST
from pytest_instrcount.trace.timeline import Detail, Recorded, Timeline, Track
from tests.timelines import call, deep, ranged, timeline_of, timelines

TIMELINE = timeline_of(
    call("a", 0, 100),
    call("f", 10, 30),
    call("f", 40, 50),
    ranged("r;s", 60, 90, detail=Detail(memory=5)),
    call("f", 70, 80),
    ranged("late", 95, 120, detail=Detail(memory=7)),
    call("a", 5, 9, track=1),
)


def collapsed(timeline: Timeline, folder: Path, weight: str) -> list[str]:
    EventList(timeline).export_collapsed(folder / "out", weight)  # type: ignore[arg-type]
    return (folder / "out").read_text().splitlines()


@pytest.mark.parametrize(
    ("weight", "lines"),
    [
        (
            "self",
            [
                "MainThread;a 40",
                "Thread-1;a 4",
                "MainThread;a;f 30",
                "MainThread;a;r:s 20",
                "MainThread;a;r:s;f 10",
            ],
        ),
        (
            "calls",
            [
                "MainThread;a 1",
                "Thread-1;a 1",
                "MainThread;a;f 2",
                "MainThread;a;r:s 1",
                "MainThread;a;r:s;f 1",
                "MainThread;late 1",
            ],
        ),
        ("bytes", ["MainThread;a;r:s 5"]),
    ],
)
def test_weights(weight: str, lines: list[str], tmp_path: Path) -> None:
    """Equal stacks are one line; what weighs nothing is none."""
    assert collapsed(TIMELINE, tmp_path, weight) == lines


@pytest.mark.parametrize(
    ("metric", "line"),
    [
        ("self_cpu_time_total", "MainThread;a.py(1): a;f.py(1): f 30"),
        ("count", "MainThread;a.py(1): a;f.py(1): f 2"),
        ("self_cpu_memory_usage", "MainThread;a.py(1): a;r:s 5"),
    ],
)
def test_stacks_have_files_and_lines(metric: str, line: str, tmp_path: Path) -> None:
    """Where there is a file."""
    EventList(TIMELINE).export_stacks(tmp_path / "out", metric)
    assert line in (tmp_path / "out").read_text().splitlines()


@pytest.mark.parametrize(
    ("recorded", "export", "slug"),
    [
        (Recorded(), lambda events, path: events.export_stacks(path), "profile-not-recorded"),
        (
            Recorded(stack=True),
            lambda events, path: events.export_stacks(path, "self_cpu_memory_usage"),
            "profile-not-recorded",
        ),
        (
            Recorded(),
            lambda events, path: events.export_collapsed(path, "bytes"),
            "profile-not-recorded",
        ),
        (
            Recorded(stack=True),
            lambda events, path: events.export_stacks(path, "self_cuda_time_total"),
            "profile-metric",
        ),
        (
            Recorded(),
            lambda events, path: events.export_collapsed(path, "weight"),
            "profile-metric",
        ),
    ],
)
def test_what_was_not_recorded(recorded: Recorded, export, slug: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """An error, and no file."""
    with pytest.raises(InstrcountError) as error:
        export(EventList(replace(TIMELINE, recorded=recorded)), tmp_path / "out")
    assert error.value.slug == slug
    assert list(tmp_path.iterdir()) == []


def test_no_stack_weighs_anything(tmp_path: Path) -> None:
    """An error, and no empty file."""
    with pytest.raises(InstrcountError) as error:
        collapsed(timeline_of(call("f", 5, 5)), tmp_path, "self")
    assert error.value.slug == "profile-empty"
    assert list(tmp_path.iterdir()) == []


def test_names_that_would_part_frames_or_lines(tmp_path: Path) -> None:
    """Semicolons and ends of lines."""
    timeline = replace(timeline_of(call("f\n1", 0, 5)), tracks=(Track("a;b"), Track("c")))
    assert collapsed(timeline, tmp_path, "self") == ["a:b;f\\n1 5"]


def test_folded_rows(tmp_path: Path) -> None:
    """Their counts and times are exact."""
    folded = {0: Folded(3, 0, 0, 90), 1: Folded(9, 0, 0, 50)}
    timeline = replace(timeline_of(call("f", 0, 5), call("g", 1, 2)), folded=folded)
    assert collapsed(timeline, tmp_path, "calls") == ["MainThread;f 3", "MainThread;f;g 9"]
    assert collapsed(timeline, tmp_path, "self") == ["MainThread;f 40", "MainThread;f;g 50"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(timeline=timelines())
def test_lines_add_up(timeline: Timeline, tmp_path: Path) -> None:
    """To the events; each line ends in a number, each stack is there once."""
    events = EventList(timeline)
    for weight, total in (
        ("self", sum(event.self_ns for event in events)),
        ("calls", sum(event.count for event in events)),
    ):
        if not total:
            continue
        lines = collapsed(timeline, tmp_path, weight)
        stacks, numbers = zip(*(line.rsplit(" ", 1) for line in lines))
        assert sum(map(int, numbers)) == total
        assert len(set(stacks)) == len(stacks)


def test_recursion_100_000_deep(tmp_path: Path) -> None:
    """Each line holds a whole stack: below 1,000 levels all is one frame, and nothing is lost."""
    lines = collapsed(deep(100_000), tmp_path, "self")
    assert len(lines) == DEEPEST + 1
    assert lines[-1].endswith(f";f;(deeper) {2 * (100_000 - DEEPEST)}")
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == 200_000
