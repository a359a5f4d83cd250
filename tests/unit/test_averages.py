"""Events summed up by key: counts, times, recursion, grouping."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter

import pluggy
import pytest
from hypothesis import given

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.columns import Flag, Folded
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.events.function_event import FunctionEventAvg
from pytest_instrcount.trace.events.profile import profile
from pytest_instrcount.trace.timeline import Detail, Recorded, Timeline
from pytest_instrcount.trace.weave import Span
from tests.timelines import call, deep, ranged, timeline_of, timelines


def averages(*spans: Span) -> EventList[FunctionEventAvg]:
    return EventList(timeline_of(*spans)).key_averages()


def numbers(average: FunctionEventAvg) -> tuple[str, int, int, int]:
    return average.key, average.count, average.total_ns, average.self_ns


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([call("f", 0, 9)], [("f", 1, 9, 9)], id="one"),
        pytest.param(
            [call("f", 0, 9), call("g", 1, 3), call("g", 4, 5)],
            [("f", 1, 9, 6), ("g", 2, 3, 3)],
            id="a function and its calls",
        ),
        pytest.param(
            [call("f", 0, 9), call("f", 1, 8), call("f", 2, 3)],
            [("f", 3, 9, 9)],
            id="recursion: the outermost holds the others",
        ),
        pytest.param(
            [call("f", 0, 9), call("g", 1, 8), call("f", 2, 7), call("g", 10, 12)],
            [("f", 2, 9, 7), ("g", 2, 9, 4)],
            id="recursion by way of another",
        ),
        pytest.param(
            [call("f", 0, 9), call("f", 1, 8, track=1)],
            [("f", 2, 16, 16)],
            id="two threads are no recursion",
        ),
        pytest.param(
            [call("f", 0, 4), call("f", 5, 9, flags=Flag.RESUME)],
            [("f", 1, 8, 8)],
            id="a generator that goes on is not called",
        ),
        pytest.param(
            [call("f", 0, 4, flags=Flag.START_FRAME), call("g", 1, 2)],
            [("g", 1, 1, 1)],
            id="what was there before is not listed",
        ),
        pytest.param(
            [ranged("r", 0, 4), ranged("r", 2, 8)],
            [("r", 2, 10, 4)],
            id="what overlaps has length, but no time of its own",
        ),
    ],
)
def test_sums(spans: list[Span], expected: list[tuple[str, int, int, int]]) -> None:
    """Count, total and self of each key, in order of first events."""
    assert [numbers(average) for average in averages(*spans)] == expected


def test_what_else_is_summed() -> None:
    """Resumes, errors, memory; what is left of no call is no mean."""
    found = averages(
        ranged("r", 0, 9, detail=Detail(memory=100)),
        ranged("r", 1, 8, detail=Detail(memory=60)),
        call("g", 2, 3, flags=Flag.RESUME | Flag.ERROR),
    )
    r, g = found
    assert (r.cpu_memory_usage, r.self_cpu_memory_usage) == (100, 100)
    assert (g.count, g.resumes, g.errors, g.cpu_time) == (0, 1, 1, 0.0)
    assert (r.top_level, g.top_level, r.is_async) == (True, False, False)
    assert r.cpu_time == 0.009 / 2
    assert found.self_cpu_time_total == 0.009
    assert repr(found) == "<EventList of 2 events>"
    assert found[:1] == [r]


def test_total() -> None:
    """Its time is what the events without a parent took."""
    total = averages(call("f", 0, 9), call("g", 1, 3), call("h", 1, 5, track=1)).total_average()
    assert numbers(total) == ("Total", 3, 13, 13)


def test_group_by_stack() -> None:
    """The function's own frame comes first, so that 1 is by function."""
    events = EventList(
        timeline_of(
            call("a", 0, 9), call("f", 1, 2), call("f", 3, 4), call("b", 10, 19), call("f", 11, 12)
        )
    )
    assert [(one.key, one.count) for one in events.key_averages(group_by_stack_n=1)] == [
        ("a", 1),
        ("f", 3),
        ("b", 1),
    ]
    two = events.key_averages(group_by_stack_n=2)
    assert [(one.key, one.count, one.stack) for one in two][1:3] == [
        ("f", 2, ("f.py(1): f", "a.py(1): a")),
        ("b", 1, ("b.py(1): b",)),
    ]
    assert len(events.key_averages(group_by_stack_n=10**9)) == 4


def test_group_by_input_shape() -> None:
    """Only then the shapes are shown."""
    small, large = Detail(input_shapes=((1,),)), Detail(input_shapes=((9,),))
    events = EventList(
        timeline_of(
            ranged("r", 0, 1, detail=small),
            ranged("r", 2, 3, detail=large),
            ranged("r", 4, 5, detail=small),
            ranged("r", 6, 7),
        )
    )
    assert [(one.count, one.input_shapes) for one in events.key_averages()] == [(4, ())]
    grouped = events.key_averages(group_by_input_shapes=True)
    assert [(one.count, one.input_shapes) for one in grouped] == [
        (2, ((1,),)),
        (1, ((9,),)),
        (1, ()),
    ]


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ({"group_by_input_shapes": True}, "record_shapes=True"),
        ({"group_by_stack_n": 1}, "with_stack=True"),
    ],
)
def test_grouping_by_what_was_not_recorded(arguments: dict[str, int], option: str) -> None:
    """Is an error that names the option."""
    timeline = dataclasses.replace(timeline_of(call("f", 0, 1)), recorded=Recorded())
    with pytest.raises(InstrcountError) as error:
        EventList(timeline).key_averages(**arguments)  # type: ignore[arg-type]
    assert error.value.slug == "profile-not-recorded"
    assert option in error.value.fix


def test_folded_rows_are_summed() -> None:
    """As many calls as they stand for."""
    timeline = dataclasses.replace(
        timeline_of(call("f", 0, 9), call("f", 1, 2)),
        folded={0: Folded(3, 0, 0, 9_000), 1: Folded(40, 0, 0, 4_000)},
    )
    assert [numbers(one) for one in EventList(timeline).key_averages()] == [("f", 43, 9000, 9000)]


def test_a_table_of_averages() -> None:
    """Sorted like a table of events."""
    found = averages(call("f", 0, 9_000), call("g", 1_000, 8_000), ranged("late", 8_500, 20_000))
    assert found.table(sort_by="self_cpu_time_total", row_limit=1).splitlines()[2].split()[:6] == [
        *("g", "77.78%", "7.000us", "77.78%", "7.000us", "7.000us"),
    ]
    assert [
        line.split()[0] for line in found.table(top_level_events_only=True).splitlines()[2:-1]
    ] == ["f", "late"]
    assert str(found) == found.table()


@given(timelines())
def test_averages_add_up(timeline: Timeline) -> None:
    """To the events, however they are grouped."""
    events = EventList(timeline)
    calls = Counter[str]()
    for event in events:
        calls[event.name] += event.count
    calls = +calls
    for grouped in (
        events.key_averages(),
        events.key_averages(group_by_stack_n=3),
        events.key_averages(group_by_input_shapes=True, group_by_stack_n=1),
    ):
        found = Counter[str]()
        for one in grouped:
            found[one.key] += one.count
        assert +found == calls
        assert sum(one.self_ns for one in grouped) / 1000 == events.self_cpu_time_total
        assert all(0 <= one.self_ns <= one.total_ns for one in grouped if not one.is_async)
        assert sum(one.self_cpu_memory_usage for one in grouped) == sum(
            event.self_cpu_memory_usage for event in events
        )
    assert events.total_average().count == sum(calls.values())


def test_recursion_100_000_deep() -> None:
    """Is one row, and its total is the outermost call."""
    (one,) = EventList(deep(100_000)).key_averages(group_by_stack_n=1)
    assert numbers(one) == ("f", 100_000, 200_000, 200_000)


def test_inside_pytest_a_profile_lists_the_code_that_ran_in_it() -> None:
    """Neither the frames around it, pytest's among them, nor hooks that are called within."""
    with profile() as prof:
        json.loads("[1]")
        pluggy.PluginManager("none").check_pending()
    averages = prof.key_averages()
    assert [each.key for each in averages][:3] == [
        *("json.loads", "json.decoder.JSONDecoder.decode", "json.decoder.JSONDecoder.raw_decode"),
    ]
    assert not [each.key for each in averages if "pytest" in each.key or "pluggy" in each.key]
    assert all(each.count for each in averages)
    assert "_pytest" not in prof.table() and "_pytest" not in averages.table()
    assert prof.table(top_level_events_only=True).count("json") == 1
    assert any("_pytest" in event.name for event in prof.function_events)
    own = sum(event.self_ns for event in prof.function_events if "json" in event.name)
    assert own / 1000 <= prof.self_cpu_time_total == averages.self_cpu_time_total
