"""The native side: starts the supervisor, asks it for measurements, hands back what it says."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_instrcount.callgrind.channel import Channel, ChannelClosed, Message
from pytest_instrcount.callgrind.command import python_command, valgrind_command
from pytest_instrcount.callgrind.failing import broken_supervisor, why_and_remedy
from pytest_instrcount.callgrind.process import read_lines
from pytest_instrcount.callgrind.scratch import Scratch, remove_abandoned
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.account.current import current, keep_logs, phase, timed
from pytest_instrcount.host.account.timings import WAITING, Span

PACKAGE_FOLDER = Path(__file__).parents[1]

#: How often a waiting pytest looks up, in seconds: to show progress, and to see Ctrl-C.
_GLANCE_SECONDS = 0.25

_METADATA = (".dist-info", ".egg-info", ".egg", "EGG-INFO")


@dataclass(frozen=True, slots=True)
class Order:
    """What the supervisor has to know of one test."""

    nodeid: str
    path: str
    isolation: str
    timeout: float
    warmup: int | None
    calls: int | None
    #: Whether the number of repetitions has to be found.
    pilot: bool
    verbose: int
    #: In which layout of memory: 0 is the usual one, see ``layout.disturb``.
    layout: int = 0
    #: Fork it although threads are alive: its baseline was made without them.
    forks: bool = False
    #: Count calls by tracing, in the place of instructions; asked of a zygote without Valgrind.
    trace: bool = False
    #: By Python function; asked of a zygote that was started for it.
    by_python: bool = False


@dataclass(frozen=True, slots=True)
class ZygoteSetup:
    """How the zygote is started. ``options`` are pickled, each by itself."""

    #: the program, or "" for a zygote that runs natively
    valgrind: str
    environment: dict[str, str]
    folder: str
    options: list[tuple[str, str]]
    args: list[str]
    sys_path: list[str]
    presentation: dict[str, Any]
    #: seconds for the start, and for the import of a file, on a usual machine
    patience: float
    jobs: int
    #: more options for Valgrind
    options_of_valgrind: tuple[str, ...] = ()
    #: module of a finder for an editable install -> table -> what it is to hold
    editable: Mapping[str, Any] = field(default_factory=dict)
    #: the folder of this plugin, where ``sys_path`` may lead to another copy of it; else ""
    own_package: str = ""
    #: whether layouts other than the usual one will be asked for: their zygote starts at once, too
    layouts: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A test that could not be measured, and why."""

    slug: str
    why: str
    detail: str

    def remedy(self, test: str) -> str:
        """What to type, if there is something; ``test`` as it is to be typed."""
        if self.slug == "timeout":
            return f"give it longer: pytest --instrcount --instrcount-timeout=SECONDS {test}"
        if self.slug == "process-died":
            return f"pytest {test}    (without --instrcount: does it end there, too?)"
        if self.slug == "profile-damaged":
            return "df -h; free -h    (is there space?)"
        return ""


class ZygoteFailed(InstrcountError):
    """No zygote could be started, or none stays alive."""


class Zygote:
    """The measuring side of a run. Started at once, asked later, always to be ended."""

    def __init__(self, setup: ZygoteSetup, scratch: Scratch) -> None:
        self._scratch = scratch
        self._inode = os.fstat(scratch.lock).st_ino
        self._results: dict[int, Message | Problem] = {}
        self._sent = 0
        self._purpose = _purpose()
        #: what each was asked for, and of which test
        self._asked: list[tuple[str, str]] = []
        self.ready = False
        self.running: set[int] = set()
        try:
            self._channel = _open_supervisor(setup, scratch)
        except BaseException as error:
            scratch.remove()
            if isinstance(error, (OSError, subprocess.SubprocessError)):
                raise InstrcountError(
                    "scratch",
                    f"nothing can be started in {scratch.path}: {error}",
                    "df -h; ulimit -a    (is there space, and are there descriptors?)",
                ) from error
            raise
        finally:
            os.close(scratch.lock)  # the supervisor has it, and ends last
        self._place = "under Valgrind" if setup.valgrind else "in a process that counts calls"
        self._counts = bool(setup.valgrind)
        command = [
            *(
                valgrind_command(
                    setup.valgrind, scratch.path, Path("{log}"), setup.options_of_valgrind
                )
                if setup.valgrind
                else ()
            ),
            *python_command(sys.executable, PACKAGE_FOLDER, Path("{plan}")),
        ]
        environment = dict(setup.environment)
        environment.pop("PYTHONPATH", None)
        self._channel.send(
            {
                "kind": "start",
                "pid": os.getpid(),
                "command": command,
                "environment": environment,
                "folder": setup.folder,
                "scratch": str(scratch.path),
                "lock": scratch.lock,
                "presentation": setup.presentation,
                "patience": setup.patience,
                "place": self._place,
                "jobs": setup.jobs,
                "layouts": int(setup.layouts),
                "dont_write_bytecode": sys.dont_write_bytecode,
            }
        )

    def ask(self, orders: Sequence[Order]) -> int:
        """Ask for measurements; returns the number under which the first result can be had."""
        first = self._sent
        self._sent += len(orders)
        purpose = _purpose()
        self._asked += [(purpose, order.nodeid) for order in orders]
        tests = [asdict(order) for order in orders]
        with contextlib.suppress(ChannelClosed):  # wait() says why
            self._channel.send({"kind": "measure", "first": first, "tests": tests})
        return first

    def wait(self, index: int, glance: Callable[[], None]) -> Message | Problem:
        """Wait for one result. ``glance`` is called a few times a second meanwhile.

        Raises ZygoteFailed when no zygote can be had.
        """
        with phase(WAITING):
            self._wait(lambda: index in self._results, glance)
        return self._results.pop(index)

    def wait_ready(self, glance: Callable[[], None] = lambda: None) -> None:
        """Wait until it could measure. Raises ZygoteFailed when no zygote can be had."""
        self._wait(lambda: self.ready, glance)

    def _wait(self, is_there: Callable[[], bool], glance: Callable[[], None]) -> None:
        self._channel.socket.settimeout(_GLANCE_SECONDS)
        while not is_there():
            try:
                self._take(self._channel.receive())
            except TimeoutError:
                glance()
            except ChannelClosed as error:
                said = "\n".join(read_lines(self._scratch.path / "supervisor.log")[-5:])
                raise ZygoteFailed("zygote-failed", *broken_supervisor(said)) from error
        self._channel.socket.settimeout(None)

    def _take(self, message: Message) -> None:
        kind = message["kind"]
        if kind == "ready":
            self.ready = True
        elif kind == "fatal":
            told = why_and_remedy(message["why"], self._place, valgrind=self._counts)
            raise ZygoteFailed("zygote-failed", *told)
        elif kind == "broken":
            raise ZygoteFailed("zygote-failed", *broken_supervisor(message["why"]))
        elif kind == "started":
            self.running.add(message["index"])
        elif kind == "spent":
            self._note_spent(message["index"], message["spans"])
        else:
            self.running.discard(message["index"])
            self._results[message["index"]] = (
                message["result"]
                if kind == "result"
                else Problem(message["slug"], message["why"], message["detail"])
            )

    def _note_spent(self, index: int | None, spans: Sequence[tuple[str, float, float]]) -> None:
        account = current()
        purpose, nodeid = (self._purpose, "") if index is None else self._asked[index]
        if account is not None:
            for name, start, end in spans:
                account.spent(Span(purpose or name, start, end), nodeid)

    @timed("end of Valgrind")
    def end(self) -> None:
        """End everything that was started and remove the scratch folder. Waits until it is so."""
        keep_logs(self._scratch.path)
        self._channel.socket.settimeout(None)
        try:
            self._channel.send({"kind": "stop"})
            while True:
                message = self._channel.receive()
                if message["kind"] == "spent":
                    self._note_spent(message["index"], message["spans"])
                elif message["kind"] == "cpu" and (account := current()) is not None:
                    account.cpu_beside += message["seconds"]
        except ChannelClosed:
            pass
        self._channel.close()
        remove_abandoned(self._scratch.path, self._inode)


def _open_supervisor(setup: ZygoteSetup, scratch: Scratch) -> Channel:
    """Write down what the zygotes will be, and start who starts them."""
    # On the interpreter's own path before its import system is ours, a folder would be listed.
    _write_plan(setup, scratch.path, setup.environment.get("PYTHONPATH", ""))
    ours, theirs = socket.socketpair()
    try:
        _start_supervisor(theirs, scratch)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return Channel(ours)


def _purpose() -> str:
    """What is asked for now, in the account of the run."""
    account = current()
    return account.timings.purpose if account is not None else ""


def _write_plan(setup: ZygoteSetup, scratch: Path, pythonpath: str) -> None:
    """Tell the zygote what it is: one that forks rehearses, one that is a single test does not."""
    plan = {
        "sys_path": setup.sys_path,
        "pythonpath": pythonpath,
        "options": setup.options,
        "args": setup.args,
        "scratch": str(scratch),
        "dont_write_bytecode": sys.dont_write_bytecode,
        "editable": setup.editable,
        "own_package": setup.own_package,
        "installed": {folder: installed_in(folder) for folder in setup.sys_path},
    }
    for name, rehearse in (("fork", True), ("once", False)):
        text = json.dumps(plan | {"rehearse": rehearse})
        (scratch / f"{name}.json").write_text(text, encoding="utf-8")


def installed_in(folder: str) -> list[str]:
    """Names of the metadata folders of what is installed in a folder of ``sys.path``.

    A zip file holds no plugin: it counts as empty.
    """
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(_METADATA))


def _start_supervisor(sock: socket.socket, scratch: Scratch) -> None:
    """Start it in a session of its own. It leaves us at once: no child of ours stays behind."""
    code = (
        # in the place of the folder that it is started in, whose files are none of the library's
        f"import sys; sys.path[:] = [*sys.path[1:], {str(PACKAGE_FOLDER.parent)!r}]; "
        "from pytest_instrcount.callgrind.supervisor import main; main(sys.argv[1:])"
    )
    with (scratch.path / "supervisor.log").open("wb") as output:
        subprocess.run(
            [sys.executable, "-S", "-c", code, str(sock.fileno()), str(scratch.path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[sock.fileno(), scratch.lock],
            start_new_session=True,
            check=True,
        )
