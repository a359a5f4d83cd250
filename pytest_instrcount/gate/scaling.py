"""Growth of a count with the size of the input: the classes, and how counts are assigned to one."""

from __future__ import annotations

import math
import re
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

#: Of three sizes that are judged together, each is at least so many times the one before.
LEAST_STEP = 2
#: Counts that differ by no more, as a fraction of the smallest, do not grow: layout noise is less.
_CONSTANT = Fraction(1, 40)

_LARGEST_SIZE = 10**12
_LARGEST_EXPONENT = 10
_SPELLED = re.compile(r"1|(?:(?P<n>n)(?:\^(?P<power>[0-9]+(?:\.[0-9]+)?))?)?(?P<log>logn)?")
_NOT_INFINITE = 1e9
_WRITE_CLASS = 'write a class of growth, like "n", "n log n", "n^2" or "n^1.5"'
_WRITE_SIZES = (
    "write the name of a parameter, or three or more whole numbers, each at least twice the one "
    "before, like [256, 1024, 4096]"
)


@dataclass(frozen=True, slots=True, order=True)
class Growth:
    """A class of growth: ``n ** exponent``, times ``log n`` where ``log`` is 1; the worse is greater.

    >>> Growth(Fraction(1), 1) < Growth(Fraction(2), 0)
    True
    """

    exponent: Fraction
    log: int

    def __str__(self) -> str:
        """As people write it; `parse_growth` reads it back.

        >>> print(parse_growth("O(n*log(n))"), parse_growth("n^1.50"), parse_growth(1), sep=", ")
        n log n, n^1.5, 1
        """
        parts = []
        if self.exponent:
            power = f"{float(self.exponent):g}"
            parts.append("n" if power == "1" else f"n^{power}")
        if self.log:
            parts.append("log n")
        return " ".join(parts) or "1"

    def value(self, size: int) -> float:
        """The function of this class, up to a constant factor and a constant.

        That of class 1 is -1/n: counts that grow towards a bound, each time by less.
        """
        if not self.exponent and not self.log:
            return -1.0 / size
        return math.pow(size, self.exponent) * (math.log(size) if self.log else 1.0)


#: The classes that are told apart, the best first; one that a marker names is added.
CLASSES = tuple(
    Growth(Fraction(exponent), log)
    for exponent, log in (
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (Fraction(3, 2), 0),
        (2, 0),
        (2, 1),
        (3, 0),
    )
)


def default_sizes(allowed: Growth) -> tuple[int, int, int]:
    """Sizes where the marker does not say them; the smaller, the more steps are allowed.

    Each is four times the one before: what happens at powers of two (a dict or a set that grows)
    then falls alike in each. Few of the numbers up to 512 are those up to 256, which CPython keeps
    and need not make.

    >>> default_sizes(parse_growth("n log n"))
    (512, 2048, 8192)
    """
    if allowed.exponent <= 1:
        return (512, 2048, 8192)
    return (256, 1024, 4096) if allowed.exponent <= 2 else (32, 128, 512)


def parse_growth(given: object) -> Growth:
    """Read a class of growth as people write it. Raises ValueError for all else.

    >>> parse_growth("n log n") == parse_growth("O(n log n)") == Growth(Fraction(1), 1)
    True
    """
    if isinstance(given, Growth):
        return given
    if type(given) is int:
        given = str(given)
    if not isinstance(given, str) or len(given) > 40:
        raise ValueError(_WRITE_CLASS)
    text = re.sub(r"[\s()*]", "", given.lower().replace("**", "^").removeprefix("o("))
    match = _SPELLED.fullmatch(text) if text else None
    if match is None:
        raise ValueError(_WRITE_CLASS)
    power = Fraction(match["power"] or 1) if match["n"] else Fraction(0)
    if not power <= _LARGEST_EXPONENT or bool(match["n"]) != bool(power):
        raise ValueError(_WRITE_CLASS)
    return Growth(power, 1 if match["log"] else 0)


def parse_sizes(given: object) -> str | tuple[int, ...]:
    """Read sizes: the name of a parameter, or the sizes themselves. Raises ValueError for all else.

    >>> parse_sizes("n"), parse_sizes([4096, 256, 1024])
    ('n', (256, 1024, 4096))
    """
    if isinstance(given, str):
        if given.isidentifier():
            return given
        raise ValueError(_WRITE_SIZES)
    if not isinstance(given, Collection):  # an iterator would be used up by the first who reads it
        raise ValueError(_WRITE_SIZES)
    sizes = list(given)
    if not all(map(is_size, sizes)) or not can_be_judged(sizes):
        raise ValueError(_WRITE_SIZES)
    return tuple(sorted(set(sizes)))


def is_size(given: object) -> bool:
    """True if it is a whole number, 1 or more, and one that a test can mean."""
    return type(given) is int and 1 <= given <= _LARGEST_SIZE


def can_be_judged(sizes: Iterable[int]) -> bool:
    """True if three of the sizes are far enough apart.

    >>> can_be_judged([1000, 2000, 4000]), can_be_judged([1000, 1500, 2000, 2500])
    (True, False)
    """
    return bool(_triples(sizes))


def _triples(sizes: Iterable[int]) -> list[tuple[int, int, int]]:
    """Each two sizes that are far enough apart, with the one that is nearest to the middle."""
    ordered = sorted(set(sizes))
    found = []
    for small, large in combinations(ordered, 2):
        first = bisect_left(ordered, LEAST_STEP * small)
        after = bisect_right(ordered, large // LEAST_STEP)
        if first < after:
            mean = math.isqrt(small * large)
            place = bisect_left(ordered, mean, first, after)
            near = ordered[max(first, place - 1) : min(after, place + 1)]
            found.append((small, min(near, key=lambda size: abs(size - mean)), large))
    return found


def find_growth(counts: Mapping[int, Fraction], allowed: Growth | None = None) -> Growth:
    """The class in which counts grow, from size -> count; ``allowed`` is looked at beside `CLASSES`.

    The model is ``a + b * f(n)``. Of three sizes, ``(c3 - c2) / (c2 - c1)`` depends neither on
    ``a`` nor on ``b``, so each class says what this ratio must be, and the one that comes nearest
    (by the logarithm) is the answer. Of more sizes, each two that are far enough apart are looked
    at with the one in their middle, and the median of what they say counts. Where counts differ
    by 2.5 % at most, they do not grow. Raises ValueError if no three sizes are far enough apart.

    >>> print(find_growth({n: Fraction(900 + 7 * n) for n in (100, 400, 1600)}))
    n
    >>> print(find_growth({n: Fraction(10**6 + n * n) for n in (100, 400, 1600)}))
    n^2
    """
    triples = _triples(counts)
    if not triples:
        raise ValueError(f"no three sizes are far enough apart: {sorted(counts)}")
    least, most = min(counts.values()), max(counts.values())
    if most - least <= least * _CONSTANT:
        return CLASSES[0]
    measured = [
        _log_ratio(*(counts[each] for each in triple)) / math.log(triple[2] / triple[0])
        for triple in triples
    ]
    candidates = sorted({*CLASSES, *(() if allowed is None else (allowed,))})

    def distance(growth: Growth) -> float:
        return statistics.median(
            found - expected_ratio(growth, triple) / math.log(triple[2] / triple[0])
            for found, triple in zip(measured, triples)
        )

    # of two that are equally near, the better: a gate that cannot tell them apart must not fail
    nearest: Growth = min(candidates, key=lambda growth: (abs(distance(growth)), growth))
    return nearest


def expected_ratio(growth: Growth, sizes: tuple[int, int, int]) -> float:
    """The logarithm of the ratio of the two steps of a class."""
    small, middle, large = map(growth.value, sizes)
    return math.log((large - middle) / (middle - small))


def _log_ratio(small: Fraction, middle: Fraction, large: Fraction) -> float:
    """The same of counts; very large or small where one of the steps is no growth."""
    if large <= middle:
        return -_NOT_INFINITE
    if middle <= small:
        return _NOT_INFINITE
    ratio = (large - middle) / (middle - small)
    return math.log(ratio.numerator) - math.log(ratio.denominator)
