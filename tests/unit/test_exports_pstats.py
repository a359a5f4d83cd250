"""The file of pstats: opens there, and says what cProfile would."""

from __future__ import annotations

import cProfile
import io
import marshal
import pstats
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.columns import Flag, Folded
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.timeline import ASYNC, Detail, Label, Timeline
from pytest_instrcount.trace.weave import Span
from tests.timelines import call, deep, ranged, timeline_of, timelines


def opened(timeline: Timeline, folder: Path) -> tuple[pstats.Stats, str]:
    path = folder / "out.pstats"
    EventList(timeline).export_pstats(path)
    text = io.StringIO()
    stats = pstats.Stats(str(path), stream=text)
    stats.sort_stats("cumulative").print_stats()
    stats.print_callers()
    stats.print_callees()
    return stats, text.getvalue()


def rows(stats: pstats.Stats) -> dict[str, Any]:
    """By name: primitive calls, calls, self and total in ns, callers likewise."""

    def ns(seconds: float) -> int:
        return round(seconds * 1e9)

    return {
        name: (
            primitive,
            calls,
            ns(own),
            ns(total),
            {caller[2]: (*row[:2], ns(row[2]), ns(row[3])) for caller, row in callers.items()},
        )
        for (_, _, name), (primitive, calls, own, total, callers) in stats.stats.items()  # type: ignore[attr-defined]
    }


def test_what_is_written(tmp_path: Path) -> None:
    """Calls, times and callers, with recursion told apart."""
    stats, text = opened(
        timeline_of(
            call("f", 0, 100),
            call("g", 10, 60),
            call("f", 20, 50),
            call("g", 30, 40),
            ranged("r", 70, 80),
            ranged("late", 90, 200),
        ),
        tmp_path,
    )
    assert rows(stats) == {
        "f": (1, 2, 60, 100, {"g": (1, 1, 20, 30)}),
        "g": (1, 2, 30, 50, {"f": (2, 1, 30, 50)}),
        "r": (1, 1, 10, 10, {"f": (1, 1, 10, 10)}),
    }
    assert "5 function calls (3 primitive calls) in 0.000 seconds" in text
    assert "f.py:1(f)" in text


def test_the_same_as_cprofile(tmp_path: Path) -> None:
    """Numbers of calls and callers, for recursion direct and by way of another."""

    def a(n: int) -> None:
        if n:
            b(n - 1)
            a(n - 1)

    def b(n: int) -> None:
        if n:
            a(n - 1)

    recorder = cProfile.Profile(builtins=False)
    recorder.enable()
    a(5)
    recorder.disable()
    recorder.create_stats()
    spans: list[Span] = []
    _play("a", 5, [0], spans)
    stats, _ = opened(timeline_of(*spans), tmp_path)
    ours = {name: (row[:2], _counts(row[4])) for name, row in rows(stats).items()}
    theirs = {
        key[2]: (row[:2], _counts({caller[2]: one for caller, one in row[4].items()}))
        for key, row in recorder.stats.items()
        if key[2] in "ab"
    }
    assert ours == theirs


def _counts(callers: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {caller: row[:2] for caller, row in callers.items() if caller in "ab"}


def _play(name: str, n: int, clock: list[int], spans: list[Span]) -> None:
    """The calls of the test above, with a clock that ticks at each enter and exit."""
    start = clock[0] = clock[0] + 1
    if n:
        _play("b" if name == "a" else "a", n - 1, clock, spans)
        if name == "a":
            _play("a", n - 1, clock, spans)
    clock[0] += 1
    spans.append(call(name, start, clock[0]))


def test_functions_of_one_name(tmp_path: Path) -> None:
    """A range and a C function share a row, as pstats has only file, line and name."""
    timeline = timeline_of(
        Span(Label("len", "c"), 0, 1, 2),
        Span(Label("len", "range"), 0, 3, 5),
    )
    assert rows(opened(timeline, tmp_path)[0]) == {"len": (2, 2, 3, 3, {})}


def test_no_calls_but_time(tmp_path: Path) -> None:
    """What was there before, or goes on; pstats divides by calls only where there are some."""
    timeline = timeline_of(
        call("f", 0, 9, flags=Flag.START_FRAME), call("g", 1, 3, flags=Flag.RESUME)
    )
    assert rows(opened(timeline, tmp_path)[0])["g"] == (0, 0, 2, 2, {"f": (0, 0, 2, 2)})


def test_folded_rows(tmp_path: Path) -> None:
    """Their counts and times are exact."""
    folded = {0: Folded(3, 0, 0, 90), 1: Folded(9, 0, 0, 50)}
    timeline = replace(timeline_of(call("f", 0, 5), call("g", 1, 2)), folded=folded)
    assert rows(opened(timeline, tmp_path)[0]) == {
        "f": (3, 3, 40, 90, {}),
        "g": (9, 9, 50, 50, {"f": (9, 9, 50, 50)}),
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(timeline=timelines().filter(lambda timeline: 0 in [f & ASYNC for f in timeline.flags]))
def test_every_file_opens(timeline: Timeline, tmp_path: Path) -> None:
    """And its calls and times add up, in whole and by caller."""
    events = EventList(timeline)
    stats, _ = opened(timeline, tmp_path)
    assert stats.total_calls == sum(  # type: ignore[attr-defined]
        event.count for event in events if not event.is_async
    )
    table = stats.stats.values()  # type: ignore[attr-defined]
    assert round(sum(row[2] for row in table) * 1e9) == sum(event.self_ns for event in events)
    for primitive, calls, own, total, callers in table:
        assert primitive <= calls
        assert own <= total
        assert sum(row[0] for row in callers.values()) <= calls


def test_only_ranges_that_overlap(tmp_path: Path) -> None:
    """There is no stack, and pstats cannot open an empty file."""
    with pytest.raises(InstrcountError) as error:
        opened(timeline_of(ranged("r", 0, 9, detail=Detail(end_track=1))), tmp_path)
    assert error.value.slug == "profile-empty"
    assert list(tmp_path.iterdir()) == []


def test_recursion_100_000_deep(tmp_path: Path) -> None:
    """One row."""
    assert rows(opened(deep(100_000), tmp_path)[0]) == {
        "f": (1, 100_000, 200_000, 200_000, {"f": (99_999, 1, 199_998, 199_998)})
    }


def test_plain_marshal(tmp_path: Path) -> None:
    """What viewers read without pstats."""
    opened(timeline_of(call("f", 0, 9)), tmp_path)
    data = marshal.loads((tmp_path / "out.pstats").read_bytes())
    assert data == {("f.py", 1, "f"): (1, 1, 9e-9, 9e-9, {})}
