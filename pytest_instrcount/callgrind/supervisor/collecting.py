"""Files: imported and collected in a process each, which then forks for each of its tests."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pytest_instrcount.callgrind.channel import REAP, ChannelClosed
from pytest_instrcount.callgrind.endings import (
    describe_status,
    read_lines,
    unaborted,
    where_it_was,
)
from pytest_instrcount.callgrind.messages import FromFile
from pytest_instrcount.callgrind.orders import FileOrder
from pytest_instrcount.callgrind.process import Parent, Valgrind, abort, kill
from pytest_instrcount.callgrind.supervisor.runs import (
    FileChild,
    FileKey,
    Test,
    child_name,
    is_late,
)
from pytest_instrcount.callgrind.supervisor.settling import MOST_TRIES
from pytest_instrcount.callgrind.supervisor.state import (
    LAST_MOMENT_SECONDS,
    LAST_WORDS_SECONDS,
    State,
    next_message,
)
from pytest_instrcount.host.patience import Patience
from pytest_instrcount.host.procfs import exit_status_within

#: Tests of a file that are named where one of them is not found.
_MOST_NAMED = 20
_LIMITED = ": are processes limited (ulimit -u)?"


@dataclass(slots=True)
class Files:
    """The processes that have a file imported, or are about to.

    ``on_alone`` is called with a file that is collected for a single test.
    """

    state: State
    on_alone: Callable[[FileChild, Test], None]
    open: dict[FileKey, FileChild] = field(default_factory=dict)
    #: those that have a process of their own below no zygote
    alone: list[FileChild] = field(default_factory=list)
    _recompiled: set[FileKey] = field(default_factory=set)
    #: how often the process of a file was killed since a test was forked of it
    killed: Counter[FileKey] = field(default_factory=Counter)

    def fork(self, key: FileKey, zygote: Valgrind) -> None:
        """Have a file imported in a fork of the zygote. Raises ChannelClosed if that has died."""
        self.open[key] = self._begin(key, zygote.parent.fork(), zygote, None)

    def begin_alone(self, test: Test, valgrind: Valgrind) -> None:
        """Have the file of a test imported in a process that belongs to it."""
        try:
            parent = valgrind.parent.become()
        except ChannelClosed:  # killed before its first order
            valgrind.end()
            self.state.sweeper.forget(valgrind.process.pid)
            if not self.state.put_again(test):
                why = "its process was killed before its file was imported"
                self.state.give_problem(test, why, slug="process-died")
            return
        self.alone.append(self._begin(test.file, parent, valgrind, test))

    def collecting(self) -> list[FileChild]:
        """Those that are not imported yet."""
        return [each for each in (*self.open.values(), *self.alone) if each.collected is None]

    def has(self, test: Test, file: FileChild) -> bool:
        """True if a test was found in its file; if not, its problem is given."""
        assert file.collected is not None
        nodeid, place, ids = test.order.nodeid, self.state.place, file.ids
        if ids.get(nodeid) == test.order.case:
            return True
        problem = file.collected["problem"]
        if nodeid not in ids and problem:
            self.state.give_problem(test, f"its file could not be collected {place}:\n{problem}")
            return False
        near = "\n".join(f"  {each}" for each in [*ids][:_MOST_NAMED]) or "  (no test at all)"
        found = f"{nodeid} is {ids[nodeid]}" if nodeid in ids else f"its file has\n{near}"
        here = f"{nodeid} is {test.order.case}" if nodeid in ids else f"this test is {nodeid}"
        self.state.give_problem(
            test,
            f"here {here}\n{place} {found}\nids must be the same in every process: an id made from a "
            "set, an address, or a place among all tests is not",
        )
        return False

    def close(self, file: FileChild) -> None:
        """End the process of a file; it does not matter whether that has been done."""
        if file.closed:
            return
        file.closed = True
        self.state.sweeper.forget(file.parent.pid)
        self.state.ignore(file.parent.channel)
        file.parent.close()
        if file.only is not None:
            self.alone.remove(file)
            file.valgrind.end()
            return
        del self.open[file.key]
        kill(file.parent.pid)
        with contextlib.suppress(ChannelClosed):  # whose end is noticed by itself
            file.valgrind.parent.order(REAP)

    def close_idle(self) -> None:
        """End those that no test waits for."""
        for key, file in list(self.open.items()):
            if not self.state.waiting.wants(key) and not file.running:
                self.close(file)

    def has_forked(self, zygote: Valgrind) -> bool:
        """True if one was forked of this zygote."""
        return any(file.valgrind is zygote for file in self.open.values())

    def close_below(self, zygote: Valgrind) -> None:
        """End those that were forked of this zygote."""
        for file in list(self.open.values()):
            if file.valgrind is zygote:
                self.close(file)

    def end_all(self) -> None:
        """End the processes below no zygote."""
        for file in self.alone:
            file.valgrind.end()

    def end_late(self, now: float) -> None:
        """Have those that are out of time say where they are; end those that were told so."""
        for file in [file for file in self.collecting() if is_late(file, now)]:
            if file.why:
                self.give_up(file, "")
                continue
            file.why = f"importing its file took longer than {file.patience} {self.state.place}"
            file.deadline = now + LAST_WORDS_SECONDS
            abort(file.parent.pid)

    def give_up(self, file: FileChild, why: str) -> None:
        """The process of a file is gone, before its tests or between them."""
        if file.closed:
            return
        words = self._take_last_words(file)
        status = exit_status_within(file.parent.pid, LAST_MOMENT_SECONDS)
        self.close(file)
        why = why or file.why
        between = file.collected is not None
        if (between or (status == signal.SIGKILL and not why)) and self._may_import_again(file):
            return
        how = "ended" if status is None else describe_status(status)
        if between:
            why = f"the process of its file {how} when it was to fork{_LIMITED}"
        self._give_problem(file, why or f"the process that imported its file {how}", words)

    def _give_problem(self, file: FileChild, why: str, words: str) -> None:
        """Say of the tests of a file why they cannot be measured."""
        victims = [file.only] if file.only else self.state.waiting.take_all(file.key)
        slug = "timeout" if file.why else "process-died"
        for test in victims:
            self.state.give_problem(test, why, words, slug=slug)

    def _take_last_words(self, file: FileChild) -> str:
        """The last messages of Valgrind about a file's process, and where its import was."""
        path = self.state.words(child_name(*file.key))
        said = file.valgrind.said_of(file.parent.pid)
        said += where_it_was(unaborted(read_lines(path), file.why))
        path.unlink(missing_ok=True)
        return "\n".join(said)

    def _begin(
        self, key: FileKey, parent: Parent, valgrind: Valgrind, only: Test | None
    ) -> FileChild:
        began, patience = time.monotonic(), Patience(self.state.setup.patience)
        file = FileChild(key, parent, valgrind, began + patience.usual, began, patience, only)
        path, layout = key
        self.state.sweeper.begin(parent.pid)
        self.state.restore_scratch()
        with contextlib.suppress(ChannelClosed):  # as it is if it was killed: that is noticed next
            order: FileOrder = {"path": path, "child": child_name(*key), "layout": max(0, layout)}
            parent.channel.send(order)
        self.state.listen(parent.channel, lambda: self._take(file))
        return file

    def _take(self, file: FileChild) -> None:
        """Read a message of a file's process: the tests that it has collected."""
        message: FromFile | None = next_message(file.parent.channel)
        if message is None:
            return
        if message["kind"] != "collected":
            self.give_up(file, message["why"] if message["kind"] == "broken" else "")
            return
        self.state.ignore(file.parent.channel)
        spent = [("collection under Valgrind", file.began, time.monotonic())]
        self.state.tell_spent(file.only, spent)
        compiled = file.only is None and message["compiled"] > file.valgrind.compiled
        if compiled and self.state.writes_byte_code and file.key not in self._recompiled:
            self._recompiled.add(file.key)
            self.close(file)  # its tests still wait for it, and it is begun again
            return
        file.collected, file.ids = message, message["ids"]
        self.state.sweeper.settle(file.parent.pid)
        if file.only is None:
            return
        if self.has(file.only, file):
            self.on_alone(file, file.only)
        else:
            self.close(file)

    def _may_import_again(self, file: FileChild) -> bool:
        """True if a file is imported once more: its process was killed, which is somebody's doing."""
        if file.only is not None:
            return self.state.put_again(file.only)
        self.killed[file.key] += 1
        return self.killed[file.key] < MOST_TRIES
