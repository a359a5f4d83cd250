"""Ranges woven into calls: what encloses what, and what stands beside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.trace.check import broken_rules
from pytest_instrcount.trace.timeline import ASYNC, Detail, Timeline, Track, column
from pytest_instrcount.trace.weave import Span, in_start_order, join, weave
from tests.timelines import MAIN, call, call_trees, deep, later, ranged, timeline_of, timelines


def tree(timeline: Timeline) -> list[tuple[str, str | None]]:
    """Name and parent's name of each row; the parent of what stands beside is "beside"."""

    def name(row: int) -> str:
        return timeline.labels[timeline.label[row]].name

    found: list[tuple[str, str | None]] = []
    for row, parent in enumerate(timeline.parent):
        beside = timeline.flags[row] & ASYNC
        found.append((name(row), "beside" if beside else name(parent) if parent >= 0 else None))
    return found


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(
            [call("f", 0, 9), ranged("r", 2, 8), call("g", 3, 4)],
            [("f", None), ("r", "f"), ("g", "r")],
            id="a range between calls",
        ),
        pytest.param(
            [call("f", 0, 5), ranged("r", 3, 8)],
            [("f", None), ("r", "beside")],
            id="it ends after the call it began in",
        ),
        pytest.param(
            [call("g", 0, 99), ranged("r", 2, 8), call("f", 5, 9), call("h", 3, 4)],
            [("g", None), ("r", "beside"), ("h", "g"), ("f", "g")],
            id="it ends in a call that began later",
        ),
        pytest.param(
            [ranged("a", 0, 5), ranged("b", 3, 8), ranged("c", 6, 7)],
            [("a", None), ("b", "beside"), ("c", None)],
            id="of two ranges the later one",
        ),
        pytest.param(
            [ranged("a", 0, 5), ranged("b", 5, 8)], [("a", None), ("b", None)], id="they touch"
        ),
        pytest.param(
            [ranged("a", 0, 5), ranged("b", 0, 8)], [("b", None), ("a", "b")], id="equal starts"
        ),
        pytest.param(
            [ranged("a", 0, 5), ranged("b", 0, 5)], [("a", None), ("b", "a")], id="equal spans"
        ),
        pytest.param(
            [ranged("a", 0, 5), call("b", 0, 5)],
            [("a", None), ("b", "a")],
            id="equal spans: a range is around a call",
        ),
        pytest.param(
            [ranged("a", 0, 5), ranged("b", 3, 8, track=1)],
            [("a", None), ("b", None)],
            id="two threads never overlap",
        ),
        pytest.param(
            [ranged("a", 3, 3), ranged("b", 9, 8)], [("a", None), ("b", None)], id="no length"
        ),
    ],
)
def test_who_is_whose_child(spans: list[Span], expected: list[tuple[str, str | None]]) -> None:
    """By time, per thread."""
    timeline = timeline_of(*spans)
    assert tree(timeline) == expected
    assert broken_rules(timeline) == ""


@given(timelines())
def test_every_timeline_keeps_the_rules(timeline: Timeline) -> None:
    """However ranges lie over calls."""
    assert broken_rules(timeline) == ""


@given(call_trees(0), st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 9_000)), max_size=8))
def test_calls_stay_in_the_tree(calls: list[Span], ranges: list[tuple[int, int]]) -> None:
    """Only ranges are put beside it, and nothing is lost."""
    spans = [ranged("r", start, start + length) for start, length in ranges]
    timeline = timeline_of(*calls, *spans)
    beside = [row for row, flags in enumerate(timeline.flags) if flags & ASYNC]
    assert len(timeline) == len(calls) + len(spans)
    assert all(timeline.labels[timeline.label[row]].kind == "range" for row in beside)


def test_a_range_that_ends_on_another_thread() -> None:
    """It has no place on either one's stack."""
    timeline = timeline_of(call("f", 0, 9), ranged("r", 1, 2, detail=Detail(end_track=1)))
    assert tree(timeline) == [("f", None), ("r", "beside")]


def test_details_follow_their_rows() -> None:
    """Weaving sorts; what only some rows have goes with them."""
    timeline = timeline_of(
        ranged("late", 7, 8, detail=Detail(args="late")),
        ranged("early", 1, 2, detail=Detail(args="early")),
        call("f", 0, 9),
    )
    assert {row: detail.args for row, detail in timeline.details.items()} == {1: "early", 2: "late"}


def test_two_runs_share_threads_and_labels() -> None:
    """The second run goes on where the first ended, greenlets of one thread one by one."""
    tracks = (MAIN, MAIN, Track("worker", 7))
    first = weave(Timeline(tracks=tracks), [call("f", 0, 1, track=2), call("g", 5, 6, track=1)])
    second = weave(Timeline(tracks=tracks[1:]), [ranged("r", 8, 9, track=1)])
    both = join(first, second)
    assert both.tracks == tracks
    assert list(both.track) == [2, 1, 2]
    assert [label.name for label in both.labels] == ["f", "g", "r"]


@given(timelines(), timelines())
def test_joined_runs_keep_the_rules(first: Timeline, second: Timeline) -> None:
    """Also when they ran at the same time, in other processes."""
    nodes = tuple(Track(track.name, track.ident, 5) for track in second.tracks)
    both = join(first, replace(second, tracks=nodes))
    assert broken_rules(both) == ""
    assert len(both) == len(first) + len(second)
    assert len(both.details) == len(first.details) + len(second.details)


def test_order_of_start_is_made_once() -> None:
    """A timeline that has it is returned as it is."""
    timeline = deep(10)
    assert in_start_order(timeline) is timeline


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start": column([0])}, "differ in length"),
        ({"label": column([0, 9])}, "not there"),
        ({"track": column([0, 9])}, "not there"),
        ({"label": column([0, -1])}, "not there"),
        ({"end": column([4, 0])}, "ends before"),
        ({"start": column([5, 1]), "end": column([9, 3])}, "starts before the row above"),
        ({"flags": column([0, 1 << 20])}, "unknown flags"),
        ({"flags": column([0, ASYNC])}, "has a parent"),
        ({"parent": column([-1, 1])}, "does not nest"),
        ({"parent": column([-1, -2])}, "does not nest"),
        ({"parent": column([-1, -1])}, "does not nest"),
        ({"end": column([4, 5])}, "does not nest"),
        ({"details": {7: Detail()}}, "no row 7"),
        ({"details": {0: Detail(end_track=9)}}, "ended on a track"),
        ({"windows": ((3, 1),)}, "ends before it starts"),
    ],
)
def test_each_rule_can_be_broken(change: dict[str, Any], words: str) -> None:
    """And is named."""
    good = deep(2)
    assert broken_rules(good) == ""
    assert words in broken_rules(replace(good, **change))


def test_recursion_100_000_deep() -> None:
    """Weaving, checking and joining recurse nowhere."""
    timeline = weave(deep(100_000), [ranged("r", 300_000, 300_001)])
    assert broken_rules(join(timeline, later(timeline))) == ""
