"""Maps whose keys are objects themselves, whatever they say to ``==``."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class IdentityMap(Generic[V]):
    """object -> value, while the object lives; what cannot be referred to weakly is kept alive.

    An ``id`` alone would be used again by the next object.

    >>> seen = IdentityMap()
    >>> class Same:
    ...     def __eq__(self, other): return True
    ...     __hash__ = None
    >>> a, b = Same(), Same()
    >>> seen[a] = "a"
    >>> seen.get(a), seen.get(b)
    ('a', None)
    >>> del a
    >>> len(seen)
    0
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[object, V]] = {}

    def __setitem__(self, key: object, value: V) -> None:
        number = id(key)
        try:
            self._values[number] = (weakref.ref(key, self._forget(number)), value)
        except TypeError:
            self._values[number] = (key, value)

    def _forget(self, number: int) -> Callable[[object], None]:
        values = self._values

        def forget(reference: object) -> None:
            if number in values and values[number][0] is reference:
                del values[number]

        return forget

    def get(self, key: object) -> V | None:
        """The value of this very object, or None."""
        found = self._values.get(id(key))
        return None if found is None else found[1]

    def __len__(self) -> int:
        return len(self._values)
