"""``trace``: a program run under the tracer; its tree of calls is printed, and written for viewers."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_instrcount.cli.run import FAILED, Said, print_anything, run_command
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.text import escape_controls
from pytest_instrcount.trace.columns import Columns
from pytest_instrcount.trace.contexts import ContextTree, fold_libraries, merge
from pytest_instrcount.trace.core import core_name
from pytest_instrcount.trace.library import is_library
from pytest_instrcount.trace.program import load_module, load_script, run_program
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.text import render, total_ns
from pytest_instrcount.trace.tracer import Tracer

if TYPE_CHECKING:
    from pytest_instrcount.cli.doctor.command import Commands

#: format -> method of an `Exporter`
FORMATS = {
    "chrome": "export_chrome_trace",
    "speedscope": "export_speedscope",
    "collapsed": "export_collapsed",
    "pstats": "export_pstats",
    "json": "export_json",
}
#: those that ``--least`` and ``--depth`` hold for
_BOUNDED = ("chrome", "speedscope")
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
#: Lines of less than this share of the whole are left out, unless another bound is given.
_LEAST_SHARE = 1_000
#: Some 300 MB; a program that makes more gets a tree of exact sums, and no timeline.
_MOST_EVENTS = 10_000_000

_DESCRIPTION = (
    "Run a script or a module as python would, and print the tree of what it calls, with times: your "
    "code, and what it calls of libraries. Exit code: that of the program; 2 if it cannot be run, or "
    "a file cannot be written. Child processes are not traced."
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
        help="record what Python functions are called with, for files of chrome and json",
    )
    add("--returns", action="store_true", help="record what they return, too")
    add(
        "--include",
        metavar="PATTERN",
        action="append",
        default=[],
        help='record functions like "app.db:*" alone, or of files like "src/*"; what others call is '
        "called by their callers (repeatable)",
    )
    add(
        "--ignore",
        metavar="PATTERN",
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
    add("--depth", metavar="N", type=_depth, help="show so many levels")
    add(
        "--least",
        metavar="TIME",
        type=_nanoseconds,
        help='leave out what takes less, like "1ms"; of the tree, sums (default: 0.1%% of all)',
    )
    add(
        "--export",
        metavar="FORMAT:PATH",
        type=_export,
        action="append",
        default=[],
        help=f"also write a file, .gz or not; formats: {', '.join(FORMATS)} (repeatable)",
    )
    add("program", metavar="PROGRAM", help="path of a script")
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
    load = load_module if chosen.module else load_script
    program = load(chosen.program)
    values = chosen.with_arguments or chosen.returns
    options = TraceOptions(
        "tree",
        chosen.c_calls,
        start_frames=0,
        max_events=_MOST_EVENTS // (4 if values else 1),
        include=tuple(chosen.include),
        ignore=tuple(chosen.ignore),
        max_depth=chosen.max_depth,
        min_ns=chosen.min_duration,
        arguments=chosen.with_arguments,
        returns=chosen.returns,
    )
    tracer, exports = Tracer(options), Exports(chosen) if chosen.export else None
    pid = os.getpid()
    code = run_program(program, chosen.arguments, tracer)
    if os.getpid() != pid:  # a child by os.fork()
        return [], code
    print_anything()
    columns = tracer.columns
    core = "python" if values else core_name(columns.stats.backend)
    lines = _tree_lines(columns, chosen, core)
    if exports is not None:
        lines += exports.write(columns)
        code = code or (FAILED if exports.failed else 0)
    return [escape_controls(line) for line in lines], code


class Exports:
    """The files that were asked for, with the ranges of the program; made before it runs."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        from pytest_instrcount.trace.ranges.session import Session

        self._chosen = chosen
        self.failed = False
        self._session = Session()
        self._session.begin()

    def write(self, columns: Columns) -> list[str]:
        """Write them; returns a line for each."""
        from pytest_instrcount.trace.events.build import build_timeline
        from pytest_instrcount.trace.events.event_list import EventList
        from pytest_instrcount.trace.timeline import Recorded

        recorded = Recorded(stack=True, modules=True)
        events = EventList(build_timeline(columns, self._session.stop(), recorded))
        least, depth = self._chosen.least, self._chosen.depth
        bounds = {"min_duration": None if least is None else least / 1e9, "max_depth": depth}
        lines = []
        for name, path in self._chosen.export:
            try:
                export = getattr(events, FORMATS[name])
                export(path, **(bounds if name in _BOUNDED else {}))
            except InstrcountError as error:
                lines.append(str(error))
                self.failed = True
            else:
                lines.append(f"wrote {path}")
        return lines


def _tree_lines(columns: Columns, chosen: argparse.Namespace, core: str) -> list[str]:
    whole = tree = merge(columns)
    if not chosen.all:
        package = chosen.program.partition(".")[0] if chosen.module else "__main__"
        own = ("__main__", package)
        tree = fold_libraries(
            whole, lambda name: name.split(".")[0] not in own and is_library(name)
        )
    stats = columns.stats
    # what threads took while the main one waited is in it; of folded rows only sums are known
    whole_ns = max(columns.end, default=0) - min(columns.start, default=0)
    total = total_ns(whole) if stats.truncated else whole_ns
    least = chosen.least
    if least is None:
        least = 0 if chosen.all else total // _LEAST_SHARE
    shown = _shown(tree, least, chosen.depth or len(tree.nodes))
    width = min(80, shutil.get_terminal_size().columns)
    calls, left_out = sum(node.calls for node in whole.nodes), len(tree.nodes) - len(shown)
    lines = [
        f"{calls:,} calls in {total / 1e6:,.3f} ms ({stats.backend}, core: {core})",
        *render(tree, only=shown, total=total, width=width).splitlines(),
    ]
    if left_out:
        lines.append(f"left out, deeper or below {least / 1e6:.3f} ms: {left_out}")
    return lines


def _shown(tree: ContextTree, least: int, depth: int) -> set[int]:
    """Contexts that took so long, at most so deep, in callers that are shown."""
    depths = {-1: 0, -2: 0}
    for number, node in enumerate(tree.nodes):
        if node.parent in depths and node.ns >= least and depths[node.parent] < depth:
            depths[number] = depths[node.parent] + 1
    return {number for number in depths if number >= 0}
