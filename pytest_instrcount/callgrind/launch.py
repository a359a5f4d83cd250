"""Starts the supervisor, and writes the plans that the zygotes read."""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_instrcount.callgrind.channel import Channel, socket_pair
from pytest_instrcount.host.programs import run_program

PACKAGE_FOLDER = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class ZygoteSetup:
    """Settings with which a zygote is started. ``options`` are pickled, each by itself."""

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
    #: with which Python is started
    options_of_python: tuple[str, ...] = ()
    #: module of a finder for an editable install -> table -> what it is to hold
    editable: Mapping[str, Any] = field(default_factory=dict)
    #: the folder of this plugin, where ``sys_path`` may lead to another copy of it; else ""
    own_package: str = ""
    #: whether layouts other than the usual one will be asked for: their zygote starts at once, too
    layouts: bool = False
    #: metadata folders of what has the plugins that are loaded; None where those are no folders
    plugins: Sequence[str] | None = ()


def open_supervisor(parent: Path) -> tuple[Channel, str]:
    """Start who makes a folder for the run in ``parent``, and deletes it, also when pytest is killed.

    Returns what it said, too, before it had a place for that.
    """
    ours, theirs = socket_pair()
    try:
        said = _start_supervisor(theirs, parent)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return Channel(ours), said


def write_plan(setup: ZygoteSetup, scratch: Path) -> None:
    """Tell the zygote what it is: one that forks rehearses, one that is a single test does not."""
    plan = {
        "sys_path": setup.sys_path,
        # on the interpreter's own path before its import system is ours, a folder would be listed
        "pythonpath": setup.environment.get("PYTHONPATH", ""),
        "options": setup.options,
        "args": setup.args,
        "scratch": str(scratch),
        "dont_write_bytecode": sys.dont_write_bytecode,
        "editable": setup.editable,
        "own_package": setup.own_package,
        "counts": bool(setup.valgrind),
        "plugins": setup.plugins,
    }
    write_listings(scratch, setup.sys_path)
    (scratch / "installed").mkdir()
    for name, found in installed_in(setup.sys_path).items():
        (scratch / "installed" / name).write_text(json.dumps(found), encoding="utf-8")
    for name, rehearse in (("fork", True), ("once", False)):
        text = json.dumps(plan | {"rehearse": rehearse})
        (scratch / f"{name}.json").write_text(text, encoding="utf-8")


def write_listings(scratch: Path, folders: Iterable[str]) -> None:
    """Tell site what it looks for in folders of ``sys.path``, be they its own or not.

    Coverage's file reads variables that no test has, and does nothing.
    """
    listed: dict[str, list[str]] = {folder: [] for folder in folders}
    for folder, names in listed.items():
        with contextlib.suppress(OSError):
            found = [each for each in os.listdir(folder) if each.endswith((".pth", ".start"))]
            names += sorted({*found} - {"a1_coverage.pth"})
    (scratch / "site").write_bytes(marshal.dumps(listed))


def installed_in(folders: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """Name of a distribution, as ``importlib.metadata`` looks for it -> folder of ``sys.path``, metadata in it.

    What is installed altogether is under ".all". A zip file holds no plugin: it counts as empty.
    """
    found: dict[str, list[tuple[str, str]]] = {".all": []}
    library: Any = metadata  # no type knows its index
    for folder in folders:
        if not os.path.isdir(folder or "."):
            continue
        for name, paths in library.Lookup(library.FastPath(folder)).infos.items():
            for path in paths:
                found[".all"].append((folder, str(path)))
                if name:  # not so where pip was interrupted
                    found.setdefault(name, []).append((folder, str(path)))
    return found


def _start_supervisor(sock: socket.socket, parent: Path) -> str:
    """Start it in a session of its own. It leaves us at once: no child of ours stays behind."""
    code = (
        # in the place of the folder that it is started in, whose files are none of the library's
        f"import sys; sys.path[:] = [*sys.path[1:], {str(PACKAGE_FOLDER.parent)!r}]; "
        "from pytest_instrcount.callgrind.supervisor.main import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-S", "-c", code, str(sock.fileno()), str(parent)]
    done = run_program(command, None, pass_fds=[sock.fileno()])
    done.check_returncode()
    return (done.stdout + done.stderr).decode(errors="replace")
