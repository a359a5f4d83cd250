"""Limits for the size of exported files, and the errors for what there is nothing of."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.timeline import Timeline, column

#: Viewers stand still above this.
MOST_SLICES = 1_000_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which slices to leave out. Raises InstrcountError (slug "profile-bounds") if negative.

    >>> Bounds(min_duration=1e-6).min_ns
    1000
    """

    #: shorter ones, in seconds
    min_duration: float | None = None
    #: those with so many callers or more
    max_depth: int | None = None

    def __post_init__(self) -> None:
        given = [bound for bound in (self.min_duration, self.max_depth) if bound is not None]
        if not all(0 <= bound < 1e9 for bound in given):
            raise InstrcountError(
                "profile-bounds",
                f"min_duration={self.min_duration} and max_depth={self.max_depth} leave no sense",
                "min_duration in seconds (1e-6), max_depth in calls (50), neither negative",
            )

    @property
    def min_ns(self) -> int:
        """Shortest duration in ns; 0: any."""
        return round((self.min_duration or 0) * 1e9)

    def depths(self, timeline: Timeline) -> array[int]:
        """Per row the number of its callers, or -1 for those to leave out, and all within them.

        Raises InstrcountError: slug "profile-slices" if there are too many and no bound was given,
        "profile-truncated" if the recording has no times to draw.
        """
        if timeline.folded:
            raise InstrcountError(
                "profile-truncated",
                "the recording had more events than its bound, and was folded: counts are exact, "
                "but there is no timeline left to draw",
                "profile(max_events=N) with a larger N, or export_collapsed (trace: "
                "--export=collapsed:PATH), or export_pstats",
            )
        slices = len(timeline) + len(timeline.marks)
        if slices > MOST_SLICES and self == Bounds():
            raise InstrcountError(
                "profile-slices",
                f"{slices:,} slices are more than a viewer can show ({MOST_SLICES:,})",
                "give min_duration=1e-5 (seconds) or max_depth=50 (trace: --least=10us or --depth=50)",
            )
        deepest = len(timeline) if self.max_depth is None else self.max_depth - 1
        shortest, start, end = self.min_ns, timeline.start, timeline.end
        depths = column([-1]) * len(timeline)
        for row, parent in enumerate(timeline.parent):
            depth = depths[parent] + 1 if parent >= 0 else 0
            if parent >= 0 and not depth:
                continue
            if depth <= deepest and end[row] - start[row] >= shortest:
                depths[row] = depth
        return depths


#: All slices, however many.
ALL = Bounds(max_depth=10**8)


def nothing_to_export(why: str) -> InstrcountError:
    """The error in place of an empty file.

    >>> nothing_to_export("no events were recorded").slug
    'profile-empty'
    """
    return InstrcountError(
        "profile-empty",
        f"{why}, so there is nothing to export",
        "call the code within the profile's with-block, with enabled=True",
    )


def not_recorded(what: str, option: str) -> InstrcountError:
    """The error for a question about what was not recorded.

    >>> raise not_recorded("stacks were", "with_stack=True")
    Traceback (most recent call last):
    pytest_instrcount.errors.InstrcountError: instrcount: stacks were not recorded [profile-not-recorded]
      fix: profile(with_stack=True)
    """
    return InstrcountError("profile-not-recorded", f"{what} not recorded", f"profile({option})")
