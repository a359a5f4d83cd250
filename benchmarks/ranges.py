"""What a range costs: with nothing that records it, and in a session.

    python benchmarks/ranges.py

Prints the best of some rounds, in microseconds; an empty with-block is not subtracted.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

from pytest_instrcount.trace.ranges.ranges import record_function
from pytest_instrcount.trace.ranges.session import start, stop

CALLS = 50_000
ROUNDS = 7


def block() -> None:
    with record_function("x"):
        pass


@record_function("x")
def decorated() -> None:
    pass


def microseconds(func: Callable[[], None], setup: Callable[[], object] = lambda: None) -> float:
    """The best round, per call."""
    return min(timeit.repeat(func, setup, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def main() -> None:
    """Measure and print."""
    for name, func in (("with-block", block), ("decorated function", decorated)):
        off = microseconds(func)
        start()
        try:
            on = microseconds(func, lambda: stop(cleanup=False))
        finally:
            stop()
        print(f"{name}: {off:.2f} us without a session, {on:.2f} us in one")


if __name__ == "__main__":
    main()
