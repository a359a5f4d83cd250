"""Whether a test may have moved, where each side was counted in one layout of memory only."""

from __future__ import annotations

from fractions import Fraction

from pytest_instrcount.gate.compare import Delta
from pytest_instrcount.gate.fold import has_rule
from pytest_instrcount.gate.limit import Limit


def may_have_moved(delta: Delta, limit: Limit) -> bool:
    """Whether what grew is beyond the limit, or what shrank, were there nothing on the other side.

    In one layout noise may hide a change: what one function has lost is held against no other.
    Functions with a rule count by their prices, and by what those do not explain.
    """
    old, new = delta.gated.old, delta.gated.new
    moves = [each.ir for each in delta.function_deltas if not has_rule(each.name)]
    moves.append(new.exact - old.exact - sum(moves))
    up = sum((move for move in moves if move > 0), Fraction())
    down = sum((move for move in moves if move < 0), Fraction())
    return any(
        exceeded(old.total, old.calls, total.numerator, total.denominator)
        for total, exceeded in (
            (old.exact + up, limit.exceeded),
            (max(Fraction(), old.exact + down), limit.undercut),
        )
    )
