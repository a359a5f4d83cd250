"""Messages that are printed once only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

REMEMBERED = 4096


class Once:
    """Remembers what was said, the latest ``most`` things.

    >>> said = Once()
    >>> said.first("a slow disk"), said.first("a slow disk")
    (True, False)
    """

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._said: OrderedDict[Hashable, None] = OrderedDict()

    def first(self, what: Hashable) -> bool:
        """True if this was not said yet, as far as is remembered."""
        new = what not in self._said
        self._said[what] = None
        self._said.move_to_end(what)
        while len(self._said) > self._most:
            self._said.popitem(last=False)
        return new
