"""Which reports there are, and how their files are written: each whole, or not at all."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.records import RunSummary
from pytest_instrcount.gate.store.names import printable, reason_of
from pytest_instrcount.host.files import appending, writing

#: Where the baseline of a test is, or would be.
PathOf = Callable[[str], Path]

# What a report is made with is imported for the first one of its type.


def _json(summary: RunSummary, path_of: PathOf) -> Iterator[str]:
    from pytest_instrcount.report.json import render_json

    yield render_json(summary)


def _html(summary: RunSummary, path_of: PathOf) -> Iterator[str]:
    from pytest_instrcount.report.history import join_names, read_histories
    from pytest_instrcount.report.page import render_page
    from pytest_instrcount.report.page_data import page_data

    names = {result.nodeid: (*result.formerly, result.nodeid) for result in summary.results}
    paths = {nodeid: [*map(path_of, each)] for nodeid, each in names.items()}
    found = read_histories([path for each in paths.values() for path in each])
    histories = {
        nodeid: join_names([found[path] for path in each], itemgetter("date"))
        for nodeid, each in paths.items()
    }
    created = datetime.now().astimezone().isoformat(timespec="seconds")
    yield render_page(page_data(summary, histories, created))


def _markdown(summary: RunSummary, path_of: PathOf) -> Iterator[str]:
    from pytest_instrcount.report.markdown import render_markdown

    yield render_markdown(summary)


def _speedscope(summary: RunSummary, path_of: PathOf) -> Iterator[str]:
    from pytest_instrcount.report.stacks import speedscope_chunks

    return speedscope_chunks(summary)


def _collapsed(summary: RunSummary, path_of: PathOf) -> Iterator[str]:
    from pytest_instrcount.report.stacks import collapsed_lines

    return collapsed_lines(summary)


#: The type that adds to a file what the others replace it with.
APPENDED = "markdown-append"

#: Type -> what makes its text, in pieces.
TYPES: Mapping[str, Callable[[RunSummary, PathOf], Iterator[str]]] = {
    "json": _json,
    "html": _html,
    "markdown": _markdown,
    APPENDED: _markdown,
    "speedscope": _speedscope,
    "collapsed": _collapsed,
}


def write_reports(
    reports: Iterable[tuple[str, Path]], summary: RunSummary, path_of: PathOf
) -> None:
    """Write all reports, each as type and path; folders that are missing are made.

    Raises InstrcountError "report-write" for the first that cannot be written; the others are.
    """
    errors = []
    for kind, path in reports:
        try:
            _write(kind, path, TYPES[kind](summary, path_of))
        except InstrcountError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _write(kind: str, path: Path, chunks: Iterable[str]) -> None:
    try:
        if kind == APPENDED:
            _append(path, "".join(chunks).encode())
            return
        with writing(path) as file:
            for chunk in chunks:
                file.write(chunk.encode())
    except (OSError, ValueError) as error:
        shown = shlex.quote(printable(str(path)))
        raise InstrcountError(
            "report-write",
            f"the report {shown} cannot be written: {reason_of(error)}",
            f"pytest --instrcount --instrcount-report={kind}:PATH with a PATH you may write to",
        ) from error


def _append(path: Path, data: bytes) -> None:
    """Add to what others have written, as to the summary of a step; not what GitHub would drop."""
    from pytest_instrcount.report.markdown import LARGEST_SUMMARY

    with appending(path) as (file, size):
        if size + len(data) < LARGEST_SUMMARY:
            file.write((b"\n" if size else b"") + data)
