"""The file of cProfile: what ``pstats`` and the viewers that read it open."""

from __future__ import annotations

import marshal
from dataclasses import dataclass, field

from pytest_instrcount.trace.export.bounds import nothing_to_export
from pytest_instrcount.trace.sums import Stacks, self_times
from pytest_instrcount.trace.timeline import ASYNC, Label, Timeline

#: file, line, name
Function = tuple[str, int, str]


@dataclass(slots=True)
class _Times:
    calls: int = 0
    #: not called, directly or not, by the function itself
    primitive: int = 0
    self_ns: int = 0
    total_ns: int = 0

    def add(self, calls: int, self_ns: int, total_ns: int, *, outermost: bool) -> None:
        self.calls += calls
        self.self_ns += self_ns
        if outermost:
            self.primitive += calls
            self.total_ns += total_ns


@dataclass(slots=True)
class _Row:
    times: _Times = field(default_factory=_Times)
    callers: dict[int, _Times] = field(default_factory=dict)


def pstats_bytes(timeline: Timeline) -> bytes:
    """The marshalled dict of ``pstats``: function -> calls, times in seconds, callers.

    Ranges that overlap others are left out: they are on no stack. Raises InstrcountError (slug
    "profile-empty") if nothing is left: pstats cannot open an empty file.

    >>> from pytest_instrcount.trace.weave import Span, Track, weave
    >>> one = weave(Timeline(tracks=(Track("main"),)), [Span(Label("f"), 0, 1, 9)])
    >>> marshal.loads(pstats_bytes(one))
    {('~', 0, 'f'): (1, 1, 8e-09, 8e-09, {})}
    """
    # One number per (file, line, name): two labels may share one, such as a range and a C function.
    numbers: dict[Function, int] = {}
    of_label = [numbers.setdefault(_function(label), len(numbers)) for label in timeline.labels]
    rows: dict[int, _Row] = {}
    own, whole, pairs = self_times(timeline), Stacks(), Stacks()
    for row, parent in enumerate(timeline.parent):
        if timeline.flags[row] & ASYNC:
            continue
        number, track = of_label[timeline.label[row]], timeline.track[row]
        caller = of_label[timeline.label[parent]] if parent >= 0 else -1
        counted = timeline.calls(row), own[row], timeline.ns(row)
        entry = rows.setdefault(number, _Row())
        entry.times.add(*counted, outermost=whole.enter(track, row, parent, number))
        pair = number * (len(numbers) + 1) + caller + 1
        outermost = pairs.enter(track, row, parent, pair)
        if caller >= 0:
            entry.callers.setdefault(caller, _Times()).add(*counted, outermost=outermost)
    if not rows:
        raise nothing_to_export("no calls were recorded")
    functions = list(numbers)
    stats = {}
    for number, entry in rows.items():
        callers = {functions[caller]: _caller(times) for caller, times in entry.callers.items()}
        times = entry.times
        stats[functions[number]] = (
            times.primitive,
            times.calls,
            times.self_ns / 1e9,
            times.total_ns / 1e9,
            callers,
        )
    return marshal.dumps(stats)


def _caller(times: _Times) -> tuple[int, int, float, float]:
    """As cProfile writes it: here all calls come before the primitive ones."""
    return times.calls, times.primitive, times.self_ns / 1e9, times.total_ns / 1e9


def _function(label: Label) -> Function:
    """Functions without a file are shown by name alone, as pstats does with C functions."""
    return (label.file, label.line, label.name) if label.file else ("~", 0, label.name)
