"""Which functions a baseline names, and which are summed into one row: files stay short."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.rules import rule_of

#: The row that all small ones are folded into.
OTHER = "(other)"

# Rows below 1 / _SMALL of the total are folded: 0.01 %.
_SMALL = 10_000


def has_rule(name: str) -> bool:
    """True if a rule of denoising knows the function: such rows are kept, however small.

    >>> has_rule("dictobject.c:unicodekeys_lookup_unicode"), has_rule("_json.c:scan_once")
    (True, False)
    """
    return rule_of(name) is not None


def fold_rows(
    rows: Mapping[str, Row], total_ir: int, keep: Callable[[str], bool] = has_rule
) -> dict[str, Row]:
    """The rows worth a line: 0.01 % of ``total_ir`` or more, or kept by ``keep``; sorted by name.

    The rest is summed into the row "(other)", so that nothing is lost from the sum; so are
    negative rows, which are an artefact of subtracting: what they take from more than the rest is
    taken from the largest rows. Folding twice changes nothing more.

    >>> fold_rows({"a.c:f": Row(99_995, 3), "b.c:g": Row(5, 1)}, 100_000)
    {'(other)': Row(ir=5, calls=1), 'a.c:f': Row(ir=99995, calls=3)}
    """
    kept: dict[str, Row] = {}
    folded = [row for name, row in rows.items() if name == OTHER]
    for name in sorted(rows.keys() - {OTHER}):
        row = rows[name]
        positive = row.ir >= 0 and row.calls >= 0
        if positive and (row.ir * _SMALL >= total_ir or keep(name)):
            kept[name] = row
        else:
            folded.append(row)
    if folded:
        ir, calls = (sum(column) for column in zip(*folded))
        kept[OTHER] = Row(max(0, ir), max(0, calls))
        _take(kept, max(0, -ir))
    return dict(sorted(kept.items()))


def _take(rows: dict[str, Row], ir: int) -> None:
    """Take instructions from the largest row, and what it does not have from the next one."""
    for name in sorted(rows, key=lambda name: (-rows[name].ir, name)) if ir else ():
        taken = min(ir, rows[name].ir)
        rows[name] = rows[name]._replace(ir=rows[name].ir - taken)
        ir -= taken
