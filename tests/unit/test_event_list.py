"""The list of events: what each says of itself, and the table of all."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.columns import Flag, Folded
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.timeline import Detail, Recorded, Timeline, column
from pytest_instrcount.trace.weave import join
from tests.timelines import call, deep, later, ranged, timeline_of, timelines

F_AT = "f.py(1): f"
EVENTS = EventList(
    timeline_of(
        call("f", 1_000, 9_000),
        ranged(
            "r",
            2_000,
            8_000,
            detail=Detail(input_shapes=((2, 3), ()), memory=2048, module="Linear #0", args="n=1"),
        ),
        call("g", 3_000, 4_000, flags=Flag.RESUME | Flag.ERROR),
        ranged("inner", 5_000, 6_000, detail=Detail(memory=48)),
        ranged("late", 7_000, 12_000, detail=Detail(memory=7)),
    )
)


def test_an_event_says_what_it_is() -> None:
    """Microseconds from the start of recording, and the place in the tree."""
    f, r, g, inner, late = EVENTS
    assert [event.name for event in EVENTS] == ["f", "r", "g", "inner", "late"]
    assert (f.id, f.key, f.kind, f.thread, f.node_id) == (0, "f", "python", 0, 0)
    assert (f.time_range, f.time_range.elapsed_us()) == ((1.0, 9.0), 8.0)
    assert (f.cpu_time_total, f.self_cpu_time_total) == (8.0, 2.0)
    assert (f.cpu_parent, f.cpu_children) == (None, (r,))
    assert (r.cpu_parent, r.cpu_children) == (f, (g, inner))
    assert g.stack == ("g.py(1): g", "r", "f.py(1): f")
    assert (g.count, g.resumes, g.errors, f.count) == (0, 1, 1, 1)
    assert (r.input_shapes, r.module) == (((2, 3), ()), "Linear #0")
    assert (r.cpu_memory_usage, r.self_cpu_memory_usage) == (2048, 2000)
    assert (late.is_async, late.cpu_parent, late.self_cpu_time_total) == (True, None, 0.0)
    assert late.cpu_time_total == 5.0
    assert repr(g) == "<FunctionEvent id=2 name=g thread=0 time=1.000us self=1.000us>"


def test_it_is_a_list() -> None:
    """With negative places and slices."""
    assert isinstance(EVENTS, list)
    assert EVENTS[-1] == EVENTS[4]
    assert EVENTS[1:3] == [EVENTS[1], EVENTS[2]]
    assert EVENTS[0] in EVENTS
    assert repr(EVENTS) == "<EventList of 5 events>"
    with pytest.raises(IndexError):
        EVENTS[5]


def names(events: EventList[Any]) -> list[str]:
    """Those in its table."""
    return [line.split()[0] for line in events.table().splitlines()[2:-1]]


def test_it_can_be_changed() -> None:
    """What is in the list is shown, summed up and exported, in its order."""
    events = EventList(EVENTS.timeline)
    events.sort(key=lambda event: event.name)
    assert names(events) == ["f", "g", "inner", "late", "r"]
    assert events.timeline == EVENTS.timeline
    del events[-1], events[0]
    assert (names(events), events.total_average().count) == (["g", "inner", "late"], 2)
    assert events.self_cpu_time_total == 2.0
    assert [(one.key, one.count) for one in events.key_averages()] == [
        ("g", 0), ("inner", 1), ("late", 1)
    ]  # fmt: skip
    assert [event.name for event in EventList(events.timeline)] == ["g", "inner", "late"]
    events.clear()
    assert events.table() == "no events were recorded"
    assert len(events.timeline) == 0


def test_recursion_in_what_was_picked() -> None:
    """The outermost call holds the others, whatever was between them."""
    events = EventList(timeline_of(call("f", 0, 9), call("g", 1, 8), call("f", 2, 7)))
    (one,) = EventList(event for event in events if event.name == "f").key_averages()
    assert (one.count, one.total_ns, one.self_ns) == (2, 9, 7)


def test_events_of_two_recordings() -> None:
    """May be in one list: sums stay apart, a file has both."""
    events = EventList(timeline_of(call("f", 0, 1)))
    events.extend(EventList(timeline_of(call("f", 2, 4), call("g", 3, 4))))
    assert names(events) == ["f", "f", "g"]
    assert [(one.key, one.total_ns) for one in events.key_averages()] == [
        ("f", 1),
        ("f", 2),
        ("g", 1),
    ]
    assert events.total_average().total_ns == 3
    assert events.timeline == join(*(event.recording.timeline for event in events[:2]))


def test_a_list_of_sums() -> None:
    """Sorted by the user's own key and made again, it has the columns that it has values for."""
    averages = EVENTS.key_averages()
    again = EventList(sorted(averages, key=lambda one: one.key), use_device=None, with_flops=True)
    assert names(again) == ["f", "g", "inner", "late", "r"]
    head, first = again.table().splitlines()[0], averages.table().splitlines()[0]
    assert head.split() == [word for word in first.split() if word not in ("Input", "Shapes")]
    assert "CPU Mem" in EventList([averages[0]], profile_memory=True).table()
    assert "CPU Mem" not in EventList([averages[0]]).table()
    assert (again.total_average(), again.self_cpu_time_total) == (averages.total_average(), 8.0)


def test_sums_are_not_exported(tmp_path: Path) -> None:
    """They have no times; that nothing was recorded would be wrong."""
    with pytest.raises(InstrcountError, match="sums have no timeline") as error:
        EVENTS.key_averages().export_chrome_trace(tmp_path / "trace.json")
    assert error.value.slug == "profile-empty"


def test_table() -> None:
    """In order of start, all columns that were recorded."""
    assert str(EVENTS) == EVENTS.table()
    assert EVENTS.table(header="my run").splitlines() == [
        "my run",
        *EVENTS.table().splitlines(),
    ]
    lines = EVENTS.table().splitlines()
    assert [re.split(r"\s{2,}", line) for line in (lines[0], *lines[2:4])] == [
        [
            *("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"),
            *("CPU Mem", "Self CPU Mem", "# of Calls", "Input Shapes", "Module", "Source Location"),
        ],
        ["f", "25.00%", "2.000us", "100.00%", "8.000us", "8.000us", "0 B", "0 B", "1", F_AT],
        [
            *("r", "50.00%", "4.000us", "75.00%", "6.000us", "6.000us", "2.00 KiB", "1.95 KiB"),
            *("1", "[[2, 3], []]", "Linear #0", f"r < {F_AT}"),
        ],
    ]
    assert lines[-1] == "Self CPU time total: 8.000us"


@pytest.mark.parametrize(
    ("sort_by", "names"),
    [
        (None, ["f", "r", "g", "inner", "late"]),
        ("cpu_time_total", ["f", "r", "late", "g", "inner"]),
        ("self_cpu_time_total", ["r", "f", "g", "inner", "late"]),
        ("cpu_time", ["f", "r", "late", "g", "inner"]),
        ("count", ["f", "r", "inner", "late", "g"]),
        ("cpu_memory_usage", ["r", "inner", "late", "f", "g"]),
        ("self_cpu_memory_usage", ["r", "inner", "f", "g", "late"]),
    ],
)
def test_table_is_sorted(sort_by: str | None, names: list[str]) -> None:
    """Largest first; equal ones in order of start."""
    lines = EVENTS.table(sort_by=sort_by).splitlines()[2:-1]
    assert [line.split()[0] for line in lines] == names


@pytest.mark.parametrize(
    "sort_by",
    ["cuda_time_total", "self_device_time_total", "xpu_memory_usage", "privateuse1_time", "flops"],
)
def test_table_sorted_by_a_device(sort_by: str) -> None:
    """Of which all have 0: they stay in order of start, as in torch where there is none."""
    assert EVENTS.table(sort_by=sort_by) == EVENTS.table()


def test_time_unit() -> None:
    """One for all times."""
    lines = EVENTS.table(time_unit="ms").splitlines()
    assert lines[2].split()[1:6] == ["25.00%", "0.002ms", "100.00%", "0.008ms", "0.008ms"]
    assert lines[-1] == "Self CPU time total: 0.008ms"


def test_names_of_torch() -> None:
    """Texts of times; what is known of no device is nothing."""
    for one in (EVENTS[0], EVENTS.key_averages()[0]):
        assert (one.cpu_time_str, one.self_cpu_time_total_str) == ("8.000us", "2.000us")
        assert (one.cpu_time_total_str, one.is_remote) == ("8.000us", False)
        assert one.device_time_total == one.cuda_time == one.flops == len(one.kernels) == 0
        assert one.self_cuda_memory_usage == one.device_index == one.fwd_thread == 0
        assert one.cuda_time_str == one.device_time_str == "0.000us"
        assert (one.kwinputs, one.metadata_json) == ((), "")
        assert str(one.device_type) == "DeviceType.CPU"
    assert (EVENTS[4].device_resource_id, EVENTS[0].is_user_annotation) == (EVENTS[4].thread, False)
    one = EVENTS.key_averages()[1]
    assert (one.scope, one.is_user_annotation) == (EVENTS[1].scope, True)


def test_device_type_of_a_loaded_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script compares it with the one that it imports from there."""
    kinds = SimpleNamespace(CPU=object())
    monkeypatch.setitem(sys.modules, "torch.autograd", SimpleNamespace(DeviceType=kinds))
    assert EVENTS[0].device_type is kinds.CPU


@pytest.mark.parametrize(("limit", "rows"), [(0, 0), (1, 1), (5, 5), (6, 5), (-1, 5), (10**30, 5)])
def test_row_limit(limit: int, rows: int) -> None:
    """-1 shows all."""
    assert len(EVENTS.table(row_limit=min(limit, 10**18)).splitlines()) == rows + 3


def test_top_level_events_only() -> None:
    """What ran in no other event."""
    lines = EVENTS.table(top_level_events_only=True).splitlines()[2:-1]
    assert [line.split()[0] for line in lines] == ["f", "late"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"sort_by": "cuda_time_totals"},
        {"sort_by": "__class__"},
        {"sort_by": ""},
        {"row_limit": -2},
        {"time_unit": "m"},
        {"max_name_column_width": 3},
        {"max_src_column_width": 0},
        {"max_shapes_column_width": -1},
    ],
)
@pytest.mark.parametrize("events", [EVENTS, EVENTS.key_averages(), EventList()])
def test_tables_that_cannot_be(events: EventList, arguments: dict[str, object]) -> None:
    """Refused by a word of ours, whatever is in the list."""
    with pytest.raises(InstrcountError) as error:
        events.table(**arguments)  # type: ignore[arg-type]
    assert error.value.slug == "profile-table"


def test_columns_are_there_if_recorded() -> None:
    """A column of nothing would say that there was nothing."""
    events = EventList(dataclasses.replace(EVENTS.timeline, recorded=Recorded()))
    head = events.table().splitlines()[0]
    assert all(word not in head for word in ("Mem", "Shapes", "Module", "Source"))
    assert events[0].stack == ()
    with pytest.raises(InstrcountError) as error:
        events.table(sort_by="cpu_memory_usage")
    assert error.value.slug == "profile-not-recorded"


def test_names_that_no_table_can_hold() -> None:
    """One line each, cut to the width, nothing read as a number."""
    events = EventList(timeline_of(call("1e5", 0, 1), call("a\nb" * 500, 2, 3), call("7", 4, 5)))
    lines = events.table(max_name_column_width=12).splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["1e5", "a\\nba\\nba...", "7"]


def test_node_column_where_there_are_several() -> None:
    """Events that other processes handed over."""
    one = EVENTS.timeline
    nodes = tuple(dataclasses.replace(track, node_id=3) for track in one.tracks)
    both = EventList(join(one, dataclasses.replace(later(one), tracks=nodes)))
    assert "Node ID" in both.table().splitlines()[0]
    assert {event.node_id for event in both} == {0, 3}
    assert len(both.key_averages()) == 2 * len(EVENTS.key_averages())


def test_empty() -> None:
    """No rows, no numbers, no division by zero."""
    events = EventList()
    assert (len(events), list(events), events.self_cpu_time_total) == (0, [], 0.0)
    assert events.table() == events.key_averages().table() == "no events were recorded"
    assert events.total_average().cpu_time == 0.0


def test_time_stood_still() -> None:
    """Shares of nothing are no number."""
    line = EventList(timeline_of(call("f", 5, 5))).table().splitlines()[2]
    assert line.split()[:5] == ["f", "-", "0.000us", "-", "0.000us"]


def test_folded_rows_stand_for_many() -> None:
    """Their counts are exact."""
    timeline = dataclasses.replace(
        timeline_of(call("f", 0, 9), call("g", 1, 2)),
        folded={0: Folded(3, 1, 2, 9_000), 1: Folded(40, 0, 0, 4_000)},
        truncated=True,
    )
    f, g = EventList(timeline)
    assert (f.count, f.resumes, f.errors) == (3, 1, 2)
    assert (f.cpu_time_total, f.self_cpu_time_total, g.count) == (9.0, 5.0, 40)


@given(timelines())
def test_every_nanosecond_is_counted_once(timeline: Timeline) -> None:
    """The selves of all add up to the events without a parent; totals lack what was there before."""
    events = EventList(timeline)
    roots = [event for event in events if event.cpu_parent is None and not event.is_async]
    assert sum(event.self_ns for event in events) == sum(event.total_ns for event in roots)
    assert all(event.self_ns >= 0 for event in events)
    before = [event for event in events if timeline.flags[event.id] & Flag.START_FRAME]
    total = sum(event.self_ns for event in events) - sum(event.self_ns for event in before)
    assert events.self_cpu_time_total == total / 1000


@given(timelines())
def test_children_and_parents_agree(timeline: Timeline) -> None:
    """Each event is a child of its parent, in order of start."""
    events = EventList(timeline)
    for event in events:
        children = event.cpu_children
        assert all(child.cpu_parent == event for child in children)
        assert [child.id for child in children] == sorted(child.id for child in children)
    assert sum(len(event.cpu_children) for event in events) == sum(
        event.cpu_parent is not None for event in events
    )


def test_recursion_100_000_deep() -> None:
    """Stack and table recurse nowhere."""
    events = EventList(deep(100_000))
    assert len(events[-1].stack) == 100_000
    assert events[-1].self_ns == 2
    assert len(events.table(sort_by="cpu_time_total").splitlines()) == 103


def test_columns_of_other_types() -> None:
    """The recorder's are narrower."""
    narrow = dataclasses.replace(EVENTS.timeline, parent=column(EVENTS.timeline.parent))
    assert [event.name for event in EventList(narrow)] == [event.name for event in EVENTS]
