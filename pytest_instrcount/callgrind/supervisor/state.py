"""State that all parts of the supervisor share."""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_instrcount.callgrind.channel import Channel, ChannelClosed, ChannelGarbled
from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.callgrind.messages import SpanOf
from pytest_instrcount.callgrind.orders import Start
from pytest_instrcount.callgrind.scratch import Scratch, folders_in, restore
from pytest_instrcount.callgrind.supervisor.runs import Test
from pytest_instrcount.callgrind.supervisor.send_queue import SendQueue, Stopped
from pytest_instrcount.callgrind.supervisor.settling import MOST_TRIES
from pytest_instrcount.callgrind.supervisor.sweeping import Sweeper
from pytest_instrcount.callgrind.supervisor.waiting import Waiting
from pytest_instrcount.errors import InstrcountError

#: Between the end of a process's channel and its own.
LAST_MOMENT_SECONDS = 1.0
#: A process that is out of time is told to abort, and has so long to write down where it was.
LAST_WORDS_SECONDS = 5.0


@dataclass(slots=True)
class State:
    """The run's setup and folder, the tests that wait, and what is listened to."""

    setup: Start
    send_queue: SendQueue
    selector: selectors.BaseSelector
    scratch: Scratch
    waiting: Waiting = field(default_factory=Waiting)
    sweeper: Sweeper = field(init=False)
    #: how often somebody has deleted the folder of the run, or something in it
    disturbances: int = 0
    #: what pytest wrote for the zygotes: contents of files
    _plans: dict[Path, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.sweeper = Sweeper(Path(temporary_folder(str(self.folder))))
        self._plans = {
            path: path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and path.suffix != ".log"  # our own words are no plan
        }

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.scratch.path

    @property
    def place(self) -> str:
        """The place where tests run, in words."""
        return self.setup.place

    @property
    def writes_byte_code(self) -> bool:
        """True if byte code that is missing is written."""
        return not self.setup.dont_write_bytecode

    def words(self, child: str) -> Path:
        """The file to which a child's faulthandler writes."""
        return self.folder / "dumps" / f"words.{child}"

    def listen(self, source: Channel | int, answer: Callable[[], None]) -> None:
        """Call ``answer`` whenever there is something to read."""
        self.selector.register(source, selectors.EVENT_READ, answer)

    def ignore(self, source: Channel | int) -> None:
        """Listen no more; it does not matter whether it was listened to, or is closed."""
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(source)

    def restore_scratch(self) -> None:
        """Make the folder of the run again if somebody has deleted it, or something in it."""
        if all((self.folder / name).exists() for name in folders_in(self.folder)):
            return
        self.disturbances += 1
        try:
            self.scratch = restore(self.scratch)
            for path, text in self._plans.items():
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(text)
        except (InstrcountError, OSError) as error:
            self.fatal(f"the folder for temporary files is gone, and cannot be made again: {error}")

    def put_again(self, test: Test) -> bool:
        """Have a test wait again after its process was killed too early; False if that was tried enough."""
        test.tries += 1
        if test.tries < MOST_TRIES:
            self.waiting.put(test)
        return test.tries < MOST_TRIES

    def tell_spent(self, test: Test | None, spans: list[SpanOf]) -> None:
        """Say what took how long: seen from here, so that nobody under Valgrind reads a clock."""
        index = None if test is None else test.index
        self.send_queue.send({"kind": "spent", "index": index, "spans": spans})

    def give_problem(
        self, test: Test, why: str, detail: str = "", slug: str = "not-measured"
    ) -> None:
        """Say why a test cannot be measured."""
        self.send_queue.send(
            {"kind": "problem", "index": test.index, "slug": slug, "why": why, "detail": detail}
        )

    def fatal(self, why: str) -> None:
        """Say why nothing can be measured. Raises Stopped."""
        self.send_queue.send({"kind": "fatal", "why": why})
        raise Stopped


def next_message(channel: Channel) -> Any:
    """Read from a channel that is ready: returns a message, or None for an incomplete one.

    A greeting is passed over. A channel that is closed, or on which something else came, gives a
    message of kind ``gone``.
    """
    try:
        channel.fill()
        message = channel.pop()
        return channel.pop() if message and message["kind"] == "hello" else message
    except (ChannelClosed, ChannelGarbled):
        return {"kind": "gone"}
