"""A record of each measurement, the latest ones: what it was, what it cost, what became of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

RECORDS = 64


@dataclass(frozen=True, slots=True)
class MeasurementRecord:
    """One answer to what was asked of a process under Valgrind."""

    #: pytest's id of the test
    nodeid: str
    #: instructions per call; None unless counted
    ir: int | None = None
    #: counted calls; None unless counted
    calls: int | None = None
    #: the verdict on this count alone; more counts may change it
    verdict: str = ""
    #: why there is no count: the slug of the message, and its text
    problem: str = ""
    why: str = ""
    #: phase -> seconds in the processes of this test
    seconds: Mapping[str, float] = field(default_factory=dict)


class Records:
    """The latest records; how many there were in all is known, too."""

    def __init__(self, limit: int = RECORDS) -> None:
        self._kept: deque[MeasurementRecord] = deque(maxlen=limit)
        self.seen = 0

    @property
    def limit(self) -> int:
        """The most that are kept."""
        return self._kept.maxlen or 0

    def add(self, record: MeasurementRecord) -> None:
        """Keep a record; the oldest gives way."""
        self.seen += 1
        self._kept.append(record)

    def set_limit(self, limit: int) -> None:
        """Keep so many from now on; of those that are there, the latest."""
        if limit < 0:
            raise ValueError(f"the limit is a number of records, not {limit}")
        self._kept = deque(self._kept, maxlen=limit)

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self.seen = 0

    def get(self) -> list[MeasurementRecord]:
        """All that are kept, the oldest first."""
        return list(self._kept)
