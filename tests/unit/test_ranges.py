"""Ranges: with-blocks, decorated functions, ends on futures and on other threads."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.ranges.event import Scope
from pytest_instrcount.trace.ranges.ranges import record_function
from pytest_instrcount.trace.ranges.session import mark
from tests.ranges import recorded


class Array:
    """Something with a shape."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


class Liar:
    @property
    def shape(self) -> object:
        raise RuntimeError("no shape for you")


def test_nested_ranges() -> None:
    """Events in order; a range knows the one around it."""
    with recorded() as found, record_function("outer"):
        mark("here")
        with record_function("inner"):
            pass
    assert found.story == ["+outer", "here", "+inner", "-inner", "-outer"]
    outer, inner = found.push("outer"), found.push("inner")
    assert (outer.sequence_nr, inner.sequence_nr) == (-1, outer.handle)
    assert found.pop("outer").handle == outer.handle != inner.handle
    assert outer.scope == Scope.USER
    assert not outer.is_async
    times = [event.at_ns for event in found.events]
    assert times == sorted(times)


def test_off() -> None:
    """Without a session nothing happens, and nothing is kept."""
    with record_function("a") as a, a:
        mark("m")
    with recorded() as found:
        pass
    assert found.story == []


def test_a_range_around_the_session_is_not_recorded() -> None:
    """Its begin was not seen, so neither is its end."""
    outer = record_function("outer")
    with outer, recorded() as found, record_function("inner"):
        pass
    assert found.story == ["+inner", "-inner"]
    with recorded() as second:
        early = record_function("early").__enter__()
    early.__exit__(None, None, None)
    assert second.story == ["+early"]
    assert second.session.late == 1


def test_an_exception_ends_the_range() -> None:
    """It passes, and the range says that it failed."""
    with recorded() as found:
        with pytest.raises(ZeroDivisionError), record_function("bad"):
            _ = 1 / 0
        with record_function("good"):
            pass
    assert found.pop("bad").failed
    assert not found.pop("good").failed
    assert found.push("good").sequence_nr == -1


def test_args_are_text() -> None:
    """They are kept as they were given."""
    with recorded() as found, record_function("load", "n=3"):
        pass
    assert found.push("load").args == "n=3"


@pytest.mark.parametrize(
    ("on", "expected"), [(True, ((2, 3), (), (), ())), (False, ())], ids=["on", "off"]
)
def test_shapes(on: bool, expected: tuple[tuple[int, ...], ...]) -> None:
    """Of values given with the name, or of a function's arguments; only if asked for."""

    @record_function("call")
    def call(*values: object) -> None:
        pass

    values = (Array(2, 3), "text", None, Liar())
    with recorded(record_shapes=on) as found, record_function("block", values):
        call(*values)
    assert found.push("block").shapes == expected
    assert found.push("call").shapes == expected
    assert found.push("call").args == ""


def test_one_object_may_be_used_again_and_within_itself() -> None:
    """As a constant of a module, say."""
    load = record_function("load")
    with recorded() as found:
        with load:
            pass
        with load:
            pass
    assert found.story == ["+load", "-load", "+load", "-load"]


def test_decorated_function() -> None:
    """A range per call, recursion included; name, text and value are those of the function."""

    @record_function("fact")
    def fact(n: int) -> int:
        """Multiply."""
        return 1 if n < 2 else n * fact(n - 1)

    with recorded() as found:
        assert fact(3) == 6
    assert found.story == ["+fact"] * 3 + ["-fact"] * 3
    assert {event.scope for event in found.events if event.handle > 0} >= {Scope.FUNCTION}
    assert (fact.__name__, fact.__doc__) == ("fact", "Multiply.")
    assert fact(4) == 24


def test_decorated_method_and_failure() -> None:
    """Methods are functions; what they raise passes."""

    class Thing:
        @record_function("fail")
        def fail(self) -> None:
            raise KeyError("x")

    with recorded() as found, pytest.raises(KeyError):
        Thing().fail()
    assert found.pop("fail").failed


def test_decorated_coroutine_function() -> None:
    """The range is that of the whole call, with its waits; ranges inside know it."""

    @record_function("fetch")
    async def fetch(n: int) -> int:
        with record_function("step"):
            await asyncio.sleep(0)
        return n

    assert inspect.iscoroutinefunction(fetch)

    async def main() -> list[int]:
        return [await fetch(1), *await asyncio.gather(fetch(2), fetch(3))]

    with recorded() as found:
        assert asyncio.run(main()) == [1, 2, 3]
    assert found.story[:4] == ["+fetch", "+step", "-step", "-fetch"]
    assert found.story[4:] == ["+fetch", "+step"] * 2 + ["-step", "-fetch"] * 2
    fetches = [event for event in found.events if event.name == "fetch"]
    assert all(event.is_async for event in fetches)
    assert asyncio.run(main()) == [1, 2, 3]


def test_a_cancelled_coroutine_failed() -> None:
    """Its range ends where it was cancelled."""

    @record_function("wait")
    async def wait() -> None:
        await asyncio.sleep(10)

    async def main() -> None:
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with recorded() as found:
        asyncio.run(main())
    assert found.pop("wait").failed


def test_decorated_generator_function() -> None:
    """From the first step to the last; send, throw and the value pass through."""

    @record_function("echo")
    def echo() -> Generator[object, object, str]:
        got: object = "ready"
        while got != "end":
            try:
                got = yield got
            except ValueError as error:
                got = f"caught {error}"
        return "value"

    assert inspect.isgeneratorfunction(echo)
    with recorded() as found:
        steps = echo()
        mark("made")
        assert next(steps) == "ready"
        with record_function("consumer"):
            assert steps.send(1) == 1
        assert steps.throw(ValueError("v")) == "caught v"
        with pytest.raises(StopIteration) as caught:
            steps.send("end")
        assert caught.value.value == "value"
    assert found.story == ["made", "+echo", "+consumer", "-consumer", "-echo"]
    assert found.push("echo").is_async
    assert found.push("consumer").sequence_nr == -1, "the consumer is not within the generator"


def test_a_generator_that_is_closed_has_not_failed() -> None:
    """A loop may break; one that was never begun has no range."""

    @record_function("numbers")
    def numbers() -> Generator[int, None, None]:
        yield from range(10)

    with recorded() as found:
        for number in numbers():
            if number == 2:
                break
        numbers().close()
    assert found.story == ["+numbers", "-numbers"]
    assert not found.pop("numbers").failed


def test_a_generator_that_fails() -> None:
    """Its range says so."""

    @record_function("bad")
    def bad() -> Generator[int, None, None]:
        yield 1
        raise ValueError("later")

    with recorded() as found, pytest.raises(ValueError, match="later"):
        list(bad())
    assert found.pop("bad").failed


def test_decorated_async_generator_function() -> None:
    """Likewise: asend, athrow and aclose pass through."""
    closed: list[str] = []

    @record_function("echo")
    async def echo() -> AsyncGenerator[object, object]:
        got: object = "ready"
        try:
            while got != "end":
                try:
                    got = yield got
                except ValueError as error:
                    got = f"caught {error}"
        finally:
            closed.append("closed")

    assert inspect.isasyncgenfunction(echo)

    async def main() -> None:
        steps = echo()
        assert await steps.asend(None) == "ready"
        with record_function("consumer"):
            assert await steps.asend(1) == 1
        assert await steps.athrow(ValueError("v")) == "caught v"
        with pytest.raises(StopAsyncIteration):
            await steps.asend("end")
        async for _ in (other := echo()):
            break
        await other.aclose()
        assert closed == ["closed", "closed"]
        broken = echo()
        await broken.asend(None)
        with pytest.raises(KeyError):
            await broken.athrow(KeyError("k"))

    with recorded() as found:
        asyncio.run(main())
    assert found.story == ["+echo", "+consumer", "-consumer", "-echo", *["+echo", "-echo"] * 2]
    assert [e.failed for e in found.events if e.name == "echo"] == [False] * 5 + [True]


def test_end_on_a_future() -> None:
    """The range ends where the future was done, on that thread, and is kept with both."""
    release = threading.Event()
    with recorded() as found, ThreadPoolExecutor() as pool:
        with record_function("call") as call:
            future = pool.submit(release.wait, 10)
            assert call.end_on(future) is future
            with record_function("beside"):
                pass
        mark("left")
        release.set()
    assert found.story[:4] == ["+call", "+beside", "-beside", "left"]
    assert found.story[4] == "-call"
    assert found.push("call").is_async
    assert (found.push("call").thread, found.pop("call").thread) == (0, 1)
    assert found.threads[0].events[-2].name == "call", "it stands where it began"
    assert [one.number for one in found.threads] == [0, 1]
    assert found.push("beside").sequence_nr == -1


def test_end_on_by_the_name_that_torch_has() -> None:
    """The same method."""
    assert record_function._call_end_callbacks_on_future is record_function.end_on


def test_end_on_an_asyncio_future() -> None:
    """Tasks and futures of a loop will do, too."""

    async def main() -> None:
        with record_function("call") as call:
            task = asyncio.ensure_future(asyncio.sleep(0))
            call.end_on(task)
        mark("left")
        await task
        await asyncio.sleep(0)

    with recorded() as found:
        asyncio.run(main())
    assert found.story == ["+call", "left", "-call"]
    assert not found.pop("call").failed


@pytest.mark.parametrize("how", ["done", "failed", "cancelled"])
def test_end_on_a_future_that_is_done(how: str) -> None:
    """The range ends at once; it failed if the future did."""
    future: Future[int] = Future()
    if how == "cancelled":
        future.cancel()
    elif how == "failed":
        future.set_exception(KeyError("x"))
    else:
        future.set_result(1)
    with recorded() as found, record_function("call") as call:
        call.end_on(future)
        mark("after")
    assert found.story == ["+call", "-call", "after"]
    assert found.pop("call").failed is (how != "done")


@pytest.mark.parametrize("on", [True, False])
def test_a_second_end_is_refused(on: bool) -> None:
    """Whether or not a session is on: else a program would fail only when it is looked at."""
    first: Future[int] = Future()
    if on:
        with recorded(), record_function("twice") as call:
            call.end_on(first)
            with pytest.raises(InstrcountError) as caught:
                call.end_on(first)
    else:
        with record_function("twice") as call:
            call.end_on(first)
            with pytest.raises(InstrcountError) as caught:
                call.end_on(first)
    assert caught.value.slug == "range-ended"
    assert "'twice'" in caught.value.why
    with call:
        call.end_on(first)


def test_a_future_that_is_done_after_the_session() -> None:
    """Its range has no end, and nobody is told."""
    future: Future[int] = Future()
    with recorded() as found, record_function("call") as call:
        call.end_on(future)
    future.set_result(1)
    assert found.story == ["+call"]


def test_closed_on_another_thread() -> None:
    """Without a future, too."""
    with recorded() as found:
        opened = record_function("moved").__enter__()
        thread = threading.Thread(target=opened.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        with record_function("next"):
            pass
    assert found.pop("moved").thread == 1
    assert found.push("next").sequence_nr == -1


def test_overlapping_ranges() -> None:
    """The order of their ends is free, and none keeps another one as its place."""
    with recorded() as found:
        before = record_function("r0").__enter__()
        for number in range(1, 50):
            after = record_function(f"r{number}").__enter__()
            before.__exit__(None, None, None)
            before = after
        before.__exit__(None, None, None)
        with record_function("alone"):
            pass
    assert found.push("alone").sequence_nr == -1
    assert found.push("r5").sequence_nr == found.push("r4").handle


def test_unprintable_names() -> None:
    """Any text is a name."""
    with recorded() as found, record_function("a\ud800\0\n" * 1000):
        pass
    assert len(found.events) == 4
