"""Chrome traces of ranges, by RecordProfile, which never raises at its end."""

from __future__ import annotations

import io
import json
import logging
import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.events.record import RecordProfile
from pytest_instrcount.trace.ranges.event import START_MARK, Event, EventKind, ThreadEvents
from pytest_instrcount.trace.ranges.ranges import record_function
from pytest_instrcount.trace.ranges.session import current, mark
from tests import perfetto
from tests.ranges import recorded


def written(threads: tuple[ThreadEvents, ...]) -> str:
    out = io.StringIO()
    RecordProfile(out)._write(threads)
    return out.getvalue()


def rows_of(threads: tuple[ThreadEvents, ...]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(written(threads))["traceEvents"]
    return [row for row in rows if row["ph"] != "M"]


def events(*made: Event) -> tuple[ThreadEvents, ...]:
    begin = Event(EventKind.MARK, START_MARK, 0, at_ns=1_000_000)
    return (ThreadEvents(0, "main", 7, 0, (begin, *made)),)


def push(handle: int, at_ns: int, **more: Any) -> Event:
    return Event(EventKind.PUSH, f"r{handle}", 0, handle, at_ns=1_000_000 + at_ns, **more)


def pop(handle: int, at_ns: int, thread: int = 0, **more: Any) -> Event:
    return Event(EventKind.POP, f"r{handle}", thread, handle, at_ns=1_000_000 + at_ns, **more)


def test_a_range_is_a_slice() -> None:
    """In microseconds since the session's start."""
    (row,) = rows_of(
        events(push(1, 1500, args="n=3", shapes=((2,), ())), pop(1, 4000, failed=True))
    )
    assert row == {
        "ph": "X", "cat": "range", "name": "r1", "ts": 1.5, "dur": 2.5, "pid": 1, "tid": 1,
        "args": {"args": "n=3", "input shapes": "((2,), ())", "raised": True},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("made", "phases"),
    [
        ((push(1, 0), push(2, 1), pop(2, 2), pop(1, 3)), ["X r1", "X r2"]),
        # one that overlaps another one is a pair
        ((push(1, 0), push(2, 1), pop(1, 2), pop(2, 3)), ["X r1", "b r2", "e r2"]),
        ((push(1, 0, is_async=True), pop(1, 3, is_async=True)), ["b r1", "e r1"]),
        ((push(1, 0), pop(1, 3, thread=1)), ["b r1", "e r1"]),
        ((push(1, 0), push(2, 1), pop(2, 3)), ["X r1", "X r2"]),
    ],
)
def test_slices_of_a_thread_nest(made: tuple[Event, ...], phases: list[str]) -> None:
    """Perfetto drops a slice that overlaps another one of its thread."""
    assert [f"{row['ph']} {row['name']}" for row in rows_of(events(*made))] == phases


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3))))
def test_perfetto_drops_nothing(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
) -> None:
    """Whatever order ranges begin and end in, also at the same nanosecond."""
    made: list[Event] = []
    now = handle = 0
    opened: list[int] = []
    for what, passed in steps:
        now += passed
        if what < 3:
            handle += 1
            opened.append(handle)
            made.append(push(handle, now))
        elif opened:
            made.append(pop(opened.pop(what % len(opened)), now))
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    path.write_text(written(events(*made)))
    loaded = perfetto.load(path)
    assert loaded.dropped == []
    assert loaded.complete + len(loaded.pairs) == handle


def test_deep_ranges(tmp_path: Path) -> None:
    """Deeper than Perfetto's stack."""
    depth = 1000
    made = [push(n, n) for n in range(1, depth)]
    made += [pop(n, 2 * depth - n) for n in range(depth - 1, 0, -1)]
    path = tmp_path / "trace.json"
    path.write_text(written(events(*made)))
    loaded = perfetto.load(path)
    assert loaded.dropped == []
    assert loaded.complete + len(loaded.pairs) == depth - 1


def test_a_range_without_an_end() -> None:
    """It lasts until the last event, and says so."""
    (row,) = rows_of(
        events(push(1, 0), Event(EventKind.MARK, "__stop_profile", 0, at_ns=1_005_000))
    )
    assert (row["dur"], row["args"]) == (5.0, {"unfinished": True})


def test_marks_and_memory() -> None:
    """Points, and a counter."""
    with recorded(profile_memory=True) as found, record_function("a"):
        mark("here\n")
    rows = rows_of(found.threads)
    assert [row["ph"] for row in rows if row["ph"] != "C"] == ["X", "i"]
    assert rows[1]["name"] == "here\\n"
    used = [row["args"]["bytes"] for row in rows if row["ph"] == "C"]
    assert found.memory("a").in_use in used


def test_events_of_all_processes() -> None:
    """Each has a pid, and the same handle in two of them is two ranges."""
    with recorded() as found:
        with record_function("a"):
            pass
        (own,) = found.session.stop(cleanup=False)
        found.session.add([own])
    threads = (own, *found.threads[1:])
    rows = rows_of(threads)
    assert [(row["name"], row["pid"]) for row in rows] == [("a", 1), ("a", 2)]


def test_the_start_mark_is_needed() -> None:
    """Without it times have no origin; that of another process will not do."""
    for threads in (
        (),
        (ThreadEvents(0, "main", 7, 0, (push(1, 0), pop(1, 1))),),
        (ThreadEvents(0, "main", 7, 1, (Event(EventKind.MARK, START_MARK, 0, node_id=1),)),),
    ):
        out = io.StringIO()
        with pytest.raises(InstrcountError) as caught:
            RecordProfile(out)._write(threads)
        assert caught.value.slug == "trace-no-start"
        assert out.getvalue() == ""


def test_the_second_part_of_a_session_is_no_trace() -> None:
    """What stop(cleanup=False) left has neither the start nor all begins."""
    out = io.StringIO()
    with RecordProfile(out) as made:
        current().stop(cleanup=False)
    assert isinstance(made.error, InstrcountError)
    assert (made.error.slug, out.getvalue()) == ("trace-no-start", "")


@pytest.mark.parametrize("as_text", [True, False])
def test_record_profile_to_a_file(tmp_path: Path, as_text: bool) -> None:
    """A path as text or Path; folders are made."""
    path = tmp_path / "new" / "trace.json"
    with RecordProfile(str(path) if as_text else path) as made, record_function("a"):
        pass
    assert made.error is None
    assert '"name":"a"' in path.read_text()
    assert os.listdir(path.parent) == ["trace.json"]


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def closed_stream() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    ("target", "word"),
    [(Full(), "No space"), (closed_stream(), "closed"), (io.BytesIO(), "bytes-like"), (None, "write")],
    ids=["full", "closed", "binary", "nothing"],
)  # fmt: skip
def test_its_end_never_raises(target: Any, word: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the stream says: it is logged and kept, and the session is over."""
    with RecordProfile(target) as made:
        pass
    assert word in str(made.error)
    assert word in caplog.text
    assert caplog.records[0].levelno == logging.ERROR
    with pytest.raises(InstrcountError):
        current()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_is_really_full(caplog: pytest.LogCaptureFixture) -> None:
    """As Linux says it."""
    with open("/dev/full", "w") as stream:
        with RecordProfile(stream) as made:
            pass
        assert isinstance(made.error, OSError)
        # what is buffered would raise again at the end
        with pytest.raises(OSError, match="No space"):
            stream.close()


def test_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before is still there, and no other file is."""
    path = tmp_path / "trace.json"
    path.write_text("before")

    def fail(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with RecordProfile(path) as made:
        pass
    assert isinstance(made.error, OSError)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["trace.json"]


def test_the_block_s_own_error_passes(tmp_path: Path) -> None:
    """And the trace is written all the same."""
    path = tmp_path / "trace.json"
    with pytest.raises(KeyError), RecordProfile(path), record_function("bad"):
        raise KeyError("x")
    assert '"raised": true' in path.read_text()


def test_a_session_that_was_stopped_within(caplog: pytest.LogCaptureFixture) -> None:
    """By somebody else: there is nothing to write, and nothing is raised."""
    with RecordProfile(io.StringIO()) as made:
        current().stop()
    assert isinstance(made.error, InstrcountError)


def test_it_refuses_a_second_one(tmp_path: Path) -> None:
    """At its begin it may raise; the first one goes on."""
    with RecordProfile(tmp_path / "a.json") as first:
        with pytest.raises(InstrcountError, match="session-on"), RecordProfile(tmp_path / "b.json"):
            pass
        mark("still on")
    assert first.error is None
    assert "still on" in (tmp_path / "a.json").read_text()
    assert os.listdir(tmp_path) == ["a.json"]


def test_an_end_on_a_future_after_the_end(tmp_path: Path) -> None:
    """A range that goes on is unfinished in the file."""
    future: Future[int] = Future()
    with RecordProfile(tmp_path / "a.json"), record_function("call") as call:
        call.end_on(future)
    assert '"unfinished": true' in (tmp_path / "a.json").read_text()
