"""The result of a traced process: the tree that is printed, and the files."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Container, Iterable
from functools import partial
from typing import TYPE_CHECKING

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.columns import Columns
from pytest_instrcount.trace.contexts import Context, ContextTree, fold_libraries, merge
from pytest_instrcount.trace.core import core_name
from pytest_instrcount.trace.library import is_library
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.text import render, total_ns

if TYPE_CHECKING:
    from pytest_instrcount.trace.timeline import Timeline

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
#: Lines of less than this share of the whole are left out, unless another bound is given.
_LEAST_SHARE = 1_000
#: Some 300 MB; a program that makes more gets a tree of exact sums, and no timeline.
_MOST_EVENTS = 10_000_000


def trace_options(chosen: argparse.Namespace) -> TraceOptions:
    """Settings of the recording."""
    values = chosen.with_arguments or chosen.returns
    return TraceOptions(
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


class Exports:
    """The files that were asked for, with the ranges of the program; made before it runs."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        from pytest_instrcount.trace.ranges.session import Session

        paths = [path for _, path in chosen.export]
        if len({*paths}) < len(paths):
            why, fix = "two exports have one path", "--export=KIND:ANOTHER-PATH"
            raise InstrcountError("profile-write", why, fix)
        self._chosen = chosen
        self.failed = False
        self._session = Session()
        self._session.begin()

    def abandon(self) -> None:
        """In a forked child: end what its parent goes on with."""
        self._session.stop(consolidate=False)

    def timeline(self, columns: Columns) -> Timeline:
        """Calls and ranges, which end here."""
        from pytest_instrcount.trace.events.build import build_timeline
        from pytest_instrcount.trace.timeline import Recorded

        recorded = Recorded(stack=True, modules=True)
        return build_timeline(columns, self._session.stop(), recorded)

    def write(self, timelines: Iterable[Timeline]) -> list[str]:
        """Write them, of all processes; returns a line for each."""
        from pytest_instrcount.trace.events.event_list import EventList
        from pytest_instrcount.trace.weave import join_all

        events = EventList(join_all(timelines))
        least, depth = self._chosen.least, self._chosen.depth
        bounds = {"min_duration": None if least is None else least / 1e9, "max_depth": depth}
        lines = []
        for name, path in self._chosen.export:
            try:
                export = getattr(events, FORMATS[name])
                export(path, **(bounds if name in _BOUNDED else {}))
            except InstrcountError as error:
                if error.slug == "profile-empty":  # its own remedy is that of another API
                    fix = "trace    # without --include, --ignore, --least and --depth: is anything called?"
                    error = InstrcountError(
                        error.slug, error.why, f"python -m pytest_instrcount {fix}"
                    )
                lines.append(str(error))
                self.failed = True
            else:
                lines.append(f"wrote {path}")
        return lines


def tree_lines(columns: Columns, chosen: argparse.Namespace) -> list[str]:
    """The tree as it is printed."""
    whole = tree = merge(columns)
    if not chosen.all:
        package = chosen.program.partition(".")[0] if chosen.module else "__main__"
        tree = fold_libraries(whole, partial(_is_library, own=("__main__", package)))
    stats = columns.stats
    # what threads took while the main one waited is in it; of folded rows only sums are known
    whole_ns = max(columns.end, default=0) - min(columns.start, default=0)
    total = total_ns(whole) if stats.truncated else whole_ns
    least = chosen.least
    if least is None:
        least = 0 if chosen.all else total // _LEAST_SHARE
    shown = _shown(tree, least, chosen.depth or len(tree.nodes))
    width = min(80, shutil.get_terminal_size().columns)
    values = chosen.with_arguments or chosen.returns
    core = "python" if values else core_name(stats.backend)
    calls, left_out = sum(node.calls for node in whole.nodes), len(tree.nodes) - len(shown)
    lines = [
        f"{calls:,} calls in {total / 1e6:,.3f} ms ({stats.backend}, core: {core})",
        *render(tree, only=shown, total=total, width=width).splitlines(),
    ]
    if left_out:
        lines.append(f"left out, deeper or below {least / 1e6:.3f} ms: {left_out}")
    return lines


def _is_library(node: Context, own: Container[str]) -> bool:
    if node.module == "<string>":
        # what the standard library makes, as for named tuples; else functions of -c, or of exec()
        return node.name.endswith(("__", "<lambda>", "<module>"))
    return node.module.split(".")[0] not in own and is_library(node.module)


def _shown(tree: ContextTree, least: int, depth: int) -> set[int]:
    """Contexts that took so long, at most so deep, in callers that are shown."""
    depths = {-1: 0, -2: 0}
    for number, node in enumerate(tree.nodes):
        if node.parent in depths and node.ns >= least and depths[node.parent] < depth:
            depths[number] = depths[node.parent] + 1
    return {number for number in depths if number >= 0}
