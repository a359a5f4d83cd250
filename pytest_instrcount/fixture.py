"""The ``instrcount`` fixture: what a test calls, measured or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from types import CoroutineType
from typing import Any, ParamSpec, Protocol, TypeVar

from pytest_instrcount.unconsumed import refuse_unconsumed, used_up, why_only_once

P = ParamSpec("P")
T = TypeVar("T")

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class CountsCalls(Protocol):
    """What the fixture asks of whoever counts (``callgrind.child.Counter``)."""

    def count_call(
        self, target: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Repeat the call and count it."""

    def count_rounds(self, rounds: Rounds) -> None:
        """Repeat the rounds and count them."""

    async def count_awaited(
        self, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """The same as ``count_call`` for a coroutine function, on the event loop that runs."""

    async def count_awaited_rounds(self, rounds: Rounds) -> None:
        """The same as ``count_rounds``."""


#: In the place of a value where there has been no call.
NOT_MADE = object()


class Rounds:
    """The arguments of ``pedantic``, checked: a round is set-up, some calls, tear-down."""

    __slots__ = (
        "_arguments",
        "_setup",
        "_teardown",
        "iterations",
        "once",
        "rounds",
        "target",
        "value",
        "warmup_rounds",
    )

    def __init__(
        self,
        target: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        setup: Callable[[], Any] | None,
        teardown: Callable[..., Any] | None,
        warmup_rounds: int | None,
        rounds: int | None,
        iterations: int,
    ) -> None:
        __tracebackhide__ = True
        for name, value, least in (
            ("warmup_rounds", warmup_rounds, 0),
            ("rounds", rounds, 1),
            ("iterations", iterations, 1),
        ):
            if value is not None and (type(value) is not int or value < least):
                raise ValueError(f"instrcount.pedantic: {name}={value!r} is not an int >= {least}")
        if setup is not None and iterations != 1:
            raise ValueError("instrcount.pedantic: with setup, iterations must be 1")
        if not isinstance(args, Sequence) or isinstance(args, str):
            raise TypeError(f"instrcount.pedantic: args={args!r} is not a tuple, like ({args!r},)")
        if kwargs is not None and not isinstance(kwargs, Mapping):
            raise TypeError(f"instrcount.pedantic: kwargs={kwargs!r} is not a dict")
        for name, each in (("setup", setup), ("teardown", teardown)):
            if each is not None and not callable(each):
                raise TypeError(f"instrcount.pedantic: {name}={each!r} cannot be called")
        self.target = target
        self._arguments = tuple(args), dict(kwargs or {})
        self._setup = setup
        self._teardown = teardown
        #: whether it can be called a single time: that one is counted, without a warm-up
        self.once = rounds == iterations == 1 and setup is None and not warmup_rounds
        self.warmup_rounds = 0 if self.once else warmup_rounds
        self.rounds, self.iterations = rounds, iterations
        #: what the call has returned that was counted in this process
        self.value: Any = NOT_MADE

    def set_up(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Run the set-up; returns the arguments of this round's calls."""
        __tracebackhide__ = True
        made = self._setup() if self._setup is not None else None
        if made is None:
            return self._arguments
        if self._arguments != ((), {}):
            raise TypeError(
                "instrcount.pedantic: give args and kwargs, or return them from setup, not both"
            )
        try:
            args, kwargs = made
            return tuple(args), dict(kwargs)
        except (TypeError, ValueError):
            raise TypeError(
                f"instrcount.pedantic: setup returned {made!r}, not None or (args, kwargs)"
            ) from None

    def tear_down(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run the tear-down with the arguments of the round."""
        __tracebackhide__ = True
        if self._teardown is not None:
            self._teardown(*args, **kwargs)


def is_coroutine(value: object) -> bool:
    """Whether it is what a coroutine function returns, that of a compiled module included.

    A future or a task is none: it may have begun already, and cannot be had a second time.
    """
    kind = type(value)
    return kind is CoroutineType or (hasattr(kind, "send") and hasattr(kind, "__await__"))


def makes_coroutine(target: Any) -> bool:
    """Whether a function is known to be a coroutine function before it is called."""
    while isinstance(target, partial):
        target = target.func
    call = vars(type(target)).get("__call__")
    return iscoroutinefunction(target) or iscoroutinefunction(call)


class _Held:
    """A coroutine that another is to await: of the two, Python is to warn of the other alone."""

    __slots__ = ("coroutine",)

    def __init__(self, coroutine: Any) -> None:
        self.coroutine = coroutine

    def __del__(self) -> None:
        self.coroutine.close()


class InstrCount:
    """Counts one call of a test under ``--instrcount``; else makes it once and returns its value.

    ``result = instrcount(func, *args, **kwargs)`` counts that call. ``@instrcount`` above an
    inner function does the same, and the name then stands for the value.
    ``instrcount.pedantic(...)`` counts rounds with a set-up and a tear-down of their own.
    ``result = await instrcount(coroutine_function, ...)`` counts until the coroutine has returned.
    One use per test: the second raises RuntimeError.

    >>> instrcount = InstrCount("test_a.py::test_sum", None)
    >>> instrcount(sum, [1, 2, 3])
    6
    """

    def __init__(self, nodeid: str, counter: CountsCalls | None) -> None:
        self._nodeid = nodeid
        self._counter = counter
        self._used_at = ""
        self._not_awaited = ""
        #: what a verdict is to say of the call
        self.remarks: list[str] = []

    def __call__(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Count ``func(*args, **kwargs)`` and return the value of its first call.

        If the value is a coroutine, it is to be awaited: then its run is counted, too.
        """
        __tracebackhide__ = True
        self._take(func)
        counter = self._counter
        if counter is None:
            return func(*args, **kwargs)
        before = used_up(args, kwargs)
        value = func(*args, **kwargs)
        if is_coroutine(value):
            made: T = self._to_await(value, lambda: counter.count_awaited(func, args, kwargs))
            return made
        refuse_unconsumed(value, func, args, kwargs)
        self._remark(func, before)
        counter.count_call(func, args, kwargs)
        return value

    def _remark(self, target: object, before: tuple[Any, ...]) -> None:
        why = why_only_once(target, before)
        if why:
            self.remarks.append(why)

    def _to_await(self, first: Any, count: Callable[[], Any]) -> Any:
        """A coroutine that awaits the first one, counts, and returns what the first returned."""
        held = _Held(first)

        async def counted() -> Any:
            __tracebackhide__ = True
            value = await held.coroutine
            await count()
            self._not_awaited = ""
            return value

        self._not_awaited = self._used_at
        coroutine: Any = counted()
        coroutine.__qualname__ = f"instrcount({getattr(first, '__qualname__', first)})"
        return coroutine

    @property
    def called(self) -> bool:
        """Whether the one use is used up."""
        return bool(self._used_at)

    def why_uncounted(self) -> str:
        """Why nothing was counted in a test that has passed."""
        if self._not_awaited:
            return (
                f"instrcount was called with {self._not_awaited} and not awaited to its end: "
                "write await instrcount(...)"
            )
        return "the test takes the instrcount fixture and never calls it"

    def pedantic(
        self,
        target: Callable[..., T],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        warmup_rounds: int | None = None,
        rounds: int | None = None,
        iterations: int = 1,
    ) -> T:
        """Count rounds of ``target``, as pytest-benchmark's ``pedantic`` times them.

        A round runs ``setup()`` (which may return ``(args, kwargs)``), ``iterations`` calls, and
        ``teardown(*args, **kwargs)``; only the calls are counted. Rounds that are not given are
        chosen as for a plain call. Returns the value of the first call. Raises ValueError for
        numbers out of range, TypeError for arguments given twice.
        """
        __tracebackhide__ = True
        self._take(target)
        rounds_ = Rounds(target, args, kwargs, setup, teardown, warmup_rounds, rounds, iterations)
        counter = self._counter
        first_args, first_kwargs = rounds_.set_up()
        counts_first = counter is not None and rounds_.once and not makes_coroutine(target)
        if counter is not None and counts_first:
            counter.count_rounds(rounds_)
        before = used_up(first_args, first_kwargs)
        value: T = rounds_.value
        if not counts_first or value is NOT_MADE:
            value = target(*first_args, **first_kwargs)
        if is_coroutine(value):

            async def end_round() -> None:
                rounds_.tear_down(first_args, first_kwargs)
                if counter is not None:
                    await counter.count_awaited_rounds(rounds_)

            return self._to_await(value, end_round)  # type: ignore[no-any-return]
        rounds_.tear_down(first_args, first_kwargs)
        if counter is not None:
            refuse_unconsumed(value, target, first_args, first_kwargs)
        if counter is not None and not counts_first:
            self._remark(target, before)
            counter.count_rounds(rounds_)
        return value

    def _take(self, target: object) -> None:
        __tracebackhide__ = True
        name = getattr(target, "__qualname__", repr(target))
        if self._used_at:
            raise RuntimeError(
                f"instrcount counts one call per test; {self._nodeid} used it first for "
                f"{self._used_at}, and now for {name}: make two tests of it"
            )
        if not callable(target):
            raise TypeError(f"instrcount counts a call: {target!r} cannot be called")
        self._used_at = f"{name} at {_call_site()}"


def remarks_of(fixture: InstrCount | None, benchmark: Any) -> list[str]:
    """What a verdict is to say of how a test used its fixture, or its ``benchmark``."""
    remarks = [] if fixture is None else list(fixture.remarks)
    if benchmark is not None and benchmark.times_compared:
        remarks.append("compares times, which are not measured: what it asserts of them passes")
    return remarks


def _call_site() -> str:
    """File and line of the test's own code that used the fixture."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
