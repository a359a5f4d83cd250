"""Reading what a stranger wrote takes instructions in proportion to its size: counted, by Timer."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_instrcount import Timer

pytestmark = [
    pytest.mark.valgrind,
    pytest.mark.long,
    pytest.mark.usefixtures("all_layouts"),
]

ROOT = str(Path(__file__).parents[2])
#: Instructions may grow by so much where the input doubles.
_MOST_GROWTH = 2.2

# Shapes whose cost is in C: regular expressions, sorting, text, JSON, SQLite. Executed lines
# (tests/unit/test_fuzz.py) do not see these.
_SHAPES = [
    ("baseline", "functions"),
    ("baseline", "controls"),
    ("baseline", "digits"),
    ("baseline", "objects"),
    ("bundle", "text"),
    ("calls", "functions"),
    ("callgrind", "callers"),
    ("callgrind", "clones"),
    ("callgrind", "quotes"),
    ("nvprof", "ranges"),
]


def instructions(name: str, shape: str, size: int) -> int:
    """Of one run of a target; another one before has filled the caches."""
    timer = Timer(
        "targets.run(name, data)",
        f"import sys; sys.path.insert(0, {ROOT!r})\n"
        "from fuzz import targets\nfrom fuzz.growing import GROWING\n"
        f"name, data = {name!r}, GROWING[{name!r}][{shape!r}]({size})\n"
        "targets.run(name, data)",
    )
    return timer.collect_callgrind(number=1, repeats=1, collect_baseline=False)[0].counts()


@pytest.mark.parametrize(("name", "shape"), _SHAPES)
def test_instructions_are_linear(name: str, shape: str) -> None:
    """Twice the input, at most twice the instructions."""
    small, large = (instructions(name, shape, size) for size in (150, 300))
    assert small > 10_000
    assert large <= small * _MOST_GROWTH
