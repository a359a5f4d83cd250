"""Ranges that users name: a with-block, a decorated function, a call that ends with a future."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, cast

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.own import transparent
from pytest_instrcount.trace.ranges.place import PLACE, Place, leave, still_on
from pytest_instrcount.trace.ranges.session import FUNCTION, USER

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound="Completes")


class Completes(Protocol):
    """A future of concurrent.futures or asyncio, or what else calls back once it is done."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object: ...
    def cancelled(self) -> bool: ...
    def exception(self) -> BaseException | None: ...


class record_function:
    """Give a block of code, or each call of a function, a name in the trace.

    ``args`` is text to show with it, or values whose shapes are kept where ``record_shapes`` is on.
    Does nothing where no session is on. Functions, coroutine functions, generator functions and
    async generator functions can be decorated; of the latter three the range goes from the first
    step to the last.

    >>> with record_function("load"):
    ...     data = [1, 2]
    >>> @record_function("double")
    ... def double(n): return 2 * n
    >>> double(2)
    4
    """

    __slots__ = ("_open", "args", "name")

    def __init__(self, name: str, args: str | Sequence[object] | None = None) -> None:
        self.name = name
        self.args = args
        #: False: a future ends it, or would if a session were on
        self._open: Place | Literal[False] | None = None

    def __enter__(self) -> record_function:
        place = PLACE.get()
        if place is not None:
            if not (place.open and place.session.on):
                place = still_on(place)
                if place is None:
                    return self
            self._open = opened = place.session.open(self.name, place, USER, self.args)
            PLACE.set(opened)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        opened = self._open
        if opened is not None:
            self._open = None
            if opened:
                opened.session.close(opened, kind is not None)
                if PLACE.get() is opened:
                    PLACE.set(opened.before)

    def end_on(self, future: F) -> F:
        """Let the range end when ``future`` is done, not with the block; gives the future back.

        It is kept with the thread that began it and the one that ended it. Raises InstrcountError
        (slug "range-ended") if called a second time.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor() as pool, record_function("remote call") as call:
        ...     call.end_on(pool.submit(len, "abc")).result()
        3
        """
        opened = self._open
        if opened is False:
            raise InstrcountError(
                "range-ended",
                f"the range {self.name!r} ends with a future already",
                "call end_on() once; open a second range for a second future",
            )
        self._open = False
        if opened is not None:
            leave(opened)
            opened.is_async = True
            future.add_done_callback(functools.partial(_done, opened))
        return future

    #: torch's name
    _call_end_callbacks_on_future = end_on

    def __call__(self, func: Callable[P, T]) -> Callable[P, T]:
        """Decorate ``func``: each call is a range of its own."""
        return cast(Callable[P, T], functools.wraps(func)(_wrapped(func, self)))


def _done(opened: Place, future: Completes) -> None:
    opened.session.close(opened, future.cancelled() or future.exception() is not None)


class _Call:
    """A call of a decorated function: a range from here to the end of the with-block."""

    __slots__ = ("_opened",)

    def __init__(self, made: record_function, values: tuple[object, ...], *, steps: bool = False):
        self._opened: Place | None = None
        place = still_on(PLACE.get())
        if place is not None:
            self._opened = place.session.open(
                made.name, place, FUNCTION, made.args, values, is_async=steps
            )

    def inside(self) -> _Call:
        """Enter the range: calls from here on are within it. A generator's caller is not."""
        if self._opened is not None:
            PLACE.set(self._opened)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._opened is not None:
            # a generator that nobody wants to the end has not failed
            failed = kind is not None and not issubclass(kind, GeneratorExit)
            self._opened.session.close(self._opened, failed)
            leave(self._opened)


def _wrapped(func: Callable[..., Any], made: record_function) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(func):

        @transparent
        async def coroutine(*values: Any, **named: Any) -> Any:
            with _Call(made, values, steps=True).inside():
                return await func(*values, **named)

        return coroutine
    if inspect.isasyncgenfunction(func):
        # by hand, without contextlib: a trace would show its functions as called here
        @transparent
        async def async_generator(*values: Any, **named: Any) -> AsyncGenerator[Any, Any]:
            with _Call(made, values, steps=True):
                steps = func(*values, **named)
                try:
                    step = await steps.asend(None)
                    while True:
                        try:
                            sent = yield step
                        except GeneratorExit:
                            raise
                        except BaseException as error:
                            step = await steps.athrow(error)
                        else:
                            step = await steps.asend(sent)
                except StopAsyncIteration:
                    return
                finally:
                    await steps.aclose()

        return async_generator
    if inspect.isgeneratorfunction(func):

        @transparent
        def generator(*values: Any, **named: Any) -> Generator[Any, Any, Any]:
            with _Call(made, values, steps=True):
                return (yield from func(*values, **named))

        return generator

    @transparent
    def function(*values: Any, **named: Any) -> Any:
        if PLACE.get() is None:
            return func(*values, **named)
        with _Call(made, values).inside():
            return func(*values, **named)

    return function
