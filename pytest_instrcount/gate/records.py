"""The results of a run, as records for every kind of report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from pytest_instrcount.counts.denoised import Denoised
from pytest_instrcount.counts.measurement import Measurement, per_call
from pytest_instrcount.counts.python.blame import PythonBlame
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.gate.budget import BudgetResult
from pytest_instrcount.gate.call_records import CallsResult
from pytest_instrcount.gate.cause import PRUNABLE, Cause, cause_of
from pytest_instrcount.gate.compare import (
    Comparison,
    Delta,
    Difference,
    FunctionDelta,
    Gated,
    Incomparable,
)
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.schema import Baseline

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
    #: growth beyond layout noise as a fraction; None where there is nothing to compare
    delta: Fraction | None
    limit: Limit
    #: the mean of the baseline's layouts and what has grown, per call; None where there are no layouts
    denoised_ir: int | None = None
    #: that mean
    denoised_baseline_ir: int | None = None
    #: how far layouts of memory move the count, as a fraction; None if not known
    spread: Fraction | None = None
    #: the least and the most that layouts counted, per call; None if not known
    ends: tuple[Fraction, Fraction] | None = None
    #: the detection limit, as a fraction; None if unknown
    detects: Fraction | None = None
    #: the same of growth outside of noise, which layouts cannot hide
    floor: Fraction | None = None
    #: how far hash seeds move its dicts and sets, as a fraction; None where no others were measured
    collisions: Fraction | None = None
    #: whether growth is left out that may be chance: which keys collide
    by_chance: bool = False
    #: what is counted: "Ir", instructions, or another word
    unit: str = "Ir"
    #: how many calls were counted
    calls: int = 1
    #: kind of noise -> by how many instructions per call it has grown, if that is beyond noise
    noise: Mapping[str, Fraction] = field(default_factory=dict)
    #: in how many layouts of memory it was measured
    layouts: int = 1
    #: functions that differed between two equal forks, the largest difference first
    unsteady: tuple[str, ...] = ()
    #: further lines for the text of a failure
    detail: tuple[str, ...] = ()
    #: functions whose own count changed, the largest change first
    functions: tuple[FunctionDelta, ...] = ()
    #: allocations and the like: kind, before and after per call, of what changed
    work: tuple[tuple[str, Fraction, Fraction], ...] = ()
    #: the limit of allocations, where it was passed
    allocs_limit: Limit | None = None
    #: which functions caused a change, by Python function; None where nothing says
    python: PythonBlame | None = None
    #: what it is made of by Python function, measured now or else in its baseline; None if neither is
    tree: CallTree | None = None
    #: whether ``tree`` was measured by this run
    tree_is_new: bool = False
    #: packages whose versions differ from the baseline's
    packages_changed: tuple[Difference, ...] = ()
    #: facts of the environment that differ from the baseline's
    differences: tuple[Difference, ...] = ()
    #: whether this run stored the measurement, or found it stored by another update
    written: bool = False
    #: why there is no count or no comparison: the text of an InstrcountError, or one line; else ""
    reason: str = ""
    #: why it was not compared with the baseline that it has; None where it was, or has none
    cause: Cause | None = None
    #: earlier ids of the test, as its baseline knows them, the newest last
    formerly: tuple[str, ...] = ()
    #: what is to be said with the verdict, whatever it is
    remarks: tuple[str, ...] = ()

    @property
    def is_denoised(self) -> bool:
        """True if what was compared are other counts than the raw ones."""
        compared = self.denoised_baseline_ir, self.denoised_ir
        return None not in compared and compared != (self.baseline_ir, self.ir)

    @property
    def compared_ir(self) -> tuple[int | None, int | None]:
        """The counts per call, before and now, that ``delta`` is the growth of."""
        if self.is_denoised:
            return self.denoised_baseline_ir, self.denoised_ir
        return self.baseline_ir, self.ir


def measured_result(
    measurement: Measurement,
    old: Baseline | None,
    comparison: Comparison,
    verdict: Verdict,
    limit: Limit,
) -> TestResult:
    """The result of a test that was measured, from what `compare` and `judge` said of it."""
    result = TestResult(
        nodeid=measurement.nodeid,
        verdict=verdict,
        ir=measurement.ir,
        baseline_ir=None if old is None else old.ir,
        delta=None,
        limit=limit,
        calls=measurement.calls,
        layouts=max(1, len(measurement.layouts)),
        unsteady=measurement.unsteady,
        tree=None if old is None else old.python,
        formerly=() if old is None else old.formerly,
    )
    if isinstance(comparison, Incomparable):
        differences = comparison.differences
        return replace(result, differences=differences, cause=cause_of(differences))
    if not isinstance(comparison, Delta):
        return result
    gated, releases = comparison.gated, comparison.releases
    if verdict is Verdict.incomparable:
        result = replace(result, differences=releases, cause=cause_of(releases))
    result = replace(
        result,
        delta=None if verdict is Verdict.incomparable else gated.fraction,
        noise=gated.noise,
        functions=comparison.function_deltas,
        work=comparison.work,
        packages_changed=comparison.packages_changed,
    )
    known = comparison.old.denoised
    if known is None:
        return result
    result = with_layouts(with_gated(result, gated), known, comparison.old.calls)
    detects = max(known.detects, gated.left_open / max(Fraction(1), gated.old))
    if gated.collisions is None:
        return replace(result, detects=detects)
    return replace(
        result,
        collisions=gated.collisions / gated.old,
        by_chance=gated.hidden > 0,
        detects=detects + gated.hidden / gated.old,
    )


def stored_result(result: TestResult, baseline: Baseline) -> TestResult:
    """The result of a test that had nothing to be compared with, and what its new baseline says."""
    known = baseline.denoised
    if known is None or result.denoised_ir is not None:
        return result
    result = replace(result, denoised_ir=baseline.compared_ir)
    return with_layouts(result, known, baseline.calls)


def with_gated(result: TestResult, gated: Gated) -> TestResult:
    """With the counts that decide."""
    old, new = (per_call(*ir.as_integer_ratio()) for ir in (gated.old, gated.new))
    return replace(result, denoised_ir=new, denoised_baseline_ir=old)


def with_layouts(result: TestResult, known: Denoised, calls: int) -> TestResult:
    """With what the baseline's layouts of memory say of noise."""
    return replace(
        result,
        spread=known.spread,
        ends=(Fraction(known.low, calls), Fraction(known.high, calls)),
        detects=known.detects,
        floor=known.floor,
    )


@dataclass(frozen=True, slots=True)
class Base:
    """The commit that tests are compared with, instead of baselines."""

    #: as the user names it
    ref: str
    #: its full id
    commit: str

    def __str__(self) -> str:
        """For people.

        >>> str(Base("origin/main", "853616af0d"))
        'origin/main (853616a)'
        """
        short = self.commit[:7]
        return self.ref if self.commit.startswith(self.ref) else f"{self.ref} ({short})"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A whole run."""

    #: in the order of the run; stale baselines last
    results: tuple[TestResult, ...]
    #: facts of the environment, the same for all tests
    environment: Mapping[str, str]
    #: nodeid -> the group that a benchmark is in
    groups: Mapping[str, str] = field(default_factory=dict)
    #: nodeid -> what a benchmark has put into ``extra_info``, in JSON's terms
    extra_info: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: ids of the tests whose verdicts fail the run
    failing: frozenset[str] = frozenset()
    #: call counts of the traced tests
    traces: tuple[CallsResult, ...] = ()
    #: budgets of markers, kept or not
    budgets: tuple[BudgetResult, ...] = ()
    #: said below the table, one line each
    notes: tuple[str, ...] = ()
    #: the command that accepts the counts of this run
    update_command: str = ""
    #: the command that deletes baselines without tests
    prune_command: str = ""
    #: whether this run stores baselines
    updating: bool = False
    #: why it does; "" if nobody said
    reason: str = ""
    #: what the run is of: the name of the project's folder
    title: str = ""
    #: how Python functions are told apart: the setting ``--instrcount-blame``
    blame: str = "auto"
    #: what was measured instead of baselines; None where those were read
    against: Base | None = None
    #: the folder that they are read from; "" where none are
    baselines: str = ""
    #: the number of the shard that the run is, from 1, and of how many; None where it is not one of several
    shard: tuple[int, int] | None = None

    @property
    def can_accept(self) -> bool:
        """True if ``update_command`` is to be shown: something can be accepted, and is not by this run."""
        verdicts = {each.verdict for each in self.results}
        verdicts |= {each.verdict for each in self.traces if not each.too_many}
        acceptable = not ACCEPTABLE.isdisjoint(verdicts)
        return acceptable and bool(self.update_command) and not self.updating

    @property
    def can_prune(self) -> bool:
        """True if ``prune_command`` is to be shown: there are baselines that it would delete."""
        return bool(self.prune_command) and any(each.cause in PRUNABLE for each in self.results)
