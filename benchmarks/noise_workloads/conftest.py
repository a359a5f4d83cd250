"""Fixtures of the workloads."""

import pytest

SENTENCE = "The quick brown fox jumps over the lazy dog, and then it sleeps in the warm sun. "


@pytest.fixture(scope="module")
def text() -> str:
    """Prose."""
    return SENTENCE * 40


@pytest.fixture
def numbers() -> list[int]:
    """Numbers in no order."""
    return [(number * 7919) % 1009 for number in range(1000)]
