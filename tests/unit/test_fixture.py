"""The fixture's object: one use, values passed through, arguments of pedantic checked."""

from __future__ import annotations

import asyncio
import gc
import pickle
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from pytest_instrcount.callgrind.inside.repeating import CallCounter
from pytest_instrcount.fixtures.instrcount import InstrCount
from pytest_instrcount.fixtures.rounds import Rounds

NODEID = "test_a.py::test_x"


class Recorder(CallCounter):
    """Counts nothing, and keeps what it was asked to count."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.rounds: list[Rounds] = []
        self.awaited: list[tuple[Any, ...]] = []
        self.awaited_rounds: list[Rounds] = []

    def count_call(
        self, target: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.calls.append((target, tuple(args), dict(kwargs)))

    def count_rounds(self, rounds: Rounds) -> None:
        self.rounds.append(rounds)

    async def count_awaited(
        self, target: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.awaited.append((target, tuple(args), dict(kwargs)))

    async def count_awaited_rounds(self, rounds: Rounds) -> None:
        self.awaited_rounds.append(rounds)


@pytest.mark.parametrize("counted", [False, True])
def test_the_value_of_the_first_call(counted: bool) -> None:
    """Called once here with its arguments; whoever counts gets the same call."""
    recorder = Recorder()
    fixture = InstrCount(NODEID, recorder if counted else None)
    assert fixture(dict, [("a", 1)], b=2) == {"a": 1, "b": 2}
    assert recorder.calls == ([(dict, ([("a", 1)],), {"b": 2})] if counted else [])


def test_keywords_that_look_like_its_own() -> None:
    """``func`` and ``self`` are free for the call."""

    def target(func: int, self: int) -> int:
        return func - self

    assert InstrCount(NODEID, None)(target, func=3, self=1) == 2


def test_decorator() -> None:
    """The name stands for the value."""
    recorder = Recorder()

    @InstrCount(NODEID, recorder)
    def value() -> int:
        return 42

    assert value == 42
    assert len(recorder.calls) == 1


def test_a_call_that_raises_is_not_counted() -> None:
    """The exception is the caller's, and the use is used up."""
    recorder = Recorder()
    fixture = InstrCount(NODEID, recorder)
    with pytest.raises(ValueError, match="invalid literal"):
        fixture(int, "x")
    assert not recorder.calls
    with pytest.raises(RuntimeError, match="used it first for int"):
        fixture(int, "1")


@pytest.mark.parametrize("awaited", [False, True])
def test_what_is_counted_of_the_first_call_is_that_call(awaited: bool) -> None:
    """Neither the set-up nor the tear-down around it, nor what is looked at afterwards."""
    order: list[str] = []

    class Ordered(Recorder):
        def begin_first(self) -> None:
            order.append("begin")

        def end_first(self) -> None:
            order.append("end")

    def target() -> None:
        order.append("call")

    async def awaitable() -> None:
        order.append("call")

    fixture = InstrCount(NODEID, Ordered())
    value: Any = fixture.pedantic(
        awaitable if awaited else target,
        setup=lambda: order.append("set-up"),
        teardown=lambda: order.append("tear-down"),
        rounds=3,
    )
    if awaited:
        asyncio.run(value)
    assert order[:5] == ["set-up", "begin", "call", "end", "tear-down"]


@pytest.mark.parametrize("first", ["call", "pedantic"])
@pytest.mark.parametrize("second", ["call", "pedantic"])
def test_second_use(first: str, second: str) -> None:
    """Either way after either way; the message names both and the place of the first."""
    fixture = InstrCount(NODEID, None)

    def use(how: str, target: Callable[..., Any]) -> None:
        if how == "call":
            fixture(target, [1])
        else:
            fixture.pedantic(target, ([1],))

    use(first, sum)
    with pytest.raises(RuntimeError) as caught:
        use(second, len)
    text = str(caught.value)
    assert f"{NODEID} used it first for sum at test_fixture.py:" in text
    assert "and now for len" in text


def test_used_again_at_the_same_place() -> None:
    """In a loop, or under @given, there are no two tests to make."""
    fixture = InstrCount(NODEID, None)

    def use() -> None:
        fixture(len, "")

    use()
    with pytest.raises(RuntimeError, match="and there again: count one function that does all"):
        use()


def test_what_cannot_be_called() -> None:
    """A value in the place of a function does not use the fixture up."""
    fixture = InstrCount(NODEID, None)
    with pytest.raises(TypeError, match="3 cannot be called"):
        fixture(3)  # type: ignore[arg-type]
    assert fixture(abs, -3) == 3


async def _add(a: int, b: int = 0) -> int:
    return a + b


def _later(a: int, b: int) -> Any:
    return _add(a, b)


class _Adder:
    async def __call__(self, a: int, b: int = 0) -> int:
        return a + b


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("target", [_add, _Adder(), partial(_Adder()), _later], ids=type)
def test_coroutines(target: Callable[..., Any], counted: bool) -> None:
    """Whatever returns a coroutine is awaited once here, and counted with the same arguments."""
    recorder = Recorder()
    fixture = InstrCount(NODEID, recorder if counted else None)
    value = fixture(target, 1, b=2)
    assert not recorder.awaited
    assert asyncio.run(value) == 3
    assert recorder.awaited == ([(target, (1,), {"b": 2})] if counted else [])
    assert not recorder.calls


def test_a_coroutine_that_raises_is_not_counted() -> None:
    """The exception is that of whoever awaits."""

    async def broken() -> None:
        raise ValueError("x")

    recorder = Recorder()
    with pytest.raises(ValueError, match="x"):
        asyncio.run(InstrCount(NODEID, recorder)(broken))
    assert not recorder.awaited


def test_a_coroutine_that_nobody_awaits() -> None:
    """Python warns, as it does without the fixture, and whoever counts learns why there is no count."""
    fixture = InstrCount(NODEID, Recorder())
    assert never_awaited(fixture) == {"instrcount(_add)"}
    assert "with _add at test_fixture.py:" in fixture.why_uncounted()
    assert fixture.why_uncounted().endswith("write await instrcount(...)")
    assert never_awaited(InstrCount(NODEID, None)) == {"_add"}


def never_awaited(fixture: InstrCount) -> set[str]:
    """Names of the coroutines that Python warns of, where nobody awaits what the fixture returns."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert fixture(_add, 1)
        gc.collect()
    return {re.findall("'(.*)' was never awaited", str(each.message))[0] for each in found}


def test_a_done_future_is_a_value() -> None:
    """It is returned as it is; the call that made it is counted."""

    async def test() -> None:
        recorder = Recorder()
        loop = asyncio.get_running_loop()

        def make() -> asyncio.Future[int]:
            future: asyncio.Future[int] = loop.create_future()
            future.set_result(1)
            return future

        assert InstrCount(NODEID, recorder)(make).result() == 1
        assert recorder.calls

    asyncio.run(test())


@pytest.mark.parametrize("counted", [False, True])
def test_awaited_pedantic(counted: bool) -> None:
    """Set-up before the call, tear-down when it has been awaited."""
    done: list[object] = []
    recorder = Recorder()

    def set_up() -> tuple[tuple[int], dict[str, int]]:
        done.append("setup")
        return (1,), {"b": 2}

    async def target(a: int, b: int) -> int:
        done.append("call")
        await asyncio.sleep(0)
        done.append("end")
        return a + b

    fixture = InstrCount(NODEID, recorder if counted else None)
    value = fixture.pedantic(
        target, setup=set_up, teardown=lambda a, b: done.append((a, b)), rounds=3
    )
    assert asyncio.run(value) == 3
    assert done == ["setup", "call", "end", (1, 2)]
    assert [each.rounds for each in recorder.awaited_rounds] == ([3] if counted else [])


def test_pedantic_in_order() -> None:
    """Set-up, the call, tear-down; once, whatever rounds are asked for."""
    done: list[object] = []

    def set_up() -> tuple[tuple[int], dict[str, int]]:
        done.append("setup")
        return (1,), {"b": 2}

    def target(a: int, b: int) -> int:
        done.append((a, b))
        return a + b

    def tear_down(a: int, b: int) -> None:
        done.append(("teardown", a, b))

    recorder = Recorder()
    value = InstrCount(NODEID, recorder).pedantic(
        target, setup=set_up, teardown=tear_down, rounds=3, warmup_rounds=0
    )
    assert value == 3
    assert done == ["setup", (1, 2), ("teardown", 1, 2)]
    (rounds,) = recorder.rounds
    assert (rounds.rounds, rounds.warmup_rounds, rounds.iterations) == (3, 0, 1)
    assert rounds.target is target
    assert rounds.set_up() == ((1,), {"b": 2})


def test_pedantic_with_arguments() -> None:
    """With args and kwargs, and a set-up that returns nothing."""
    recorder = Recorder()
    value: dict[str, int] = InstrCount(NODEID, recorder).pedantic(
        dict, args=([("a", 1)],), kwargs={"b": 2}, setup=lambda: None
    )
    assert value == {"a": 1, "b": 2}
    assert recorder.rounds[0].rounds is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rounds": 0}, "rounds=0 is not an int >= 1"),
        ({"rounds": 1.0}, "rounds=1.0"),
        ({"rounds": True}, "rounds=True"),
        ({"warmup_rounds": -1}, "warmup_rounds=-1 is not an int >= 0"),
        ({"iterations": 10**20}, "iterations=100000000000000000000 is above 1,000,000,000"),
        ({"iterations": 0}, "iterations=0"),
        ({"iterations": 2, "setup": lambda: None}, "with setup, iterations must be 1"),
    ],
)
def test_pedantic_numbers(wrong: dict[str, Any], words: str) -> None:
    """Refused before anything runs."""
    ran: list[int] = []
    with pytest.raises(ValueError, match=words):
        InstrCount(NODEID, None).pedantic(ran.append, (1,), **wrong)
    assert not ran


def test_pedantic_arguments_given_twice() -> None:
    """By set-up and by args: it cannot know which is meant."""
    with pytest.raises(TypeError, match="not both"):
        InstrCount(NODEID, None).pedantic(sum, ([1],), setup=lambda: (([2],), {}))


def test_it_stays_in_the_process_of_the_test() -> None:
    """What another process counts there is none of the test's."""
    with pytest.raises(TypeError, match="call it there, around the other"):
        pickle.dumps(InstrCount("test_a.py::test_a", None))
