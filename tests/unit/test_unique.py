"""Keys that must not come twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.ranges.unique import EnforceUnique

KEYS = st.tuples(st.integers(0, 3)) | st.tuples(st.integers(0, 3), st.text("ab", max_size=1))


@given(st.lists(KEYS))
def test_a_key_may_come_once(keys: list[tuple[object, ...]]) -> None:
    """The first one that was seen before is refused; its parts are told apart from one key."""
    unique, seen = EnforceUnique(), set()
    for key in keys:
        if key in seen:
            with pytest.raises(InstrcountError) as caught:
                unique.see(*key)
            assert caught.value.slug == "duplicate-key"
        else:
            unique.see(*key)
        seen.add(key)


def test_the_message_names_key_and_kind() -> None:
    """One part is shown without brackets."""
    unique = EnforceUnique("baselines")
    unique.see("a\n")
    with pytest.raises(InstrcountError, match=r"two baselines are called 'a\\n'"):
        unique.see("a\n")


def test_each_has_its_own_keys() -> None:
    """Two of them do not know each other."""
    EnforceUnique().see(1)
    EnforceUnique().see(1)
