"""Inside Valgrind, without pytest: counting one statement in a fork, as often as it is asked for.

The root process imports what all its statements share and then only waits and forks. A fork runs
the set-up and the warm-up of one statement, and is forked itself for each repeat: all of them find
the same state, and leave none.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import linecache
import marshal
import os
import random
import resource
import signal
import sys
import traceback
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from pytest_instrcount.callgrind.requests import Requests, load_requests
from pytest_instrcount.callgrind.system_random import replace_system_random, seed_system
from pytest_instrcount.callgrind.timer.loop import (
    STATEMENT,
    hidden_name,
    statement_code,
    written_out,
)

#: Files in the scratch folder: what is to be counted, what came of it, and whose dumps they are:
#: a process id for each repeat, then one for the baseline. What is counted is the second dump of
#: a pair, the first is all that was before.
TASK, RESULT, DUMPS = "task", "result", "pids"
#: The byte that asks for the task; the answer is the status of the fork that did it, in so many bytes.
ASK = b"t"
STATUS_BYTES = 4

#: Runs that are not counted; as many as torch's Timer has.
WARM_UP = 10
_PR_SET_PDEATHSIG = 1

#: obmalloc.h; a bytes object has so many beside its own.
_POOL_BYTES = 16384
_BYTES_HEAD = sys.getsizeof(b"")


def main(plan: dict[str, Any], loader: Any) -> NoReturn:
    """Serve statements until the process that started this one is gone.

    ``loader`` counts the modules that had to be compiled.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != plan["parent"]:
        end()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    replace_system_random()
    for name in plan["imports"]:
        import_module(name)
    requests = load_requests()
    line = os.dup(0)
    _serve(line, plan["idle_seconds"])
    _die_with_parent()
    os.close(line)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _Run(plan["scratch"], requests, loader).run()
    end()


def _serve(line: int, idle_seconds: int) -> None:
    """Fork for each byte that comes; returns in the fork. Nothing that is made here is kept."""
    while True:
        signal.alarm(idle_seconds)
        if os.read(line, 1) != ASK:
            end()
        signal.alarm(0)
        pid = os.fork()
        if pid == 0:
            return
        _, status = os.waitpid(pid, 0)
        os.write(line, status.to_bytes(STATUS_BYTES, "little"))
        del pid, status  # before the next are made, which so take the very same places


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end() -> NoReturn:
    """End at once: nothing is finalised, and Callgrind writes no last dump."""
    while True:
        os.kill(os.getpid(), signal.SIGKILL)


class _Forked(BaseException):
    """All repeats were counted in forks: the code that was warmed up goes no further here."""


class _Run:
    """One statement, from its set-up to its dumps."""

    def __init__(self, scratch: str, requests: Requests, loader: Any) -> None:
        self._result = os.path.join(scratch, RESULT)
        self._dumps = os.open(os.path.join(scratch, DUMPS), os.O_WRONLY | os.O_CREAT, 0o600)
        self._requests = requests
        self._loader = loader
        with open(os.path.join(scratch, TASK), "rb") as file:
            self._task = marshal.load(file)
        self._namespace: dict[str, Any] = {}
        #: what lives on, so that memory stays as it is
        self._kept: list[object] = []
        #: whether this process is the fork of a repeat
        self._repeating = False
        #: the global that is being loaded
        self._loading = ""

    def run(self) -> None:
        """Count; where something raises, tell that instead."""
        try:
            self._set_up()
            if self._loader.compiled and not self._task["may_compile"]:
                self._tell({"kind": "compiled"})
            else:
                self._count()
        except BaseException as error:
            self._tell({"kind": "raised", "traceback": _shown(error), "loading": self._loading})

    def _set_up(self) -> None:
        task = self._task
        seed_system("")  # whatever was counted before
        module = sys.modules["__main__"] = ModuleType("__main__")
        namespace = self._namespace = module.__dict__
        namespace["__builtins__"] = builtins  # as in a script; exec() would give its dictionary
        _remember(STATEMENT, written_out(task["stmt"], task["number"]))
        if task["torch"]:
            namespace["torch"] = import_module("torch")
        for name, setup, value in task["globals"]:
            _execute(setup, namespace, f"<setup of {name}>")
            self._loading = name
            namespace[name] = eval(value, {})
            self._loading = ""
        random.seed(0)  # the fork has made a new one
        _execute(task["setup"], namespace, "<setup>")

    def _count(self) -> None:
        task, requests, namespace = self._task, self._requests, self._namespace
        number, repeats = task["number"], task["repeats"]
        ready, dump = hidden_name("ready"), hidden_name("dump")
        codes = [
            statement_code(
                stmt, number, min(number, WARM_UP), ready=ready, opened=dump, closed=dump
            )
            for stmt in (task["stmt"], "pass")
        ]
        calls = {ready: gc.collect, dump: requests.dump}
        namespace |= calls
        namespace[ready] = self._fork_repeats
        gc.collect()
        gc.freeze()
        # What is counted runs in frames that Callgrind saw begin. All else is dumped, too: calls
        # without a cost are not reset otherwise, and ZERO_STATS forgets branches.
        requests.start()
        requests.toggle()
        try:
            exec(codes[0], namespace)
        except _Forked:
            pass
        else:
            if self._repeating:
                return
            # Threads are alive, which no fork would have: the repeats follow one another.
            namespace[ready] = gc.collect
            self._note_dump(os.getpid())
            for _ in range(repeats - 1):
                exec(codes[0], namespace)
                self._note_dump(os.getpid())
        if task["baseline"]:
            exec(codes[1], calls)
            self._note_dump(os.getpid())
        self._tell({"kind": "counted"})

    def _fork_repeats(self) -> None:
        """After the warm-up: fork for each repeat. Returns in the forks, or if there can be none."""
        gc.collect()
        if _thread_count() > 1:
            return
        state = random.getstate()  # the module makes a new one in each fork
        self._kept += state, _make_room()
        for repeat in range(-1, self._task["repeats"]):
            pid = os.fork()
            if pid == 0:
                if repeat < 0:
                    end()  # it was for the parent to have forked before
                _die_with_parent()
                random.setstate(state)
                self._repeating = True
                return
            _, status = os.waitpid(pid, 0)
            if os.path.exists(self._result):
                end()  # the fork has told what it raised
            if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
                self._tell({"kind": "ended", "status": status})
                end()
            if repeat >= 0:
                self._note_dump(pid)
            del pid, status  # each fork finds what the one before it found
        raise _Forked

    def _note_dump(self, pid: int) -> None:
        os.write(self._dumps, b"%d\n" % pid)

    def _tell(self, result: dict[str, Any]) -> None:
        with open(self._result, "wb") as file:
            marshal.dump(result, file)


def _make_room() -> list[list[object]]:
    """Leave free blocks of every size in Python's allocator, as in a process that has lived a while.

    Where the last free block of a pool is taken and given back again and again, each time costs
    more: that was up to a tenth of a count. (To take what is free in libc's heap as well gave
    other counts, and no steadier ones.)
    """
    kept = []
    for size in range(16, 513, 16):
        number = range(1 << 20, (1 << 20) + 2 * _POOL_BYTES // size)
        made: list[object]
        if size < 48:
            made = [object() for _ in number] if size == 16 else [i + 1 for i in number]
        else:
            made = [bytes(size - _BYTES_HEAD) for _ in number]
        kept.append(made)
    for made in kept:
        for index in range(0, len(made), 2):
            made[index] = None  # the pool in which this is done last is the first to be used
    return kept


def _execute(source: str, namespace: dict[str, Any], name: str) -> None:
    _remember(name, source)
    exec(compile(source, name, "exec", dont_inherit=True), namespace)


def _remember(name: str, source: str) -> None:
    """Have tracebacks show lines of a source that is no file."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)


def _shown(error: BaseException) -> str:
    """The traceback, from the user's own code on."""
    entries = error.__traceback__
    while entries is not None and not entries.tb_frame.f_code.co_filename.startswith("<"):
        entries = entries.tb_next
    return "".join(
        traceback.format_exception(type(error), error, entries or error.__traceback__)
    ).rstrip()


def _thread_count() -> int:
    return len(os.listdir("/proc/self/task"))
