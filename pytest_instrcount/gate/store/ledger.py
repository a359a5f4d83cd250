"""Why a baseline was changed: a few entries in the baseline itself. No time, so that it merges well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pytest_instrcount.gate.store.values import Invalid, count_of, list_of, object_of, text_of

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
    return list(map(asdict, ledger))


def parse_ledger(found: object) -> tuple[Entry, ...]:
    """Read plain values. Raises ValueError for what `ledger_values` does not make."""
    return tuple(map(_parse_entry, list_of(found, "ledger", MOST_ENTRIES)))


def _parse_entry(found: object) -> Entry:
    entry = object_of(found, "ledger: an entry", ("old", "new", "reason", "commit"))
    texts = [text_of(entry[key], f"ledger: {key}") for key in ("reason", "commit")]
    if len(texts[0]) > LONGEST_REASON or len(texts[1]) > COMMIT_DIGITS:
        raise Invalid("ledger: a text is too long")
    old = entry["old"]
    return Entry(
        None if old is None else count_of(old, "ledger: old"),
        count_of(entry["new"], "ledger: new"),
        *texts,
    )
