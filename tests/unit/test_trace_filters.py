"""Filters of a recording: the same as if all was recorded, and left out afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.trace.columns import Columns, Key, leave_out
from pytest_instrcount.trace.filters import Patterns, absolute
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.text import matches
from pytest_instrcount.trace.tracer import Tracer, trace_call
from tests.invariants import broken_invariants
from tests.unit.tracing import core, each_backend

__all__ = ["core"]
THIS = "tests.unit.test_trace_filters"


def leaf(n: int = 0) -> int:
    return n


def middle(n: int) -> int:
    return sum(map(leaf, range(n)))


def numbers(n: int) -> Generator[int, None, None]:
    with contextlib.suppress(KeyError):
        for each in range(n):
            yield leaf(each)


def fail(n: int) -> None:
    if not n:
        raise KeyError
    fail(n - 1)


class Encoder(json.JSONEncoder):
    def default(self, o: object) -> int:
        return middle(2)


def calls() -> None:
    middle(3)
    list(numbers(3))
    one = numbers(3)
    next(one)
    one.close()
    two = numbers(3)
    next(two)
    with contextlib.suppress(StopIteration):
        two.throw(KeyError)
    with contextlib.suppress(KeyError):
        fail(3)
    json.dumps([object()], cls=Encoder, indent=1)


def threads() -> None:
    thread = threading.Thread(target=middle, args=(2,))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(middle, 2).result()


def tasks() -> None:
    async def one() -> int:
        await asyncio.sleep(0)
        return leaf()

    async def both() -> None:
        await asyncio.gather(one(), one())

    asyncio.run(both())


def rows(columns: Columns) -> list[tuple[str, str, int, str]]:
    """Of this file's functions: caller, flags and task; how often a library waits varies."""
    assert broken_invariants(columns) == ()

    def name(row: int) -> str:
        return columns.keys[columns.key[row]].name if row >= 0 else ""

    found = []
    for row, parent in enumerate(columns.parent):
        task = columns.tasks[row].cls.partition(" ")[2] if row in columns.tasks else ""
        if name(row).startswith(THIS):
            found.append((name(row), name(parent), columns.flags[row], task))
    return sorted(found)


def traced(work: Callable[[], object], **options: Any) -> Columns:
    return trace_call(TraceOptions("tree", start_frames=0, **options), work)[1]


FILTERS: list[tuple[list[str], list[str]]] = [
    ([], [f"{THIS}:middle"]),
    ([f"{THIS}:*"], []),
    (["*.leaf", "*.middle", "asyncio.*", "threading.*"], ["asyncio.base_events:*"]),
    ([], ["json.*", "asyncio.*", "threading.*", "concurrent.*", "builtins.*"]),
    ([], ["*.numbers", "*.fail", "contextlib.*"]),
]


@each_backend
@pytest.mark.parametrize("work", [calls, threads, tasks])
@pytest.mark.parametrize(("include", "ignore"), FILTERS)
@pytest.mark.parametrize("c_calls", [False, True])
def test_it_is_as_if_left_out_afterwards(
    include: list[str], ignore: list[str], work: Callable[[], None], c_calls: bool, backend: str
) -> None:
    """Twice, since what is disabled for one trace must not be so in the next."""

    def is_left_out(key: Key) -> bool:
        def is_one_of(patterns: list[str]) -> bool:
            return any(matches(key.name, each) for each in patterns)

        return is_one_of(ignore) or bool(include and not is_one_of(include))

    work()
    for _ in range(2):
        whole = leave_out(traced(work, backend=backend, c_calls=c_calls), is_left_out)
        kept = traced(work, backend=backend, c_calls=c_calls, include=include, ignore=ignore)
        assert rows(kept) == rows(whole)
        assert not any(is_left_out(kept.keys[key]) for key in kept.key)
        assert rows(kept) or work is tasks


@each_backend
def test_what_is_left_out_is_no_event(backend: str) -> None:
    """So it reaches no bound, however often it is called."""
    columns = traced(lambda: middle(5_000), backend=backend, ignore=["*.leaf"], max_events=64)
    assert not columns.stats.truncated
    assert columns.stats.events < 20


def nested(n: int) -> None:
    if n:
        nested(n - 1)
    leaf()


def level_of(columns: Columns, row: int) -> int:
    """How many Python functions it is in, itself included."""
    if row < 0:
        return 0
    of_c = columns.keys[columns.key[row]].kind == "c"
    return level_of(columns, columns.parent[row]) + (not of_c)


@each_backend
@pytest.mark.parametrize("work", [calls, threads, tasks])
@pytest.mark.parametrize("c_calls", [False, True])
def test_levels(work: Callable[[], None], c_calls: bool, backend: str) -> None:
    """Of each thread the first ones, and the builtins that they call, but the last."""

    def names(columns: Columns) -> list[str]:
        found = [columns.keys[key] for key in columns.key]
        levels = [level_of(columns, row) + (key.kind == "c") for row, key in enumerate(found)]
        return [key.name for key, level in zip(found, levels) if level <= 3]

    work()
    whole = traced(work, backend=backend, c_calls=c_calls)
    kept = traced(work, backend=backend, c_calls=c_calls, max_depth=3)
    assert len(kept) == len(names(kept)) < len(whole)
    if work is calls:  # how often a library waits varies
        assert names(kept) == names(whole)


@each_backend
def test_levels_are_those_of_what_is_recorded(backend: str) -> None:
    kept = traced(lambda: nested(5), backend=backend, ignore=["*.<lambda>"], max_depth=2)
    assert [kept.keys[key].qualname for key in kept.key] == ["nested", "nested", "leaf"]
    assert list(kept.parent) == [-1, 0, 0]


@each_backend
def test_greenlets_have_levels_of_their_own(backend: str) -> None:
    greenlet: Any = pytest.importorskip("greenlet")

    def inner() -> None:
        leaf()
        greenlet.getcurrent().parent.switch()
        leaf()

    def outer() -> None:
        one = greenlet.greenlet(inner)
        one.switch()
        leaf()
        one.switch()
        leaf()

    kept = traced(outer, backend=backend, max_depth=2)
    assert [kept.keys[key].qualname.rpartition(".")[2] for key in kept.key].count("leaf") == 4


@each_backend
def test_short_calls(backend: str) -> None:
    """Those that call nothing longer; a long one keeps its callers."""
    assert len(traced(calls, backend=backend, min_ns=10**12)) == 0
    event = threading.Event()

    def wait() -> None:
        leaf()
        event.wait(0.02)

    kept = traced(wait, backend=backend, min_ns=10_000_000)
    names = [kept.keys[key].qualname.rpartition(".")[2] for key in kept.key]
    assert names[:2] == ["wait", "wait"]
    assert "leaf" not in names


def test_short_calls_take_no_memory(core: str) -> None:
    """The core in C takes their entries back, so they reach no bound."""
    if core == "python":
        pytest.skip("it leaves them out of the rows")
    columns = traced(lambda: middle(100_000), max_events=4_096, min_ns=10**9)
    assert (len(columns), columns.stats.truncated) == (0, False)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("shop/cart.py", "{}/shop/cart.py", True),
        ("./shop", "{}/shop/cart.py", True),
        ("shop/*.py", "{}/shop/a/b.py", True),
        ("cart.py", "{}/shop/cart.py", False),
        ("*/cart.py", "/x/shop/cart.py", True),
        ("/x/", "/x/shop/cart.py", True),
        ("/x/", "/xy/shop/cart.py", False),
        ("a:f", "", True),
        ("a.*", "/x/a.py", True),
        ("b.*", "/x/a.py", False),
        ("*/*", "", False),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool, tmp_path: Path) -> None:
    """Of names, or of files from the current folder on."""
    with contextlib.chdir(tmp_path):
        patterns = Patterns([absolute(pattern)])
    assert patterns.match(Key("python", "a", "f"), path.format(tmp_path)) is expected


@each_backend
def test_a_module_that_is_imported_meanwhile_has_its_name(backend: str, tmp_path: Path) -> None:
    """Though no path of modules leads to its file."""
    (tmp_path / "file.py").write_text("def f(): pass\nf()\n")

    def body() -> None:
        spec = importlib.util.spec_from_file_location("some.name", tmp_path / "file.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["some.name"] = module
        spec.loader.exec_module(module)

    body()
    try:
        with Tracer(TraceOptions("tree", start_frames=0, include=("some.name:*",))) as tracer:
            body()
    finally:
        del sys.modules["some.name"]
    columns = tracer.columns
    assert [columns.keys[key].qualname for key in columns.key] == ["<module>", "f"]
