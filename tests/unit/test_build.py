"""From what the tracers recorded to one timeline."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pytest_instrcount.trace.check import broken_rules
from pytest_instrcount.trace.columns import (
    Columns,
    Flag,
    Folded,
    Key,
    RecognizedObject,
    ReplayStats,
    Thread,
)
from pytest_instrcount.trace.events.build import build_timeline
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.ranges.event import (
    START_MARK,
    STOP_MARK,
    Event,
    EventKind,
    ThreadEvents,
)
from pytest_instrcount.trace.sums import self_times
from pytest_instrcount.trace.timeline import Flow, Mark, MemorySample, Recorded, Timeline

MAIN = Thread(0, "MainThread", 11)


def columns(
    *rows: tuple[str, int, int, int],
    threads: tuple[Thread, ...] = (MAIN,),
    on: Mapping[int, int] | None = None,
    folded: Mapping[int, Folded] | None = None,
) -> Columns:
    """Rows of (name, parent, start, end); ``on`` is their thread, if not the first."""
    names = list(dict.fromkeys(name for name, *_ in rows))
    return Columns(
        array("i", [parent for _, parent, _, _ in rows]),
        array("q", [start for _, _, start, _ in rows]),
        array("q", [end for _, _, _, end in rows]),
        array("H", [0] * len(rows)),
        keys=tuple(Key("python", "mod", name, "mod.py", 7) for name in names),
        key=array("i", [names.index(name) for name, *_ in rows]),
        thread=array("i", [(on or {}).get(row, 0) for row in range(len(rows))]),
        threads=threads,
        stats=ReplayStats(
            "setprofile", truncated=folded is not None, started_ns=1, stopped_ns=1000
        ),
        folded=folded or {},
    )


def events(*found: Event, number: int = 0, ident: int = 11, node: int = 0) -> ThreadEvents:
    return ThreadEvents(number, f"Thread-{number}", ident, node, found)


def push(name: str, at: int, handle: int = 1, **rest: object) -> Event:
    return Event(EventKind.PUSH, name, 0, handle, at_ns=at)._replace(**rest)  # type: ignore[arg-type]


def pop(name: str, at: int, handle: int = 1, **rest: object) -> Event:
    return Event(EventKind.POP, name, 0, handle, at_ns=at)._replace(**rest)  # type: ignore[arg-type]


def tree(timeline: Timeline) -> list[tuple[str, str, str]]:
    """Name, parent and track of each row."""
    assert broken_rules(timeline) == ""
    return [
        (
            event.name,
            event.cpu_parent.name if event.cpu_parent else "beside" if event.is_async else "",
            timeline.tracks[event.thread].name,
        )
        for event in EventList(timeline)
    ]


def test_nothing() -> None:
    """No calls, no ranges."""
    assert len(build_timeline(columns(threads=()), (), Recorded())) == 0


def test_a_range_among_calls() -> None:
    """By time, on the thread of that ident."""
    found = build_timeline(
        columns(("f", -1, 10, 90), ("g", 0, 20, 30)),
        [events(push("r", 15), pop("r", 40))],
        Recorded(),
    )
    assert tree(found) == [
        ("mod.f", "", "MainThread"),
        ("r", "mod.f", "MainThread"),
        ("mod.g", "r", "MainThread"),
    ]
    assert found.windows == ((1, 1000),)
    assert found.labels[0].location == "mod.py(7): mod.f"


def test_what_freeing_memory_calls_stays_in_the_tree() -> None:
    """Its flag is no flag of a timeline: there the bit is that of what stands beside the tree."""
    found = columns(("f", -1, 10, 90), ("__del__", 0, 20, 30), ("g", 1, 21, 29))
    found = replace(found, flags=array("H", [0, *[Flag.FINALIZER] * 2]))
    timeline = build_timeline(found, (), Recorded())
    assert [above for _, above, _ in tree(timeline)] == ["", "mod.f", "mod.__del__"]
    assert list(self_times(timeline)) == [70, 2, 8]


def test_what_a_range_has() -> None:
    """Shapes only if they were asked for."""
    record = events(
        push("r", 15, shapes=((2,),), args="n=1", sequence_nr=4, scope=0),
        Event(EventKind.MEMORY, "r", 0, 1, at_ns=40, in_use=500, delta=70),
        pop("r", 40, failed=True, in_use=500),
    )
    for shapes in (True, False):
        found = build_timeline(columns(), [record], Recorded(shapes=shapes))
        (event,) = EventList(found)
        assert event.input_shapes == (((2,),) if shapes else ())
        assert (event.cpu_memory_usage, event.sequence_nr, event.scope) == (70, 4, 0)
        assert (event.errors, event.unfinished) == (1, False)
        assert found.details[0].args == "n=1"
    assert found.memory[0] == MemorySample(40, 500, 0)


def test_a_range_without_an_end() -> None:
    """It lasts until the recording stopped."""
    (event,) = EventList(build_timeline(columns(), [events(push("r", 15))], Recorded()))
    assert (event.end_ns, event.unfinished) == (1000, True)


@pytest.mark.parametrize("on", ["push", "pop"])
def test_async_ranges_stand_beside(on: str) -> None:
    """Whether it was known at their begin or at their end."""
    record = events(push("r", 15, is_async=on == "push"), pop("r", 20, is_async=on == "pop"))
    found = build_timeline(columns(("f", -1, 10, 90)), [record], Recorded())
    assert tree(found)[1] == ("r", "beside", "MainThread")


def test_marks() -> None:
    """Those of the session itself are its window, not the user's."""
    marks = [Event(EventKind.MARK, name, 0, at_ns=5) for name in (START_MARK, "a\nb", STOP_MARK)]
    found = build_timeline(columns(), [events(*marks)], Recorded())
    assert found.marks == (Mark("a\\nb", 0, 5),)


def test_greenlets_and_threads() -> None:
    """Each is a track; ranges lie on that of the thread."""
    threads = (MAIN, Thread(1, "MainThread", 11, 1), Thread(2, "worker", 22))
    found = build_timeline(
        columns(
            ("f", -1, 10, 90),
            ("g", -1, 20, 95),
            ("h", -1, 30, 40),
            threads=threads,
            on={1: 1, 2: 2},
        ),
        [
            events(push("r", 12), pop("r", 80)),
            events(push("w", 31, 2, thread=1), pop("w", 32, 2, thread=1), number=1, ident=22),
            events(push("x", 50, 3, thread=2), pop("x", 51, 3, thread=2), number=2, ident=33),
        ],
        Recorded(),
    )
    assert tree(found) == [
        ("mod.f", "", "MainThread"),
        ("r", "mod.f", "MainThread"),
        ("mod.g", "", "MainThread, greenlet 1"),
        ("mod.h", "", "worker"),
        ("w", "mod.h", "worker"),
        ("x", "", "Thread-2"),
    ]


def test_an_ident_used_twice() -> None:
    """By two threads in a row: the range belongs to the one that had begun."""
    threads = (MAIN, Thread(1, "first", 22), Thread(2, "second", 22))
    found = build_timeline(
        columns(("f", -1, 10, 20), ("g", -1, 30, 40), threads=threads, on={0: 1, 1: 2}),
        [
            events(push("a", 11, 1, thread=1), pop("a", 12, 1, thread=1), number=1, ident=22),
            events(push("b", 31, 2, thread=2), pop("b", 32, 2, thread=2), number=2, ident=22),
        ],
        Recorded(),
    )
    assert tree(found) == [
        ("mod.f", "", "first"),
        ("a", "mod.f", "first"),
        ("mod.g", "", "second"),
        ("b", "mod.g", "second"),
    ]


def test_another_process() -> None:
    """Its handles, idents and numbers are its own."""
    found = build_timeline(
        columns(("f", -1, 10, 90)),
        [
            events(push("here", 15), pop("here", 40)),
            events(push("there", 16, node_id=3), pop("there", 41, node_id=3), node=3),
        ],
        Recorded(),
    )
    assert tree(found)[1:] == [("here", "mod.f", "MainThread"), ("there", "", "Thread-0")]
    assert [event.node_id for event in EventList(found)] == [0, 0, 3]


def test_it_ends_on_another_thread() -> None:
    """Both are kept."""
    found = build_timeline(
        columns(),
        [events(push("r", 15), pop("r", 20, thread=1)), events(number=1, ident=22)],
        Recorded(),
    )
    (event,) = EventList(found)
    assert (event.thread, event.end_thread, event.is_async) == (0, 1, True)


def test_flows() -> None:
    """From a range to those that were opened in it on another thread."""
    found = build_timeline(
        columns(),
        [
            events(push("out", 10), pop("out", 20), push("mine", 12, 2, sequence_nr=1)),
            events(
                push("in", 15, 3, thread=1, sequence_nr=1),
                push("late", 30, 4, thread=1, sequence_nr=1),
                push("none", 31, 5, thread=1, sequence_nr=77),
                number=1,
                ident=22,
            ),
        ],
        Recorded(),
    )
    assert found.flows == (Flow("in", 0, 15, 1, 15), Flow("late", 0, 10, 1, 30))


def test_recognised_objects() -> None:
    """Only if they were asked for."""
    recorded = columns(("f", -1, 10, 90))
    recorded = replace(recorded, objects={0: RecognizedObject("Linear", 2)})
    for modules, name in ((True, "Linear #2"), (False, "")):
        found = build_timeline(recorded, (), Recorded(modules=modules))
        assert EventList(found)[0].module == name


def test_folded() -> None:
    """Laid out by caller, as wide as it took in sum; ranges stand beside."""
    folded = {
        0: Folded(2, 0, 0, 100),
        1: Folded(6, 0, 1, 60),
        2: Folded(1, 0, 0, 20),
        3: Folded(4, 3, 0, 70),
    }
    found = build_timeline(
        # the second child of f is seen only after g
        columns(("f", -1, 0, 0), ("h", 0, 0, 0), ("g", -1, 0, 0), ("k", 0, 0, 0), folded=folded),
        [events(push("r", 15), pop("r", 40))],
        Recorded(),
    )
    assert tree(found) == [
        ("mod.f", "", "MainThread"),
        ("mod.h", "mod.f", "MainThread"),
        ("r", "beside", "MainThread"),
        ("mod.k", "mod.f", "MainThread"),
        ("mod.g", "", "MainThread"),
    ]
    assert found.truncated
    assert {
        one.key: (one.count, one.resumes, one.errors) for one in EventList(found).key_averages()
    } == {
        "mod.f": (2, 0, 0),
        "mod.h": (6, 0, 1),
        "r": (1, 0, 0),
        "mod.k": (4, 3, 0),
        "mod.g": (1, 0, 0),
    }


def test_flags_are_kept() -> None:
    """Bit by bit."""
    recorded = columns(("f", -1, 10, 90))
    recorded = replace(recorded, flags=array("H", [Flag.RESUME | Flag.ERROR]))
    (event,) = EventList(build_timeline(recorded, (), Recorded()))
    assert (event.count, event.resumes, event.errors) == (0, 1, 1)


def test_recognised_objects_have_labels_of_their_own() -> None:
    """Torch's modules those that torch gives them; beyond a bound they share one."""
    made = columns(*[(name, -1, at, at + 1) for at, name in enumerate("ffgff")])
    keys = (made.keys[0], replace(made.keys[1], module="torch.nn.modules.module"))
    seen = [RecognizedObject("Net", number) for number in (0, 1, 2, 1, 200)]
    timeline = build_timeline(
        replace(made, keys=keys, objects=dict(enumerate(seen))), (), Recorded(modules=True)
    )
    assert [timeline.labels[label].name for label in timeline.label] == [
        "mod.f [Net #0]",
        "mod.f [Net #1]",
        "nn.Module: Net_2",
        "mod.f [Net #1]",
        "mod.f [Net #100 and on]",
    ]
    rows = EventList(timeline).key_averages()
    assert {row.key: row.count for row in rows}["mod.f [Net #1]"] == 2
    plain = build_timeline(replace(made, objects=dict(enumerate(seen))), (), Recorded())
    assert [label.name for label in plain.labels] == ["mod.f", "mod.g"]
