"""Work that a call returns and does not do is refused; values that merely can be iterated are not."""

from __future__ import annotations

import asyncio
import codecs
import concurrent.futures
import functools
import io
import itertools
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from pytest_instrcount import InstrcountError
from pytest_instrcount.fixtures.instrcount import InstrCount
from pytest_instrcount.fixtures.unconsumed import used_up, why_only_once
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
        (in_a_pool, "a future that is not done"),
        (lambda: ([1], generate()), "a generator"),
        (lambda: [map(str, [1, 2])], "an iterator"),
        (lambda: {"tokens": Tokens()}, "an iterator"),
        (lambda: iter(Tokens()), "an iterator"),
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

    asyncio.run(test())


# --- what is unlike later calls -----------------------------------------------------------------


@pytest.mark.parametrize("argument", [iter([1, 2]), generate(), iter(range(3)), reversed([1])])
def test_an_argument_that_is_used_up(argument: Iterator[int]) -> None:
    """Is said, where it had more before the call and has none now."""
    fixture = InstrCount(NODEID, Recorder())
    fixture(list, argument)
    (remark,) = fixture.remarks
    assert "uses up an iterator" in remark
    assert "rounds=1" in remark


def test_nothing_is_said_of_others() -> None:
    """Of an iterator that was empty before, or is not after; of what is none."""
    fixture = InstrCount(NODEID, Recorder())
    fixture(lambda *_: None, iter([]), iter([1]), generate(), [1], object())
    assert fixture.remarks == []


def test_a_cache() -> None:
    """A function that answers from its cache counts the look-up."""
    cached = functools.lru_cache(lambda: 1)
    fixture = InstrCount(NODEID, Recorder())
    assert fixture(cached) == 1
    assert "cache" in fixture.remarks[0]
    assert why_only_once(len, used_up(([1],), {})) == ""


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
