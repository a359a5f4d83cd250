"""The trace of a whole run: no two processes in one row, and nothing that keeps it from being written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.trace.events.run import TestEvents, run_chunks
from pytest_instrcount.trace.ranges.event import Event, EventKind, ThreadEvents
from pytest_instrcount.trace.ranges.remote import add_nodes
from tests.perfetto import load

MAIN = (7, "MainThread")


def events(*changes: int, thread: int = 0) -> tuple[Event, ...]:
    """A range per number, which begins; it ends where its number is negative."""
    kinds = {True: EventKind.PUSH, False: EventKind.POP}
    return tuple(
        Event(kinds[n > 0], f"r{abs(n)}", thread, abs(n), at_ns=100 + at)
        for at, n in enumerate(changes)
    )


def trace(*changes: int, number: int = 0, ident: int = 7, name: str = "MainThread") -> ThreadEvents:
    return ThreadEvents(number, name, ident, 0, events(*changes, thread=number))


def sent(worker: str, *traces: tuple[ThreadEvents, ...], name: str = "test_a") -> tuple[str, str]:
    return worker, TestEvents(name, *MAIN, 90, 190, traces).send()


def written(*tests: tuple[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads("".join(run_chunks(tests)))["traceEvents"]
    return found


def processes(rows: list[dict[str, Any]]) -> dict[int, str]:
    return {row["pid"]: row["args"]["name"] for row in rows if row["name"] == "process_name"}


def slices(rows: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    return [(row["pid"], row["tid"], row["name"]) for row in rows if row["ph"] in "Xb"]


def test_no_test() -> None:
    assert slices(written()) == []


def test_workers_are_rows_by_their_number() -> None:
    """Those that were named by the user come after them."""
    rows = written(sent("one"), sent("gw10"), sent("two"), sent("gw0"))
    assert processes(rows) == {2: "gw0", 12: "gw10", 13: "one", 14: "two"}
    assert processes(written(sent(""))) == {1: "pytest"}


def test_threads_of_all_tests() -> None:
    """One is the same in two tests; one that has another name, or another ident, is another one."""
    first = trace(1, -1), trace(2, -2, number=1, ident=8, name="T")
    second = trace(3, -3, number=0, ident=9, name="T"), trace(4, -4, number=1)
    rows = written(sent("gw0", first, second), sent("gw0", first))
    assert sorted(slices(rows)) == [
        (2, 1, "r1"), (2, 1, "r1"), (2, 1, "r4"), (2, 1, "test_a"), (2, 1, "test_a"),
        (2, 2, "r2"), (2, 2, "r2"),
        (2, 3, "r3"),
    ]  # fmt: skip
    assert sum(row["name"] == "thread_name" for row in rows) == 3


def test_a_range_that_ended_on_another_thread() -> None:
    """The number of that one is the one in the run."""
    push, pop = events(1, -1)
    one = ThreadEvents(0, "MainThread", 7, 0, (push, pop._replace(thread=1)))
    rows = written(sent("", (one, trace(2, -2, number=1, ident=8))))
    pair = [(row["ph"], row["name"], row["tid"]) for row in rows if row["ph"] in "be"]
    assert pair == [("b", "r1", 1), ("e", "r1", 2)]


def test_children_are_rows_of_their_own() -> None:
    """Each has node 1 to its test, as gw0 has to the run."""
    child = add_nodes([], [trace(1, -1)], None)
    tests = [
        sent(worker, (trace(1, -1), *child), name=f"test_{worker}") for worker in ("gw0", "gw1")
    ]
    rows = written(*tests, sent("gw0", child, child, name="twice"))
    assert processes(rows) == {
        2: "gw0",
        3: "gw1",
        4: "gw0, process 1 of test_gw0",
        5: "gw1, process 1 of test_gw1",
        6: "gw0, process 1 of twice",
        7: "gw0, process 2 of twice",
    }
    assert [pid for pid, _, name in slices(rows) if name == "r1"] == [2, 4, 3, 5, 6, 7]


def test_what_did_not_end_ends_with_its_test(tmp_path: Path) -> None:
    """And an end without a begin, of what a test took out of its session, is left out."""
    path = tmp_path / "run.json"
    path.write_text(
        "".join(run_chunks([sent("", (trace(-5, 1, 2, -2),)), sent("", (trace(3, -3),))]))
    )
    assert not load(path).dropped
    (row,) = (row for row in json.loads(path.read_text())["traceEvents"] if row["name"] == "r1")
    assert row["args"] == {"unfinished": True}
    assert row["ts"] + row["dur"] == pytest.approx(0.1)


def test_any_name_can_be_sent() -> None:
    """Lone surrogates, which execnet refuses, and control characters."""
    name = "a\n\ud800\N{GRINNING FACE}"
    one = ThreadEvents(0, name, 7, 0, (Event(EventKind.MARK, name, 0, at_ns=1),))
    given = TestEvents(name, 7, name, 0, 9, ((one,),)).send()
    assert given.isascii()
    assert [row["name"] for row in written(("gw0", given)) if row["ph"] != "M"] == [
        "a\\n\\ud800\N{GRINNING FACE}"
    ] * 2
