"""Events: plain values and back, and what is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.ranges.event import (
    PLAIN_VERSION,
    Event,
    EventKind,
    PlainIndex,
    ThreadEvents,
)
from pytest_instrcount.trace.ranges.remote import (
    node_of_worker,
    of_node,
    pack_events,
    unpack_events,
)
from pytest_instrcount.trace.ranges.session import add_events, start, stop
from tests.ranges import recorded

NUMBERS = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(st.characters(exclude_categories=()))
EVENTS = st.builds(
    Event,
    kind=st.sampled_from(EventKind),
    name=NAMES,
    thread=NUMBERS,
    handle=NUMBERS,
    node_id=NUMBERS,
    at_ns=NUMBERS,
    in_use=NUMBERS,
    delta=NUMBERS,
    peak=NUMBERS,
    sequence_nr=NUMBERS,
    origin_thread=NUMBERS,
    scope=NUMBERS,
    is_async=st.booleans(),
    failed=st.booleans(),
    shapes=st.lists(st.lists(NUMBERS).map(tuple)).map(tuple),
    args=NAMES,
    remote=st.just(True),
)
THREADS = st.builds(
    ThreadEvents, NUMBERS, NAMES, NUMBERS, NUMBERS, st.lists(EVENTS, max_size=3).map(tuple)
)
PLAIN = Event(EventKind.PUSH, "load", 1, shapes=((2, 3), ()), args="x").to_plain()


@given(EVENTS)
def test_round_trip(event: Event) -> None:
    """from_plain(to_plain(x)) == x, also by way of JSON and pickle."""
    plain = event.to_plain()
    assert Event.from_plain(plain) == event
    assert Event.from_plain(json.loads(json.dumps(plain))) == event
    assert Event.from_plain(pickle.loads(pickle.dumps(plain))) == event


@given(st.lists(THREADS, max_size=3))
def test_round_trip_of_threads(threads: list[ThreadEvents]) -> None:
    """A whole session comes through, too."""
    plain = json.loads(json.dumps(pack_events(threads)))
    assert unpack_events(plain) == tuple(threads)


def test_places_are_fixed() -> None:
    """Plain values lie in files and pipes: a place may never be given anew, only be added."""
    assert [index.name for index in PlainIndex] == [
        "VERSION", "KIND", "NAME", "THREAD", "HANDLE", "NODE_ID", "AT_NS", "IN_USE", "DELTA",
        "PEAK", "SEQUENCE_NR", "ORIGIN_THREAD", "SCOPE", "IS_ASYNC", "FAILED", "SHAPES", "ARGS",
    ]  # fmt: skip
    assert PLAIN_VERSION == 1
    assert [kind.value for kind in EventKind] == [0, 1, 2, 3]
    assert len(PLAIN) == len(PlainIndex)


def test_an_event_from_elsewhere_says_so() -> None:
    """What was read is not what was recorded here."""
    assert not Event(EventKind.MARK, "m", 0).remote
    assert Event.from_plain(PLAIN).remote


def test_more_values_are_left_out() -> None:
    """A later release may put something at the end."""
    assert Event.from_plain([*PLAIN, "new"]) == Event.from_plain(PLAIN)


def test_tuples_are_lists() -> None:
    """Some serializers know only one of them."""
    plain = [tuple(value) if isinstance(value, list) else value for value in PLAIN]
    assert Event.from_plain(tuple(plain)) == Event.from_plain(PLAIN)


def changed(index: PlainIndex, value: object) -> list[object]:
    plain = list(PLAIN)
    plain[index] = value
    return plain


@pytest.mark.parametrize(
    ("plain", "word"),
    [
        (None, "not a list"),
        ("x" * 20, "not a list"),
        ({}, "not a list"),
        ([], "0 values"),
        (PLAIN[:-1], "16 values"),
        (changed(PlainIndex.VERSION, 2), "version 2"),
        (changed(PlainIndex.VERSION, 0), "version 0"),
        (changed(PlainIndex.VERSION, "1"), "VERSION is str"),
        (changed(PlainIndex.KIND, 4), "kind 4"),
        (changed(PlainIndex.KIND, -1), "kind -1"),
        (changed(PlainIndex.KIND, True), "KIND is bool"),
        (changed(PlainIndex.KIND, []), "KIND is list"),
        (changed(PlainIndex.NAME, 7), "NAME is int"),
        (changed(PlainIndex.NAME, None), "NAME is NoneType"),
        (changed(PlainIndex.THREAD, 1.0), "THREAD is float"),
        (changed(PlainIndex.AT_NS, "5"), "AT_NS is str"),
        (changed(PlainIndex.IS_ASYNC, 1), "IS_ASYNC is int"),
        (changed(PlainIndex.SHAPES, None), "SHAPES is NoneType"),
        (changed(PlainIndex.SHAPES, [3]), "a shape"),
        (changed(PlainIndex.SHAPES, [["3"]]), "a shape"),
        (changed(PlainIndex.SHAPES, [[True]]), "a shape"),
        (changed(PlainIndex.ARGS, []), "ARGS is list"),
    ],
)
def test_refuses_what_is_no_event(plain: object, word: str) -> None:
    """What is too short, or of other types, is named."""
    with pytest.raises(InstrcountError, match=word) as caught:
        Event.from_plain(plain)
    assert caught.value.slug == "event-plain"


@pytest.mark.parametrize(
    "plain",
    [None, [], {}, "text", ["1"], [2], [True], [1, 5], [1, []], [1, [0, "t", 0, 0, None]],
     [1, [0, "t", 0, 0, [None]]], [1, [0, 1, 0, 0, []]], [1, [False, "t", 0, 0, []]]],
    ids=repr,
)  # fmt: skip
def test_refuses_what_are_no_threads(plain: object) -> None:
    """Neither is anything else taken for a session."""
    with pytest.raises(InstrcountError) as caught:
        unpack_events(plain)
    assert caught.value.slug == "event-plain"


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@given(JSON | st.builds(changed, st.sampled_from(PlainIndex), JSON))
def test_any_value_is_an_event_or_an_error(plain: object) -> None:
    """No value brings another exception."""
    for read in (Event.from_plain, unpack_events):
        try:
            read(plain)
        except InstrcountError as error:
            assert error.slug == "event-plain"


def test_events_of_another_process_follow_the_own_ones() -> None:
    """They have a node id: the next free one, or the one that is given."""
    mark = Event(EventKind.MARK, "there", 0)
    threads = [ThreadEvents(0, "MainThread", 7, 0, (mark,))]
    with recorded() as found:
        add_events(threads)
        add_events(threads)
        found.session.add(threads, node_id=node_of_worker("gw8"))
        add_events(of_node(threads, 4))
    assert [one.node_id for one in found.threads] == [0, 1, 2, 9, 4]
    assert [event.node_id for event in found.events if event.name == "there"] == [1, 2, 9, 4]


def handed_over(*ranges: int, ident: int = 7, node: int = 0) -> ThreadEvents:
    """What a process hands over that has recorded ranges with these handles."""
    kinds = (EventKind.PUSH, EventKind.POP)
    events = [Event(kind, f"r{n}", 0, n, node, at_ns=n) for n in ranges for kind in kinds]
    return ThreadEvents(0, "MainThread", ident, node, tuple(events))


def names_by_node(threads: Iterable[ThreadEvents]) -> list[tuple[int, str]]:
    """Node and ranges of each thread of another process; the events say the same node."""
    threads = [one for one in threads if one.node_id]
    assert all(event.node_id == one.node_id for one in threads for event in one.events)
    begun = EventKind.PUSH
    return [
        (one.node_id, " ".join(event.name for event in one.events if event.kind is begun))
        for one in threads
    ]


def test_a_process_may_hand_over_several_parts() -> None:
    """Under its number they are one thread again, and a range may end in a later part than its own."""
    whole = handed_over(1, 2)
    parts = [replace(whole, events=whole.events[:3]), replace(whole, events=whole.events[3:])]
    with recorded() as found:
        for part in parts:
            add_events([part], node_id=3)
    assert names_by_node(found.threads) == [(3, "r1 r2")]
    assert [event.handle for event in found.threads[1].events] == [1, 1, 2, 2]


@pytest.mark.parametrize("other", [handed_over(1), handed_over(2, ident=8)])
def test_a_number_is_one_process(other: ThreadEvents) -> None:
    """Equal handles, or other threads, are another process: its ranges would take the others' place."""
    with recorded() as found:
        add_events([handed_over(1)], node_id=1)
        for node in (1, 0, -1):
            with pytest.raises(InstrcountError) as caught:
                add_events([other], node_id=node)
            assert caught.value.slug == "node-taken"
        add_events([other])
    assert [node for node, _ in names_by_node(found.threads)] == [1, 2]


def test_processes_of_processes_get_free_numbers() -> None:
    """Two children may each have a child that is node 1 to them."""
    with recorded() as found:
        add_events([handed_over(1), handed_over(1, ident=8, node=1)], node_id=1)
        add_events([handed_over(1), handed_over(1, ident=9, node=1)])
        add_events([handed_over(2), handed_over(2, ident=9, node=3)], node_id=3)
    assert names_by_node(found.threads) == [
        (1, "r1"),
        (2, "r1"),
        (3, "r1 r2"),
        (4, "r1"),
        (5, "r2"),
    ]


def test_adding_events_needs_a_session() -> None:
    """Without one they would be lost without a word."""
    with pytest.raises(InstrcountError) as caught:
        add_events([])
    assert caught.value.slug == "session-off"
    start()
    stop()
    with pytest.raises(InstrcountError):
        add_events([])
