"""What is true of a planted change, how far the gate is from it, and whether that will do."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truth_workloads import Case

#: nodeid -> side -> layout -> raw instructions, over so many calls
Counts = dict[str, dict[str, dict[str, list[int]]]]

#: A standard error is small enough below this share of the test, or this share of the change.
ERROR_OF_TEST, ERROR_OF_CHANGE = 0.0002, 0.02
#: How far the gate may be off, as a share of the truth: in most cases, and in all.
MOST_WITHIN, ALL_WITHIN, MOST = 0.05, 0.15, 0.95
#: And as a share of the test.
OF_TEST = 0.0002


@dataclass(frozen=True, slots=True)
class Truth:
    """By how much a test grew: fractions of the mean of its old raw counts."""

    growth: float
    #: standard error of the mean of the differences, layout by layout
    error: float
    layouts: int

    @property
    def is_known(self) -> bool:
        """Whether more layouts would tell nothing new."""
        return self.error <= max(ERROR_OF_TEST, ERROR_OF_CHANGE * abs(self.growth))


def truth_of(sides: dict[str, dict[str, list[int]]]) -> Truth:
    """The truth of one case, of the layouts that both sides were counted in.

    >>> sides = {"old": {"1": [100, 1], "2": [102, 1]}, "new": {"1": [220, 2], "2": [224, 2]}}
    >>> truth = truth_of(sides)
    >>> round(truth.growth, 4), truth.error, truth.layouts
    (0.099, 0.0, 2)
    """
    common = [layout for layout in sides["old"] if layout in sides["new"]]
    old, new = (
        [ir / calls for ir, calls in map(sides[side].__getitem__, common)]
        for side in ("old", "new")
    )
    mean = statistics.fmean(old)
    differences = [after - before for before, after in zip(old, new)]
    deviation = statistics.stdev(differences) if len(common) > 1 else math.inf
    error = deviation / math.sqrt(len(common))
    return Truth(statistics.fmean(differences) / mean, error / mean, len(common))


@dataclass(frozen=True, slots=True)
class Judged:
    """One case: the truth, and what the gate says."""

    case: Case
    truth: Truth
    #: its entry in the JSON report
    report: dict[str, Any]

    @property
    def gated(self) -> float:
        """What the gate says, as a fraction."""
        return float(self.report["delta"] or 0)

    @property
    def detects(self) -> float:
        """What the gate claims to detect, as a fraction."""
        return float(self.report["detects"] or 0)

    @property
    def _is_claimed(self) -> bool:
        return abs(self.truth.growth) > max(self.detects, 2 * self.truth.error)

    @property
    def wrong_sign(self) -> bool:
        """Whether the gate says better where it is worse, or says nothing."""
        return self._is_claimed and self.gated * self.truth.growth <= 0

    @property
    def unseen(self) -> bool:
        """Whether a growth that the gate claims to detect is called something else."""
        grew = self._is_claimed and self.truth.growth > 0
        return grew and self.report["verdict"] != "regressed"

    def is_within(self, share: float) -> bool:
        """Whether the gate is off by no more than this share of the truth, and what is allowed."""
        allowed = share * abs(self.truth.growth) + OF_TEST + 2 * self.truth.error
        return abs(self.gated - self.truth.growth) <= allowed

    @property
    def flaws(self) -> str:
        """All that is wrong with it, in words."""
        found = {
            "sign": self.wrong_sign,
            "unseen": self.unseen,
            "size": not self.is_within(ALL_WITHIN),
            "off": self.is_within(ALL_WITHIN) and not self.is_within(MOST_WITHIN),
        }
        return " ".join(word for word, is_so in found.items() if is_so)


def print_table(judged: Sequence[Judged]) -> None:
    """One line for each case, in per cent."""
    columns = "truth", "+-", "gated", "wrong by", "detects"
    print(f"{'kind':<12}{'case':<30}" + "".join(f"{each:>10}" for each in columns))
    for each in judged:
        numbers = (
            each.truth.growth,
            each.truth.error,
            each.gated,
            each.gated - each.truth.growth,
            each.detects,
        )
        line = "".join(f"{100 * number:>10.3f}" for number in numbers)
        print(
            f"{each.case.kind:<12}{each.case.name:<30}{line}  {each.report['verdict']:<10} {each.flaws}"
        )


def judge(judged: Sequence[Judged]) -> bool:
    """Print what was reached; whether that is all that is asked for."""
    signs = [each for each in judged if each.wrong_sign]
    unseen = [each for each in judged if each.unseen]
    near = sum(each.is_within(MOST_WITHIN) for each in judged)
    far = [each for each in judged if not each.is_within(ALL_WITHIN)]
    errors = [abs(each.gated - each.truth.growth) for each in judged]
    unknown = [each for each in judged if not each.truth.is_known]
    print(
        f"\n{len(signs)} of the wrong sign, {len(unseen)} unseen, "
        f"{near} of {len(judged)} within {MOST_WITHIN:.0%} of the truth, "
        f"{len(far)} not within {ALL_WITHIN:.0%}"
    )
    if errors:
        print(
            f"wrong by {100 * statistics.median(errors):.4f} % in the median, "
            f"{100 * max(errors):.3f} % at most; detects "
            f"{100 * statistics.median(each.detects for each in judged):.3f} % in the median; "
            f"{len(unknown)} truths are not known well enough"
        )
    return not (signs or unseen or far) and near >= MOST * len(judged)
