"""Work that a call returns and does not do is refused; values that merely can be iterated are not."""

from __future__ import annotations

import asyncio
import codecs
import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import io
import itertools
import re
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from pytest_instrcount import InstrcountError
from pytest_instrcount.fixtures.instrcount import InstrCount
from tests.unit.test_fixture import NODEID, Recorder


def generate(number: int = 3) -> Iterator[int]:
    yield from range(number)


async def generate_later() -> AsyncIterator[int]:
    yield 1


def begun() -> Iterator[int]:
    made = generate()
    next(made)
    return made


def consumed() -> Iterator[int]:
    made = generate()
    list(made)
    return made


class Tokens:
    """An iterator of the project's own, as parsers and cursors are."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return "token"


def in_a_pool() -> object:
    """A future that another thread has begun to work for."""
    return concurrent.futures.Future()


def done_by_chance() -> concurrent.futures.Future[int]:
    """The same, and that thread was quick this time."""
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    future.set_result(1)
    return future


@contextlib.contextmanager
def manager() -> Iterator[None]:
    yield


@contextlib.asynccontextmanager
async def later_manager() -> AsyncIterator[None]:
    yield


@dataclasses.dataclass
class Page:
    """A record."""

    rows: list[Iterator[int]]


@dataclasses.dataclass(slots=True)
class Slotted:
    """A record without a ``__dict__``."""

    rows: Iterator[int]


class OneSlot:
    """A class whose slots are one name, which begins with two underscores."""

    __slots__ = "__rows"

    def __init__(self, rows: object) -> None:
        self.__rows = rows


class Query:
    """An object of another class, which may have what it likes."""

    def __init__(self, rows: object) -> None:
        self.size = 3
        self.rows = rows


class Cursor(Query):
    """One that is like a file."""

    def close(self) -> None:
        pass


class Pages:
    """An asynchronous iterator by a class."""

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        return 1


class Awaited:
    """Does its work when it is awaited, as queries of asynchronous libraries do."""

    def __await__(self) -> Iterator[None]:
        return iter(())


class Client(Awaited):
    """One that is awaited to begin, as Redis' is."""

    def close(self) -> None:
        pass


def query() -> object:
    return Awaited()


def connect() -> object:
    return Client()


class Lines:
    """Makes its own generator."""

    def __init__(self) -> None:
        self.lines = generate()


def waited_for() -> object:
    """Futures that were waited for."""
    return concurrent.futures.wait([done_by_chance()])


def holds_itself() -> object:
    parts: list[object] = []
    parts.append(parts)
    return parts


@pytest.mark.parametrize(
    ("target", "what"),
    [
        (generate, "a generator"),
        (functools.partial(generate, 2), "a generator"),
        (generate_later, "an asynchronous generator"),
        (lambda: map(str, [1, 2]), "an iterator"),
        (lambda: (x for x in [1]), "a generator"),
        (lambda: filter(None, [1]), "an iterator"),
        (lambda: itertools.chain([1], [2]), "an iterator"),
        (lambda: re.finditer("a", "aaa"), "an iterator"),
        (lambda: map(int, ["not a number"]), "an iterator"),
        (in_a_pool, "a future that is not waited for"),
        (done_by_chance, "a future that is not waited for"),
        (manager, "a context manager that nobody has entered"),
        (lambda: ([1], generate()), "a generator in its [1], whose"),
        (lambda: [map(str, [1, 2])], "an iterator in its [0], whose"),
        (lambda: {"tokens": Tokens()}, "an iterator in its ['tokens'], whose"),
        (lambda: {"a": [(1, generate())]}, "a generator in its ['a'][0][1], whose"),
        (lambda: collections.deque([generate()]), "a generator in its [0], whose"),
        (lambda: types.SimpleNamespace(rows=generate()), "a generator in its .rows, whose"),
        (lambda: Page([generate()]), "a generator in its .rows[0], whose"),
        (lambda: iter(Tokens()), "an iterator"),
        (lambda: collections.OrderedDict(a=generate()), "a generator in its ['a'], whose"),
        (lambda: Slotted(generate()), "a generator in its .rows, whose"),
        (lambda: OneSlot(generate()), "a generator in its ._OneSlot__rows, whose"),
        (lambda: Query(generate()), "a generator in its .rows, whose"),
        (lambda: [Query(generate())], "a generator in its [0].rows, whose"),
        (lambda: itertools.tee([1])[0], "an iterator"),
        (later_manager, "a context manager that nobody has entered"),
        (lambda: aiter(Pages()), "an asynchronous iterator"),
        (query, "what is to be awaited"),
    ],
)
@pytest.mark.parametrize("pedantic", [False, True])
def test_refused(target: Callable[..., Any], what: str, *, pedantic: bool) -> None:
    """With what it returned, and what to write; natively it is a value like any other."""
    recorder = Recorder()
    fixture = InstrCount(NODEID, recorder)
    with pytest.raises(InstrcountError) as raised:
        fixture.pedantic(target) if pedantic else fixture(target)
    assert raised.value.slug == "unconsumed"
    assert what in raised.value.why
    assert "instrcount(" in raised.value.fix
    assert not recorder.calls and not recorder.rounds
    InstrCount(NODEID, None)(target)


@pytest.mark.parametrize(
    "target",
    [
        begun,
        consumed,
        Tokens,
        Awaited,
        connect,
        waited_for,
        holds_itself,
        lambda: Page([]),
        Lines,
        lambda: Query(begun()),
        lambda: Query(itertools.count()),
        lambda: Query([generate]),
        lambda: Cursor(generate()),
        lambda: Query,
        lambda: iter([1, 2]),
        lambda: iter({"a": 1}),
        lambda: range(3),
        {"a": 1}.keys,
        lambda: map(str, []),
        lambda: io.StringIO("text"),
        lambda: [generate],
        functools.partial(Tokens),
        lambda: codecs.getreader("utf-8")(io.BytesIO(b"a file")),
        int,
    ],
)
def test_a_value(target: Callable[[], object]) -> None:
    """What has been done, or can be iterated as many things can."""
    recorder = Recorder()
    InstrCount(NODEID, recorder)(target)
    assert recorder.calls


def test_what_the_test_passed_in() -> None:
    """Is handed back as it is: by an argument, a keyword, or the function that knew it before."""
    made = generate()

    def hand_back(given: Iterator[int]) -> Iterator[int]:
        return given

    recorder = Recorder()
    assert InstrCount(NODEID, recorder)(hand_back, made) is made
    assert InstrCount(NODEID, recorder)(hand_back, given=made) is made
    assert InstrCount(NODEID, recorder)(lambda: made) is made
    assert len(recorder.calls) == 3
    assert list(made) == [0, 1, 2]


def test_tasks() -> None:
    """One that nobody awaited is refused."""

    async def work() -> int:
        return 1

    async def test() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(InstrcountError, match="a future that is not done"):
            InstrCount(NODEID, Recorder())(lambda: loop.create_task(work()))
        await asyncio.sleep(0)

    async def leave() -> object:
        return asyncio.get_running_loop().create_task(asyncio.sleep(60))

    asyncio.run(test())
    with pytest.raises(InstrcountError, match="a future that is not done"):
        InstrCount(NODEID, Recorder())(lambda: asyncio.run(leave()))


# --- one call -----------------------------------------------------------------------------------


class First(Recorder):
    """Counts in this process, as where threads are alive: what it calls is used up."""

    def count_rounds(self, rounds: Any) -> None:
        self.rounds.append(rounds)
        args, kwargs = rounds.set_up()
        rounds.value = rounds.target(*args, **kwargs)


def test_one_call_is_counted_before_it_is_made() -> None:
    """With what it can use up but once; without a warm-up."""
    recorder = First()
    assert InstrCount(NODEID, recorder).pedantic(list, args=(iter([1, 2]),), rounds=1) == [1, 2]
    (rounds,) = recorder.rounds
    assert (rounds.once, rounds.warmup_rounds, rounds.rounds) == (True, 0, 1)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"rounds": 2},
        {"rounds": 1, "warmup_rounds": 3},
        {"rounds": 1, "iterations": 2},
        {"rounds": 1, "setup": lambda: None},
    ],
)
def test_what_can_be_repeated(how: dict[str, Any]) -> None:
    """Is counted after the first call, as often as is wished."""
    recorder = Recorder()
    calls: list[int] = []
    InstrCount(NODEID, recorder).pedantic(lambda: calls.append(len(recorder.rounds)), **how)
    assert calls == [0]
    assert not recorder.rounds[0].once
