"""Records of the supervisor: tests, the processes that run them, and their messages."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pytest_instrcount.callgrind.channel import REPETITION, Channel
from pytest_instrcount.callgrind.messages import Broken, Collected, EndedResult, FromTest
from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.process import Parent, Valgrind
from pytest_instrcount.callgrind.repetition import (
    LONG_WAIT_SECONDS,
    choose_repetition,
    read_pilot,
    rounds_of,
)
from pytest_instrcount.counts.noise import MOST_OTHER_LAYOUTS
from pytest_instrcount.counts.totals import is_whole, read_total
from pytest_instrcount.host.patience import Patience
from pytest_instrcount.host.procfs import seconds_at_work

#: A test file, and the layout of memory in which it is imported.
FileKey: TypeAlias = tuple[str, int]

#: So many zygotes fork the layouts of memory other than the usual one, in turn: they have filled their
#: memory before their first import, and what they have imported lies alike in all layouts of one of them.
_OTHER_ZYGOTES = 4


def zygote_of(layout: int) -> int:
    """The number of the zygote that a layout is forked of.

    So many layouts as a gate measures need no other zygotes; those of a benchmark do. Each hash seed
    has its own, of a negative number.

    >>> [zygote_of(layout) for layout in range(-2, 10)]
    [-2, -1, 0, 1, 2, 3, 4, 1, 2, 3, 4, 5]
    """
    again, turn = divmod(layout - 1, MOST_OTHER_LAYOUTS)
    return 1 + _OTHER_ZYGOTES * again + turn % _OTHER_ZYGOTES if layout > 0 else layout


@dataclass(slots=True, eq=False)
class Test:
    """One test to measure, as pytest asked for it."""

    index: int
    order: Order
    tries: int = 0
    recompiled: bool = False
    threads: bool = False
    #: who the threads were that kept it from being forked
    started: Sequence[str] = ()
    #: Whether it went down with others, and may have been the cause.
    suspect: bool = False
    #: What killed the zygote under it, the last time.
    why: str = ""

    @property
    def path(self) -> str:
        return self.order.path

    @property
    def file(self) -> FileKey:
        """The child that can run it: one for each layout of memory."""
        return self.path, self.order.layout

    @property
    def zygote(self) -> int:
        """The number of the zygote that it is forked of."""
        return zygote_of(self.order.layout)

    @property
    def alone(self) -> bool:
        """True if it needs a process of its own."""
        return self.threads or self.order.isolation == "process"


@dataclass(slots=True, eq=False)
class FileChild:
    """A fork of the zygote that has one test file imported."""

    key: FileKey
    parent: Parent
    valgrind: Valgrind
    deadline: float
    #: When its import began, and how long it may take.
    began: float
    patience: Patience
    #: Set where the whole process belongs to one test.
    only: Test | None = None
    collected: Collected | None = None
    #: the ids of its tests, each with what `case_of` says, once it is collected
    ids: Mapping[str, str] = field(default_factory=dict)
    running: int = 0
    #: Set when its import is out of time.
    why: str = ""
    closed: bool = False


@dataclass(slots=True, eq=False)
class Run:
    """One test that is being measured now: what its process says, is told, and leaves behind."""

    test: Test
    parent: Parent
    file: FileChild
    deadline: float
    child: str
    #: Where Callgrind writes its dumps.
    folder: Path
    #: When it was forked, and when it said what, on the clock of `time.monotonic`.
    times: dict[str, float]
    pidfd: int = -1
    result: EndedResult | Broken | None = None
    timed_out: bool = False
    #: Whether it closed its end of the channel and went on.
    hung_up: bool = False
    #: How often the folder of the run had been deleted before, and whether it was meanwhile.
    disturbances: int = 0
    disturbed: bool = False
    #: Slug and words for what it did to the plugin's own files and descriptors.
    failed: tuple[str, str] | None = None
    piloted: bool = False
    #: The process that counts, a fork of the child or the child itself.
    counter: int = 0
    #: Warm-up and rounds that the test itself wants, and how many calls make a round.
    insists: tuple[int | None, int | None] = (None, None)
    iterations: int = 1
    #: When the pilot began: on the clock, and as `seconds_at_work` has it.
    pilot_began: tuple[float, float | None] = (0.0, None)
    #: Seconds of one call that is not repeated since it waits; 0 of one that is.
    once: float = 0.0
    #: Warm-up and rounds that it was told to make.
    chosen: tuple[int, int] = (0, 0)
    #: Instructions of the first call, where it was counted, and the dumps that it left to the counting process.
    first_ir: int = 0
    earlier: int = 0
    counted: list[int] | None = None
    wanted_dumps: list[int] = field(default_factory=list)
    counted_dumps: list[str] = field(default_factory=list)
    #: Which address stands for which Python function, where that was asked for.
    names: list[str] = field(default_factory=list)
    problem: str = ""
    #: how many processes the counted call started and waited for; None if it did neither
    offspring: int | None = None
    remarks: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return self.parent.pid

    @property
    def channel(self) -> Channel:
        return self.parent.channel

    def take(self, message: FromTest, presentation: dict[str, Any]) -> None:
        """One message of the process; ``presentation`` is what it is told when it asks."""
        self.times[message["kind"]] = time.monotonic()
        if message["kind"] == "pilot":
            self.counter = int(message["pid"])
            self.insists = message["warmup"], message["rounds"]
            self.iterations = message["iterations"]
            self.pilot_began = time.monotonic(), seconds_at_work(self.counter)
            if self.test.order.by_python:
                self._take_first()
        elif message["kind"] == "ask":
            self.answer_pilot()
        elif message["kind"] == "counted":
            self.note_count()
        elif message["kind"] == "problem":
            self.problem = message["why"]
        elif message["kind"] == "offspring":
            self.offspring = message["number"]
        elif message["kind"] == "remark":
            self.remarks.append(message["text"])
        elif message["kind"] == "presentation":
            self.channel.send(presentation)
        else:
            self.result = message

    def _take_first(self) -> None:
        self.earlier = len(self.dumps())
        dump = self.folder / f"out.{self.pid}.1"
        if dump.exists():
            self.first_ir = read_total(dump)
            if self.counter != self.pid:
                dump.unlink()

    def answer_pilot(self) -> None:
        """Say how often to repeat: as the test insists, as the order says, or by the pilot's count."""
        order = self.test.order
        self.piloted = order.pilot and None in self.insists
        total = read_pilot(self.dumps()) if self.piloted else 0
        wanted = order.warmup, rounds_of(order.calls, self.iterations)
        warmup, rounds = (
            mine if mine is not None else theirs
            for mine, theirs in zip(self.insists, wanted, strict=True)
        )
        began, work = self.pilot_began
        seconds, worked = time.monotonic() - began, seconds_at_work(self.counter)
        known = self.piloted and work is not None and worked is not None
        waited = seconds - (worked - work) if known else 0.0  # type: ignore[operator]
        chosen = self.chosen = choose_repetition(total, warmup, rounds, waited)
        if waited >= LONG_WAIT_SECONDS:
            self.once = seconds
        self.channel.socket.sendall(REPETITION.pack(*chosen))

    def note_count(self) -> None:
        """Know the dumps that count (``Counter.count`` says which there are), and what is in them."""
        warmup, rounds = self.chosen
        self.counted = [warmup, rounds * self.iterations]
        first = self.earlier + (3 if self.piloted else 1)
        self.wanted_dumps = list(range(first, first + 2 * rounds + 1, 2))

    def spans(self) -> list[tuple[str, float, float]]:
        """Time spans of its phases, from its messages and, after a pilot, its dumps."""
        begin, end = self.times["started"], time.monotonic()
        first, last = self.times.get("pilot", end), self.times.get("counted", end)
        found = [("fixtures", begin, first), ("fixtures", last, end)]
        warm = self._warm_at() if self.piloted and "counted" in self.times else None
        if warm is None:
            return [*found, ("warm-up and count", first, last)]
        warm = min(max(warm, first), last)
        return [*found, ("warm-up", first, warm), ("count", warm, last)]

    def _warm_at(self) -> float | None:
        """When the last dump before the count was made; None without one."""
        try:
            written = self.dumps()[2].stat().st_mtime
        except (OSError, IndexError):
            return None
        return time.monotonic() - (time.time() - written)

    def dumps(self) -> list[Path]:
        """The dumps of a child, in the order in which they were made."""
        stem = self.folder / f"out.{self.counter}"
        found: list[Path] = []
        while (path := stem.with_name(f"{stem.name}.{len(found) + 1}")).exists():
            found.append(path)
        return found

    @property
    def has_all_dumps(self) -> bool:
        """True if all that it counted is there: the disk may have been full, or its folder deleted."""
        whole = [path for path in self.counted_dumps if is_whole(Path(path))]
        return len(whole) == len(self.wanted_dumps)

    def stubs(self) -> list[Path]:
        """The empty files that Callgrind opens for each process, and leaves when it is killed."""
        return [self.folder / f"out.{pid}" for pid in (self.pid, self.counter)]

    def keep_counted(self) -> None:
        """Delete all that Callgrind wrote but the dumps that count.

        These get names of this run: until they are read, another process may have the same id.
        """
        for number, path in enumerate(self.dumps()):
            if number in self.wanted_dumps:
                kept = self.folder / f"counted.{self.test.index}.{number + 1}"
                with contextlib.suppress(FileNotFoundError):
                    self.counted_dumps.append(str(path.rename(kept)))
            else:
                path.unlink(missing_ok=True)
        for path in self.stubs():
            path.unlink(missing_ok=True)


@dataclass(slots=True, eq=False)
class Starting:
    """A Valgrind process on its way to its first order; ``only`` is set where it is for one test."""

    number: int
    valgrind: Valgrind
    deadline: float
    began: float
    patience: Patience
    only: Test | None = None


def is_late(each: Starting | FileChild, now: float) -> bool:
    """True if its time is over, with all that a slow machine is given, and on ``deadline``."""
    if each.deadline <= now and not (isinstance(each, FileChild) and each.why):
        each.deadline += each.patience.more()
    return each.deadline <= now


def child_name(name: str, layout: int = 0) -> str:
    """The name of a child: the same in every run, since tests may use it in paths and names.

    Other layouts have others: they run side by side.
    """
    text = f"{name}\0{layout}" if layout else name
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
