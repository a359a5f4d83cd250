"""Edges of traced calls: what pools and event loops add is left out, whoever ran what and when."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool
from queue import Queue
from typing import Any

import pytest

from pytest_instrcount.fixtures.trace.ignore import POOLS, describe, parse_patterns
from pytest_instrcount.fixtures.trace.parts import parts_with
from pytest_instrcount.trace.counts import Part, count_edges
from tests.unit.tracing import each_backend, trace

Table = dict[str, int | tuple[int, int]]


def table(
    body: Callable[[], object],
    ignore: Sequence[str] = POOLS,
    *,
    everything: bool = False,
    **options: Any,
) -> Table:
    """Edges of a body, with the names in this file alone: calls, or calls and resumes."""
    part_of = (lambda key: Part.own) if everything else parts_with(tuple(ignore))
    edges = count_edges(trace(body, start_frames=0, **options).columns, part_of)
    found: Table = {}
    for (caller, callee), (calls, resumes) in edges.items():
        names = (each.removeprefix(f"{__name__}:").rpartition(">.")[2] for each in (caller, callee))
        found[" -> ".join(filter(None, names))] = (calls, resumes) if resumes else calls
    return found


def inner(n: int) -> int:
    return n + 1


def work(n: int) -> int:
    time.sleep(SLOW[n % len(SLOW)])  # so that a pool starts fewer threads, or more
    return inner(n)


SLOW = [0.0]


def submit() -> None:
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work, n) for n in range(8)]
        for each in as_completed(futures):
            each.result()


def in_thread_pool() -> None:
    with ThreadPool(3) as pool:
        pool.map(work, range(8))


def consume(queue: Queue[int | None]) -> None:
    while (n := queue.get()) is not None:
        work(n)


def in_threads() -> None:
    queue: Queue[int | None] = Queue()
    threads = [threading.Thread(target=consume, args=[queue]) for _ in range(3)]
    for each in threads:
        each.start()
    for n in (*range(8), None, None, None):
        queue.put(n)
    for each in threads:
        each.join()


async def one(n: int) -> int:
    await asyncio.sleep(SLOW[0])
    return await asyncio.to_thread(work, n)


async def eight() -> None:
    await asyncio.gather(*[one(n) for n in range(8)])


def in_loop() -> None:
    asyncio.run(eight())


EXPECTED: dict[Callable[[], None], Table] = {
    submit: {"submit": 1, "work": 8, "work -> inner": 8},
    in_thread_pool: {"in_thread_pool": 1, "work": 8, "work -> inner": 8},
    in_threads: {"in_threads": 1, "consume": 3, "consume -> work": 8, "work -> inner": 8},
    in_loop: {
        "in_loop": 1,
        "in_loop -> eight": 1,
        "in_loop -> one": 8,
        "work": 8,
        "work -> inner": 8,
    },
}


@each_backend
@pytest.mark.parametrize("c_calls", [False, True])
@pytest.mark.parametrize("body", EXPECTED, ids=lambda body: body.__name__)
@pytest.mark.parametrize("slow", [[0.0], [0.001, 0.0, 0.002]], ids=["fast", "slow"])
def test_pools_and_loops_are_steady(
    backend: str,
    c_calls: bool,
    body: Callable[[], None],
    slow: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Summed over threads and tasks, whichever was first; nothing of the pool is left."""
    monkeypatch.setitem(globals(), "SLOW", slow)
    body()
    found = table(body, backend=backend, c_calls=c_calls)
    ours = {name: n for name, n in found.items() if "comp>" not in name and ":" not in name}
    assert ours == EXPECTED[body]
    # comprehensions are functions up to 3.11; what is left are builtins that this file calls
    assert {name.rpartition(" -> ")[0] for name in found.keys() - ours.keys()} <= {
        *("submit", "in_threads", "eight", "work"),
    }


def test_a_job_of_the_standard_library_is_counted() -> None:
    """A pool's own use of it is not."""

    def body() -> None:
        with ThreadPoolExecutor(1) as pool:
            list(pool.map(json.dumps, [1, 2]))

    body()
    assert table(body)["json:dumps"] == 2
    assert not [name for name in table(body) if "queue" in name or "weak" in name]


def test_what_is_left_out_hands_its_calls_on() -> None:
    """To the nearest caller that is kept, builtins too; without patterns nothing is left out."""

    def wrapper(n: int) -> int:
        return wrapped(n) + len("x")

    def wrapped(n: int) -> int:
        return inner(n)

    def body() -> None:
        wrapper(1)
        inner(2)

    assert table(body, [f"{__name__}:*.wrap*"], c_calls=True) == {
        "body": 1,
        "body -> builtins:len": 1,
        "body -> inner": 2,
    }
    whole = {"body": 1, "body -> inner": 1, "body -> wrapper": 1}
    assert table(body, ()) == whole | {"wrapper -> wrapped": 1, "wrapped -> inner": 1}


def test_without_patterns_a_pool_is_counted() -> None:
    submit()
    assert any(name.startswith("threading:") for name in table(submit, ()))


def test_who_resumes_a_generator_is_its_caller() -> None:
    """Its start is a call; each further step is a resume, by whoever takes it."""

    def steps() -> Any:
        yield from range(3)

    def rest(found: Any) -> None:
        list(found)

    def body() -> None:
        found = steps()
        next(found)
        rest(found)

    assert table(body) == {
        "body": 1,
        "body -> rest": 1,
        "body -> steps": 1,
        "rest -> steps": (0, 3),
    }


@each_backend
def test_a_finalizer_has_no_caller(backend: str) -> None:
    """It runs wherever the last reference happens to go."""

    class Freed:
        def __del__(self) -> None:
            inner(1)

    def drop(held: list[Freed]) -> None:
        held.clear()

    def body() -> None:
        drop([Freed()])
        Freed()

    found = table(body, backend=backend)
    assert found == {"body": 1, "body -> drop": 1, "Freed.__del__": 2, "Freed.__del__ -> inner": 2}


@each_backend
def test_a_folded_trace_has_the_same_edges(backend: str) -> None:
    """Once it is longer than its bound."""

    def steps(n: int) -> Any:
        for each in range(n):
            yield inner(each)

    def body() -> None:
        for n in range(40):
            list(steps(n))

    whole = table(body, backend=backend, everything=True)
    assert table(body, backend=backend, everything=True, max_events=100) == whole


@pytest.mark.parametrize("given", [3, [3], {"a": 1}, None])
def test_patterns_are_texts(given: object) -> None:
    with pytest.raises(ValueError, match="logging"):
        parse_patterns(given)


@pytest.mark.parametrize(
    ("given", "fact"), [([], "-"), (["a.*"], "pools a.*"), ("a.*", "pools a.*"), (POOLS, "pools")]
)
def test_patterns_are_a_fact_of_the_table(given: object, fact: str) -> None:
    """Tables with other patterns are not compared. Those of pools are named once."""
    assert describe(parse_patterns(given)) == fact
