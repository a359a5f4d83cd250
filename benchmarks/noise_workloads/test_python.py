"""Pure Python: loops, numbers, classes, exceptions, generators, recursion."""

import contextlib
import dataclasses
import enum
import functools
import itertools

import pytest

pytestmark = pytest.mark.instrcount


class Vector:
    """A class with operators and properties."""

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    @property
    def length(self):
        return self.x * self.x + self.y * self.y


class Slotted:
    """A class with slots and a base class that is called."""

    __slots__ = ("items", "name")

    def __init__(self, name):
        self.name = name
        self.items = []

    def add(self, item):
        self.items.append(item)
        return self


class Named(Slotted):
    """Calls its base class."""

    __slots__ = ()

    def add(self, item):
        return super().add((self.name, item))


@dataclasses.dataclass
class Point:
    """Compared and shown."""

    x: int
    y: int = 0
    label: str = "point"


class Colour(enum.Enum):
    """Looked up by value and by name."""

    red = 1
    green = 2
    blue = 3


class Missing(Exception):
    """Raised and caught."""


def test_loop():
    value = 1
    for number in range(4000):
        value = (value * 31 + number) % 1_000_003
    assert value


def test_sieve():
    flags = [True] * 2000
    for number in range(2, 45):
        if flags[number]:
            for multiple in range(number * number, 2000, number):
                flags[multiple] = False
    assert sum(flags) == 305


def test_floats():
    x = y = 0.0
    for number in range(2000):
        x, y = x * x - y * y + 0.1, 2.0 * x * y + number / 1e6
    assert x == x


def test_big_integers():
    product = 1
    for number in range(1, 250):
        product *= number
    assert len(str(product)) == 491


def test_matrix():
    rows = [[(row * column) % 7 for column in range(12)] for row in range(12)]
    product = [[sum(a * b for a, b in zip(row, column)) for column in zip(*rows)] for row in rows]
    assert product[1][1] >= 0


def test_classes():
    total = Vector(0, 0)
    for number in range(600):
        total = total + Vector(number, 1)
    assert total.length


def test_slots_and_super():
    names = [Named(f"name{number}") for number in range(40)]
    for named in names:
        for number in range(10):
            named.add(number)
    assert len(names[0].items) == 10


def test_dataclasses():
    points = [Point(number % 17, number) for number in range(300)]
    assert sum(point == Point(3, 3) for point in points) == 1
    assert len({repr(point) for point in points}) == 300


def test_enums():
    found = [Colour(1 + number % 3) for number in range(300)]
    found += [Colour[name] for name in ("red", "green", "blue") * 60]
    assert found.count(Colour.red) == 160


def test_exceptions():
    caught = 0
    for number in range(500):
        try:
            if number % 2:
                raise Missing(number)
            [][number]
        except Missing:
            caught += 1
        except IndexError:
            pass
    assert caught == 250


def test_generators():
    def count(limit):
        for number in range(limit):
            received = yield number
            if received:
                return

    def chain(limit):
        yield from count(limit)
        yield from (number * 2 for number in count(limit))

    assert sum(chain(1500)) > 0


def test_context_managers():
    @contextlib.contextmanager
    def collecting(into):
        into.append(1)
        yield into
        into.append(2)

    found = []
    for _ in range(200):
        with collecting(found), contextlib.suppress(KeyError):
            {}["absent"]
    assert len(found) == 400


def test_recursion():
    @functools.cache
    def paths(row, column):
        if not row or not column:
            return 1
        return paths(row - 1, column) + paths(row, column - 1)

    def depth(number):
        return 0 if number == 0 else 1 + depth(number - 1)

    assert paths(20, 20) > depth(200)


def test_closures():
    def adder(amount):
        return lambda value, *rest, scale=1: value * scale + amount + len(rest)

    adders = [adder(number) for number in range(50)]
    assert sum(add(1, 2, 3, scale=2) for add in adders for _ in range(20)) > 0


def test_sorting(numbers):
    assert sorted(numbers, key=lambda number: (number % 10, -number))[0] % 10 == 0
    assert sorted(map(str, numbers))[0] == "0"


def test_itertools():
    pairs = itertools.combinations(range(60), 2)
    grouped = itertools.groupby(sorted(a + b for a, b in pairs), key=lambda number: number // 10)
    assert len([list(group) for _, group in grouped]) == 12
