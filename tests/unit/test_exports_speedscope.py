"""Speedscope's file: passes its schema, and every profile is balanced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.timeline import Timeline
from tests.schemas import complaints
from tests.timelines import call, deep, ranged, timeline_of, timelines

SCHEMA = json.loads((Path(__file__).parents[1] / "data/trace/speedscope-schema.json").read_text())


def exported(timeline: Timeline, folder: Path, **bounds: Any) -> dict[str, Any]:
    path = folder / "trace.speedscope.json"
    EventList(timeline).export_speedscope(path, **bounds)
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def check(document: dict[str, Any]) -> int:
    """The schema, and what it cannot say; the number of frames that were opened."""
    assert complaints(document, SCHEMA) == []
    opened = 0
    for profile in document["profiles"]:
        stack, now = [], profile["startValue"]
        for event in profile["events"]:
            assert now <= event["at"] <= profile["endValue"]
            now = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
                opened += 1
            else:
                assert stack.pop() == event["frame"]
        assert stack == []
    return opened


def test_what_is_written(tmp_path: Path) -> None:
    """One profile per thread, and those of ranges that overlap."""
    document = exported(
        timeline_of(
            call("f", 1, 9),
            call("g", 2, 4),
            ranged("r", 3, 12),
            ranged("s", 5, 14),
            ranged("t", 12, 20),
            call("h", 0, 1, track=1),
        ),
        tmp_path,
    )
    check(document)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    written = {
        profile["name"]: " ".join(
            f"{event['type']}{names[event['frame']]}{event['at']}" for event in profile["events"]
        )
        for profile in document["profiles"]
    }
    assert written == {
        "MainThread": "Of1 Og2 Cg4 Cf9 Ot12 Ct20",
        "Thread-1": "Oh0 Ch1",
        "overlapping ranges 1": "Or3 Cr12",
        "overlapping ranges 2": "Os5 Cs14",
    }
    assert document["shared"]["frames"][names.index("f")] == {
        "name": "f",
        "file": "f.py",
        "line": 1,
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(timeline=timelines().filter(len))
def test_always_balanced(timeline: Timeline, tmp_path: Path) -> None:
    """And complete."""
    assert check(exported(timeline, tmp_path)) == len(timeline)


def test_bounds(tmp_path: Path) -> None:
    """As for Chrome."""
    timeline = timeline_of(call("f", 0, 20), call("g", 1, 9), call("h", 2, 3), call("k", 30, 33))
    assert check(exported(timeline, tmp_path, min_duration=5e-9)) == 2
    assert check(exported(timeline, tmp_path, max_depth=1)) == 2
    assert exported(timeline, tmp_path, max_depth=0)["profiles"] == []


def test_recursion_100_000_deep(tmp_path: Path) -> None:
    """The format is flat."""
    assert check(exported(deep(100_000), tmp_path)) == 100_000
