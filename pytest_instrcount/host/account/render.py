"""An account as text and as CSV; it ends in the setting to change. Pure: nothing is printed here."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tabulate import tabulate

from pytest_instrcount.host.account.timings import OTHER, PhaseTime

if TYPE_CHECKING:
    from pytest_instrcount.host.account.current import Account

_HEADERS = ("phase", "wall", "share", "all processes", "times")
CSV_HEADERS = ("phase", "function", "worker", "wall_seconds", "process_seconds", "times")

#: A phase of fewer seconds is no row.
_SHORTEST = 0.005

#: Phase -> the setting that makes it shorter, and what that costs.
_SETTINGS: Mapping[str, str] = {
    "warm-up": "--instrcount-warmup=CALLS    (fewer calls; below 20 the interpreter may not have settled)",
    "count": "--instrcount-calls=1    (one counted call; the baselines are to be updated)",
    "warm-up and count": "--instrcount-warmup=CALLS    (fewer calls; the baselines are to be updated)",
    "layouts": "max_delta=    (in the marker of what is suspected again and again, and is no regression)",
    "hash seeds": "pytest --instrcount-update-baseline    (stores which keys collide now)",
    "by Python function": "--instrcount-blame=off    (failures then name C functions alone)",
    "calls": "trace_profile    (the marker: leave it out where nobody asks for calls)",
    "tests, natively": "--instrcount-only    (leaves out the tests that are not measured)",
    "zygote start": "-p no:NAME    (a plugin that tests do not need is imported under Valgrind, too)",
    "zygote start, compiling": "unset PYTHONDONTWRITEBYTECODE    (pytest's plugins are compiled at each start)",
    "collection under Valgrind": "pytest FILE    (fewer files: each one with measured tests is imported there)",
    "fixtures": "instrcount    (the fixture: one call is counted, and the test's set-up can be smaller)",
    "report": "--instrcount-report    (leave out a report that nobody reads)",
    "collection": "testpaths    (in the ini: fewer folders to look into)",
    "start of pytest": "-p no:NAME    (a plugin that nobody needs is imported at each start)",
}


def render_account(account: Account) -> list[str]:
    """The account as lines: a table of phases, counters, records, and the setting to change."""
    rows = account.timings.rows()
    whole = sum(row.wall for row in rows)
    elsewhere = [row for worker in account.elsewhere.values() for row in worker]
    lines = _table(rows, elsewhere, whole).splitlines()
    explained = account.timings.explained()
    lines.append(f"explained: {_share(explained)} of {whole:.2f} s")
    if account.cpu_beside:
        beside, here = account.cpu_beside, sum(os.times()[:4])
        lines.append(
            f"CPU time: {beside:.2f} s under Valgrind, {here:.2f} s in pytest and its children"
        )
    for category, found in sorted(account.counters.items()):
        counts = ", ".join(f"{number:,} {what}" for what, number in sorted(found.items()))
        lines.append(f"{category}: {counts}")
    kept = len(account.records)
    lines.append(f"records: {kept} of {account.seen} kept")
    lines += advise(rows, whole, kept, account.seen)
    return lines


def _table(rows: Sequence[PhaseTime], elsewhere: Sequence[PhaseTime], whole: float) -> str:
    totals = {row.phase: [row.wall, row.total, row.times] for row in rows}
    for row in elsewhere:
        known = totals.setdefault(row.phase, [0.0, 0.0, 0])
        known[1] += row.total
        known[2] += row.times
    cells = [
        (
            phase,
            f"{wall:.2f} s",
            _share(wall / whole if whole else 0.0),
            f"{total:.2f} s",
            f"{times:,}" if times else "",
        )
        for phase, (wall, total, times) in totals.items()
        if max(wall, total) >= _SHORTEST or phase == OTHER
    ]
    return tabulate(
        cells,
        _HEADERS,
        disable_numparse=True,
        colalign=("left", "right", "right", "right", "right"),
    )


def _share(fraction: float) -> str:
    """In percent; no share but a whole one is 100 %.

    >>> _share(0.9999), _share(1.0), _share(0.123)
    ('99.9 %', '100 %', '12.3 %')
    """
    if fraction >= 1:
        return "100 %"
    return f"{int(fraction * 1000) / 10:.1f} %"


def advise(rows: Sequence[PhaseTime], whole: float, kept: int, seen: int) -> list[str]:
    """Advice: keep more records, if some are missing; and what shortens the longest phase.

    >>> advise([PhaseTime("layouts", 3.0, 3.0, 1), PhaseTime("other", 1.0, 1.0, 1)], 4.0, 2, 2)[0]
    'most of it: layouts, 75.0 %'
    """
    lines = []
    if kept < seen:
        lines.append(
            f"  change: pytest_instrcount.host.account.set_record_limit({seen}) keeps all records"
        )
    for row in sorted(rows, key=lambda row: -row.wall):
        if row.phase in _SETTINGS and whole:
            lines.append(f"most of it: {row.phase}, {_share(row.wall / whole)}")
            lines.append(f"  change: {_SETTINGS[row.phase]}")
            break
    return lines


def render_functions(rows: Sequence[PhaseTime]) -> str:
    """A row per phase and function, the longest first, without what no phase explains.

    >>> rows = PhaseTime("parse", 3.0, 3.0, 2, "read"), PhaseTime("count", 1.0, 8.0, 0)
    >>> print(render_functions(rows))
      ncalls    tottime    percall  phase(function)
    --------  ---------  ---------  -----------------
           2      3.000      1.500  parse(read)
                  1.000             count
    """
    cells = [
        (
            row.times or "",
            f"{row.wall:.3f}",
            f"{row.wall / row.times:.3f}" if row.times else "",
            f"{row.phase}({row.function})" if row.function else row.phase,
        )
        for row in rows
        if row.phase != OTHER
    ]
    headers = ("ncalls", "tottime", "percall", "phase(function)")
    columns = (*["right"] * 3, "left") if cells else None
    return tabulate(cells, headers, disable_numparse=True, colalign=columns)


def timings_csv(account: Account) -> str:
    """A line for each phase and function; seconds with six decimals. Workers have lines of their own."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADERS)
    tables = {"": account.timings.rows(by_function=True), **account.elsewhere}
    for worker, rows in tables.items():
        for row in rows:
            writer.writerow(
                (row.phase, row.function, worker, f"{row.wall:.6f}", f"{row.total:.6f}", row.times)
            )
    return text.getvalue()
