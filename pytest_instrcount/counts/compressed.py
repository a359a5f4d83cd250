"""Names in a callgrind.out, which are written out once and then referred to by numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

#: What stands for a file that is not known.
UNKNOWN = "???"
# Characters of a name; what C++ makes of templates is far below.
_LONGEST_NAME = 1 << 16
# "'2" behind a name: Callgrind keeps the deeper levels of a recursion apart (--separate-recs).
_RECURSION = re.compile(r"'[0-9]+(?= \[|$)")
_REFERENCE = re.compile(r"\([0-9]+\)")


class Names:
    """A table of compressed names: ``(12) name`` defines, ``(12)`` refers, ``name`` is itself.

    It is asked with the end of the line: to cut that off of each line would cost a fifth of all.
    """

    def __init__(self, shorten: Callable[[str], str], forget: Callable[[], None]) -> None:
        self._shorten = shorten
        #: to be called where a name is defined anew
        self._forget = forget
        self._known: dict[str, str] = {}

    def __getitem__(self, text: str) -> str:
        return self._known.get(text) or self._define(text)

    def _define(self, text: str) -> str:
        reference, _, name = text.rstrip().partition(" ")
        if not _REFERENCE.fullmatch(reference):
            reference = name = text.rstrip()
        if len(name) > _LONGEST_NAME:
            raise ValueError(f"a name of {len(name):,} characters: {name[:40]!r}")
        short = (self._shorten(name) or UNKNOWN) if name else self._known.get(reference)
        if not short:
            raise ValueError(f"a name that was never defined: {text[:40]!r}")
        # a name may be defined anew: under another text it would stay what it was
        if reference in self._known:
            self._forget()
        self._known[reference] = self._known[f"{reference}\n"] = short
        return short


def plain_name(name: str) -> str:
    """Without the mark of a deeper level of a recursion."""
    return _RECURSION.sub("", name) if "'" in name else name


def key_of(file: str, function: str, obj: str) -> str:
    """The name of a row: the object is part of it where the file is not known."""
    return f"{file}:{function} [{obj}]" if file == UNKNOWN else f"{file}:{function}"
