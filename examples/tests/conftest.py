"""Fixtures of the examples: one per module, one per test."""

from __future__ import annotations

import pytest

SENTENCE = "The quick brown fox jumps over the lazy dog, and then it sleeps in the warm sun. "


@pytest.fixture(scope="module")
def text() -> str:
    """Prose, the same for all tests of a module."""
    return SENTENCE * 12


@pytest.fixture
def numbers() -> list[int]:
    """Numbers in no order; a test may sort them in place, the next one has new ones."""
    return [(number * 7919) % 1009 for number in range(400)]
