"""Counting executed byte code with ``sys.monitoring`` (3.12+), around repetitions of one call.

A byte code is no instruction of a processor: it can cost a nanosecond or a second, and what C code
does is not seen at all. It depends on the version of Python, and on nothing of the machine.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

from pytest_instrcount.callgrind.inside.repeating import (
    CallCounter,
    Repeat,
    RepeatAwaited,
    Step,
    repeat_awaited,
    repeat_awaited_rounds,
)
from pytest_instrcount.callgrind.inside.seeding import RandomState, repeat_here
from pytest_instrcount.callgrind.repetition import rounds_of
from pytest_instrcount.counts.profile import Profile, Row, add_row
from pytest_instrcount.fixtures.rounds import Rounds

#: The first call has run by then; another fills what is left of its caches.
WARMUP = 2
CALLS = 1

#: Ours alone: 0 is for debuggers, 1 for coverage, 5 for optimizers; tracers of ours take 4 first.
_TOOL_IDS = (3, 4, 2)
_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep

_monitoring: Any = getattr(sys, "monitoring", None)


def _nothing() -> None:
    """In the place of a switch."""


async def _no_pause() -> None:
    """Nothing has to be left over to the loop."""


class Instructions:
    """Counts by code object, between ``on`` and ``off``; the code of this package is left out."""

    def __init__(self) -> None:
        self._ir: dict[int, int] = {}
        self._calls: dict[int, int] = {}
        #: what is counted by its address must not be another's
        self._codes: dict[int, CodeType] = {}
        self._tool = next(each for each in _TOOL_IDS if _monitoring.get_tool(each) is None)
        events = _monitoring.events
        self._events = events.INSTRUCTION | events.PY_START

    def __enter__(self) -> Instructions:
        _monitoring.use_tool_id(self._tool, "pytest-instrcount-bytecode")
        events = _monitoring.events
        _monitoring.register_callback(self._tool, events.INSTRUCTION, self._instruction)
        _monitoring.register_callback(self._tool, events.PY_START, self._start)
        return self

    def __exit__(self, *_: object) -> None:
        self.off()
        for event in (_monitoring.events.INSTRUCTION, _monitoring.events.PY_START):
            _monitoring.register_callback(self._tool, event, None)
        _monitoring.free_tool_id(self._tool)

    def on(self) -> None:
        """From now on it is counted, in all threads."""
        _monitoring.set_events(self._tool, self._events)

    def off(self) -> None:
        """No longer."""
        _monitoring.set_events(self._tool, 0)

    def take(self) -> Profile:
        """The counts since the last call, by function."""
        rows: dict[str, Row] = {}
        for address, ir in self._ir.items():
            code = self._codes[address]
            if not code.co_filename.startswith(_HERE):
                add_row(rows, name_of(code), Row(ir, self._calls.get(address, 0)))
        self._ir.clear()
        self._calls.clear()
        self._codes.clear()
        return Profile(sum(row.ir for row in rows.values()), rows)

    def _instruction(self, code: CodeType, offset: int) -> None:
        address = id(code)
        try:
            self._ir[address] += 1
        except KeyError:
            self._ir[address] = 1
            self._codes[address] = code

    def _start(self, code: CodeType, offset: int) -> None:
        address = id(code)
        self._calls[address] = self._calls.get(address, 0) + 1


def name_of(code: CodeType) -> str:
    """``file.py:qualified.name``, without the folder: a checkout can be anywhere.

    >>> name_of(name_of.__code__)
    'bytecode.py:name_of'
    """
    qualname: str = getattr(code, "co_qualname", code.co_name)
    return f"{os.path.basename(code.co_filename)}:{qualname}"


class BytecodeCounter(CallCounter):
    """Counts the repetitions of one call, twice; what ``callgrind.inside.child.Counter`` is to Callgrind.

    ``warmup`` and ``calls`` are what the user or the baseline says, None where neither does. All
    happens in this very process: what a repetition leaves behind is there for the next test.
    """

    def __init__(self, warmup: int | None, calls: int | None) -> None:
        self._warmup, self._calls = warmup, calls
        #: whether something was counted, or failed to be
        self.used = False
        #: warm-up calls and counted calls
        self.counted: tuple[int, int] | None = None
        #: the two counts; of unchanged work they are the same
        self.profiles: tuple[Profile, Profile] | None = None
        #: why there is no count
        self.error: BaseException | None = None

    def fork(self, work: Callable[[], None]) -> None:
        """Do the counting here: not every system has a fork."""
        self.attempt(work)

    def attempt(self, work: Callable[[], None], *, last: bool = False) -> None:
        """Do the counting, with its output shown to nobody; keep what is raised."""
        with self._attempting():
            work()

    @contextlib.contextmanager
    def _attempting(self) -> Iterator[None]:
        self.used = True
        hidden = io.StringIO()
        try:
            with contextlib.redirect_stdout(hidden), contextlib.redirect_stderr(hidden):
                yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # outcomes of pytest are no Exceptions
            self.error = error

    async def count_awaited(
        self, target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Count ``await target(*args, **kwargs)``, on the event loop that runs."""
        await self._await(repeat_awaited(target, args, kwargs, _no_pause))

    async def count_awaited_rounds(self, rounds: Rounds) -> None:
        """Count the awaited calls of ``pedantic``."""
        await self._await(
            repeat_awaited_rounds(rounds, _no_pause),
            warmup=rounds.warmup_rounds,
            rounds=rounds.rounds,
            iterations=rounds.iterations,
        )

    async def _await(self, repeat: RepeatAwaited, **how: Any) -> None:
        with self._attempting(), contextlib.closing(self.steps(**how)) as steps:
            for step in steps:
                await repeat(*step)

    def count(self, repeat: Repeat, **how: Any) -> None:
        """Take the ``steps`` of such a repetition."""
        with contextlib.closing(self.steps(**how)) as steps:
            for step in steps:
                repeat(*step)

    def steps(
        self,
        *,
        warmup: int | None = None,
        rounds: int | None = None,
        iterations: int = 1,
        once: bool = False,
    ) -> Generator[Step, None, None]:
        """Steps of a repetition: uncounted, then counted twice; the garbage collector is off meanwhile."""
        known = rounds_of(self._calls, iterations)
        wishes = (warmup, self._warmup, WARMUP), (rounds, known, CALLS)
        warmup, rounds = (next(each for each in row if each is not None) for row in wishes)
        repeat_here()
        state, collecting = RandomState.save(), gc.isenabled()
        try:
            with Instructions() as instructions:
                yield warmup, _nothing, _nothing
                gc.collect()
                gc.disable()
                yield rounds, instructions.on, instructions.off
                first = second = instructions.take()
                if not once:
                    yield rounds, instructions.on, instructions.off
                    second = instructions.take()
                self.profiles = first, second
        finally:
            if collecting:
                gc.enable()
            state.restore()
        self.counted = warmup, rounds * iterations
