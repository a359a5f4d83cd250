"""Tests that raise what is hard to show, and print what nobody can read."""

from __future__ import annotations

import pytest

from tests.faults.conftest import Compared, Fault, Place, compare, faulty_file

pytestmark = pytest.mark.valgrind

AGAIN = "it passed once and failed when it was repeated [not-measured]"

HEAD = """
class Unprintable(Exception):
    def __str__(self): raise RuntimeError
    __repr__ = __str__
def deep(): deep()
"""

FAULTS = {
    "system_exit": Fault("sys.exit(4)", "", "SystemExit: 4"),
    "recursion_error": Fault("deep()", "", "RecursionError"),
    "memory_error": Fault("raise MemoryError", "", "MemoryError"),
    "base_exception": Fault("raise BaseException('odd')", "", "odd"),
    "unprintable": Fault("raise Unprintable", "", "exception str() failed"),
    "huge": Fault(
        "raise ValueError('x' * 5_000_000)", "", "characters left out by pytest-instrcount"
    ),
    "surrogates": Fault("raise ValueError('\\ud800\\0\\x1b[31m')", "", "ValueError"),
    "system_exit_again": Fault("CALLS.append(1) or len(CALLS) < 2 or sys.exit(4)", "failed", AGAIN),
    "interrupt_again": Fault(
        """
        CALLS.append(1)
        if len(CALLS) > 1: raise KeyboardInterrupt
        """,
        "failed",
        AGAIN,
    ),
    "unprintable_again": Fault(
        """
        CALLS.append(1)
        if len(CALLS) > 1: raise Unprintable
        """,
        "failed",
        AGAIN,
    ),
    "huge_again": Fault(
        """
        CALLS.append(1)
        if len(CALLS) > 1: raise ValueError("x" * 50_000_000)
        """,
        "failed",
        "characters left out by pytest-instrcount",
    ),
    "prints_100_mb": Fault("for _ in range(100): sys.stdout.write('x' * 1_000_000)"),
    "prints_100_mb_past_python": Fault("for _ in range(100): os.write(1, b'x' * 1_000_000)"),
    "prints_100_mb_in_a_fixture": Fault(
        "for _ in range(100): os.write(1, b'x' * 1_000_000)",
        args="tmp_path",
        marker="@pytest.mark.instrcount(warmup=1, calls=1)",
    ),
    "unraisable": Fault(
        """
        class Bad:
            def __del__(self): raise RuntimeError("in __del__")
        Bad()
        """
    ),
}


@pytest.fixture(scope="module")
def compared(module_place: Place) -> Compared:
    """All faults in one run."""
    module_place.write("test_faults.py", faulty_file(FAULTS, HEAD))
    return compare(module_place)


@pytest.mark.parametrize("name", FAULTS)
def test_fault(compared: Compared, name: str) -> None:
    compared.assert_fault(name, FAULTS[name])


def test_the_others_are_equal(compared: Compared) -> None:
    compared.assert_others_equal()


def test_nothing_is_left(compared: Compared) -> None:
    compared.place.assert_nothing_left(compared.tree)


def test_a_keyboard_interrupt_ends_the_run(place: Place) -> None:
    """As it does without the plugin: code 2, no baseline, nothing left."""
    faults = {"interrupt": Fault("raise KeyboardInterrupt")}
    place.write("test_faults.py", faulty_file(faults))
    tree = place.tree()
    done = place.run("--instrcount-update-baseline")
    assert done.code == 2, done.output
    assert "gate skipped: the run was interrupted; no baseline was written" in done.output
    place.assert_nothing_left(tree)
