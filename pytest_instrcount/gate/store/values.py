"""Values of a JSON text that nobody vouches for: read without floats, each checked for type and range."""

from __future__ import annotations

import json
from collections.abc import Collection

#: The largest number that is read.
LARGEST_COUNT = 2**63 - 1
_MOST_DIGITS = 20


class Invalid(ValueError):
    """The JSON is no baseline; the text says why."""


def load(text: str) -> object:
    """Parse a JSON text; floats and duplicate keys are errors. Raises ValueError and RecursionError."""

    def refuse(number: str) -> object:
        raise Invalid(f"{number[:20]} is not an integer")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise Invalid("a key is there twice")
        return found

    def integer(digits: str) -> int:
        # longer ones are out of every range of ours, and dear to read
        return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS

    return json.loads(
        text,
        parse_float=refuse,
        parse_int=integer,
        parse_constant=refuse,
        object_pairs_hook=unique,
    )


def count_of(value: object, what: str, least: int = 0) -> int:
    """A value that is a count. Raises Invalid with ``what`` it is."""
    if type(value) is not int or not least <= value <= LARGEST_COUNT:  # a bool is no count
        raise Invalid(f"{what} is not an integer from {least} to 2^63")
    return value


def text_of(value: object, what: str) -> str:
    """A value that is a text. Raises Invalid."""
    if not isinstance(value, str):
        raise Invalid(f"{what} is not a text")
    return value


def list_of(value: object, what: str, most: int | None = None) -> list[object]:
    """A value that is a list, of ``most`` entries. Raises Invalid."""
    if not isinstance(value, list) or (most is not None and not 0 < len(value) <= most):
        raise Invalid(f"{what} is not a list" + (f" of 1 to {most} entries" if most else ""))
    return value


def object_of(value: object, what: str, keys: Collection[str] | None = None) -> dict[str, object]:
    """A value that is an object, with these keys and no others. Raises Invalid."""
    if not isinstance(value, dict):
        raise Invalid(f"{what} is not an object")
    if keys is not None and value.keys() != set(keys):
        odd = sorted(ascii(str(key)) for key in value.keys() ^ set(keys))
        raise Invalid(f"{what}: missing or unknown keys: {', '.join(odd[:5])}")
    return {str(key): one for key, one in value.items()}


def texts_of(value: object, what: str) -> dict[str, str]:
    """A value that is an object of texts. Raises Invalid."""
    return {key: text_of(one, f"{what}: {key}") for key, one in object_of(value, what).items()}


def counts_of(value: object, what: str) -> dict[str, int]:
    """A value that is an object of counts. Raises Invalid."""
    return {key: count_of(one, f"{what}: {key}") for key, one in object_of(value, what).items()}
