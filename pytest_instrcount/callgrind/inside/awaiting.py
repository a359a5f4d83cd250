"""Counting a coroutine: it is repeated by the event loop that runs, where the test awaits it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pytest_instrcount.callgrind.inside.loops import find_pause, steady_loop
from pytest_instrcount.callgrind.inside.seeding import seed_random
from pytest_instrcount.callgrind.requests import Request

if TYPE_CHECKING:
    from pytest_instrcount.callgrind.inside.child import Counter
    from pytest_instrcount.fixtures.rounds import Rounds

#: ``repeat`` as ``child.Repeat`` has it, to be awaited.
RepeatAwaited = Callable[[int, Request, Request], Awaitable[object]]


async def count_awaited(
    counter: Counter,
    target: Callable[..., Awaitable[object]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Count ``await target(*args, **kwargs)``, each time with a coroutine of its own."""
    pause = find_pause()

    async def repeat(times: int, before: Request, after: Request) -> None:
        for _ in range(times):
            # The loop goes on with what was left over, and resumes us in frames that Callgrind
            # has seen made.
            await pause()
            seed_random()
            before()
            await target(*args, **kwargs)
            after()

    await _count(counter, repeat)


async def count_awaited_rounds(counter: Counter, rounds: Rounds) -> None:
    """Count the awaited calls of ``pedantic``, without set-up and tear-down."""
    pause = find_pause()
    target, iterations = rounds.target, rounds.iterations

    async def repeat(times: int, before: Request, after: Request) -> None:
        for _ in range(times):
            await pause()
            seed_random()
            args, kwargs = rounds.set_up()
            before()
            for _ in range(iterations):
                await target(*args, **kwargs)
            after()
            rounds.tear_down(args, kwargs)

    await _count(
        counter, repeat, warmup=rounds.warmup_rounds, calls=rounds.rounds, iterations=iterations
    )


async def _count(counter: Counter, repeat: RepeatAwaited, **how: Any) -> None:
    with counter.forked() as here:
        if here:
            steady_loop()
            with closing(counter.steps(apart=True, anew=True, **how)) as steps:
                for step in steps:
                    await repeat(*step)
