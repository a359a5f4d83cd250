"""Why a baseline was changed: a few entries in the baseline itself. No time, so that it merges well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Entries that are kept, the newest.
MOST_ENTRIES = 10
#: Characters of a reason.
LONGEST_REASON = 200
#: Characters of a commit's hash that are kept.
COMMIT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted change of a count."""

    #: instructions per call before, those that are compared; None for the first baseline
    old: int | None
    #: the same as stored
    new: int
    #: the user's words, in one line
    reason: str
    #: the commit that was checked out; "" where that is not known
    commit: str = ""


def add_entry(ledger: Sequence[Entry], entry: Entry) -> tuple[Entry, ...]:
    """The ledger with one entry more; not for a count that stays, and without the oldest of many.

    >>> add_entry((), Entry(5, 5, "nothing")), len(add_entry([Entry(1, 2, "")] * 10, Entry(2, 3, "")))
    ((), 10)
    """
    if entry.old == entry.new:
        return tuple(ledger)
    return (*ledger, entry)[-MOST_ENTRIES:]


def parse_reason(given: str) -> str:
    r"""A reason as it is stored: in one line. Raises ValueError for none, or a long one.

    >>> parse_reason("  a faster \n parser ")
    'a faster parser'
    """
    reason = " ".join(given.split())
    if not reason or len(reason) > LONGEST_REASON:
        raise ValueError(f"write why, in 1 to {LONGEST_REASON} characters")
    try:
        reason.encode()
    except UnicodeEncodeError:
        raise ValueError("write it in UTF-8") from None
    return reason


def ledger_values(ledger: Sequence[Entry]) -> list[dict[str, object]]:
    """The entries as plain values."""
    return [
        {"old": each.old, "new": each.new, "reason": each.reason, "commit": each.commit}
        for each in ledger
    ]


def parse_ledger(found: object) -> tuple[Entry, ...]:
    """Read plain values. Raises ValueError for what `ledger_values` does not make."""
    if not isinstance(found, list) or not 1 <= len(found) <= MOST_ENTRIES:
        raise ValueError(f"ledger is not a list of 1 to {MOST_ENTRIES} entries")
    return tuple(map(_parse_entry, found))


def _parse_entry(found: object) -> Entry:
    if not isinstance(found, dict) or found.keys() != {"old", "new", "reason", "commit"}:
        raise ValueError("ledger: an entry is not an object with the right keys")
    entry = Entry(_count(found, "old"), _count(found, "new") or 0, found["reason"], found["commit"])
    texts = (entry.reason, LONGEST_REASON), (entry.commit, COMMIT_DIGITS)
    if found["new"] is None or not all(
        isinstance(text, str) and len(text) <= longest for text, longest in texts
    ):
        raise ValueError("ledger: an entry has a value of the wrong type or length")
    return entry


def _count(found: Mapping[str, object], key: str) -> int | None:
    value = found[key]
    if value is not None and (type(value) is not int or not 0 <= value < 2**63):
        raise ValueError(f"ledger: {key} is not a count")
    return value if isinstance(value, int) else None
