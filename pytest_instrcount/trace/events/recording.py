"""One recording, and what its events share."""

from __future__ import annotations

from array import array
from functools import cached_property

from pytest_instrcount.trace.sums import Children, Listing, list_rows, self_memory, self_times
from pytest_instrcount.trace.timeline import Timeline


class Recording:
    """A timeline, and what is derived from it at most once."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    @cached_property
    def listing(self) -> Listing:
        """The events that tables list, and whose time is in totals."""
        return list_rows(self.timeline)

    @cached_property
    def self_ns(self) -> array[int]:
        """Per event its time without its children, ns."""
        return self_times(self.timeline)

    @cached_property
    def self_memory(self) -> dict[int, int]:
        """Per event with a measured memory, its bytes without the ranges within."""
        return self_memory(self.timeline)

    @cached_property
    def children(self) -> Children:
        """The children of all events."""
        return Children(self.timeline.parent)
