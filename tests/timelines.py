"""Timelines for tests: written out, and made up by hypothesis."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from pytest_instrcount.trace.columns import Flag
from pytest_instrcount.trace.timeline import (
    Detail,
    Flow,
    Label,
    Mark,
    MemorySample,
    Recorded,
    Timeline,
    Track,
    column,
)
from pytest_instrcount.trace.weave import Span, join, weave

MAIN = Track("MainThread", 1)
EVERYTHING = Recorded(shapes=True, stack=True, modules=True, memory=True)


def call(name: str, start: int, end: int, *, track: int = 0, flags: int = 0) -> Span:
    return Span(Label(name, "python", f"{name}.py", 1), track, start, end, flags)


def ranged(
    name: str, start: int, end: int, *, track: int = 0, detail: Detail | None = None
) -> Span:
    return Span(Label(name, "range"), track, start, end, 0, detail)


def timeline_of(*spans: Span, recorded: Recorded = EVERYTHING, tracks: int = 2) -> Timeline:
    """Calls that nest, and ranges that may not; ns."""
    threads = tuple(Track(f"Thread-{number}", number) for number in range(1, tracks))
    empty = Timeline(tracks=(MAIN, *threads), recorded=recorded, windows=((0, 1_000_000),))
    calls = weave(empty, [span for span in spans if span.label.kind != "range"])
    return weave(calls, [span for span in spans if span.label.kind == "range"])


def deep(levels: int) -> Timeline:
    """A function that calls itself, each level 1 ns longer at both ends."""
    rows = range(levels)
    return Timeline(
        column(range(-1, levels - 1)),
        column(rows),
        column(2 * levels - row for row in rows),
        column([0]) * levels,
        labels=(Label("f", "python", "f.py", 1),),
        tracks=(MAIN,),
        label=column([0]) * levels,
        track=column([0]) * levels,
        recorded=EVERYTHING,
    )


NAMES = st.sampled_from(["f", "g", "json.loads", 'a"b\\', "é;中", "\N{GRINNING FACE}", "x" * 80])
FLAGS = st.sampled_from([0, 0, 0, Flag.RESUME, Flag.START_FRAME, Flag.ERROR, Flag.UNFINISHED])


@st.composite
def call_trees(draw: st.DrawFn, track: int) -> list[Span]:
    """Calls of one thread: a walk of enters and exits, time strictly increasing."""
    now, stack, spans = draw(st.integers(0, 5)), [], []
    for enter in draw(st.lists(st.booleans(), max_size=24)):
        now += draw(st.integers(1, 2_000))
        if enter:
            stack.append(now)
        elif stack:
            spans.append(_drawn_call(draw, track, stack.pop(), now))
    while stack:
        now += draw(st.integers(1, 3))
        spans.append(_drawn_call(draw, track, stack.pop(), now))
    return spans


def _drawn_call(draw: st.DrawFn, track: int, start: int, end: int) -> Span:
    return call(draw(NAMES), start, end, track=track, flags=int(draw(FLAGS)))


@st.composite
def ranges(draw: st.DrawFn, tracks: int) -> Span:
    start = draw(st.integers(0, 20_000))
    detail = Detail(
        end_track=draw(st.none() | st.integers(0, tracks - 1)),
        input_shapes=draw(st.sampled_from([(), ((2, 3),), ((), (1,))])),
        memory=draw(st.none() | st.integers(-5_000, 5_000)),
        args=draw(st.sampled_from(["", "n=3"])),
        module=draw(st.sampled_from(["", "Linear #0"])),
        sequence_nr=draw(st.integers(-1, 3)),
        scope=draw(st.integers(0, 7)),
    )
    return ranged(
        draw(NAMES),
        start,
        start + draw(st.integers(0, 9_000)),
        track=draw(st.integers(0, tracks - 1)),
        detail=detail,
    )


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Calls on up to three threads, ranges anywhere, marks, memory and flows; maybe two runs."""
    tracks = draw(st.integers(1, 3))
    spans = [span for track in range(tracks) for span in draw(call_trees(track))]
    spans += draw(st.lists(ranges(tracks), max_size=6))
    number, time = st.integers(0, tracks - 1), st.integers(0, 30_000)
    one = replace(
        timeline_of(*spans, tracks=tracks),
        marks=tuple(draw(st.lists(st.builds(Mark, NAMES, number, time), max_size=3))),
        memory=tuple(
            draw(st.lists(st.builds(MemorySample, time, st.integers(0, 9), number), max_size=3))
        ),
        flows=tuple(draw(st.lists(st.builds(Flow, NAMES, number, time, number, time), max_size=3))),
    )
    return join(one, later(one)) if draw(st.booleans()) else one


def later(timeline: Timeline, ns: int = 1_000_000) -> Timeline:
    """The same run at a later time."""
    return replace(
        timeline,
        start=column(start + ns for start in timeline.start),
        end=column(end + ns for end in timeline.end),
        windows=tuple((start + ns, end + ns) for start, end in timeline.windows),
    )
