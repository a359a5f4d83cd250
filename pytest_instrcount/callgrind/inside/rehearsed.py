"""The tests of the rehearsal: one that takes the fixture, and one with the marker alone.

In a file of the package, since the name of a file made for the run would differ from run to run.
"""

from __future__ import annotations

from pathlib import Path

from pytest_instrcount.fixtures.instrcount import InstrCount


def test_by_fixture(instrcount: InstrCount, tmp_path: Path) -> None:
    """The way of a test that counts one call."""
    assert instrcount(sum, [1, 2]) == 3


def test_by_marker() -> None:
    """The way of a test that is counted as a whole."""
    assert 1 + 1 == 2
