"""All counts of one statement, and of nothing beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_instrcount.counts.function_counts import FunctionCount, FunctionCounts
from pytest_instrcount.counts.profile import NOTHING, Profile, rename_profile
from pytest_instrcount.counts.rules import rule_of
from pytest_instrcount.counts.standardize import standardize, standardize_in_folder
from pytest_instrcount.counts.task import TaskSpec
from pytest_instrcount.host.text import several


@dataclass(frozen=True, slots=True, repr=False)
class CallgrindStats:
    """Counts of a statement, over all its runs, and of the same runs of nothing (the baseline).

    >>> from pytest_instrcount.counts.profile import Row
    >>> profile = Profile(500, {"/a/x.c:f": Row(500, 1)}, {}, {"/a/x.c:f": 500})
    >>> stats = CallgrindStats.from_profiles(
    ...     TaskSpec("f()", ""), 1, profile, None, built_with_debug_symbols=True, callgrind_out=None
    ... )
    >>> stats
    CallgrindStats
    f()
                                 all        denoised
      instructions               500             500
      baseline                     0               0
    1 run, 1 thread
    >>> stats.as_standardized().stats()[0].function
    'x.c:f'
    >>> stats.delta(stats)
    FunctionCounts: 0 functions, exclusive
    Total: 0
    """

    task_spec: TaskSpec
    #: how often the statement ran in these counts
    number_per_run: int
    #: without them, static functions are addresses
    built_with_debug_symbols: bool
    #: of an empty statement, run as often; without rows where it was not measured
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    #: what Callgrind wrote, for other tools; None where it was not kept
    stmt_callgrind_out: str | None = None
    # Inclusive counts, and the same under standard names: f holds what it called of f.part.0, and
    # only a profile knows how much that was.
    _standards: tuple[tuple[FunctionCounts, FunctionCounts], ...] = ()

    @classmethod
    def from_profiles(
        cls,
        task_spec: TaskSpec,
        number_per_run: int,
        statement: Profile,
        baseline: Profile | None,
        *,
        built_with_debug_symbols: bool,
        callgrind_out: str | None,
    ) -> CallgrindStats:
        """From what was read of the dumps; ``callgrind_out`` is the text of the statement's."""
        nothing = Profile(0, {}) if baseline is None else baseline
        baseline_inclusive = _counts(nothing, inclusive=True)
        statement_inclusive = _counts(statement, inclusive=True)
        return cls(
            task_spec,
            number_per_run,
            built_with_debug_symbols,
            baseline_inclusive,
            _counts(nothing, inclusive=False),
            statement_inclusive,
            _counts(statement, inclusive=False),
            callgrind_out,
            (
                (baseline_inclusive, _standard_inclusive(nothing)),
                (statement_inclusive, _standard_inclusive(statement)),
            ),
        )

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """Counts by function; ``inclusive``: with all that each function called.

        Inclusive counts show where the time goes; exclusive ones, what changed.
        """
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise: bool = False) -> int:
        """Instructions of the statement, over all its runs, the baseline's included.

        ``denoise``: without what depends on where things lie in memory (FunctionCounts.denoise).
        """
        stats = self.stmt_exclusive_stats
        return (stats.denoise() if denoise else stats).sum()

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """The difference to another one, function by function; negative if this one cost less.

        Over all runs of each: compare what ran equally often. Where the two are of two builds,
        compare ``as_standardized()``.
        """
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self) -> CallgrindStats:
        """The same under names that do not depend on the build, so that equal functions cancel."""
        return replace(
            self,
            baseline_inclusive_stats=self._standardized(self.baseline_inclusive_stats),
            baseline_exclusive_stats=self._standardized(self.baseline_exclusive_stats),
            stmt_inclusive_stats=self._standardized(self.stmt_inclusive_stats),
            stmt_exclusive_stats=self._standardized(self.stmt_exclusive_stats),
            # its names are not these
            stmt_callgrind_out=None,
        )

    def _standardized(self, stats: FunctionCounts) -> FunctionCounts:
        for known, standard in self._standards:
            if stats == known:
                return standard
        return stats.transform(standardize_in_folder)

    def __repr__(self) -> str:
        baseline = self.baseline_exclusive_stats
        runs = several(self.number_per_run, "run")
        number = self.task_spec.num_threads
        threads = several(number, "thread")
        lines = [
            "CallgrindStats",
            self.task_spec.summarize(),
            f"  {'':14}{'all':>16}{'denoised':>16}",
            f"  {'instructions':14}{self.counts():>16}{self.counts(denoise=True):>16}",
            f"  {'baseline':14}{baseline.sum():>16}{baseline.denoise().sum():>16}",
            f"{runs}, {threads}",
        ]
        if not self.built_with_debug_symbols:
            lines.append("without debug symbols: static functions have an address for a name")
        return "\n".join(lines)


def _standard_inclusive(profile: Profile) -> FunctionCounts:
    return _counts(rename_profile(profile, standardize_in_folder), inclusive=True)


def _counts(profile: Profile, *, inclusive: bool) -> FunctionCounts:
    # in a difference, a row can vanish whose calls come from elsewhere now
    names = profile.inclusive.keys() if inclusive else profile.rows.keys() | profile.callers.keys()
    rows = []
    for name in names:
        row = profile.rows.get(name, NOTHING)
        count = profile.inclusive[name] if inclusive else row.ir
        rule = None if inclusive else rule_of(standardize(name))
        denoised = None if rule is None else rule.price * _entries(profile, name)
        rows.append(FunctionCount(count, name, row.calls, denoised))
    # sorted, and without rows of nothing
    return FunctionCounts((), inclusive) + FunctionCounts(tuple(rows), inclusive)


def _entries(profile: Profile, name: str) -> int:
    """The number of calls from functions that are not noise."""
    return sum(
        edge.calls
        for caller, edge in profile.callers.get(name, {}).items()
        if rule_of(standardize(caller)) is None
    )
