"""What is repeated between two requests: a call, a round, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_instrcount.callgrind.inside.seeding import seed_random
from pytest_instrcount.callgrind.requests import Request
from pytest_instrcount.fixtures.rounds import Rounds


def switch(times: int, before: Request, after: Request) -> None:
    """The switch with nothing in between: what is counted here is subtracted."""
    for _ in range(times):
        seed_random()
        before()
        after()


def repeat_call(
    times: int,
    before: Request,
    after: Request,
    target: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Call the target so often, each time with the same random numbers before it."""
    for _ in range(times):
        seed_random()
        before()
        target(*args, **kwargs)
        after()


def repeat_once(times: int, before: Request, after: Request, rounds: Rounds) -> None:
    """Make the one round that there can be, and keep what the call returns."""
    for _ in range(times):
        seed_random()
        args, kwargs = rounds.set_up()
        before()
        rounds.value = rounds.target(*args, **kwargs)
        after()


def repeat_round(times: int, before: Request, after: Request, rounds: Rounds) -> None:
    """Make so many rounds, with the switch around the calls of each."""
    target, iterations = rounds.target, rounds.iterations
    for _ in range(times):
        seed_random()
        args, kwargs = rounds.set_up()
        if iterations == 1:
            before()
            target(*args, **kwargs)
            after()
        else:
            before()
            for _ in range(iterations):
                target(*args, **kwargs)
            after()
        rounds.tear_down(args, kwargs)
