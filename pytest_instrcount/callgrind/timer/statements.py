"""The native side of ``statement``: a Python under Valgrind that counts statements on request."""

from __future__ import annotations

import atexit
import json
import marshal
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_instrcount.callgrind.channel import socket_pair
from pytest_instrcount.callgrind.command import python_command
from pytest_instrcount.callgrind.interpreter import own_options
from pytest_instrcount.callgrind.launch import write_listings
from pytest_instrcount.callgrind.timer.launch import Launch, out_of_time
from pytest_instrcount.callgrind.timer.statement import ASK, RESULT, STATUS_BYTES, TASK
from pytest_instrcount.errors import InstrcountError

_PACKAGE = Path(__file__).parents[2]
#: A process that waits for another statement ends by itself after so long.
_IDLE_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Order:
    """A statement in Python, and what is to be counted of it."""

    stmt: str
    setup: str
    #: name, set-up of its own, expression that makes it
    globals: tuple[tuple[str, str, str], ...]
    number: int
    repeats: int
    baseline: bool
    #: whether ``torch`` is there without an import
    torch: bool


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """The environment of a process under Valgrind; statements that share it can share a process."""

    valgrind: str
    executable: str
    environment: dict[str, str]
    folder: str
    sys_path: list[str]
    #: modules that are imported before any statement
    imports: list[str]
    #: whether modules that are compiled are written to ``__pycache__``
    dont_write_bytecode: bool


class _Closed(Exception):
    """The process is gone."""


class Server:
    """A Python under Valgrind that forks for each statement."""

    def __init__(self, context: LaunchContext) -> None:
        self.context = context
        self.launch = Launch(context.valgrind)
        self._line, theirs = socket_pair()
        try:
            plan = self.launch.path / "plan.json"
            environment = dict(context.environment)
            content = {
                "kind": "statements",
                "parent": os.getpid(),
                "scratch": str(self.launch.path),
                "idle_seconds": _IDLE_SECONDS,
                # on the interpreter's own path from its start, a folder would be listed
                "pythonpath": environment.pop("PYTHONPATH", ""),
                "sys_path": context.sys_path,
                "imports": context.imports,
                "dont_write_bytecode": context.dont_write_bytecode,
            }
            plan.write_text(json.dumps(content), encoding="utf-8")
            write_listings(self.launch.path, context.sys_path)
            command = python_command(context.executable, _PACKAGE, plan, own_options())
            self.launch.start(command, environment, context.folder, theirs.fileno())
        except BaseException:
            self.end()
            raise
        finally:
            theirs.close()

    def ask(self, order: Order, seconds: float, *, may_compile: bool) -> dict[str, Any]:
        """Have a statement counted; returns what the process told of it.

        Raises InstrcountError ``timeout`` or ``process-died``, and _Closed if there was no process.
        """
        self.launch.forget_dumps()
        result = self.launch.path / RESULT
        result.unlink(missing_ok=True)
        task = marshal.dumps(asdict(order) | {"may_compile": may_compile})
        (self.launch.path / TASK).write_bytes(task)
        self._line.settimeout(seconds)
        try:
            self._line.sendall(ASK)
            status = self._line.recv(STATUS_BYTES)
        except TimeoutError:
            raise out_of_time(seconds) from None
        except OSError as error:
            raise _Closed from error
        if not status:
            raise _Closed
        try:
            told: dict[str, Any] = marshal.loads(result.read_bytes())
        except (OSError, ValueError, EOFError):
            raise self.launch.died(int.from_bytes(status, "little")) from None
        return told

    def end(self) -> None:
        self._line.close()
        self.launch.end()


#: At most one: the last whose start was dear. Taken out while it is used.
_kept: list[Server] = []


def count_statement(context: LaunchContext, order: Order, seconds: float) -> list[str]:
    """Count a statement under Valgrind; returns the text of the dump of each repeat, and then of
    the baseline if one was ordered.

    A process that had to import something first is kept for the next statement. Raises
    InstrcountError ``statement`` with the traceback if the statement raised, ``timeout``,
    ``process-died``, or ``no-dump``.
    """
    # Python writes byte code when a file is first imported, and a process that compiled is not the
    # one that only reads: then it is all done again.
    for may_compile in (context.dont_write_bytecode, True):
        server, told = _ask_some(context, order, seconds, may_compile=may_compile)
        keeps = bool(context.imports) and told["kind"] != "compiled"
        try:
            if told["kind"] != "compiled":
                return _counted(server, order, told)
        finally:
            if keeps:
                _keep(server)
            else:
                server.end()
    raise AssertionError("a process that may compile has no reason to give up")


def _counted(server: Server, order: Order, told: dict[str, Any]) -> list[str]:
    if told["kind"] == "raised":
        name = told["loading"]
        raise InstrcountError(
            "statement",
            f"the statement raised under Valgrind\n{told['traceback']}",
            f"{name}=CopyIfCallgrind(..., setup='import what loading it needs')"
            if name
            else "timeit.timeit(stmt, setup, number=1)    # the same without Valgrind",
        )
    if told["kind"] == "ended":
        raise server.launch.died(told["status"])
    return server.launch.read_dumps(order.repeats + order.baseline)


def _ask_some(
    context: LaunchContext, order: Order, seconds: float, *, may_compile: bool
) -> tuple[Server, dict[str, Any]]:
    """Ask the kept process if it serves, else a new one."""
    kept = _kept.pop() if _kept else None
    if kept is not None:
        try:
            if kept.launch.ours and kept.launch.alive and kept.context == context:
                return kept, kept.ask(order, seconds, may_compile=may_compile)
        except _Closed:
            pass  # it has waited for too long, or was killed
        except BaseException:
            kept.end()
            raise
        kept.end()
    server = Server(context)
    try:
        return server, server.ask(order, seconds, may_compile=may_compile)
    except _Closed:
        died = server.launch.died(server.launch.wait_status())
        server.end()
        raise died from None
    except BaseException:
        server.end()
        raise


def _keep(server: Server) -> None:
    while _kept:
        _kept.pop().end()
    _kept.append(server)


@atexit.register
def end_kept() -> None:
    """End the process that waits for another statement, if there is one."""
    while _kept:
        _kept.pop().end()
