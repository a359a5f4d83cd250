"""The doctor with real Valgrind: three tests that leak, and one that does not."""

from __future__ import annotations

import sys

import pytest

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

LEAKING = """
import os, pathlib, time
import pytest
pytestmark = pytest.mark.instrcount
CACHE = pathlib.Path(__file__).with_name("cache.txt")

def test_fill():
    CACHE.write_text("x" * 5000)

def test_leaks():
    for letter in os.path.dirname(__file__) * 20:
        letter.upper()
    for letter in CACHE.read_text() if CACHE.exists() else "":
        letter.upper()
    for word in {"tea", "milk", "jam", "egg", "rice", "corn", "bean", "leek"}:
        if word == "tea":
            break
        sum(range(9999))

def test_steady():
    assert sorted(str(n) for n in range(300))

def test_clock():
    sum(range(time.time_ns() // 1000 % 1000))
"""


def test_leaks_are_named(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash seed, path and what a neighbour leaves are told apart; a steady test has none of them."""
    project.makeini("[pytest]\ninstrcount_env = PYTHONHASHSEED\n")
    project.makepyfile(test_it=LEAKING)
    monkeypatch.setenv("COLUMNS", "100")

    def states(test: str) -> list[tuple[str, str]]:
        result = project.run(
            sys.executable, "-m", "pytest_instrcount", "doctor", f"test_it.py::{test}"
        )
        assert result.ret == 1  # the setting alone is one
        lines = result.stdout.str().partition("\nok    counted ")[2].splitlines()[1:]
        return [
            (line[:5].strip(), line[6:18].strip())
            for line in lines
            if line.startswith(("ok ", "warn ", "fail "))
        ]

    ways = ["again", "environment", "hash seed", "path", "order", "order"]
    assert states("test_steady") == [("ok", way) for way in ways]
    assert not project.path.joinpath("cache.txt").exists()  # neighbours ran elsewhere
    # neighbours are measured at the same time: whether they come too late for "before" is chance
    *leaks, before, after = states("test_leaks")
    assert leaks == [
        ("ok", "again"),
        ("ok", "environment"),
        ("fail", "hash seed"),
        ("fail", "path"),
    ]
    assert before[1] == "order"
    assert after == ("fail", "order")
    assert states("test_clock") == [("fail", "again")]
