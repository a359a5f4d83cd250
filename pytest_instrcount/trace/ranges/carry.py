"""Carries a context variable into threads and executors that are started while it is set."""

from __future__ import annotations

import concurrent.futures
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from pytest_instrcount.trace.own import transparent

T = TypeVar("T")

# From 3.14 on; it pickles what is submitted, and nothing of ours may be in there.
_ELSEWHERE: Any = getattr(concurrent.futures, "InterpreterPoolExecutor", ())


class Carrier(Generic[T]):
    """Carries one variable into threads; asyncio does so for its tasks, but nothing for threads.

    While installed, ``Thread.start`` and ``ThreadPoolExecutor.submit`` are wrapped. All other
    variables of the caller's context stay where they are, as without us.

    >>> colour, seen = ContextVar("colour", default="none"), []
    >>> carrier = Carrier(colour)
    >>> carrier.install()
    >>> token = colour.set("red")
    >>> thread = threading.Thread(target=lambda: seen.append(colour.get()))
    >>> thread.start(); thread.join(); carrier.remove()
    >>> seen
    ['red']
    """

    def __init__(self, variable: ContextVar[T]) -> None:
        self._variable = variable
        self._lock = threading.Lock()
        self._users = 0
        self._wrapped: list[tuple[type, str, object, object]] = []

    def install(self) -> None:
        """Wrap, if nobody has yet; to be undone by as many calls of `remove`."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._wrap(threading.Thread, "start", self._starting(threading.Thread.start))
                self._wrap(
                    ThreadPoolExecutor, "submit", self._submitting(ThreadPoolExecutor.submit)
                )

    def remove(self) -> None:
        """Put the originals back, if nobody else needs the wrappers."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            for owner, name, original, wrapper in self._wrapped:
                # Another one's wrapper around ours stays; ours then only calls the original.
                if owner.__dict__.get(name) is wrapper:
                    setattr(owner, name, original)
            self._wrapped.clear()

    def _wrap(self, owner: type, name: str, wrapper: object) -> None:
        self._wrapped.append((owner, name, owner.__dict__[name], wrapper))
        setattr(owner, name, wrapper)

    def _starting(
        self, original: Callable[[threading.Thread], None]
    ) -> Callable[[threading.Thread], None]:
        @functools.wraps(original)
        @transparent
        def start(thread: threading.Thread) -> None:
            if not self._users:
                return original(thread)
            value, run, own = self._variable.get(), thread.run, thread.__dict__.get("run")

            def restore() -> None:
                # without this the thread would refer to itself, and to our variable
                if own is None:
                    thread.__dict__.pop("run", None)
                else:
                    thread.__dict__["run"] = own

            @transparent
            def carried() -> None:
                restore()
                self._variable.set(value)
                run()

            thread.__dict__["run"] = carried
            try:
                original(thread)
            except BaseException:
                restore()
                raise
            return None

        return start

    def _submitting(self, original: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
        @functools.wraps(original)
        @transparent
        def submit(
            pool: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
        ) -> Future[Any]:
            if not self._users or isinstance(pool, _ELSEWHERE):
                return original(pool, fn, *args, **kwargs)
            # also if the variable is not set here: the worker may have been started where it was
            call = functools.partial(fn, *args, **kwargs)
            return original(pool, self._run, self._variable.get(), call)

        return submit

    @transparent
    def _run(self, value: T, call: Callable[[], Any]) -> Any:
        token = self._variable.set(value)
        try:
            return call()
        finally:
            self._variable.reset(token)
