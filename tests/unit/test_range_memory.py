"""Memory of ranges: what is left, the peak, and whose it is."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.trace.ranges.event import Event, EventKind
from pytest_instrcount.trace.ranges.memory import MemoryWatch, MemRecordsAcc
from pytest_instrcount.trace.ranges.ranges import record_function
from pytest_instrcount.trace.ranges.session import mark
from tests.ranges import recorded

KIB = 1024
#: What an interpreter allocates for first calls (3.10 keeps frames), and cannot be told apart.
SMALL = 2 * KIB


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """What others have left is not to be freed within a range."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def near(number: int, expected: int) -> bool:
    return abs(number - expected) <= SMALL


def test_delta_and_peak() -> None:
    """What a range leaves behind, and the most that it had; tracemalloc is off again afterwards."""
    kept = []
    with recorded(profile_memory=True) as found:
        with record_function("keeps"):
            kept.append(bytearray(100 * KIB))
        with record_function("drops"):
            _ = bytearray(200 * KIB)
            del _
        with record_function("frees"):
            kept.clear()
        assert tracemalloc.is_tracing()
    assert not tracemalloc.is_tracing()
    keeps, drops, frees = map(found.memory, ("keeps", "drops", "frees"))
    assert near(keeps.delta, 100 * KIB)
    assert near(keeps.peak, 100 * KIB)
    assert near(drops.delta, 0)
    assert near(drops.peak, 200 * KIB)
    assert near(frees.delta, -100 * KIB)
    assert near(frees.peak, 0)
    assert near(drops.in_use - found.push("keeps").in_use, 100 * KIB)


def test_events_are_in_place() -> None:
    """The memory of a range comes just before its end; all events say what is in use."""
    with recorded(profile_memory=True) as found, record_function("a"):
        mark("m")
    assert found.story == ["+a", "m", "#a", "-a"]
    assert all(event.in_use > 0 for event in found.events[1:])
    assert found.memory("a").handle == found.push("a").handle


def test_without_it_there_is_nothing() -> None:
    """It costs too much to be on by itself."""
    with recorded() as found, record_function("a"):
        assert not tracemalloc.is_tracing()
    assert found.story == ["+a", "-a"]
    assert {event.in_use for event in found.events} == {0}


def test_a_peak_within_is_a_peak_around() -> None:
    """Peaks of inner ranges count for the outer one, from the outer one's begin."""
    with recorded(profile_memory=True) as found, record_function("outer"):
        kept = bytearray(100 * KIB)
        with record_function("inner"):
            _ = bytearray(300 * KIB)
            del _
        with record_function("later"):
            pass
        del kept
        _ = bytearray(50 * KIB)
        del _
    assert near(found.memory("inner").peak, 300 * KIB)
    assert near(found.memory("outer").peak, 400 * KIB)
    assert near(found.memory("later").peak, 0)
    assert near(found.memory("outer").delta, 0)


def test_peaks_of_ranges_that_overlap() -> None:
    """Each has the peaks of the time that it was open, whatever ends first."""
    with recorded(profile_memory=True) as found:
        first = record_function("first").__enter__()
        second = record_function("second").__enter__()
        _ = bytearray(100 * KIB)
        del _
        first.__exit__(None, None, None)
        _ = bytearray(200 * KIB)
        del _
        third = record_function("third").__enter__()
        second.__exit__(None, None, None)
        _ = bytearray(50 * KIB)
        del _
        third.__exit__(None, None, None)
    peaks = [found.memory(name).peak for name in ("first", "second", "third")]
    assert near(peaks[0], 100 * KIB)
    assert near(peaks[1], 200 * KIB)
    assert near(peaks[2], 50 * KIB)


def test_our_own_events_do_not_count() -> None:
    """A thousand ranges within one leave next to nothing."""
    with recorded(profile_memory=True) as found, record_function("outer"):
        for _ in range(1000):
            with record_function("inner"):
                pass
    (outer,) = (e for e in found.events if e.kind is EventKind.MEMORY and e.name == "outer")
    assert abs(outer.delta) < 2 * KIB


def test_threads_share_one_tracemalloc() -> None:
    """A range has what all threads allocated meanwhile."""
    kept = []
    with recorded(profile_memory=True) as found, record_function("main"):
        thread = threading.Thread(target=lambda: kept.append(bytearray(500 * KIB)))
        thread.start()
        thread.join()
    assert found.memory("main").delta > 490 * KIB
    kept.clear()


def test_two_sessions_share_it() -> None:
    """Neither spoils the other's peaks, and the last one to end stops tracemalloc."""
    kept = []

    def work() -> None:
        with recorded(profile_memory=True) as inner, record_function("inner"):
            _ = bytearray(100 * KIB)
            del _
        kept.append(inner.memory("inner"))

    with recorded(profile_memory=True) as found, record_function("outer"):
        _ = bytearray(300 * KIB)
        del _
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert tracemalloc.is_tracing()
    assert not tracemalloc.is_tracing()
    assert near(found.memory("outer").peak, 300 * KIB)
    assert near(kept[0].peak, 100 * KIB)


def test_a_range_that_outlives_its_session() -> None:
    """Its end does not disturb a later session."""
    with recorded(profile_memory=True):
        early = record_function("early").__enter__()
    with recorded(profile_memory=True) as found:
        later = record_function("later").__enter__()
        early.__exit__(None, None, None)
        _ = bytearray(100 * KIB)
        del _
        later.__exit__(None, None, None)
    assert near(found.memory("later").peak, 100 * KIB)


def test_tracemalloc_that_was_on_stays_on() -> None:
    """Somebody else wants it."""
    tracemalloc.start()
    try:
        with recorded(profile_memory=True):
            pass
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_equal_code_gives_equal_numbers() -> None:
    """Once it is warm: a gate compares them."""

    def work() -> None:
        with record_function("work"):
            _ = [bytearray(KIB) for _ in range(20)]

    with recorded(profile_memory=True) as found:
        for _ in range(6):
            work()
    memory = [(e.delta, e.peak) for e in found.events if e.kind is EventKind.MEMORY]
    assert len(set(memory[3:])) == 1


@given(
    st.lists(
        st.tuples(st.just("open"), st.just(0))
        | st.tuples(st.just("close"), st.integers(0, 5))
        | st.tuples(st.just("use"), st.integers(0, 1000)),
        max_size=30,
    )
)
def test_peaks_against_a_simple_model(steps: list[tuple[str, int]]) -> None:
    """The list of open ranges gives what one maximum per range would give."""
    in_use = peak = 0
    watch, watched = MemoryWatch(), []
    model: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:

        def reset() -> None:
            nonlocal peak
            peak = in_use

        patch.setattr(tracemalloc, "get_traced_memory", lambda: (in_use, peak))
        patch.setattr(tracemalloc, "reset_peak", reset)
        for what, number in steps:
            if what == "use":
                in_use = number
                peak = max(peak, in_use)
                model = [(begin, max(most, in_use)) for begin, most in model]
            elif what == "open":
                watched.append(watch.open())
                watch.own(watched[-1].traced)
                model.append((in_use, in_use))
            elif watched:
                place = number % len(watched)
                begin, most = model.pop(place)
                closed = watched.pop(place)
                now = watch.close(closed)
                watch.own(now.traced)
                assert now == (in_use, in_use, in_use - begin, most - begin)


@given(st.lists(st.integers(0, 20)), st.integers(-1, 21), st.integers(-1, 21))
def test_records_in_an_interval(times: list[int], start: int, end: int) -> None:
    """Both ends are included; the order is that of time."""
    records = [Event(EventKind.MEMORY, str(n), 0, at_ns=at) for n, at in enumerate(times)]
    found = list(MemRecordsAcc(records).in_interval(start, end))
    expected = sorted((r for r in records if start <= r.at_ns <= end), key=lambda r: r.at_ns)
    assert found == expected
