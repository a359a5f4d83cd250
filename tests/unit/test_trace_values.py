"""Arguments and returned values in a trace."""

from __future__ import annotations

import json
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.trace.columns import Columns
from pytest_instrcount.trace.events.build import build_timeline
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.timeline import Recorded
from pytest_instrcount.trace.tracer import trace_call
from pytest_instrcount.trace.values import text_of
from tests.invariants import broken_invariants
from tests.unit.tracing import core, each_backend, each_mode

__all__ = ["core"]


def traced(work: Callable[[], object], **options: Any) -> Columns:
    chosen: Any = {"start_frames": 0, "arguments": True, "returns": True, **options}
    columns = trace_call(TraceOptions(**chosen), work)[1]
    assert broken_invariants(columns) == ()
    return columns


def told(columns: Columns) -> list[tuple[str, str]]:
    names = [columns.keys[key].qualname.rpartition(".")[2] for key in columns.key]
    return [(name, columns.values.get(row, "")) for row, name in enumerate(names)]


def add(a: int, b: int = 2, *rest: int, key: str = "k", **more: int) -> int:
    return a + b


def cell(a: int) -> Callable[[], int]:
    return lambda: a


def numbers(n: int) -> Generator[int, None, str]:
    yield n
    yield from range(n)
    return "end"


def fail(n: int) -> None:
    raise ValueError


@each_backend
@each_mode
def test_what_is_told(backend: str, mode: str) -> None:
    """Arguments as they are at the begin, and what a call returns: not what it yields or raises."""

    def body() -> None:
        add(1, 2, 3, x=4)
        cell(5)
        list(numbers(0))
        with pytest.raises(ValueError):  # noqa: PT011
            fail(6)

    found = [each for each in told(traced(body, backend=backend, mode=mode)) if each[0] != "body"]
    assert found[0] == ("add", "a=1, b=2, key='k', rest=(3,), more={'x': 4} -> 3")
    assert found[1][1].startswith("a=5 -> <function cell.<locals>.<lambda> at ")
    assert found[2:4] == [("numbers", "n=0"), ("numbers", " -> 'end'")]
    assert ("fail", "n=6") in found


@each_backend
def test_one_of_both(backend: str) -> None:
    def body() -> None:
        add(1)

    only = traced(body, backend=backend, returns=False)
    assert told(only) == [("body", ""), ("add", "a=1, b=2, key='k', rest=(), more={}")]
    only = traced(body, backend=backend, arguments=False)
    assert told(only) == [("body", " -> None"), ("add", " -> 3")]
    only = traced(body, backend=backend, ignore=["*.body"], mode="tree")
    assert told(only) == [("add", "a=1, b=2, key='k', rest=(), more={} -> 3")]
    assert told(traced(body, backend=backend, min_ns=10**12, mode="tree")) == []


class Hostile:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def __repr__(self) -> str:
        add(0)
        if self.error is not None:
            raise self.error
        return "x\n" * 10_000


@each_backend
@pytest.mark.parametrize("error", [None, ValueError(), SystemExit(), RecursionError()])
def test_a_hostile_repr(error: BaseException | None, backend: str) -> None:
    """It breaks nothing, and what it calls is not traced."""

    def take(one: object) -> object:
        return one

    columns = traced(lambda: take(Hostile(error)), backend=backend)
    names = [name for name, _ in told(columns)]
    assert names == ["<lambda>", "__init__", "take"]
    text = dict(told(columns))["take"]
    assert text.startswith("one=x\n" if error is None else "one=<Hostile")
    assert len(text) < 200


def test_an_interrupt_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        text_of(Hostile(KeyboardInterrupt()))


def test_large_values_are_not_read_to_their_end() -> None:
    for value in (
        "x" * 10**7,
        b"x" * 10**7,
        bytearray(10**7),
        [[0] * 10**6] * 10,
        {0: "x" * 10**7},
    ):
        assert len(text_of(value)) <= 80
    assert text_of(10**5_000).startswith(("<int", "<", "1"))


class Thing:
    pass


@each_backend
def test_nothing_lives_longer(backend: str) -> None:
    """Up to 3.12 frames do keep what they were asked for, until they are left."""
    found = []

    def drop(one: Thing) -> None:
        reference = weakref.ref(one)
        del one
        found.append(reference() is None or sys.version_info < (3, 13))
        found.append(reference)  # type: ignore[arg-type]

    columns = traced(lambda: drop(Thing()), backend=backend)
    assert found[0] is True
    assert found[1]() is None  # type: ignore[operator]
    assert "one=<" in dict(told(columns))["drop"]


@each_backend
def test_in_threads_and_folded(backend: str) -> None:
    """Each has its own; where rows are sums, there are none."""

    def body() -> None:
        one = threading.Thread(target=add, args=(1,))
        one.start()
        one.join()

    assert "a=1, b=2, key='k', rest=(), more={} -> 3" in dict(told(traced(body))).get("add", "")
    many = traced(lambda: [add(n) for n in range(5_000)], backend=backend, max_events=64)
    assert many.stats.truncated
    assert sum(map(many.calls, range(len(many)))) >= 5_000


@each_backend
def test_in_files(backend: str, tmp_path: Path) -> None:
    """Escaped, in those that have arguments."""
    columns = traced(lambda: text("\x1b[31m\n"), backend=backend, mode="tree")
    events = EventList(build_timeline(columns, (), Recorded()))
    events.export_chrome_trace(tmp_path / "a")
    shown = {
        e["name"]: e.get("args") for e in json.loads((tmp_path / "a").read_text())["traceEvents"]
    }
    name = next(each for each in shown if each.endswith(".text"))
    assert shown[name] == {"args": "value='\\x1b[31m\\n' -> \\x1b[31m"}
    events.export_json(tmp_path / "b")
    details = EventList.from_json(tmp_path / "b").timeline.details.values()
    assert [each.args for each in details][-1] == "value='\\x1b[31m\\n' -> \\x1b[31m"


class Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def text(value: str) -> Text:
    return Text("\x1b[31m")
