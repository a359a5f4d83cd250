"""The instructions that a callgrind.out says it has in all; what is damaged is said as for all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pytest_instrcount.errors import InstrcountError

_HEADER = re.compile(rb"^(part|positions|events|totals):(.*)", re.MULTILINE)
#: The last lines of a dump are shorter.
_TAIL_BYTES = 512


def read_total(path: Path) -> int:
    """Only the instructions of a whole callgrind.out, without its functions.

    Raises InstrcountError ``profile-damaged`` like ``parse_profile``, but looks at the totals alone.
    """
    try:
        return _sum_totals(path.read_bytes())
    except (OSError, ValueError) as error:
        raise damaged(path, error) from error


def is_whole(dump: Path) -> bool:
    """True if a dump has its last line; what is before it is looked at when it is read."""
    try:
        with dump.open("rb") as file:
            file.seek(max(0, dump.stat().st_size - _TAIL_BYTES))
            return b"\ntotals: " in file.read()
    except OSError:
        return False


def damaged(source: Path | Iterable[str], error: Exception) -> InstrcountError:
    """The error for what is not a complete dump."""
    where = str(source) if isinstance(source, Path) else "the dump"
    return InstrcountError(
        "profile-damaged",
        f"{where} is not a complete Callgrind profile: {error}",
        "look for free memory and disk space (free -h; df -h), then: pytest --instrcount",
    )


def _sum_totals(content: bytes) -> int:
    total = 0
    column: int | None = None
    opened = ended = False
    for found in _HEADER.finditer(content):
        kind, words = found[1].decode(), found[2].decode("ascii", "replace").split()
        if kind == "totals":
            if column is None and opened:
                raise ValueError("it names no events")
            if column is None:
                continue
            # without the end of its line, the number may be cut short
            if found.end() == len(content):
                raise ValueError("it ends within its totals")
            total += count_in(words, column)
            column, opened, ended = None, False, True
        elif column is not None:
            raise ValueError("a part has no totals")
        else:
            opened = True
            if kind == "events":
                column = ir_column(words)
    if opened or not ended:
        raise ValueError("it has no totals")
    return total


def ir_column(events: list[str]) -> int:
    """The place of instructions among the events. Raises ValueError if they were not counted."""
    if "Ir" not in events:
        raise ValueError("it does not count instructions (Ir)")
    return events.index("Ir")


def count_in(costs: list[str], column: int) -> int:
    """One event of a line; Callgrind leaves out zeros at the end of a line, but never all."""
    if not costs:
        raise ValueError("a line without a count")
    return int(costs[column]) if column < len(costs) else 0
