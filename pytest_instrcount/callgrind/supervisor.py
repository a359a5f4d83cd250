"""The process between pytest and Valgrind: it starts the zygote, hands out work, watches, ends.

It is nobody's child (a test that calls ``os.wait()`` must not find it) and Valgrind's only
parent. It has one thread, waits in one place, and ends when pytest does, however pytest ends.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_instrcount.callgrind.channel import (
    REAP,
    Channel,
    ChannelClosed,
    ChannelGarbled,
    Message,
)
from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.callgrind.endings import (
    describe_popen,
    describe_status,
    read_lines,
    unaborted,
    wait_status_of,
    where_it_was,
)
from pytest_instrcount.callgrind.perf_map import take_names
from pytest_instrcount.callgrind.process import (
    Parent,
    Valgrind,
    abort,
    adopt_orphans,
    end_orphans,
    kill,
    own_children,
    start_valgrind,
)
from pytest_instrcount.callgrind.procfs import (
    ends_within,
    exit_status,
    exit_status_within,
    open_pidfd,
    state_of,
    wait_for_end,
)
from pytest_instrcount.callgrind.runs import (
    FileChild,
    FileKey,
    Run,
    Starting,
    Test,
    child_name,
    is_late,
)
from pytest_instrcount.callgrind.scratch import Scratch, folders_in, remove_tree, restore
from pytest_instrcount.callgrind.send_queue import Outbox
from pytest_instrcount.callgrind.settling import AGAIN, MOST_TRIES, Ended
from pytest_instrcount.callgrind.sweeping import Sweeper
from pytest_instrcount.callgrind.waiting import Waiting
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.patience import Patience

#: A zygote that dies so often without a single result in between will not do better next time.
_DEATHS_IN_A_ROW = 3

#: So many tests in a row that kill the zygote: it is not the tests.
_FELLED_IN_A_ROW = 10

#: A process that is out of time is told to abort, and has so long to write down where it was.
_LAST_WORDS_SECONDS = 5.0

#: The loop looks up so often; a clock that jumps by more has run while this process was stopped.
_GLANCE_SECONDS = 1.0


@dataclass(slots=True)
class Supervisor:
    """The event loop. ``native`` is the channel to pytest."""

    native: Channel
    setup: Message
    selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)
    #: by number, see ``runs.zygote_of``
    zygotes: dict[int, Valgrind] = field(default_factory=dict)
    starting: list[Starting] = field(default_factory=list)
    files: dict[FileKey, FileChild] = field(default_factory=dict)
    alone: list[FileChild] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    waiting: Waiting = field(default_factory=Waiting)
    deaths: int = 0
    restarted: set[int] = field(default_factory=set)
    #: Tests in a row that took the zygote with them, with no result in between.
    felled: int = 0
    #: When the loop last looked what there is.
    looked: float = 0.0
    refreshed: set[FileKey] = field(default_factory=set)
    #: How many zygotes were started in all.
    begun: int = 0
    #: How often the process that imports a file was killed.
    killed_imports: dict[FileKey, int] = field(default_factory=dict)
    #: What the zygotes are told, by file name.
    plans: dict[str, bytes] = field(default_factory=dict)
    outbox: Outbox = field(init=False)
    scratch: Scratch = field(init=False)
    sweeper: Sweeper = field(init=False)

    def __post_init__(self) -> None:
        self.outbox = Outbox(self.native.socket, self.selector)
        self.scratch = Scratch(Path(self.setup["scratch"]), self.setup["lock"])
        self.sweeper = Sweeper(Path(temporary_folder(str(self.scratch.path))))
        for path in self.scratch.path.glob("*.json"):
            self.plans[path.name] = path.read_bytes()

    @property
    def place(self) -> str:
        """Where the tests run, in words."""
        return str(self.setup["place"])

    # The loop.

    def run(self) -> None:
        """Serve until pytest says stop or ends."""
        self.selector.register(self.native, selectors.EVENT_READ, self.on_native)
        native = open_pidfd(self.setup["pid"])
        if native >= 0:
            self.selector.register(native, selectors.EVENT_READ, self.on_native_end)
        for number in range(1 + self.setup["layouts"]):
            self.start_zygote(number)
        try:
            self.take_orders()  # some may have come with the setup: no event will tell of them
            while True:
                self.schedule()
                for key, _ in self.wait_for_events():
                    if self.selector.get_map().get(key.fd) is key:
                        key.data()
                self.enforce_deadlines()
        except (ChannelClosed, _Stopped):
            pass
        except Exception:
            self.outbox.send({"kind": "broken", "why": traceback.format_exc()})
            raise
        finally:
            self.end_all()
            self.outbox.flush()

    def wait_for_events(self) -> list[tuple[selectors.SelectorKey, int]]:
        """What has happened, after a while at most; time in which this process did not look is nobody's."""
        seconds = self.seconds_to_deadline()
        if seconds is not None:
            seconds = min(seconds, _GLANCE_SECONDS)
        before = time.monotonic()
        events = self.selector.select(seconds)
        after = time.monotonic()
        late = before - self.looked
        if seconds is not None:
            late += max(0.0, after - before - seconds)
        if self.looked and late > _GLANCE_SECONDS:
            waited_for: list[Run | Starting | FileChild]
            waited_for = [*self.runs, *self.starting, *self.collecting()]
            for each in waited_for:
                each.deadline += late
        self.looked = after
        return events

    def on_native(self) -> None:
        self.native.fill()
        self.take_orders()

    def take_orders(self) -> None:
        while (message := self.native.pop()) is not None:
            if message["kind"] == "stop":
                raise _Stopped
            first = message["first"]
            for offset, order in enumerate(message["tests"]):
                self.waiting.put(Test(first + offset, order))

    def on_native_end(self) -> None:
        raise _Stopped

    def end_all(self) -> None:
        for each in [*self.zygotes.values(), *(start.valgrind for start in self.starting)]:
            each.end()
        for file in self.alone:
            file.valgrind.end()
        while own_children():  # each that ends may leave its own to us
            end_orphans(lambda pid: False)
        remove_tree(Path(self.setup["scratch"]))
        self.outbox.send({"kind": "cpu", "seconds": sum(os.times()[:4])})

    # Starting.

    def start_zygote(self, number: int, only: Test | None = None) -> None:
        self.begun += 1
        scratch = Path(self.setup["scratch"])
        self.restore_scratch()
        log = scratch / f"valgrind{self.begun:04}.log"
        output = scratch / f"output{self.begun:04}.log"
        plan = scratch / ("fork.json" if only is None else "once.json")
        command = [
            part.replace("{log}", str(log)).replace("{plan}", str(plan))
            for part in (*self.setup["command"], str(number))
        ]
        began, patience = time.monotonic(), Patience(self.setup["patience"])
        if only is None:
            self.sweeper.empty(number, in_use=bool(self.zygotes or self.alone or self.starting))
        try:
            valgrind = start_valgrind(
                command, self.setup["environment"], self.setup["folder"], log, output
            )
        except OSError as error:
            self.fatal(f"Valgrind could not be started: {error}")
            return
        self.sweeper.begin(valgrind.process.pid)
        start = Starting(number, valgrind, began + patience.usual, began, patience, only)
        self.starting.append(start)
        self.selector.register(
            valgrind.parent.channel, selectors.EVENT_READ, lambda: self.on_starting(start)
        )

    def on_starting(self, start: Starting) -> None:
        valgrind = start.valgrind
        try:
            valgrind.parent.channel.fill()
            message = valgrind.parent.channel.pop()
            if message is not None and message["kind"] == "hello":
                message = valgrind.parent.channel.pop()
            if message is None:
                return
        except (ChannelClosed, ChannelGarbled):
            message = {"kind": "unready", "why": ""}
        self.selector.unregister(valgrind.parent.channel)
        self.starting.remove(start)
        if message.get("kind") != "ready":
            self.on_unready(start, str(message.get("why", "")))
            return
        valgrind.threads, valgrind.compiled = message["threads"], message["compiled"]
        valgrind.started = message["started"]
        self.tell_spent(start.only, [("zygote start", start.began, time.monotonic())])
        if start.only is not None:
            self.open_alone(start.only, valgrind)
        elif self.compiled_at_start(start):
            # Byte code was written on the way: from now on it is read, and the heap is another.
            self.restarted.add(start.number)
            valgrind.end()
            self.sweeper.forget(valgrind.process.pid)
            self.start_zygote(start.number)
        else:
            self.zygotes[start.number] = valgrind
            self.selector.register(
                valgrind.parent.channel,
                selectors.EVENT_READ,
                lambda: self.on_zygote_end(valgrind),
            )
            self.sweeper.settle(valgrind.process.pid)
            if not start.number:
                self.outbox.send({"kind": "ready", "threads": valgrind.threads})

    def compiled_at_start(self, start: Starting) -> bool:
        """Whether a zygote is to be started once more, since the first start has written byte code."""
        if start.number in self.restarted or self.setup["dont_write_bytecode"]:
            return False
        return bool(start.valgrind.compiled)

    def on_unready(self, start: Starting, why: str) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            start.valgrind.process.wait(0 if why else _GLANCE_SECONDS)
        start.valgrind.end()
        self.sweeper.forget(start.valgrind.process.pid)
        status = describe_popen(start.valgrind.process.returncode)
        words = start.valgrind.last_words(start.valgrind.process.pid)
        text = "\n".join(filter(None, (why or f"the process {status}", words)))
        if start.only is not None:
            self.give_problem(start.only, f"no process of its own could be started: {text}")
        elif start.valgrind.process.returncode == -signal.SIGKILL and not self.deaths:
            self.deaths += 1  # somebody's doing, not Valgrind's: once more
            self.start_zygote(start.number)
        else:
            self.fatal(text)

    def fatal(self, why: str) -> None:
        self.outbox.send({"kind": "fatal", "why": why})
        raise _Stopped

    # Scheduling.

    def schedule(self) -> None:
        """Start as much as there are cores for, in the order in which pytest wants the results.

        What went down with others runs with none beside it: so it is known whose doing it was.
        """
        withheld = []
        while self.waiting and self.busy() < self.setup["jobs"]:
            if self.runs and (
                self.waiting.first.suspect or any(run.test.suspect for run in self.runs)
            ):
                break
            test = self.waiting.take()
            if not self.advance(test):
                withheld.append(self.waiting.withhold(test))
        for tests in withheld:
            self.waiting.put_back(tests)
        self.close_idle_files()

    def busy(self) -> int:
        collecting = sum(not file.collected for file in (*self.files.values(), *self.alone))
        starting = sum(start.only is not None or start.number > 0 for start in self.starting)
        return len(self.runs) + collecting + starting

    def advance(self, test: Test) -> bool:
        """Take the next step for a test; False if it has to wait for something."""
        if test.alone:
            self.start_zygote(test.zygote, test)
            return True
        zygote = self.zygotes.get(test.zygote)
        if zygote is None:
            self.have_started(test.zygote)
            return False
        forks = test.order["forks"]
        if zygote.threads > 1 and not forks:
            test.threads, test.started = True, zygote.started
            return self.advance(test)
        file = self.files.get(test.file)
        if file is None:
            self.open_file(test.file, zygote)
            return False
        if file.collected is None:
            return False
        if file.collected["threads"] > 1 and not file.collected["problem"] and not forks:
            test.threads, test.started = True, file.collected["started"]
            return self.advance(test)
        if self.check_collected(test, file):
            self.start_run(test, file)
        return True

    def have_started(self, number: int) -> None:
        """Start a zygote that is not on its way already."""
        if all(start.only or start.number != number for start in self.starting):
            self.start_zygote(number)

    def open_file(self, key: FileKey, zygote: Valgrind) -> None:
        try:
            parent = zygote.parent.fork()
        except ChannelClosed:
            self.on_zygote_end(zygote)
            return
        self.files[key] = self.begin_collecting(key, parent, zygote, None)

    def open_alone(self, test: Test, valgrind: Valgrind) -> None:
        parent = valgrind.parent.become()
        self.alone.append(self.begin_collecting(test.file, parent, valgrind, test))

    def begin_collecting(
        self, key: FileKey, parent: Parent, valgrind: Valgrind, only: Test | None
    ) -> FileChild:
        began, patience = time.monotonic(), Patience(self.setup["patience"])
        file = FileChild(key, parent, valgrind, began + patience.usual, began, patience, only)
        path, layout = key
        self.sweeper.begin(parent.pid)
        self.restore_scratch()
        parent.channel.send({"path": path, "child": child_name(path), "layout": layout})
        self.selector.register(parent.channel, selectors.EVENT_READ, lambda: self.on_file(file))
        return file

    def on_file(self, file: FileChild) -> None:
        try:
            file.parent.channel.fill()
            message = file.parent.channel.pop()
            if message is None:
                return
        except (ChannelClosed, ChannelGarbled):
            message = {"kind": "broken", "why": ""}
        if message.get("kind") != "collected":
            self.on_file_end(file, str(message.get("why", "")))
            return
        self.selector.unregister(file.parent.channel)
        spent = [("collection under Valgrind", file.began, time.monotonic())]
        self.tell_spent(file.only, spent)
        fresh = message["compiled"] > file.valgrind.compiled
        if fresh and file.only is None and file.key not in self.refreshed:
            self.refreshed.add(file.key)
            if not self.setup["dont_write_bytecode"]:
                self.close_file(file)
                return
        file.collected, file.ids = message, frozenset(message["ids"])
        self.sweeper.settle(file.parent.pid)
        if file.only is not None and self.check_collected(file.only, file):
            self.start_run(file.only, file)
        elif file.only is not None:
            self.close_file(file)

    def check_collected(self, test: Test, file: FileChild) -> bool:
        assert file.collected is not None
        nodeid = test.order["nodeid"]
        if nodeid in file.ids:
            return True
        problem = file.collected["problem"]
        if problem:
            self.give_problem(test, f"its file could not be collected {self.place}:\n{problem}")
        else:
            first = file.collected["ids"][:20]
            near = "\n".join(f"  {each}" for each in first) or "  (no test at all)"
            self.give_problem(
                test,
                f"here this test is {nodeid}\n{self.place} its file has\n{near}\n"
                "ids must be the same in every process: an id made from a set or an address is not",
            )
        return False

    # Running.

    def start_run(self, test: Test, file: FileChild) -> None:
        child = child_name(test.order["nodeid"], int(test.order["layout"]))
        self.restore_scratch()
        try:
            parent = file.parent.fork() if file.only is None else file.parent.become()
            parent.channel.send(
                {
                    "nodeid": test.order["nodeid"],
                    "child": child,
                    "pilot": int(test.order["pilot"]),
                    "verbose": test.order["verbose"],
                    "trace": int(test.order["trace"]),
                    "by_python": int(test.order["by_python"]),
                }
            )
        except ChannelClosed:
            self.waiting.put(test)
            self.on_file_end(file, "")
            return
        test.tries += 1
        file.running += 1
        deadline = time.monotonic() + test.order["timeout"]
        folder = Path(self.setup["scratch"], "dumps")
        started = {"started": time.monotonic()}
        run = Run(test, parent, file, deadline, child, folder, started)
        run.pidfd = open_pidfd(run.pid)
        self.runs.append(run)
        self.selector.register(run.channel, selectors.EVENT_READ, lambda: self.on_run(run))
        if run.pidfd >= 0:
            self.selector.register(run.pidfd, selectors.EVENT_READ, lambda: self.on_run_end(run))
        self.sweeper.begin(run.pid)
        self.outbox.send({"kind": "started", "index": test.index})

    def on_run(self, run: Run) -> None:
        try:
            run.channel.fill()
            self.take_all(run)
        except ChannelClosed:
            run.hung_up = run.pidfd >= 0 and not ends_within(run.pidfd, _GLANCE_SECONDS)
            self.on_run_end(run)

    def take_all(self, run: Run) -> None:
        """Take what the process of a test has said so far."""
        try:
            while (message := run.channel.pop()) is not None:
                run.take(message, self.setup["presentation"])
        except InstrcountError as error:
            run.failed = error.slug, error.why
        except (ChannelGarbled, KeyError, TypeError, ValueError):
            run.failed = "channel", "it wrote to a descriptor that is the plugin's"
        except OSError:  # it is gone, or has closed its end
            return
        if run.failed:
            raise ChannelClosed

    def on_run_end(self, run: Run) -> None:
        """The child is gone: give its result, or say how it ended."""
        if run not in self.runs:
            return
        self.restore_scratch()
        self.runs.remove(run)
        self.selector.unregister(run.channel)
        kill(run.pid)
        run.channel.socket.settimeout(0)
        try:
            while not run.failed:
                run.channel.fill()
                self.take_all(run)
        except (ChannelClosed, OSError):
            pass
        run.parent.close()
        if run.pidfd >= 0:
            self.selector.unregister(run.pidfd)
            os.close(run.pidfd)
        run.file.running -= 1
        status = self.wait_status(run)
        self.sweeper.forget(run.pid)
        self.tell_spent(run.test, run.spans())
        self.sweep(run)
        self.settle(run, status)
        self.words(run.child).unlink(missing_ok=True)

    def wait_status(self, run: Run) -> int | None:
        """The wait status of the child, from its parent; None if the parent is gone as well."""
        valgrind = run.file.valgrind
        if run.file.only is not None:
            valgrind.end()
            return wait_status_of(valgrind.process.returncode)
        wait_for_end(run.pid)
        status = exit_status(run.pid)
        try:
            run.file.parent.order(REAP)
        except ChannelClosed:
            return None
        return status

    def settle(self, run: Run, status: int | None) -> None:
        if run.file.only is not None:
            self.close_file(run.file)
        message = Ended(
            run,
            status,
            self.place,
            lambda: self.last_words(run),
            not self.setup["dont_write_bytecode"],
        ).message()
        if message is AGAIN:
            self.waiting.put(run.test)
            return
        if message["kind"] == "result":
            self.deaths = self.felled = 0
        self.outbox.send(message | {"index": run.test.index})

    def words(self, child: str) -> Path:
        """Where a child's faulthandler writes."""
        return Path(self.setup["scratch"], "dumps", f"words.{child}")

    def last_words(self, run: Run) -> str:
        """What Valgrind said of a test's process, and where the test was."""
        words = unaborted(read_lines(self.words(run.child)), run.timed_out)
        return "\n".join([*run.file.valgrind.said_of(run.pid), *where_it_was(words)])

    def sweep(self, run: Run) -> None:
        scratch = Path(self.setup["scratch"])
        remove_tree(Path(temporary_folder(str(scratch)), run.child))
        if run.test.order["by_python"]:
            maps = [take_names(int(pid), scratch / "dumps") for pid in (run.pid, run.counter)]
            run.names = [str(path) for path in maps if path is not None]
        run.keep_counted()
        known = {zygote.process.pid for zygote in self.zygotes.values()}
        known |= {start.valgrind.process.pid for start in self.starting}
        known |= {file.valgrind.process.pid for file in self.alone}
        self.sweeper.sweep_processes(known)
        self.sweeper.sweep_files({run.child for run in self.runs})

    def restore_scratch(self) -> None:
        """Make the folder of the run again if somebody has deleted it, or something in it."""
        scratch = self.scratch.path
        if all((scratch / name).exists() for name in folders_in(self.scratch.path)):
            return
        for run in self.runs:
            run.disturbed = True
        try:
            self.scratch = restore(self.scratch)
            for name, text in self.plans.items():
                (scratch / name).write_bytes(text)
        except (InstrcountError, OSError) as error:
            self.fatal(f"the folder for temporary files is gone, and cannot be made again: {error}")

    def tell_spent(self, test: Test | None, spans: list[tuple[str, float, float]]) -> None:
        """Say what took how long: seen from here, so that nobody under Valgrind reads a clock."""
        index = None if test is None else test.index
        self.outbox.send({"kind": "spent", "index": index, "spans": spans})

    def give_problem(
        self, test: Test, why: str, detail: str = "", slug: str = "not-measured"
    ) -> None:
        self.outbox.send(
            {"kind": "problem", "index": test.index, "slug": slug, "why": why, "detail": detail}
        )

    # Endings that nobody asked for.

    def on_zygote_end(self, zygote: Valgrind) -> None:
        """A zygote is gone, and all its children with it: the next test that needs it starts it afresh."""
        if zygote not in self.zygotes.values():
            return
        self.zygotes = {n: each for n, each in self.zygotes.items() if each is not zygote}
        self.selector.unregister(zygote.parent.channel)
        words = zygote.last_words(zygote.process.pid)
        zygote.end()
        self.sweeper.forget(zygote.process.pid)
        for file in list(self.files.values()):
            if file.valgrind is zygote:
                self.close_file(file)
        runs = [run for run in self.runs if run.file.valgrind is zygote]
        for run in runs:
            run.test.why = words
            kill(run.pid)
            self.on_run_end(run)
        self.count_death(runs)
        if self.deaths >= _DEATHS_IN_A_ROW or self.felled >= _FELLED_IN_A_ROW:
            self.fatal(f"the zygote died {self.begun} times\n{words}")

    def count_death(self, runs: Sequence[Run]) -> None:
        """Know that a zygote died, and which tests ran then."""
        if not runs:
            self.deaths += 1
        elif runs[0].test.tries >= MOST_TRIES:
            self.felled += 1

    def on_file_end(self, file: FileChild, why: str) -> None:
        """A file's child is gone before or between its tests."""
        said = file.valgrind.said_of(file.parent.pid)
        path = self.words(child_name(file.key[0]))
        words = "\n".join([*said, *where_it_was(unaborted(read_lines(path), file.why))])
        path.unlink(missing_ok=True)
        if file.collected is not None:
            self.close_file(file)
            return
        status = exit_status_within(file.parent.pid, _GLANCE_SECONDS)
        self.close_file(file)
        if status == signal.SIGKILL and not (why or file.why) and self.import_again(file):
            return
        how = "ended" if status is None else describe_status(status)
        text = why or file.why or f"the process that imported its file {how}"
        victims = [file.only] if file.only is not None else self.waiting.take_all(file.key)
        slug = "timeout" if file.why else "process-died"
        for test in victims:
            self.give_problem(test, text, words, slug=slug)

    def import_again(self, file: FileChild) -> bool:
        """Whether a file is imported once more: its process was killed, which is somebody's doing."""
        tries = self.killed_imports[file.key] = self.killed_imports.get(file.key, 0) + 1
        if tries < MOST_TRIES and file.only is not None:
            self.waiting.put(file.only)
        return tries < MOST_TRIES

    def close_file(self, file: FileChild) -> None:
        kill(file.parent.pid)
        self.sweeper.forget(file.parent.pid)
        if file.only is None:
            self.files.pop(file.key, None)
        elif file in self.alone:
            self.alone.remove(file)
            file.valgrind.end()
        if file.parent.channel.fileno() in self.selector.get_map():
            self.selector.unregister(file.parent.channel)
        file.parent.close()
        if file.valgrind in self.zygotes.values():
            try:
                file.valgrind.parent.order(REAP)
            except ChannelClosed:
                self.on_zygote_end(file.valgrind)

    def close_idle_files(self) -> None:
        for key, file in list(self.files.items()):
            if not self.waiting.wants(key) and not file.running:
                self.close_file(file)

    # Limits.

    def seconds_to_deadline(self) -> float | None:
        deadlines = [run.deadline for run in self.runs]
        deadlines += [start.deadline for start in self.starting]
        deadlines += [file.deadline for file in self.collecting()]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def collecting(self) -> list[FileChild]:
        return [f for f in (*self.files.values(), *self.alone) if f.collected is None]

    def enforce_deadlines(self) -> None:
        now = time.monotonic()
        for run in [run for run in self.runs if run.deadline <= now]:
            self.enforce_on_run(run, now)
        for file in [file for file in self.collecting() if is_late(file, now)]:
            self.enforce_on_file(file, now)
        for start in [start for start in self.starting if is_late(start, now)]:
            self.selector.unregister(start.valgrind.parent.channel)
            self.starting.remove(start)
            self.on_unready(start, f"pytest was not ready {self.place} within {start.patience}")

    def enforce_on_run(self, run: Run, now: float) -> None:
        if run.timed_out or state_of(run.counter or run.pid) == "T":  # a stopped one says nothing
            run.timed_out = True
            self.on_run_end(run)
            return
        run.timed_out, run.deadline = True, now + _LAST_WORDS_SECONDS
        if not abort(run.counter):  # which is at work, while the other waits for it
            abort(run.pid)

    def enforce_on_file(self, file: FileChild, now: float) -> None:
        if file.why:
            self.on_file_end(file, "")
            return
        file.why = f"importing its file took longer than {file.patience} {self.place}"
        file.deadline = now + _LAST_WORDS_SECONDS
        abort(file.parent.pid)


class _Stopped(Exception):
    """The loop has nothing more to do."""


def main(arguments: list[str]) -> None:
    """Leave the process that started us, then serve the socket whose descriptor we were given.

    The second argument is the folder of the run.
    """
    if os.fork():
        os._exit(0)
    sock = socket.socket(fileno=int(arguments[0]))
    sock.set_inheritable(False)
    adopt_orphans()
    native = Channel(sock)
    try:
        setup: Any = native.receive()
    except ChannelClosed:  # pytest was killed before it could say what it wants
        remove_tree(Path(arguments[1]))
        return
    Supervisor(native, setup).run()
