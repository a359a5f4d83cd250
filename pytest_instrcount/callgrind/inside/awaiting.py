"""Counting a coroutine: it is repeated by the event loop that runs, where the test awaits it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pytest_instrcount.callgrind.inside.loops import find_pause, steady_loop
from pytest_instrcount.callgrind.inside.repeating import (
    RepeatAwaited,
    repeat_awaited,
    repeat_awaited_rounds,
)

if TYPE_CHECKING:
    from pytest_instrcount.callgrind.inside.child import Counter
    from pytest_instrcount.fixtures.rounds import Rounds


async def count_awaited(
    counter: Counter,
    target: Callable[..., Awaitable[object]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Count ``await target(*args, **kwargs)``."""
    await _count(counter, repeat_awaited(target, args, kwargs, find_pause()))


async def count_awaited_rounds(counter: Counter, rounds: Rounds) -> None:
    """Count the awaited calls of ``pedantic``."""
    how = {"warmup": rounds.warmup_rounds, "rounds": rounds.rounds, "iterations": rounds.iterations}
    await _count(counter, repeat_awaited_rounds(rounds, find_pause()), **how)


async def _count(counter: Counter, repeat: RepeatAwaited, **how: Any) -> None:
    with counter.forked() as here:
        if here:
            steady_loop()
            with closing(counter.steps(**how)) as steps:
                for step in steps:
                    await repeat(*step)
