"""The tests that wait to be measured: thousands of them, looked at after each event. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias

from pytest_instrcount.callgrind.supervisor.runs import FileKey, Test, zygote_of

#: Tests that wait for the same: that a file is imported, or for a process of their own.
Line: TypeAlias = tuple[FileKey, bool]
#: Tests by their numbers, which no two share.
Numbered: TypeAlias = list[tuple[int, Test]]


@dataclass(slots=True, eq=False)
class Waiting:
    """Tests in the order of their numbers, which is that in which pytest wants the results.

    One is taken in about the same time however many there are.
    """

    #: each a heap; none is empty
    _lines: dict[Line, Numbered] = field(default_factory=dict)
    #: heap of the first number of each line; some are out of date
    _first: list[tuple[int, Line]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def put(self, test: Test) -> None:
        """One test more, or again."""
        line = test.file, test.alone
        tests = self._lines.setdefault(line, [])
        heappush(tests, (test.index, test))
        if tests[0][1] is test:
            self._note(line)

    @property
    def first(self) -> Test:
        """The test that `take` would give. Raises IndexError if there is none."""
        while True:
            number, line = self._first[0]
            if line in self._lines and self._lines[line][0][0] == number:
                return self._lines[line][0][1]
            heappop(self._first)

    def take(self) -> Test:
        """Take the first test. Raises IndexError if there is none."""
        test = self.first
        _, line = heappop(self._first)
        heappop(self._lines[line])
        if self._lines[line]:
            self._note(line)
        else:
            del self._lines[line]
        return test

    def withhold(self, test: Test) -> Numbered:
        """Take back a test that was taken too early, and all that wait for the same: for `put_back`."""
        tests = self._lines.pop((test.file, test.alone), [])
        heappush(tests, (test.index, test))
        return tests

    def put_back(self, tests: Numbered) -> None:
        """Offer again what was withheld."""
        line = tests[0][1].file, tests[0][1].alone
        for each in self._lines.get(line, ()):
            heappush(tests, each)
        self._lines[line] = tests
        self._note(line)

    def take_all(self, key: FileKey) -> list[Test]:
        """Take all tests of a file."""
        found = [each for alone in (False, True) for each in self._lines.pop((key, alone), ())]
        return [test for _, test in sorted(found)]

    def wants(self, key: FileKey) -> bool:
        """True if a test waits for a fork of this file's child."""
        return (key, False) in self._lines

    def wants_zygote(self, number: int) -> bool:
        """True if a test waits for a fork of the zygote of this number."""
        return any(zygote_of(layout) == number for (_, layout), alone in self._lines if not alone)

    def _note(self, line: Line) -> None:
        heappush(self._first, (self._lines[line][0][0], line))
