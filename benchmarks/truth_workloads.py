"""Planted changes, each wholly inside one kind of C work: one test body before and after.

A file of ``truth_kinds`` has what the tests of one kind share, then its cases: a comment with the name,
the lines before, ``# becomes``, and the lines after. A test runs ``work(rounds)``, which is the same
on both sides, and ``times`` over the lines that change. So a change is 0.1 % to 500 % of its test.
"""

from __future__ import annotations

import importlib.util
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = Path(__file__).parent / "truth_kinds"
_CASE = re.compile(r"^# (\w+): times=(\d+) rounds=(\d+)\n", re.MULTILINE)
_BECOMES = "# becomes\n"

#: Work that is common to both sides, of many kinds; about 30,000 instructions a round.
COMMON = """
_WORDS = "the quick fox jumps".split()


class _Place:
    def __init__(self, name, size):
        self.name = name
        self.size = size

    def area(self, factor):
        return self.size * factor + len(self.name)


def work(rounds):
    total = 0
    for number in range(rounds):
        seen = {}
        for word in _WORDS:
            seen[word] = seen.get(word, 0) + 1
        places = [_Place(word, count + number) for word, count in seen.items()]
        total += sum(place.area(3) for place in places)
        total += len(" ".join(sorted(seen)).upper().split("O"))
        total += len(f"{number} of {total}, {total / 7:.2f}")
    return total
"""

_PREFIX = "test_"


@dataclass(frozen=True, slots=True)
class Case:
    """One planted change."""

    name: str
    kind: str
    #: the lines that are run, before and after
    old: str
    new: str
    #: how often they are run in one call of the test
    times: int
    #: of the work that is the same on both sides
    rounds: int

    @property
    def nodeid(self) -> str:
        """Of its test."""
        return f"{_file_of(self.kind)}::{_PREFIX}{self.name}"


def _file_of(kind: str) -> str:
    return f"{_PREFIX}truth_{kind}.py"


def planted() -> Iterator[Case]:
    """All cases; those of NumPy only where it is installed."""
    has_numpy = importlib.util.find_spec("numpy") is not None
    for path in sorted(KINDS.glob("*.py")):
        _, *parts = _CASE.split(path.read_text())
        for name, times, rounds, lines in zip(*(iter(parts),) * 4):
            old, _, new = lines.partition(_BECOMES)
            if has_numpy or "np." not in old:
                yield Case(name, path.stem, old.strip(), new.strip(), int(times), int(rounds))


def write_side(folder: Path, cases: list[Case], body_of: Callable[[Case], str]) -> None:
    """Write the files of tests, the same on both sides but for the bodies."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for kind in dict.fromkeys(case.kind for case in cases):
        shared = _CASE.split((KINDS / f"{kind}.py").read_text())[0]
        parts = [f"{shared}{COMMON}\n\nimport pytest\n\npytestmark = pytest.mark.instrcount\n"]
        for case in cases:
            if case.kind == kind:
                lines = textwrap.indent(body_of(case), " " * 8)
                parts.append(
                    f"def {_PREFIX}{case.name}():\n    work({case.rounds})\n"
                    f"    for _ in range({case.times}):\n{lines}\n"
                )
        (folder / _file_of(kind)).write_text("\n\n".join(parts))
