"""Stacks folded into lines, as flame graph tools read them: ``outer;inner number``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.export.bounds import not_recorded, nothing_to_export
from pytest_instrcount.trace.sums import self_memory, self_times
from pytest_instrcount.trace.timeline import Timeline, column, printable

#: What the number at the end of a line is: ns, calls or bytes.
Weight = Literal["self", "calls", "bytes"]

#: A stack deeper than this ends in one frame for the rest: each line holds a whole stack, so that
#: recursion 100,000 deep would need many gigabytes.
DEEPEST = 1_000


@dataclass(slots=True)
class _Contexts:
    """The calling contexts of a timeline: a node per different stack of texts."""

    frame: list[str] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    weight: list[int] = field(default_factory=list)
    known: dict[tuple[int, str], int] = field(default_factory=dict)

    def node(self, parent: int, frame: str) -> int:
        """The node of a frame in a context; -1 is the context of threads."""
        node = self.known.setdefault((parent, frame), len(self.frame))
        if node == len(self.frame):
            self.frame.append(frame)
            self.parent.append(parent)
            self.depth.append(self.depth[parent] + 1 if parent >= 0 else 0)
            self.weight.append(0)
        return node

    def stack(self, node: int) -> str:
        """Outermost first."""
        frames = []
        while node >= 0:
            frames.append(self.frame[node])
            node = self.parent[node]
        return ";".join(reversed(frames))


def collapsed_lines(timeline: Timeline, weight: Weight, *, locations: bool) -> Iterator[str]:
    """One line per stack whose weight is above 0, in order of first calls; the thread comes first.

    Raises InstrcountError: slug "profile-metric" for another weight, "profile-not-recorded" for
    bytes that were not measured, "profile-empty" if no stack has any weight.
    """
    frames = [frame_text(label.location if locations else label.name) for label in timeline.labels]
    contexts = _contexts(timeline, frames, _weights(timeline, weight))
    if not any(number > 0 for number in contexts.weight):
        raise nothing_to_export(f"no stack has any {weight}")
    return (
        f"{contexts.stack(node)} {number}\n"
        for node, number in enumerate(contexts.weight)
        if number > 0
    )


def frame_text(text: str) -> str:
    r"""A name as it may stand in a line: a line is a stack, and semicolons part its frames.

    >>> print(frame_text("a;b\nc"))
    a:b\nc
    """
    return printable(text).replace(";", ":")


def _weights(timeline: Timeline, weight: Weight) -> list[int]:
    rows = range(len(timeline))
    if weight == "self":
        return list(self_times(timeline))
    if weight == "calls":
        return [timeline.calls(row) for row in rows]
    if weight == "bytes":
        if not timeline.recorded.memory:
            raise not_recorded("memory was", "profile_memory=True")
        memory = self_memory(timeline)
        return [memory.get(row, 0) for row in rows]
    raise InstrcountError(
        "profile-metric", "stacks have no such weight", 'one of "self", "calls", "bytes"'
    )


def _contexts(timeline: Timeline, frames: list[str], weights: list[int]) -> _Contexts:
    """Fold rows into nodes; threads of one name are one node."""
    contexts = _Contexts()
    threads = [contexts.node(-1, frame_text(track.name)) for track in timeline.tracks]
    node_of = column([0]) * len(timeline)
    for row, parent in enumerate(timeline.parent):
        above = node_of[parent] if parent >= 0 else threads[timeline.track[row]]
        if contexts.depth[above] < DEEPEST:
            node = contexts.node(above, frames[timeline.label[row]])
        elif contexts.depth[above] == DEEPEST:
            node = contexts.node(above, "(deeper)")
        else:
            node = above
        node_of[row] = node
        contexts.weight[node] += weights[row]
    return contexts
