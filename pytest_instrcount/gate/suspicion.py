"""Whether more layouts of memory are needed to know what has become of a test."""

from __future__ import annotations

from fractions import Fraction

from pytest_instrcount.gate.compare import Delta
from pytest_instrcount.gate.limit import Limit


def may_have_moved(delta: Delta, limit: Limit) -> bool:
    """Whether noise may hide that a test is beyond its limit, in the layouts that were measured.

    In few layouts a change may look like noise: it is held against the layout of the baseline that makes
    most of it, each way. Or noise may look like a change: one layout may lie beyond the range of others.
    """
    if any(delta.gated.noise.values()):
        return True
    old = delta.gated.old
    least, most = (old.exact + end for end in delta.gated.ends)
    least = max(Fraction(0), least)
    return limit.exceeded(old.total, old.calls, most.numerator, most.denominator) or limit.undercut(
        old.total, old.calls, least.numerator, least.denominator
    )
