"""What a run found out, as records for every kind of report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from pytest_instrcount.gate.baseline import Found, Missing
from pytest_instrcount.gate.compare import (
    Comparison,
    Delta,
    Difference,
    FunctionDelta,
    Incomparable,
    gated,
)
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.measurement import Measurement

#: Verdicts that an update of the baselines would settle.
ACCEPTABLE = frozenset({Verdict.regressed, Verdict.improved, Verdict.new, Verdict.incomparable})


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test, or one stale baseline, and its verdict."""

    __test__: ClassVar[bool] = False  # pytest collects classes named Test...

    #: pytest's id of the test
    nodeid: str
    verdict: Verdict
    #: instructions per call now; None unless measured
    ir: int | None
    #: instructions per call in the baseline; None without a readable one
    baseline_ir: int | None
    #: growth as a fraction of the baseline; None where there is nothing to compare
    delta: Fraction | None
    limit: Limit
    #: further lines for the text of a failure
    detail: tuple[str, ...] = ()
    #: functions whose own count changed, the largest change first
    functions: tuple[FunctionDelta, ...] = ()
    #: packages whose versions differ from the baseline's
    packages_changed: tuple[Difference, ...] = ()
    #: facts of the environment that differ from the baseline's
    differences: tuple[Difference, ...] = ()
    #: whether this run stored the measurement; equal bytes are not stored again
    written: bool = False
    #: why there is no count or no comparison: the text of an InstrcountError, or one line; else ""
    reason: str = ""


def measured_result(
    measurement: Measurement,
    baseline: Missing | Found,
    comparison: Comparison,
    verdict: Verdict,
    limit: Limit,
    *,
    written: bool = False,
) -> TestResult:
    """The result of a test that was measured, from what `compare` and `judge` said of it."""
    delta = comparison if isinstance(comparison, Delta) else None
    return TestResult(
        nodeid=measurement.nodeid,
        verdict=verdict,
        ir=gated(measurement).ir,
        baseline_ir=gated(baseline.baseline).ir if isinstance(baseline, Found) else None,
        delta=delta.fraction if delta else None,
        limit=limit,
        functions=delta.function_deltas if delta else (),
        packages_changed=delta.packages_changed if delta else (),
        differences=comparison.differences if isinstance(comparison, Incomparable) else (),
        written=written,
    )


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A whole run."""

    #: in the order of the run; stale baselines last
    results: tuple[TestResult, ...]
    #: facts of the environment, the same for all tests
    environment: Mapping[str, str]
    #: what the header line says beside them, as name -> value
    header: Mapping[str, str] = field(default_factory=dict)
    #: said below the table, one line each
    notes: tuple[str, ...] = ()
    #: the command that accepts the counts of this run
    update_command: str = ""
    #: whether this run stores baselines
    updating: bool = False

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many results have each verdict, in the order of `Verdict`, without zeros."""
        found = Counter(result.verdict for result in self.results)
        return {verdict: found[verdict] for verdict in Verdict if found[verdict]}
