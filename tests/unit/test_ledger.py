"""The ledger of a baseline: bounded, in one line each, and never trusted when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline_json import parse_baseline
from pytest_instrcount.gate.store.ledger import (
    LONGEST_REASON,
    MOST_ENTRIES,
    Entry,
    add_entry,
    ledger_values,
    parse_ledger,
    parse_reason,
)
from tests.baselines import SAMPLE, read_whole

ENTRY = {"old": 1, "new": 2, "reason": "r", "commit": ""}

entries = st.builds(
    Entry,
    st.none() | st.integers(0, 2**63 - 1),
    st.integers(0, 2**63 - 1),
    st.text(max_size=LONGEST_REASON),
    st.text(max_size=12),
)


@given(st.lists(entries, min_size=1, max_size=MOST_ENTRIES))
def test_what_is_written_is_read(ledger: list[Entry]) -> None:
    assert parse_ledger(json.loads(json.dumps(ledger_values(ledger)))) == tuple(ledger)


@given(st.lists(entries))
def test_it_stays_short(added: list[Entry]) -> None:
    """Its newest entries; none for a count that did not change."""
    ledger: tuple[Entry, ...] = ()
    for entry in added:
        ledger = add_entry(ledger, entry)
    changes = [each for each in added if each.old != each.new]
    assert ledger == tuple(changes[-MOST_ENTRIES:])


@pytest.mark.parametrize("given", ["", " \n", "a" * 201, "\udc80"])
def test_reasons_that_are_none(given: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_reason(given)


def test_a_baseline_without_a_reason_has_an_empty_ledger() -> None:
    """The key is always there."""
    text = json.dumps({**read_whole(SAMPLE), "ledger": []})
    assert parse_baseline(text, Path("x")).ledger == ()


@pytest.mark.parametrize(
    "ledger",
    [
        None,
        {},
        [ENTRY] * 11,
        [1],
        [{**ENTRY, "more": 1}],
        [{**ENTRY, "old": -1}],
        [{**ENTRY, "new": None}],
        [{**ENTRY, "new": True}],
        [{**ENTRY, "new": 2**63}],
        [{**ENTRY, "reason": None}],
        [{**ENTRY, "reason": "a" * 201}],
        [{**ENTRY, "commit": "a" * 13}],
        [{**ENTRY, "commit": []}],
    ],
)
def test_ledgers_that_are_none(ledger: Any) -> None:
    """The baseline is then damaged, as with any other part."""
    text = json.dumps({**read_whole(SAMPLE), "ledger": ledger})
    with pytest.raises(InstrcountError, match="ledger") as raised:
        parse_baseline(text, Path("b.json"))
    assert raised.value.slug == "baseline-damaged"
