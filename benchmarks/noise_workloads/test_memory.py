"""Allocating, dicts and sets, strings."""

import collections
import copy

import pytest

pytestmark = pytest.mark.instrcount


@pytest.fixture(autouse=True)
def settings():
    """A fixture for every test of this file, as many projects have one."""
    return {"depth": 8}


class Node:
    """An object with a dict of its own."""

    def __init__(self, value, left=None, right=None):
        self.value = value
        self.left = left
        self.right = right


def test_lists_of_lists():
    rows = [[row, str(row), [column * row for column in range(6)]] for row in range(600)]
    assert len(rows) == 600


def test_trees():
    def grow(depth):
        return Node(depth) if depth == 0 else Node(depth, grow(depth - 1), grow(depth - 1))

    def total(node):
        return node.value + (total(node.left) + total(node.right) if node.left else 0)

    assert total(grow(8)) > 0


def test_growing_buffers():
    buffer = bytearray()
    parts = []
    for number in range(600):
        buffer += b"%d," % number
        parts.append(bytes(number))
    assert len(buffer) < sum(map(len, parts))


def test_deepcopy():
    record = {"name": "x", "tags": ["a", "b", {"c": (1, 2)}], "scores": {1: 2.0, 2: 3.0}}
    assert copy.deepcopy([record] * 3 + [dict(record) for _ in range(12)])[0] == record


def test_dicts_of_strings():
    words = [f"word{number % 300}" for number in range(1500)]
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    assert len(counts) == 300


def test_dicts_of_objects():
    nodes = [Node(number) for number in range(200)]
    order = {node: number for number, node in enumerate(nodes)}
    assert sum(order[node] for node in nodes for _ in range(6)) > 0


def test_dicts_of_tuples():
    grid = {(x, y): x * y for x in range(30) for y in range(30)}
    assert sum(grid.get((x + 1, y - 1), 0) for x in range(30) for y in range(30)) > 0


def test_merging_dicts():
    base = {f"key{number}": number for number in range(60)}
    merged = [{**base, f"key{number}": 0, "more": number} for number in range(60)]
    assert sum(len(each) for each in merged) == 61 * 60


def test_sets():
    words = {f"word{number}" for number in range(500)}
    others = {f"word{number * 3}" for number in range(500)}
    assert len(words & others) + len(words - others) == 500
    assert len(frozenset(words | others)) > 500


def test_sets_of_objects():
    nodes = [Node(number) for number in range(200)]
    seen = set()
    for node in nodes * 4:
        if node not in seen:
            seen.add(node)
    assert len(seen) == 200


def test_counter_and_deque():
    counter = collections.Counter("abcdefghij" * 60 + "xyz" * 30)
    window = collections.deque(maxlen=20)
    groups = collections.defaultdict(list)
    for number in range(800):
        window.append(number)
        groups[number % 13].append(number)
    assert counter["a"] == 60
    assert len(groups) == 13


def test_string_building(text):
    parts = []
    for number, word in enumerate(text.split()):
        parts.append(f"{number:04d}:{word.upper():>8}|")
    assert "".join(parts).startswith("0000:")


def test_string_methods(text):
    found = 0
    for line in text.split("."):
        cleaned = line.strip().replace("quick", "slow").title()
        found += cleaned.count("Slow") + cleaned.startswith("The") + (cleaned.find("Dog") > 0)
    assert found


def test_characters(text):
    table = str.maketrans("aeiou", "uoiea")
    shifted = "".join(chr((ord(letter) - 31) % 95 + 32) for letter in text[:900])
    assert shifted.translate(table)[::-1] != text


def test_encoding(text):
    word = text[:400] + "äöü€"
    for _ in range(40):
        word = word.encode("utf-8").decode("utf-8")
    assert word.casefold().encode("utf-16").decode("utf-16").endswith("€")


def test_concatenation():
    text = ""
    for number in range(1500):
        text += str(number)
    assert len(text) == 4890
