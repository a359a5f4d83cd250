"""Which shard a run is, by the options of the plugins that make shards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.config.shards import shard_of

#: What pytest-shard says where it was told nothing.
DEFAULT = {"num_shards": 1, "shard_id": 0}


@pytest.mark.parametrize(
    ("options", "shard"),
    [
        ({"splits": 4, "group": 1}, (1, 4)),
        ({"splits": 4, "group": 4}, (4, 4)),
        ({"num_shards": 2, "shard_id": 0}, (1, 2)),
        ({"num_shards": 2, "shard_id": 1}, (2, 2)),
        ({"test-group-count": 3, "test-group": 3}, (3, 3)),
        ({**DEFAULT, "splits": 4, "group": 2}, (2, 4)),
        ({"splits": None, "group": None, "num_shards": 3, "shard_id": 2}, (3, 3)),
        ({}, None),
        (DEFAULT, None),
        ({"splits": 1, "group": 1}, None),
        ({"splits": None, "group": None}, None),
        ({"test-group-count": -1, "test-group": -1}, None),
        ({"splits": 4}, None),
        ({"group": 1}, None),
        ({"splits": 4, "group": 0}, None),
        ({"splits": 4, "group": 5}, None),
        ({"num_shards": 2, "shard_id": 2}, None),
        ({"num_shards": 2, "shard_id": -1}, None),
        ({"splits": "4", "group": "1"}, None),
        ({"splits": True, "group": True}, None),
        ({"splits": 4, "group": ["all"]}, None),
        ({"splits": 4.0, "group": 1.0}, None),
    ],
)
def test_shard_of(options: dict[str, Any], shard: tuple[int, int] | None) -> None:
    """Counted from 1, whatever the plugin counts from; options of the same name may be anybody's."""
    config: Any = SimpleNamespace(option=SimpleNamespace(**options))
    assert shard_of(config) == shard
