"""A table of tests that fits the terminal: numbers stay whole, names give way."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from pytest_instrcount.report.words import cut_left, cut_right

NARROWEST_NAME = 8


def fit_table(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Two lines of headers and one per row, of at most ``width`` columns; no rows, no lines.

    The first column is the test's name: it has what the others leave, and is cut from the left.

    >>> for line in fit_table(("test", "now"), [("tests/test_json.py::test_dump", "1")], 24):
    ...     print(line)
    test                 now
    -----------------  -----
    …on.py::test_dump      1
    """
    if not rows:
        return []
    # tabulate's "simple" gives a header two columns more than its text, and two between columns
    taken = sum(
        2 + max(len(header) + 2, *(len(row[column]) for row in rows))
        for column, header in enumerate(headers[1:], 1)
    )
    name_width = max(NARROWEST_NAME, width - taken)
    lines = tabulate(
        [(cut_left(name, name_width), *numbers) for name, *numbers in rows],
        headers=headers,
        tablefmt="simple",
        disable_numparse=True,
        colalign=("left", *["right"] * (len(headers) - 1)),
    ).splitlines()
    return [cut_right(line.rstrip(), width) for line in lines]
