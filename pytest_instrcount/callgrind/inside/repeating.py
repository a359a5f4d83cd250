"""Repetitions between two requests: of a call, of a round, or of nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pytest_instrcount.callgrind.inside.loops import note_left, pending_tasks
from pytest_instrcount.callgrind.inside.places import make_room
from pytest_instrcount.callgrind.inside.seeding import seed_random
from pytest_instrcount.callgrind.requests import Request
from pytest_instrcount.fixtures.first_call import FirstCall
from pytest_instrcount.fixtures.rounds import Rounds

#: ``repeat(times, before, after)``: so many repetitions, with the two requests right before and
#: right after what is counted.
Repeat = Callable[[int, Request, Request], object]
#: The arguments of such a call.
Step = tuple[int, Request, Request]
#: The same, to be awaited.
RepeatAwaited = Callable[[int, Request, Request], Awaitable[object]]
Pause = Callable[[], Awaitable[object]]


class CallCounter:
    """Counts calls and rounds, however that is done: see `fork` and `count`."""

    #: what the first call found, to be held against what the counted ones leave
    first: FirstCall | None = None

    def begin_first(self) -> None:
        """The first call is about to be made; how much it executes may be counted."""

    def end_first(self) -> None:
        """The first call has been made."""

    def first_remarks(self) -> list[str]:
        """What only the first call does, as the verdict is to say it: asked once all calls are made."""
        return [] if self.first is None else self.first.remarks()

    def fork(self, work: Callable[[], None]) -> None:
        """Do the counting where it leaves nothing behind, if there is such a place."""
        raise NotImplementedError

    def attempt(self, work: Callable[[], None], *, last: bool = False) -> None:
        """Do the counting here, and keep what it raises; ``last``: the process does nothing else then."""
        raise NotImplementedError

    def count(self, repeat: Repeat, **how: Any) -> None:
        """Count such a repetition."""
        raise NotImplementedError

    def count_call(
        self, target: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Count ``target(*args, **kwargs)``, for the test to go on as if called once."""
        call = target, tuple(args), dict(kwargs)
        self.fork(
            lambda: self.count(
                lambda times, before, after: repeat_call(times, before, after, *call)
            )
        )

    def count_rounds(self, rounds: Rounds) -> None:
        """Count the calls of ``pedantic``, without set-up and tear-down."""
        repeat = repeat_once if rounds.once else repeat_round
        self.fork(
            lambda: self.count(
                lambda times, before, after: repeat(times, before, after, rounds),
                warmup=rounds.warmup_rounds,
                rounds=rounds.rounds,
                iterations=rounds.iterations,
                once=rounds.once,
            )
        )


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
        make_room()
        before()
        target(*args, **kwargs)
        after()


def repeat_once(times: int, before: Request, after: Request, rounds: Rounds) -> None:
    """Make the one round that there can be, and keep what the call returns."""
    for _ in range(times):
        seed_random()
        args, kwargs = rounds.set_up()
        make_room()
        before()
        rounds.value = rounds.target(*args, **kwargs)
        after()


def repeat_round(times: int, before: Request, after: Request, rounds: Rounds) -> None:
    """Make so many rounds, with the switch around the calls of each."""
    target, iterations = rounds.target, rounds.iterations
    for _ in range(times):
        seed_random()
        args, kwargs = rounds.set_up()
        make_room()
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


def repeat_awaited(
    target: Callable[..., Awaitable[object]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    pause: Pause,
) -> RepeatAwaited:
    """Repetitions of ``await target(*args, **kwargs)``, each time with a coroutine of its own.

    In the ``pause`` before each, the loop goes on with what was left over, and resumes us in frames
    that Callgrind has seen made.
    """

    async def repeat(times: int, before: Request, after: Request) -> None:
        for _ in range(times):
            await pause()
            seed_random()
            pending = pending_tasks()
            make_room()
            before()
            await target(*args, **kwargs)
            after()
            note_left(pending)

    return repeat


def repeat_awaited_rounds(rounds: Rounds, pause: Pause) -> RepeatAwaited:
    """Repetitions of the awaited calls of ``pedantic``, without set-up and tear-down."""
    target, iterations = rounds.target, rounds.iterations

    async def repeat(times: int, before: Request, after: Request) -> None:
        for _ in range(times):
            await pause()
            seed_random()
            args, kwargs = rounds.set_up()
            pending = pending_tasks()
            make_room()
            before()
            for _ in range(iterations):
                await target(*args, **kwargs)
            after()
            note_left(pending)
            rounds.tear_down(args, kwargs)

    return repeat
