"""A table of tests that fits the terminal: numbers stay whole, names give way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from tabulate import tabulate

from pytest_instrcount.report.words import cut_left, cut_right

NARROWEST_NAME = 8


def fit_table(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Two lines of headers and one per row, of at most ``width`` columns; no rows, no lines.

    The first column is the test's name: it has what the others leave, and is cut as by `tell_apart`.

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
    names = tell_apart([name for name, *_ in rows], name_width)
    lines = tabulate(
        [(name, *numbers) for name, (_, *numbers) in zip(names, rows)],
        headers=headers,
        tablefmt="simple",
        disable_numparse=True,
        colalign=("left", *["right"] * (len(headers) - 1)),
    ).splitlines()
    return [cut_right(line.rstrip(), width) for line in lines]


def tell_apart(names: Sequence[str], width: int) -> list[str]:
    """Names in at most ``width`` columns: cut from the left, and those that are alike then where they differ.

    >>> for name in tell_apart(["test_a[one-of-so-many]", "test_a[two-of-so-many]"], 12):
    ...     print(name)
    …_a[one…any]
    …_a[two…any]
    """
    shown = {name: cut_left(name, width) for name in names}
    _tell_apart(list(shown), width, shown)
    return [shown[name] for name in names]


def _tell_apart(names: Sequence[str], width: int, shown: dict[str, str], last: int = -1) -> None:
    alike = defaultdict(list)
    for name in names:
        alike[shown[name]].append(name)
    for group in alike.values():
        place = len([*takewhile(lambda same: len({*same}) == 1, zip(*group))])
        if len(group) > 1 and place > last:
            for name in group:
                shown[name] = _cut_around(name, place, width)
            # those that are alike now differ further to the right
            _tell_apart(group, width, shown, place)


def _cut_around(name: str, place: int, width: int) -> str:
    end = width // 3
    middle = width - end - 2
    start = max(0, place - middle // 2)
    begin = "…" if start else ""
    return cut_right(f"{begin}{name[start : start + middle]}…{name[-end:]}", width)
