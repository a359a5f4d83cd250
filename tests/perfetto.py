"""Perfetto's trace processor, as far as it drops slices: the rules of its JSON importer in Python.

After ``json_trace_tokenizer.cc`` (times), ``slice_tracker.cc`` (``MaybeCloseStack``, ``kMaxDepth``)
and ``flow_tracker.cc`` of google/perfetto. May go when the processor itself can be had offline.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

MOST_LEVELS = 512


@dataclass
class Loaded:
    """What the processor made of a file."""

    #: (pid, tid) -> (start, duration, name, depth), ns
    slices: dict[tuple[int, int], list[tuple[int, int, str, int]]] = field(default_factory=dict)
    pairs: dict[tuple[int, str, str], list[int]] = field(default_factory=dict)
    instants: list[str] = field(default_factory=list)
    counters: list[tuple[int, float]] = field(default_factory=list)
    flows: int = 0
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)

    @property
    def complete(self) -> int:
        return sum(map(len, self.slices.values()))


def nanoseconds(microseconds: Decimal) -> int:
    """A double, times 1000, cut off."""
    return int(float(microseconds) * 1000.0)


def load(path: Path) -> Loaded:
    document = json.loads(path.read_text(), parse_float=Decimal)
    assert document["displayTimeUnit"] == "ns"
    timed = [event for event in document["traceEvents"] if event["ph"] != "M"]
    loaded = Loaded()
    for event in document["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "thread_name":
            loaded.threads[event["pid"], event["tid"]] = event["args"]["name"]
    stacks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    open_flows: set[tuple[Any, ...]] = set()
    # a stable sort, as in the processor
    for event in sorted(timed, key=lambda event: nanoseconds(event["ts"])):
        _take(event, loaded, stacks, open_flows)
    loaded.dropped += [f"flow {key} has no end" for key in open_flows]
    loaded.dropped += [f"{key} is not closed" for key, at in loaded.pairs.items() if len(at) != 2]
    return loaded


def _take(
    event: dict[str, Any],
    loaded: Loaded,
    stacks: dict[tuple[int, int], list[tuple[int, int]]],
    open_flows: set[tuple[Any, ...]],
) -> None:
    phase, at, place = event["ph"], nanoseconds(event["ts"]), (event["pid"], event["tid"])
    assert min(at, place[0] - 1, place[1] - 1) >= 0
    stack = stacks.setdefault(place, [])
    if phase in "Xi":
        length = nanoseconds(event["dur"]) if phase == "X" else 0
        if not _closes(stack, at, length):
            loaded.dropped.append(f"{event} overlaps")
            return
        if len(stack) >= MOST_LEVELS:
            loaded.dropped.append(f"{event['name']} is too deep")
            return
        stack.append((at, length))
        if phase == "i":
            loaded.instants.append(event["name"])
        else:
            row = at, length, event["name"], len(stack) - 1
            loaded.slices.setdefault(place, []).append(row)
    elif phase in "be":
        key = event["pid"], event["cat"], event["id"]
        if (phase == "b") == (key in loaded.pairs):
            loaded.dropped.append(f"{event} is not paired")
        loaded.pairs.setdefault(key, []).append(at)
    elif phase == "C":
        loaded.counters += [(at, float(value)) for value in event["args"].values()]
    else:
        flow = event["cat"], event["name"], event["id"]
        if not any(start <= at and at < start + length for start, length in stack):
            loaded.dropped.append(f"{event} is in no slice")
        if phase == "s":
            open_flows.add(flow)
            loaded.flows += 1
        else:
            assert (phase, event["bp"]) == ("f", "e")
            open_flows.remove(flow)


def _closes(stack: list[tuple[int, int]], at: int, length: int) -> bool:
    """Close what has ended; whether the new slice then fits into what is open."""
    for start, whole in reversed(stack[:]):
        end = start + whole
        if end < at or (end == at and not (whole == 0 and length == 0)):
            stack.pop()
        elif at < end < at + length:
            return False
    return True
