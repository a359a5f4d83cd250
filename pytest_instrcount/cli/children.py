"""Child processes of a traced program: each is traced, and leaves its calls in a private folder.

A child that is forked begins a trace of its own. One that is started is led to a ``sitecustomize`` of
ours by ``PYTHONPATH``, which stands in its environment alone, and not in ``os.environ``.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import pickle
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter_ns, sleep
from typing import Any
from zipfile import ZipFile

from pytest_instrcount.cli.traced import Exports, trace_options, tree_lines
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.text import cut
from pytest_instrcount.trace.own import transparent
from pytest_instrcount.trace.program import TaskFinder
from pytest_instrcount.trace.timeline import Timeline, printable
from pytest_instrcount.trace.tracer import Tracer

_NAME = "PYTHONPATH"
#: Characters of a command, and of the line of other ones.
_LONGEST = 100
#: Started by multiprocessing for itself; what the second forks is the program's.
_HELPERS = "multiprocessing.resource_tracker", "multiprocessing.forkserver"
_SITE = """\
import os, sys
rest = [each for each in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if each != {site!r}]
if any(rest):
    os.environ["PYTHONPATH"] = os.pathsep.join(rest)
sys.path[:] = [each for each in sys.path if each != {site!r}]
del sys.modules["sitecustomize"]
try:
    import sitecustomize  # the user's, if there is one
finally:
    if (sys.hexversion, sys.prefix) == {python!r} and os.path.exists({site!r}):
        sys.path.append({root!r})
        try:
            from pytest_instrcount.cli.children import Children
        finally:
            sys.path.remove({root!r})
        Children.in_child({folder!r})
"""


@dataclass(frozen=True, slots=True)
class Process:
    """The trace of a child."""

    pid: int
    #: its name in multiprocessing, or its command
    command: str
    started_ns: int
    lines: list[str]
    #: empty if no files were asked for
    timeline: Timeline
    #: pid -> command of what it has started
    started: dict[int, str]


class Children:
    """Follows the children of this process, which may be one itself."""

    def __init__(self, chosen: argparse.Namespace, folder: Path) -> None:
        self._chosen, self._folder, self._site = chosen, folder, folder / "site.zip"
        self._pid, self._forked_by = os.getpid(), 0
        self._is_main = self._is_over = False
        self._tracer: Tracer | None = None
        self._exports: Exports | None = None
        #: traces of the process that this one was forked by: to free them would take its time
        self._kept: list[object] = []
        self._started: dict[int, str] = {}

    @classmethod
    def in_main(
        cls, chosen: argparse.Namespace, tracer: Tracer, exports: Exports | None
    ) -> Children:
        """For the process that runs the program, and what it is traced by."""
        if not hasattr(os, "fork"):
            raise InstrcountError(
                "trace-children", "--children needs a system with fork", "leave --children out"
            )
        children = cls(chosen, Path(tempfile.mkdtemp(prefix="pytest-instrcount-")))
        children._is_main, children._tracer, children._exports = True, tracer, exports
        # Python writes no byte code for what is in an archive
        site, folder = str(children._site), str(children._folder)
        python, root = (sys.hexversion, sys.prefix), str(Path(__file__).parents[2])
        with ZipFile(site, "w") as archive:
            text = _SITE.format(site=site, folder=folder, root=root, python=python)
            archive.writestr("sitecustomize.py", text)
        (children._folder / "chosen").write_bytes(pickle.dumps(chosen))
        children._follow()
        return children

    @classmethod
    def in_child(cls, folder: str) -> None:
        """For a process that was started."""
        try:
            chosen = pickle.loads(Path(folder, "chosen").read_bytes())
        except OSError:  # the program has ended
            return
        children = cls(chosen, Path(folder))
        children._follow()
        atexit.register(children.finish)
        if not _is_helper(sys.orig_argv):
            sys.addaudithook(children._at_audit)

    def _follow(self) -> None:
        import _posixsubprocess  # not on each system

        os.putenv(_NAME, self._path(os.environ.get(_NAME, "")))
        leave = os._exit

        def leave_at_once(status: int) -> None:
            self.finish()
            leave(status)

        names: Any = vars(os)
        names["_exit"], names["kill"] = leave_at_once, _waking(os.kill)
        for name in ("posix_spawn", "posix_spawnp"):
            names[name] = self._announced(names[name], 1, 2)
        start = vars(_posixsubprocess)["fork_exec"] = self._announced(
            _posixsubprocess.fork_exec, 0, 5
        )
        if "subprocess" in sys.modules:
            vars(sys.modules["subprocess"])["_fork_exec"] = start
        os.register_at_fork(after_in_child=self._after_fork)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._end_by_signal)
            signal.signal(signal.SIGURG, lambda *_: None)  # see _waking

    def _announced(
        self, starter: Callable[..., int], arguments_at: int, env_at: int
    ) -> Callable[..., int]:
        """A function that starts a process, and takes these arguments."""

        @transparent
        def start(*args: Any, **options: Any) -> int:
            if args[env_at] is None:
                os.putenv(_NAME, self._path(os.environ.get(_NAME, "")))
            else:
                env = self._environment(args[env_at])
                args = (*args[:env_at], env, *args[env_at + 1 :])
            pid = starter(*args, **options)
            arguments = list(map(os.fsdecode, args[arguments_at]))
            if not self._is_over and not _is_helper(arguments):
                self._started[pid] = _command_of(arguments)
            return pid

        return start

    def _path(self, others: str) -> str:
        return f"{self._site}{os.pathsep}{others}" if others else str(self._site)

    def _environment(self, given: Any) -> Any:
        """The environment with our path: a mapping, or a list of b"NAME=value"."""
        listed = not isinstance(given, Mapping)
        pairs = (each.split(b"=", 1) for each in given) if listed else given.items()
        env = {os.fsencode(name): value for name, value in pairs}
        name = os.fsencode(_NAME)
        env[name] = os.fsencode(self._path(os.fsdecode(env.get(name, ""))))
        return [*map(b"=".join, env.items())] if listed else env

    def _at_audit(self, event: str, _: object) -> None:
        # what Python imports after our sitecustomize is no call of the program
        if self._tracer is None and event.startswith("cpython.run_"):
            self._begin()

    def _begin(self) -> None:
        self._exports = Exports(self._chosen) if self._chosen.export else None
        self._tracer = Tracer(trace_options(self._chosen))
        TaskFinder(self._tracer).__enter__()
        try:
            self._tracer.start()
        except InstrcountError:  # another profiler is active
            self._tracer = None

    def _after_fork(self) -> None:
        if self._is_over:
            return
        if self._tracer is not None:
            self._tracer.abandon()
            self._kept.append(self._tracer)
        if self._exports is not None:
            self._exports.abandon()
        self._tracer, self._started, self._is_main = None, {}, False
        self._forked_by, self._pid = self._pid, os.getpid()
        self._begin()

    def _end_by_signal(self, number: int, frame: object) -> None:
        self.finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def finish(self) -> None:
        """Of a child, write what it has recorded, once; of the program, leave nothing."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until all is written
        try:
            if self._pid != os.getpid():  # only just forked
                pass
            elif self._is_main:
                shutil.rmtree(self._folder, ignore_errors=True)
            else:
                self._write()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _write(self) -> None:
        tracer, self._tracer, self._is_over = self._tracer, None, True
        if tracer is None:
            return
        timeline, command = Timeline(), self._command()
        try:
            columns = tracer.stop()
            lines = tree_lines(columns, self._chosen)
            if self._exports is not None:
                timeline = _of_process(self._exports.timeline(columns), self._pid, command)
            started_ns = columns.stats.started_ns
        except InstrcountError as error:
            lines, started_ns = [str(error)], perf_counter_ns()
        process = Process(self._pid, command, started_ns, lines, timeline, self._started)
        path = self._folder / f"{perf_counter_ns()}-{self._pid}"
        with contextlib.suppress(OSError):  # the program has ended
            path.write_bytes(pickle.dumps(process))
            path.rename(path.with_suffix(".process"))

    def _command(self) -> str:
        module = sys.modules.get("multiprocessing.process")
        name = "MainProcess" if module is None else module.current_process().name
        if name != "MainProcess":
            return str(name)
        return f"fork of {self._forked_by}" if self._forked_by else _command_of(sys.orig_argv)

    def collect(self, lines: list[str]) -> list[Timeline]:
        """The children's timelines, in order of their start; adds their trees to the lines."""
        self._is_over = True
        found: list[Process] = [
            pickle.loads(path.read_bytes()) for path in self._folder.glob("*.process")
        ]
        self.finish()
        found.sort(key=lambda process: process.started_ns)
        started, traced = dict(self._started), {process.pid for process in found}
        for process in found:
            lines += ["", f"process {process.pid}, {process.command}:", *process.lines]
            started |= process.started
        others = [started[pid] for pid in sorted(started) if pid not in traced]
        if others:
            said = f"no trace of {len(others)} other processes: {'; '.join(others)}"
            lines += ["", said[: 2 * _LONGEST]]
        return [process.timeline for process in found]


def _waking(kill: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """``os.kill``; a child that is terminated just as it begins to wait is waked, to handle that.

    Python handles a signal between two instructions, or when it interrupts a wait. By default SIGURG
    does nothing.
    """

    def kill_and_wake(pid: int, number: int, /) -> None:
        kill(pid, number)
        for pause in (0.002, 0.02) if number == signal.SIGTERM and pid > 0 else ():
            sleep(pause)
            with contextlib.suppress(OSError):  # it is gone
                kill(pid, signal.SIGURG)

    return kill_and_wake


def _of_process(timeline: Timeline, pid: int, command: str) -> Timeline:
    """The timeline with the number of the process at each track."""
    tracks = [
        replace(track, name=f"{track.name}, process {pid}", node_id=pid)
        for track in timeline.tracks
    ]
    return replace(timeline, tracks=tuple(tracks), commands=((pid, command),))


def _command_of(arguments: Sequence[str]) -> str:
    return cut(printable(shlex.join([os.path.basename(arguments[0]), *arguments[1:]])), _LONGEST)


def _is_helper(arguments: Sequence[str]) -> bool:
    return any(f"from {name} import" in each for each in arguments for name in _HELPERS)
