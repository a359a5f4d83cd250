"""``trace``: a program run under the tracer; its tree of calls is printed, and written for viewers."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_instrcount.cli.run import FAILED, Said, print_said, run_command
from pytest_instrcount.cli.traced import FORMATS, Exports, trace_options, tree_lines
from pytest_instrcount.host.text import escape_controls
from pytest_instrcount.trace.filters import absolute
from pytest_instrcount.trace.program import load_module, load_script, run_program
from pytest_instrcount.trace.tracer import Tracer

if TYPE_CHECKING:
    from pytest_instrcount.cli.children import Children
    from pytest_instrcount.cli.doctor.command import Commands

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

_DESCRIPTION = (
    "Run a script, folder, archive or module as python would, and print the tree of what it calls, "
    "with times: your code, and what it calls of libraries. Exit code: that of the program; 2 if it "
    "cannot be run, or a file cannot be written."
)


def add_trace(commands: Commands) -> None:
    """Declare the command."""
    _declare(
        commands.add_parser(
            "trace",
            allow_abbrev=False,
            help="run a script or a module, and print the tree of what it calls",
            description=_DESCRIPTION,
        )
    )


def main() -> int:
    """Run this command alone, which imports nothing that the others need; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pytest_instrcount trace", allow_abbrev=False, description=_DESCRIPTION
    )
    _declare(parser)
    return run_command(parser.parse_args(sys.argv[2:]))


def _declare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "-m",
        "--module",
        action="store_true",
        help="PROGRAM is the name of a module, as of python -m",
    )
    add("--all", action="store_true", help="show what libraries call, too, and the shortest lines")
    add("--c-calls", action="store_true", help="trace builtin functions and methods, too")
    add(
        "--arguments",
        action="store_true",
        dest="with_arguments",
        help="record what Python functions are called with, for files of chrome and json; by the "
        "core in Python",
    )
    add("--returns", action="store_true", help="record what they return, too")
    add(
        "--include",
        metavar="PATTERN",
        type=absolute,
        action="append",
        default=[],
        help='record functions like "app.db:*" alone, or of files like "src/*"; what others call is '
        "called by their callers (repeatable)",
    )
    add(
        "--ignore",
        metavar="PATTERN",
        type=absolute,
        action="append",
        default=[],
        help="do not record these; what they call is called by their callers (repeatable)",
    )
    add("--max-depth", metavar="N", type=_depth, default=0, help="record so many levels")
    add(
        "--min-duration",
        metavar="TIME",
        type=_nanoseconds,
        default=0,
        help='do not record calls that take less, like "10us", and call nothing that takes more',
    )
    add("--children", action="store_true", help="trace child processes, too: each has a tree")
    add("--depth", metavar="N", type=_depth, help="show so many levels")
    add(
        "--least",
        metavar="TIME",
        type=_nanoseconds,
        help='leave out lines that take less in sum, like "1ms" (default: 0.1%% of all)',
    )
    add(
        "--export",
        metavar="FORMAT:PATH",
        type=_export,
        action="append",
        default=[],
        help=f"also write a file, .gz or not; formats: {', '.join(FORMATS)} (repeatable)",
    )
    add("program", metavar="PROGRAM", help="path of a script, folder or archive")
    add("arguments", metavar="...", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(run=_trace)


def _depth(given: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", given):
        raise argparse.ArgumentTypeError(f"{given!r} is no number of levels")
    return int(given)


def _nanoseconds(given: str) -> int:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(ns|us|ms|s)", given)
    if found is None:
        raise argparse.ArgumentTypeError(f'{given!r} is no time like "1ms"')
    return int(float(found[1]) * _UNITS[found[2]])


def _export(given: str) -> tuple[str, Path]:
    name, _, path = given.partition(":")
    if name not in FORMATS or not path:
        raise argparse.ArgumentTypeError(f'{given!r} is not like "chrome:trace.json"')
    return name, Path(path).absolute()  # the program may change the folder


def _trace(chosen: argparse.Namespace) -> Said:
    program = chosen.program
    script = None if chosen.module else load_script(program)
    load = partial(load_module, program) if script is None else lambda: script
    tracer, pid = Tracer(trace_options(chosen)), os.getpid()
    exports = Exports(chosen) if chosen.export else None
    children = _follow_children(chosen, tracer, exports)

    def said() -> Said:
        lines = _lines(chosen, tracer, exports, children)
        return lines, FAILED if exports is not None and exports.failed else 0

    argv = ["-m" if script is None else program, *chosen.arguments]
    was_printed, restore = _print_before_it_leaves(said)
    try:
        code = run_program(load, argv, tracer, to_the_end=chosen.children)
        restore()
        lines, failed = ([], 0) if os.getpid() != pid or was_printed() else said()
    finally:  # for a child by os.fork(), too
        restore()
        if children is not None:
            children.finish()
    return lines, code or failed


def _lines(
    chosen: argparse.Namespace, tracer: Tracer, exports: Exports | None, children: Children | None
) -> list[str]:
    """What is to be printed, once the files are written."""
    lines = tree_lines(tracer.stop(), chosen)
    timelines = [] if exports is None else [exports.timeline(tracer.columns)]
    if children is not None:
        timelines += children.collect(lines)
    if exports is not None:
        lines += exports.write(timelines)
    return [escape_controls(line) for line in lines]


def _follow_children(
    chosen: argparse.Namespace, tracer: Tracer, exports: Exports | None
) -> Children | None:
    if not chosen.children:
        return None
    from pytest_instrcount.cli.children import Children

    return Children.in_main(chosen, tracer, exports)


def _print_before_it_leaves(
    said: Callable[[], Said],
) -> tuple[Callable[[], bool], Callable[[], None]]:
    """Have what is said printed before the process ends at once, or becomes another program.

    Gives a function that says whether it was, and one that takes this back; no context manager, whose
    frames would be the program's where it is forked.
    """
    pid, names, streams = os.getpid(), vars(os), (sys.stdout, sys.stderr)
    was: list[bool] = []

    def before(leave: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(leave)
        def leaving(*given: Any, **named: Any) -> Any:
            path = given[0] if given else named.get("path", 0)
            if not was and os.getpid() == pid and (type(path) is int or os.access(path, os.X_OK)):
                was.append(True)
                print_said(said, *streams)
            return leave(*given, **named)

        return leaving

    kept: dict[str, Any] = {
        name: names[name] for name in ("_exit", "execv", "execve") if name in names
    }
    names.update((name, before(leave)) for name, leave in kept.items())
    return lambda: bool(was), partial(names.update, kept)
