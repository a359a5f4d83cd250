"""The project's own function; the one that the demonstration slows down."""

from __future__ import annotations

import pytest
from workload import count_vowels

TEXT = "performance is a feature, and a feature needs a test " * 40


@pytest.mark.instrcount(max_delta="1%")
def test_count_vowels() -> None:
    assert count_vowels(TEXT)["e"] == 360
