"""Event loops in a fork: what asyncio forgets there, and what a fork would share with its parent."""

from __future__ import annotations

import math
import re
import select
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import CodeType
from typing import Any

from pytest_instrcount.callgrind.real import os

#: One registration in ``/proc/self/fdinfo/N`` of an epoll object: descriptor, events, data.
_REGISTERED = re.compile(rb"tfd: +([0-9]+) +events: +([0-9a-f]+) +data: +([0-9a-f]+)")
_MOST_BYTES = 1 << 16

#: What asyncio's loops let a step take in debug mode, until they are told otherwise.
_SLOW_SECONDS = 0.1

#: Names of coroutines that go on after a counted call.
_LEFT: set[str] = set()


def hold_loops() -> Callable[[], None]:
    """To be called before a fork; what it returns is called in the child, which then has the loops.

    From 3.12 on asyncio forgets in a child the running loop, the one that was set, and the
    descriptor that signals are written to; before that the running loop is hidden by the pid. The
    selectors of parent and child would be one: what the child gives up, the parent would not hear.
    """
    if "asyncio" not in sys.modules and "trio" not in sys.modules:
        return _keep_nothing
    events: Any = sys.modules.get("asyncio.events")
    loop = running_asyncio_loop()
    local = getattr(getattr(events, "_event_loop_policy", None), "_local", None)
    wakeup = signal.set_wakeup_fd(-1)
    if wakeup >= 0:
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)

    def take_along() -> None:
        if local is not None:
            events._event_loop_policy._local = local
        if loop is not None:
            events._set_running_loop(loop)
        if wakeup >= 0:
            signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        own_selectors()

    return take_along


def _keep_nothing() -> None:
    """There is no loop."""


def running_asyncio_loop() -> Any:
    """The loop of asyncio that runs in this thread; None if there is none."""
    events: Any = sys.modules.get("asyncio.events")
    return None if events is None else events._get_running_loop()


def pending_tasks() -> set[Any]:
    """The tasks of the running loop of asyncio that are not done, but for the one that asks."""
    if running_asyncio_loop() is None:
        return set()
    asyncio: Any = sys.modules["asyncio"]
    tasks: set[Any] = asyncio.all_tasks()
    return tasks - {asyncio.current_task()}


def note_left(before: set[Any]) -> None:
    """Note the tasks that a counted call has left: they may do all of its work."""
    tasks = pending_tasks() - before
    _LEFT.update(getattr(task.get_coro(), "__qualname__", "a coroutine") for task in tasks)


def remarks_on_left() -> list[str]:
    """What a verdict is to say of such tasks."""
    text = "goes on in a task after the call has returned, which is not counted"
    return [f"{name} {text}" for name in sorted(_LEFT)]


def own_selectors() -> None:
    """Put in the place of each epoll object of this process another with the same registrations.

    The texts that the kernel writes differ in length from run to run; they stay in one buffer.
    """
    text = bytearray(_MOST_BYTES)
    for descriptor in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            info = os.open(f"/proc/self/fdinfo/{descriptor}", os.O_RDONLY)
        except OSError:
            continue
        size = os.readv(info, [text])
        os.close(info)
        found = [tuple(map(bytes, match.groups())) for match in _REGISTERED.finditer(text, 0, size)]
        if found:
            _replace(descriptor, found)


def _replace(descriptor: int, registered: list[tuple[bytes, ...]]) -> None:
    with select.epoll() as selector:
        for target, events, data in registered:
            if int(data, 16) & 0xFFFFFFFF != int(target):
                return  # not one of Python's, nor of libuv's: it could not be registered as it was
            with suppress(OSError):  # a descriptor that was closed and lives on in another process
                selector.register(int(target), int(events, 16))
        os.dup2(selector.fileno(), descriptor, inheritable=False)


def steady_loop() -> None:
    """Have the running loop not look at the clock: in debug mode asyncio logs what took it long."""
    loop = running_asyncio_loop()
    if hasattr(loop, "slow_callback_duration"):
        loop.slow_callback_duration = math.inf


def steady_loops() -> None:
    """The same for each loop that asyncio makes from now on, so that set-ups are not logged, either.

    The limit is a constant in the code: a loop costs what it did.
    """
    events: Any = sys.modules.get("asyncio.base_events")
    if events is None:
        return
    start = events.BaseEventLoop.__init__
    code = getattr(start, "__code__", None)
    if isinstance(code, CodeType):  # nobody has put something else in its place
        constants = (math.inf if each == _SLOW_SECONDS else each for each in code.co_consts)
        start.__code__ = code.replace(co_consts=tuple(constants))


def find_pause() -> Callable[[], Awaitable[object]]:
    """Find a function that gives the running event loop one turn: of trio, asyncio, or neither."""
    trio: Any = sys.modules.get("trio")
    if trio is not None:
        with suppress(RuntimeError):
            trio.lowlevel.current_task()
            return trio.lowlevel.cancel_shielded_checkpoint  # type: ignore[no-any-return]
    if running_asyncio_loop() is not None:
        asyncio: Any = sys.modules["asyncio"]
        return lambda: asyncio.sleep(0)
    return _no_pause


async def _no_pause() -> None:
    """Go on."""
