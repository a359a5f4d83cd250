"""Which exports there are, what they need, and how their files are written."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, cast

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.files import writing
from pytest_instrcount.trace.export.bounds import Bounds, not_recorded, nothing_to_export
from pytest_instrcount.trace.export.chrome import chrome_chunks
from pytest_instrcount.trace.export.collapsed import Weight, collapsed_lines
from pytest_instrcount.trace.export.plain import plain_chunks
from pytest_instrcount.trace.export.pstats import pstats_bytes
from pytest_instrcount.trace.export.speedscope import speedscope_chunks
from pytest_instrcount.trace.timeline import Timeline, printable

_METRICS: dict[str, Weight] = {
    "self_cpu_time_total": "self",
    "self_cpu_memory_usage": "bytes",
    "count": "calls",
}


class Exporter:
    """The exports. Each file is there whole or not at all; a path in ".gz" is compressed.

    All raise InstrcountError: slug "profile-empty" if nothing was recorded, "profile-not-recorded"
    if what the export needs was not, "profile-write" if the file cannot be written.
    """

    @property
    def timeline(self) -> Timeline:
        """All rows."""
        raise NotImplementedError

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        *,
        min_duration: float | None = None,
        max_depth: int | None = None,
    ) -> None:
        """A timeline for ui.perfetto.dev and chrome://tracing.

        Above a million slices one of the bounds is needed, else it is an InstrcountError (slug
        "profile-slices"): ``min_duration`` in seconds, ``max_depth`` in calls.

        Times and pids are those of the machine, so files of its processes can be joined;
        ``baseTimeNanoseconds`` is the wall clock at time 0.
        """
        chunks = chrome_chunks(self._filled(or_marks=True), Bounds(min_duration, max_depth))
        write_chunks(path, chunks)

    def export_speedscope(
        self,
        path: str | os.PathLike[str],
        *,
        min_duration: float | None = None,
        max_depth: int | None = None,
    ) -> None:
        """A timeline for speedscope.app, one profile per thread; bounds as for Chrome."""
        chunks = speedscope_chunks(self._filled(), Bounds(min_duration, max_depth))
        write_chunks(path, chunks)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """A line ``outer;inner number`` per stack, its frames with file and line.

        ``metric`` is "self_cpu_time_total" (ns), "self_cpu_memory_usage" (bytes) or "count". Needs
        ``with_stack=True``.
        """
        if metric not in _METRICS:
            raise InstrcountError(
                "profile-metric",
                f"stacks have no {printable(str(metric))[:60]!r}",
                "export_stacks(path, metric) with one of " + ", ".join(_METRICS),
            )
        timeline = self._filled()
        if not timeline.recorded.stack:
            raise not_recorded("stacks were", "with_stack=True")
        write_chunks(path, collapsed_lines(timeline, _METRICS[metric], locations=True))

    def export_collapsed(self, path: str | os.PathLike[str], weight: Weight = "self") -> None:
        """A line ``outer;inner number`` per stack of names, as flame graph tools read it.

        ``weight`` is "self" (ns), "calls" or "bytes" (needs ``profile_memory=True``).
        """
        write_chunks(path, collapsed_lines(self._filled(), weight, locations=False))

    def export_pstats(self, path: str | os.PathLike[str]) -> None:
        """A file for ``pstats.Stats`` and its viewers, as from cProfile; times in seconds."""
        write_chunks(path, [pstats_bytes(self._filled())])

    def export_json(self, path: str | os.PathLike[str]) -> None:
        """All that was recorded, as plain values with a version; `EventList.from_json` reads it."""
        write_chunks(path, plain_chunks(self._filled(or_marks=True)))

    def _filled(self, *, or_marks: bool = False) -> Timeline:
        timeline = self.timeline
        if not len(timeline) and not (or_marks and timeline.marks):
            raise nothing_to_export("no events were recorded")
        return timeline


def write_chunks(path: str | os.PathLike[str], chunks: Iterable[str | bytes]) -> None:
    """Write a file whole, or not at all; raises InstrcountError (slug "profile-write")."""
    target = Path(path)
    try:
        with ExitStack() as stack:
            file = stack.enter_context(writing(target))
            if target.suffix == ".gz":
                # no name and no time within: equal events make equal files
                packed = gzip.GzipFile("", "wb", 6, file, mtime=0)
                file = cast("BinaryIO", stack.enter_context(packed))
            for chunk in chunks:
                file.write(chunk.encode() if isinstance(chunk, str) else chunk)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or printable(str(error))
        raise InstrcountError(
            "profile-write",
            f"the export {printable(str(target))!r} cannot be written: {why}",
            "free some space, or give a path that you may write to",
        ) from error
