"""Events as a text table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tabulate import tabulate

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.text import cut
from pytest_instrcount.trace.events.function_event import FunctionEvent, FunctionEventAvg
from pytest_instrcount.trace.events.torch_names import TIME_UNITS, time_text
from pytest_instrcount.trace.export.bounds import not_recorded
from pytest_instrcount.trace.timeline import Recorded, printable

#: What a table can be sorted by; besides by what torch has of devices and FLOPs, which is 0 for all.
SORT_KEYS = (
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_time",
    "count",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
)
_UNKNOWN = re.compile(r"flops|(self_)?(cuda|xpu|privateuse1|device)_(time(_total)?|memory_usage)")

#: One event, or the sum of some: what a row shows.
Row: TypeAlias = FunctionEvent | FunctionEventAvg


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a table; widths are in characters.

    Raises InstrcountError (slug "profile-table") for what cannot be.
    """

    #: one of SORT_KEYS, or None: as they come
    sort_by: str | None = None
    #: -1: all
    row_limit: int = 100
    name_width: int = 55
    source_width: int = 75
    shapes_width: int = 80
    header: str | None = None
    top_level_only: bool = False
    #: of all times; None: the one that suits each
    time_unit: str | None = None

    def __post_init__(self) -> None:
        if self.sort_by not in (None, *SORT_KEYS) and not _UNKNOWN.fullmatch(str(self.sort_by)):
            raise InstrcountError(
                "profile-table",
                f"a table cannot be sorted by {printable(str(self.sort_by))[:60]!r}",
                "table(sort_by=...) with one of " + ", ".join(SORT_KEYS),
            )
        if self.time_unit not in (None, *TIME_UNITS):
            raise InstrcountError(
                "profile-table",
                f"times are not shown in {printable(str(self.time_unit))[:60]!r}",
                "table(time_unit=...) with one of " + ", ".join(TIME_UNITS),
            )
        widths = (self.name_width, self.source_width, self.shapes_width)
        if self.row_limit < -1 or min(widths) < 4:
            raise InstrcountError(
                "profile-table",
                f"a table of {self.row_limit} rows and columns {min(widths)} wide cannot be",
                "table(row_limit=N) with N of at least 0, or -1 for all; widths of at least 4",
            )


def render_table(
    rows: Sequence[Row], layout: Layout, recorded: Recorded, self_total_ns: int
) -> str:
    """The rows that the layout asks for, with the columns that were recorded.

    Raises InstrcountError (slug "profile-not-recorded") if sorted by memory that was not measured.

    >>> render_table([], Layout(), Recorded(), 0)
    'no events were recorded'
    """
    if "cpu_memory" in (layout.sort_by or "") and not recorded.memory:
        raise not_recorded("memory was", "profile_memory=True")
    if not rows:
        return "no events were recorded"
    shown = _chosen(rows, layout)
    columns = _columns(layout, recorded, any(row.node_id for row in shown))
    lines = tabulate(
        [[cell for _, cell in _cells(row, columns, layout, self_total_ns)] for row in shown],
        headers=columns,
        disable_numparse=True,
        colalign=[_LEFT.get(column, "right") for column in columns] if shown else None,
    ).splitlines()
    if layout.header is not None:
        lines.insert(0, layout.header)
    lines.append(f"Self CPU time total: {time_text(self_total_ns / 1000, layout.time_unit)}")
    return "\n".join(line.rstrip() for line in lines)


def _chosen(rows: Sequence[Row], layout: Layout) -> list[Row]:
    chosen = [row for row in rows if row.top_level or not layout.top_level_only]
    if layout.sort_by in SORT_KEYS:
        name = layout.sort_by
        chosen.sort(key=lambda row: -getattr(row, name))
    return chosen if layout.row_limit < 0 else chosen[: layout.row_limit]


class Tabled:
    """An object that can be shown as a table of events."""

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int | None = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A row per event; of `key_averages`, a row per function or range.

        ``sort_by`` is one of "cpu_time_total", "self_cpu_time_total", "cpu_time", "count",
        "cpu_memory_usage" and "self_cpu_memory_usage", largest first; None is the order of start.
        ``row_limit`` of -1 or None shows all; ``time_unit`` is "s", "ms" or "us". Raises InstrcountError (slug
        "profile-table") for other values.
        """
        rows, recorded, self_total_ns = self._tabled()
        layout = Layout(
            sort_by, -1 if row_limit is None else row_limit, max_name_column_width, max_src_column_width,
            max_shapes_column_width, header, top_level_events_only, time_unit,
        )  # fmt: skip
        return render_table(rows, layout, recorded, self_total_ns)

    def _tabled(self) -> tuple[Sequence[Row], Recorded, int]:
        """The rows, what was recorded of them, and their time, each nanosecond once."""
        raise NotImplementedError


_LEFT = dict.fromkeys(("Name", "Input Shapes", "Module", "Source Location"), "left")


def _columns(layout: Layout, recorded: Recorded, several_nodes: bool) -> list[str]:
    return [
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        *(["CPU Mem", "Self CPU Mem"] if recorded.memory else []),
        "# of Calls",
        *(["Node ID"] if several_nodes else []),
        *(["Input Shapes"] if recorded.shapes else []),
        *(["Module"] if recorded.modules else []),
        *(["Source Location"] if recorded.stack else []),
    ]


def _cells(
    row: Row, columns: list[str], layout: Layout, self_total_ns: int
) -> list[tuple[str, str]]:
    """Column and text of each cell of a row."""
    shapes = str([list(shape) for shape in row.input_shapes]) if row.input_shapes else ""
    unit = layout.time_unit
    # Only the first frames: a table is one line per row, a stack may be thousands deep.
    texts = {
        "Name": _cut(row.key, layout.name_width),
        "Self CPU %": "" if row.is_async else _share(row.self_ns, self_total_ns),
        "Self CPU": "" if row.is_async else time_text(row.self_ns / 1000, unit),
        "CPU total %": "" if row.is_async else _share(row.total_ns, self_total_ns),
        "CPU total": time_text(row.total_ns / 1000, unit),
        "CPU time avg": time_text(row.cpu_time, unit),
        "CPU Mem": memory_text(row.cpu_memory_usage),
        "Self CPU Mem": memory_text(row.self_cpu_memory_usage),
        "# of Calls": str(row.count),
        "Node ID": str(row.node_id),
        "Input Shapes": _cut(shapes, layout.shapes_width),
        "Module": _cut(row.module, layout.name_width),
        "Source Location": _cut(" < ".join(row.stack[:3]), layout.source_width),
    }
    return [(column, texts[column]) for column in columns]


def memory_text(size: int) -> str:
    """A number of bytes with the unit that suits it.

    >>> memory_text(10), memory_text(2048), memory_text(-3 * 1024**2)
    ('10 B', '2.00 KiB', '-3.00 MiB')
    """
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(size) >= 1024**power:
            return f"{size / 1024**power:.2f} {unit}"
    return f"{size} B"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "-"


def _cut(text: str, width: int) -> str:
    return cut(printable(text), width)
