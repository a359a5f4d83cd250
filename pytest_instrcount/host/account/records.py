"""A record of each measurement, the latest ones: what it was, what it cost, what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: So many are kept, unless another number is set.
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
