"""Values that stand for work which a call has not done: what was counted is the making of them."""

from __future__ import annotations

import collections.abc
import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from inspect import GEN_CREATED, getgeneratorstate
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from pytest_instrcount.errors import InstrcountError

#: What does its work when it is asked for the next value. An iterator over a container is not among
#: them: all that it hands out has been made.
_LAZY: tuple[type, ...] = (
    map,
    filter,
    zip,
    enumerate,
    type(re.finditer("", "")),
    *(
        each
        for name, each in vars(itertools).items()
        if isinstance(each, type) and not name.startswith("_")
    ),
)
_NOTHING = object()


def refuse_unconsumed(
    value: object, target: object, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Raise InstrcountError if a call has returned work that nobody has done.

    What the test passed in itself is its own matter.
    """
    kind = _unconsumed(value)
    if kind and not any(value is each for each in (*args, *kwargs.values(), *_held_by(target))):
        name = getattr(target, "__qualname__", repr(target))
        what, fix = _MENDS[kind]
        raise InstrcountError(
            "unconsumed",
            f"{name} returns {what}, whose work nobody has done when the count ends",
            fix.format(name=name),
        )


_MENDS = {
    "generator": ("a generator", "instrcount(lambda: list({name}(...)))"),
    "asynchronous generator": (
        "an asynchronous generator",
        "await instrcount(...) with a coroutine function that runs async for over it",
    ),
    "iterator": ("an iterator", "instrcount(lambda: list({name}(...)))"),
    "future": ("a future that is not done", "instrcount(lambda: {name}(...).result())"),
    "awaitable": (
        "a future that is not done",
        "await instrcount(...) with a coroutine function that awaits it",
    ),
}


def _unconsumed(value: object) -> str:
    """What it is, if it stands for work that has not begun; else ""."""
    if isinstance(value, GeneratorType):
        return "generator" if getgeneratorstate(value) == GEN_CREATED else ""
    if isinstance(value, AsyncGeneratorType):
        # CPython 3.11 does not tell whether one has begun
        begun = value.ag_frame is None or getattr(value, "ag_suspended", False)
        return "" if begun else "asynchronous generator"
    if type(value) in _LAZY or _is_compiled_generator(value):
        iterator: Any = value
        try:
            left = next(iterator, _NOTHING)
        except Exception:
            return "iterator"
        return "" if left is _NOTHING else "iterator"
    done = getattr(value, "done", None)
    if getattr(type(value), "_asyncio_future_blocking", None) is not None:
        return "" if done is None or done() else "awaitable"
    futures = sys.modules.get("concurrent.futures._base")
    if futures is not None and isinstance(value, futures.Future):
        return "" if done is None or done() else "future"
    return ""


def _is_compiled_generator(value: object) -> bool:
    """Whether it is one of Cython's or mypyc's: those have no frame to look at."""
    return type(value).__name__ == "generator" and isinstance(value, collections.abc.Generator)


def _held_by(target: Any) -> Iterable[object]:
    """What a function or a method had before it was called."""
    yield getattr(target, "__self__", None)
    for cell in getattr(target, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not set yet
            continue


def used_up(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The iterators among the arguments that are not exhausted, to be asked again after the call."""
    return tuple(each for each in (*args, *kwargs.values()) if _has_more(each))


def _has_more(value: object) -> bool:
    if isinstance(value, GeneratorType):
        return value.gi_frame is not None
    if not hasattr(type(value), "__next__"):
        return False
    hint = getattr(type(value), "__length_hint__", None)
    return hint is not None and hint(value) > 0


def why_only_once(target: Any, before: Iterable[Any]) -> str:
    """Why the first call is unlike those that are counted; "" where nothing tells.

    ``before``: what `used_up` said before the first call.
    """
    if any(not _has_more(each) for each in before):
        return (
            "the first call uses up an iterator, and the counted calls find it empty "
            "(pedantic with rounds=1 counts the first)"
        )
    misses = getattr(target, "cache_info", None)
    if misses is not None and getattr(target, "__wrapped__", None) is not None:
        return "a cache answers the counted calls, as the first call has filled it"
    return ""
