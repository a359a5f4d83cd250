"""The verdict on a test that may not be steady, and whether more layouts of memory are needed for it."""

from __future__ import annotations

from fractions import Fraction

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import NOTHING
from pytest_instrcount.counts.rules import rule_of
from pytest_instrcount.gate.compare import Comparison, Delta, Gated
from pytest_instrcount.gate.gate import Verdict, judge, judge_counts, too_many_allocations
from pytest_instrcount.gate.limit import Limit


def may_have_moved(delta: Delta, limit: Limit) -> bool:
    """True if noise may hide that a test is beyond its limit, in the layouts that were measured.

    In few layouts a change may look like noise: it is held against the layout of the baseline that makes
    most of it, each way. Or noise may look like a change: one layout may lie beyond the range of others.
    """
    if any(delta.gated.noise.values()):
        return True
    old = delta.gated.old
    least, most = (max(Fraction(0), old + end).as_integer_ratio() for end in delta.gated.ends)
    before = old.as_integer_ratio()
    return limit.exceeded(*before, *most) or limit.undercut(*before, *least)


def is_steady(measurement: Measurement, limit: Limit) -> bool:
    """True if all counts of a test that is not deterministic are the same within the limit.

    What differs between equal processes, in one layout, is no layout noise; nor is it in others.
    """
    profiles = (measurement.profile, *measurement.layouts)
    unsteady = [name for name in measurement.unsteady if rule_of(name) is None]
    own = [sum(each.rows.get(name, NOTHING).ir for name in unsteady) for each in profiles]
    totals = [each.total for each in profiles[:2]]
    totals += [profiles[0].total - own[0] + ir for ir in own]
    least, most = (Fraction(total, measurement.calls) for total in (min(totals), max(totals)))
    return judge_counts(Gated(least, most), limit) is Verdict.unchanged


def verdict_on(
    measurement: Measurement, comparison: Comparison, limit: Limit, allocs: Limit | None
) -> tuple[Verdict, bool]:
    """The verdict, and whether there are more allocations than their limit allows."""
    verdict = judge(comparison, limit)
    if measurement.unsteady and not is_steady(measurement, limit):
        verdict = Verdict.nondeterministic
    passed = isinstance(comparison, Delta) and too_many_allocations(comparison, allocs)
    if passed and verdict in (Verdict.unchanged, Verdict.improved):
        verdict = Verdict.regressed
    return verdict, passed
