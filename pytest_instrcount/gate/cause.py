"""Why a test that has a baseline was not compared with it: the words of ``instrcount_allow``."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Cause(StrEnum):
    """The values are the words of the ini setting and of the JSON report."""

    #: the baseline's test does not exist any more
    gone = "gone"
    #: its file exists, and a run that was to collect all left it out
    uncollected = "uncollected"
    #: the test exists and is not measured any more: it lost its marker, or its fixture
    unmarked = "unmarked"
    #: skipped, or expected to fail, under Valgrind alone
    skipped = "skipped"
    #: it ran, and nothing of it was counted
    uncounted = "uncounted"
    #: the baseline was made with another warm-up
    warmup = "warmup"
    #: the baseline was made with another isolation
    isolation = "isolation"
    #: the baseline was made in another environment: ``--instrcount-incomparable`` decides
    environment = "environment"


#: What ``instrcount_allow`` may name.
ALLOWABLE = tuple(cause.value for cause in Cause if cause is not Cause.environment)

#: Among what to do; a run that was started with options that matter says it with those.
PRUNE = "pytest --instrcount-prune"

#: First line of a failure, and what to do.
MEANINGS: dict[Cause, tuple[str, str]] = {
    Cause.gone: (
        "its baseline is there, and the test is gone [baseline-gone]",
        f"{PRUNE}    # deletes the baselines of tests that are gone",
    ),
    Cause.uncollected: (
        "it has a baseline, and its file was not collected [baseline-uncollected]",
        "have pytest collect it again (python_files, norecursedirs, collect_ignore), or: delete its baseline",
    ),
    Cause.unmarked: (
        "it has a baseline, and is not measured any more [baseline-unmarked]",
        f"give it its instrcount marker again, or: {PRUNE}",
    ),
    Cause.skipped: (
        "it has not passed under Valgrind, so nothing was compared [skipped-inside]",
        "let the variables through that it looks for: instrcount_env = NAME in the ini file",
    ),
    Cause.uncounted: (
        "nothing of it was counted, so nothing was compared [uncounted]",
        "have it counted, or: delete its baseline",
    ),
}

#: What that command mends.
PRUNABLE = frozenset(cause for cause, (_, fix) in MEANINGS.items() if PRUNE in fix)


def cause_of(differences: Iterable[tuple[str, str, str]]) -> Cause:
    """Why two counts are incomparable: the way of measuring, if that is all that differs.

    >>> print(cause_of([("warmup", "20", "5")]), cause_of([("python", "3.11", "3.12")]))
    warmup environment
    """
    names = {name for name, _, _ in differences}
    if names <= {"warmup", "isolation"}:
        return Cause.isolation if "isolation" in names else Cause.warmup
    return Cause.environment


def parse_causes(words: Iterable[str]) -> frozenset[Cause]:
    """The causes that fail no run. Raises ValueError for a word that is none.

    >>> sorted(map(str, parse_causes(["skipped", "gone"])))
    ['gone', 'skipped']
    """
    unknown = [word for word in words if word not in ALLOWABLE]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(ALLOWABLE)}")
    return frozenset(map(Cause, words))
