"""Repeating a test that carries the marker alone, each time as if it were the first."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import pytest

from pytest_instrcount.callgrind.inside.bystanders import is_left_alone
from pytest_instrcount.callgrind.inside.loops import note_left, pending_tasks, steady_loop
from pytest_instrcount.callgrind.inside.places import make_room
from pytest_instrcount.callgrind.inside.repeating import CallCounter, repeat_call
from pytest_instrcount.callgrind.inside.reports import is_passed
from pytest_instrcount.callgrind.inside.seeding import (
    repeat_here,
    seed_random,
    steady_hypothesis,
)
from pytest_instrcount.callgrind.requests import Request
from pytest_instrcount.config.compat import Renewal, fixture_info
from pytest_instrcount.config.stash import TRACE
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.fixtures.body import replaced_body
from pytest_instrcount.fixtures.first_call import FirstCall
from pytest_instrcount.fixtures.subtests import leave_unreported
from pytest_instrcount.fixtures.unconsumed import refuse_unconsumed
from pytest_instrcount.trace.own import transparent

Phase = Literal["setup", "call", "teardown"]

_CALLED_AGAIN = (
    "a plugin or conftest called it {} times in one run of the test, and each would be taken for a "
    "repetition: count one call with the instrcount fixture"
)
_NOT_CALLED = (
    "a plugin or conftest runs it in its own way, which does not call the test function of a repetition: "
    "count one call with the instrcount fixture"
)
_USUAL = {"setup": pytest.Function.setup, "runtest": pytest.Function.runtest}
_NOT_NUMBERED = itertools.repeat(0)


class RepetitionFailed(Exception):
    """A test that passed once did not pass when it was repeated; the text is pytest's own."""


def run_phase(
    item: pytest.Item, when: Phase, nextitem: pytest.Item | None
) -> pytest.CallInfo[None]:
    """Run one phase of a test as pytest does; ``nextitem`` is for the teardown."""
    hook = getattr(item.ihook, f"pytest_runtest_{when}")
    arguments = {"nextitem": nextitem} if when == "teardown" else {}
    return pytest.CallInfo.from_call(
        lambda: hook(item=item, **arguments),
        when=when,
        reraise=(pytest.exit.Exception, KeyboardInterrupt),
    )


class Sibling(pytest.Item):
    """Names the neighbour of a test: teardown up to it ends what is function-scoped, and no more."""

    def runtest(self) -> None:
        """Never run."""


class Repeater:
    """Repetitions of one test with fresh function-scoped fixtures."""

    def __init__(self, item: pytest.Function) -> None:
        self.item = item
        # as it is before its first run, which leaves things at a test
        self._renewed = Renewal(item)
        steady_hypothesis(item.obj)
        parent: Any = item.parent
        self.sibling = Sibling.from_parent(parent, name="instrcount-sibling")

    def count_call(self, counter: CallCounter) -> None:
        """Count the test by calling it in one call phase, in this process: nothing is finalised after it."""
        counter.attempt(lambda: self._count_in_phase(counter), last=True)

    def _count_in_phase(self, counter: CallCounter) -> None:
        again = self._renewed()
        target, values = again.obj, self._parameters()
        self._phase(again, "setup")

        def count() -> None:
            counter.count(
                lambda times, before, after: repeat_call(times, before, after, target, (), values)
            )

        with replaced_body(again, lambda **_: counter.attempt(count, last=True)):
            self._phase(again, "call")

    def count_phases(self, counter: CallCounter) -> None:
        """Count the test function within all of pytest's phases, in a fork."""
        counter.fork(lambda: counter.count(self._repeat_phases))

    def _repeat_phases(self, times: int, before: Request, after: Request) -> None:
        for _ in range(times):
            seed_random()
            again = self._renewed()
            self._phase(again, "setup")
            leave_unreported(again)
            calls = itertools.count()
            with replaced_body(again, between(again.obj, before, after, calls)):
                self._phase(again, "call")
            if (number := next(calls)) != 1:
                raise RepetitionFailed(_CALLED_AGAIN.format(number) if number else _NOT_CALLED)
            self._phase(again, "teardown")

    def trace_phases(self, trace: Any, wish: Any) -> None:
        """All phases once, with fresh fixtures; what ``wish`` says is recorded by ``trace``."""
        repeat_here()
        seed_random()
        again = self._renewed()
        again.stash[TRACE] = trace
        with trace if wish.marked and "setup" in wish.phases else nullcontext():
            self._phase(again, "setup")
        if wish.marked and "call" in wish.phases:
            with replaced_body(again, between(again.obj, trace.start, trace.stop)):
                self._phase(again, "call")
        else:
            self._phase(again, "call")
        with trace if wish.marked and "teardown" in wish.phases else nullcontext():
            self._phase(again, "teardown")

    def _phase(self, item: pytest.Function, when: Phase) -> None:
        # Reports are made though nobody reads them: fixtures ask how the phase before went.
        call = run_phase(item, when, self.sibling)
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        if not is_passed(report):
            if call.excinfo is not None and isinstance(call.excinfo.value, InstrcountError):
                raise call.excinfo.value
            raise RepetitionFailed(f"in {when}:\n{report.longreprtext}")

    def has_nothing_to_renew(self, reports: Sequence[Any]) -> bool:
        """A plain function, no fixture but its own parameters, and no hook that wants each call.

        One that has logged or printed is not: what hears it keeps that until the phase ends.
        """
        if self.item.cls is not None or inspect.iscoroutinefunction(self.item.obj):
            return False
        if any(each.sections for each in reports) or not _runs_as_usual(self.item):
            return False
        return is_left_alone(self.item, self._parameters())

    def _parameters(self) -> dict[str, Any]:
        """The values that ``@pytest.mark.parametrize`` hands to the function itself."""
        callspec = getattr(self.item, "callspec", None)
        values: dict[str, Any] = {}
        for mark in self.item.iter_markers("parametrize"):
            names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
            if isinstance(names, str):
                names = [name.strip() for name in names.split(",") if name.strip()]
            if not (len(mark.args) > 2 or mark.kwargs.get("indirect")):
                values |= {name: callspec.params[name] for name in names if callspec}
        return values


def _runs_as_usual(item: pytest.Function) -> bool:
    """Not of a kind of the project's own, nor with methods that a conftest gave it or all tests."""
    return all(getattr(item, name) == method.__get__(item) for name, method in _USUAL.items())


def first_call_of(item: pytest.Function) -> FirstCall:
    """What a test has at hand in each repetition: its globals, parameters, and fixtures not made anew."""
    definitions = fixture_info(item).name2fixturedefs
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    kept = {
        name: value
        for name, value in item.funcargs.items()
        if name in parameters or (name in definitions and definitions[name][-1].scope != "function")
    }
    return FirstCall(getattr(item.obj, "__func__", item.obj), (), kept)


@contextmanager
def noting_first(item: pytest.Function, counter: CallCounter, *, counted: bool) -> Iterator[None]:
    """Around the first call of a test: what no later one does. ``counted``: unless a fixture counts."""
    counter.first = first = first_call_of(item)
    around = counter.begin_first, counter.end_first
    if counted:
        leave_unreported(item)
    with replaced_body(item, between(item.obj, *around)) if counted else nullcontext():
        yield
    first.is_made()


def between(
    function: Callable[..., Any],
    before: Request,
    after: Request,
    calls: Iterator[int] = _NOT_NUMBERED,
) -> Callable[..., Any]:
    """The function with the two requests right before and right after its own code.

    From ``calls`` one is taken for each.
    """
    if inspect.iscoroutinefunction(function):
        # a trace is to go on where the event loop resumes it
        @functools.wraps(function)
        @transparent
        async def counted_coroutine(*args: Any, **kwargs: Any) -> Any:
            steady_loop()
            pending = pending_tasks()
            make_room()
            before()
            await function(*args, **kwargs)
            after()
            next(calls)
            note_left(pending)

        return counted_coroutine

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> None:
        make_room()
        before()
        result = function(*args, **kwargs)
        after()
        next(calls)
        if result is not None:  # what a plugin does with it is not counted
            refuse_unconsumed(result, function, args, kwargs)

    return counted
