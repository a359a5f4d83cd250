"""Code whose growth is known: five workloads each of linear, n log n and quadratic code.

Each takes what its second function makes of a size; that is not counted. Sizes are the default ones,
unless a workload needs larger ones for its class to show.
"""

from __future__ import annotations

import bisect
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_instrcount.gate.scaling import default_sizes, parse_growth


def shuffled(size: int) -> list[int]:
    numbers = list(range(size))
    random.Random(size).shuffle(numbers)
    return numbers


def words(size: int) -> list[str]:
    return [f"word{number:08}" for number in shuffled(size)]


# linear


def add_up(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += number & 255
    return total


def build_dict(numbers: list[int]) -> dict[int, int]:
    return {number: number for number in numbers}


def join_strings(texts: list[str]) -> str:
    return ", ".join(text.upper() for text in texts)


def intersect_sets(texts: list[str]) -> int:
    return len(set(texts) & set(texts[::2]))


def push_on_heap(numbers: list[int]) -> list[int]:
    """Linear for numbers in random order: a new one climbs two steps on average."""
    heap: list[int] = []
    for number in numbers:
        heapq.heappush(heap, number)
    return heap


# n log n


def sort_numbers(numbers: list[int]) -> list[int]:
    return sorted(numbers)


def sort_words(texts: list[str]) -> list[str]:
    return sorted(texts)


def sort_by_heap(numbers: list[int]) -> list[int]:
    heap = list(numbers)
    heapq.heapify(heap)
    return [heapq.heappop(heap) for _ in range(len(heap))]


def sort_by_merging(numbers: list[int]) -> list[int]:
    if len(numbers) < 2:
        return numbers
    half = len(numbers) // 2
    left, right = sort_by_merging(numbers[:half]), sort_by_merging(numbers[half:])
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def look_up_by_bisect(numbers: list[int]) -> int:
    ordered = list(range(len(numbers)))
    return sum(bisect.bisect(ordered, number) for number in numbers)


# quadratic


def count_inversions(numbers: list[int]) -> int:
    found = 0
    for place, number in enumerate(numbers):
        for other in numbers[:place]:
            if other > number:
                found += 1
    return found


def insert_in_front(numbers: list[int]) -> list[int]:
    made: list[int] = []
    for number in numbers:
        made.insert(0, number)
    return made


def find_in_list(numbers: list[int]) -> int:
    seen: list[int] = []
    for number in numbers:
        if number not in seen:
            seen.append(number)
    return len(seen)


def flatten_by_adding(numbers: list[int]) -> list[int]:
    """Each sum is a new list."""
    empty: list[int] = []
    return sum(([number] for number in numbers), empty)


def cut_from_front(texts: list[str]) -> int:
    """A text that is cut word by word copies the rest each time, by many characters at once."""
    text, number = " ".join(texts), 0
    while text:
        _, _, text = text.partition(" ")
        number += 1
    return number


@dataclass(frozen=True)
class Workload:
    """A function, what makes its input, and the sizes at which it is counted."""

    function: Callable[[Any], object]
    make: Callable[[int], Any]
    sizes: tuple[int, ...]


_LINEAR, _LINEARITHMIC, _QUADRATIC = (
    default_sizes(parse_growth(each)) for each in ("n", "n log n", "n^2")
)

#: Class of growth -> workloads.
WORKLOADS = {
    "n": [
        Workload(add_up, shuffled, _LINEAR),
        Workload(build_dict, shuffled, _LINEAR),
        Workload(join_strings, words, _LINEAR),
        Workload(intersect_sets, words, _LINEAR),
        Workload(push_on_heap, shuffled, _LINEAR),
    ],
    "n log n": [
        Workload(sort_numbers, shuffled, _LINEARITHMIC),
        Workload(sort_words, words, _LINEARITHMIC),
        Workload(sort_by_heap, shuffled, _LINEARITHMIC),
        Workload(sort_by_merging, shuffled, _LINEARITHMIC),
        Workload(look_up_by_bisect, shuffled, _LINEARITHMIC),
    ],
    "n^2": [
        Workload(count_inversions, shuffled, _QUADRATIC),
        Workload(insert_in_front, shuffled, _QUADRATIC),
        Workload(find_in_list, shuffled, _QUADRATIC),
        Workload(flatten_by_adding, shuffled, _QUADRATIC),
        Workload(cut_from_front, words, (2048, 8192, 32_768)),
    ],
}
