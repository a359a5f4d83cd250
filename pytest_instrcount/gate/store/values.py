"""Values of a JSON text that nobody vouches for: read without floats, each checked for type and range."""

from __future__ import annotations

import json
from collections.abc import Mapping

#: The largest number that is read.
LARGEST_COUNT = 2**63 - 1
_MOST_DIGITS = 20


class Invalid(ValueError):
    """The JSON is no baseline; the text says why."""


def load(text: str) -> object:
    """What a JSON text holds; no float, no key twice. Raises ValueError and RecursionError."""

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


def count_in(found: Mapping[str, object], key: str, least: int = 0) -> int:
    """The count under a key. Raises Invalid."""
    value = found.get(key)
    if type(value) is not int or not least <= value <= LARGEST_COUNT:  # a bool is no count
        raise Invalid(f"{key} is not an integer from {least} to 2^63")
    return value


def text_in(found: Mapping[str, object], key: str) -> str:
    """The text under a key. Raises Invalid."""
    value = found[key]
    if not isinstance(value, str):
        raise Invalid(f"{key} is not a text")
    return value


def texts_in(found: Mapping[str, object], key: str) -> dict[str, str]:
    """The object of texts under a key. Raises Invalid."""
    value = found[key]
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise Invalid(f"{key} is not an object of texts")
    return {str(name): str(one) for name, one in value.items()}
