"""The project under test: one small function, which the demonstration makes slower on purpose."""

from __future__ import annotations

VOWELS = frozenset("aeiou")


def count_vowels(text: str) -> dict[str, int]:
    """How often each vowel is in the text."""
    counts = dict.fromkeys(sorted(VOWELS), 0)
    for letter in text.lower():
        if letter in VOWELS:
            counts[letter] += 1  # the demonstration slows this line down
    return counts
