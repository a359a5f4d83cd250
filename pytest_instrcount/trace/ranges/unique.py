"""Keys that must not come twice."""

from __future__ import annotations

from collections.abc import Hashable

from pytest_instrcount.errors import InstrcountError


class EnforceUnique:
    """Raises an error as soon as a key is seen a second time.

    ``what`` names in the message what the keys are of.

    >>> unique = EnforceUnique("markers")
    >>> unique.see(1, "a")
    >>> unique.see(1, "b")
    >>> unique.see(1, "a")
    Traceback (most recent call last):
    pytest_instrcount.errors.InstrcountError: instrcount: two markers are called (1, 'a') [duplicate-key]
      fix: give each a key of its own
    """

    def __init__(self, what: str = "things") -> None:
        self.what = what
        self._seen: set[tuple[Hashable, ...]] = set()

    def see(self, *key: Hashable) -> None:
        """Note a key of one or more parts; raises InstrcountError (slug "duplicate-key")."""
        if key in self._seen:
            shown = ascii(key[0] if len(key) == 1 else key)
            raise InstrcountError(
                "duplicate-key", f"two {self.what} are called {shown}", "give each a key of its own"
            )
        self._seen.add(key)
