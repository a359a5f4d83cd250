"""Which shard of the suite a run is, as the plugins that make shards are told."""

from __future__ import annotations

import pytest

#: Options: of how many shards, and which, counted from.
_OPTIONS = (
    ("splits", "group", 1),  # pytest-split
    ("num_shards", "shard_id", 0),  # pytest-shard
    ("test-group-count", "test-group", 1),  # pytest-test-groups
)


def shard_of(config: pytest.Config) -> tuple[int, int] | None:
    """The number of this shard, from 1, and of how many; None where the run is not one of several."""
    for count, which, first in _OPTIONS:
        of, given = getattr(config.option, count, None), getattr(config.option, which, None)
        if type(of) is int and type(given) is int:  # another plugin may have such an option
            number = given - first + 1
            if of > 1 and 1 <= number <= of:
                return number, of
    return None
