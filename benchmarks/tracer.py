"""What a trace costs, beside cProfile, viztracer and yappi, on this Python and machine.

    python benchmarks/tracer.py            # exits 1 if a target is missed

The slowdown of each is its processor time over that of the same work alone, in the same round; the
rounds are shuffled, and the table has the median. In columns with "C" all record calls of Python and
of builtins; "rows" is with what turns the record into a list of calls with times: our rows, viztracer's
parse(), cProfile's create_stats(), which is a table of sums only.

Targets of the core in C: a tree with builtins and rows faster than viztracer and cProfile with theirs;
from 3.12 on counts at most 1.35x the work; at most 17 bytes an event. Of the core in Python, or of a
backend that has none in C: on 3.12+ counts at most 1.1x cProfile's slowdown, 20 bytes an event, rows of
10 million events at under 600 ns an event. "no-op" is a callback in C that does nothing, called for starts and
resumes alone: from 3.12 on no tracer can cost less than what CPython takes for that.
viztracer, yappi and markdown are looked at where they are installed.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import gc
import importlib.util
import json
import operator
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from pytest_instrcount.trace.backends import choose_backend
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.stream import Stream
from pytest_instrcount.trace.tracer import Tracer
from pytest_instrcount.trace.tree import Tree

COUNTS_LIMIT = 1.35
OF_CPROFILE_LIMIT = 1.1
BYTES_LIMIT = {"c": 17.0, "python": 20.0}
NS_LIMIT = 600.0
#: What the targets are for: libraries, and not what is made of calls alone.
LIBRARIES = ("tomllib", "markdown", "json")

Work = Callable[[], object]


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def len_loop() -> None:
    empty: list[int] = []
    for _ in range(200_000):
        len(empty)


def numbers(count: int) -> Iterator[int]:
    for number in range(count):  # noqa: UP028 (a resume each is what is measured)
        yield number


def generators() -> None:
    for _ in numbers(150_000):
        pass


TOML = "\n".join(
    f'[table.t{n}]\nname = "name {n}"\nnumbers = [1, 2.5, {n}]\nwhen = 2020-01-01T00:00:00Z\n'
    f'inner = {{ a = "\\u00e4", b = true }}\n'
    for n in range(60)
)
TEXT = (
    "# Title\n\nSome *text* with `code` and [links](http://example.org).\n\n- one\n- two\n\n" * 12
)


DATA = {f"key {n}": [n, n / 3, None, {"name": "ä" * n}] for n in range(60)}


def use_json() -> None:
    for _ in range(12):
        # without c_make_encoder
        "".join(json.JSONEncoder(sort_keys=True).iterencode(DATA))


def repeat(times: int, func: Callable[[str], object], text: str) -> None:
    for _ in range(times):
        func(text)


def workloads() -> dict[str, Work]:
    found: dict[str, Work] = {
        "fib": lambda: fib(22),
        "len": len_loop,
        "generators": generators,
        "json": use_json,
    }
    for name in ("tomllib", "tomli"):
        if importlib.util.find_spec(name):
            loads = importlib.import_module(name).loads
            found["tomllib"] = functools.partial(repeat, 3, loads, TOML)
            break
    if importlib.util.find_spec("markdown"):
        markdown = importlib.import_module("markdown").markdown
        found["markdown"] = functools.partial(repeat, 2, markdown, TEXT)
    return found


def timed(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def with_cprofile(*, rows: bool = False) -> Callable[[Work], float]:
    def run(work: Work) -> float:
        profile = cProfile.Profile()
        profile.enable()
        try:
            spent = timed(work)
        finally:
            profile.disable()
        return spent + timed(profile.create_stats) if rows else spent

    return run


def with_viztracer(*, rows: bool = False) -> Callable[[Work], float]:
    def run(work: Work) -> float:
        from viztracer import VizTracer

        tracer = VizTracer(verbose=0, tracer_entries=5_000_000)
        tracer.start()
        try:
            spent = timed(work)
        finally:
            tracer.stop()
        spent += timed(tracer.parse) if rows else 0
        tracer.clear()
        return spent

    return run


def with_yappi(work: Work) -> float:
    import yappi

    yappi.set_clock_type("wall")
    yappi.start()
    try:
        return timed(work)
    finally:
        yappi.stop()
        yappi.clear_stats()


def with_no_op(work: Work) -> float:
    monitoring: Any = getattr(sys, "monitoring", None)
    events = monitoring.events
    monitoring.use_tool_id(monitoring.PROFILER_ID, "no-op")
    for event in (events.PY_START, events.PY_RESUME):
        monitoring.register_callback(monitoring.PROFILER_ID, event, operator.is_)
    monitoring.set_events(monitoring.PROFILER_ID, events.PY_START | events.PY_RESUME)
    try:
        return timed(work)
    finally:
        monitoring.set_events(monitoring.PROFILER_ID, 0)
        monitoring.free_tool_id(monitoring.PROFILER_ID)


def with_ours(*, rows: bool = False, **options: object) -> Callable[[Work], float]:
    def run(work: Work) -> float:
        tracer = Tracer(TraceOptions(max_events=50_000_000, **options))  # type: ignore[arg-type]
        tracer.start()
        try:
            spent = timed(work)
        finally:
            made = timed(tracer.stop)
        return spent + made if rows else spent

    return run


def modes() -> dict[str, Callable[[Work], float]]:
    found: dict[str, Callable[[Work], float]] = {
        "alone": timed,
        "counts": with_ours(),
        "tree": with_ours(mode="tree"),
        "counts, C": with_ours(c_calls=True),
        "tree, C": with_ours(mode="tree", c_calls=True),
        "rows, C": with_ours(mode="tree", c_calls=True, rows=True),
        "cProfile": with_cprofile(),
        "its rows": with_cprofile(rows=True),
    }
    if sys.version_info >= (3, 12):
        found["no-op"] = with_no_op
    if importlib.util.find_spec("viztracer"):
        found["viztracer"] = with_viztracer()
        found["viz. rows"] = with_viztracer(rows=True)
    if importlib.util.find_spec("yappi"):
        found["yappi"] = with_yappi
    return found


def slowdowns(rounds: int) -> dict[str, dict[str, float]]:
    """Workload -> mode -> median slowdown."""
    found: dict[str, dict[str, float]] = {}
    for workload, work in workloads().items():
        for _ in range(3):
            work()
        ratios: dict[str, list[float]] = {mode: [] for mode in modes()}
        for _ in range(rounds):
            order = list(modes().items())
            random.shuffle(order)
            for mode, run in order:
                # what ran before leaves byte code that is to be specialised anew
                work()
                alone = timed(work)
                ratios[mode].append(run(work) / alone)
                work()
                gc.collect()
        found[workload] = {mode: statistics.median(all_) for mode, all_ in ratios.items()}
    return found


def started(**options: object) -> Tracer:
    tracer = Tracer(TraceOptions(max_events=50_000_000, **options))  # type: ignore[arg-type]
    tracer.start()
    return tracer


def streams(tracer: Tracer) -> tuple[Stream, ...]:
    assert tracer._recorder is not None
    return tracer._recorder.recording().streams


def bytes_per_event() -> dict[str, float]:
    """Of the raw streams, on the workload with most kinds of events."""
    found = {}
    all_work = workloads()
    work = all_work.get("markdown", all_work["fib"])
    for mode in ("counts", "tree"):
        for c_calls in (False, True):
            tracer = started(mode=mode, c_calls=c_calls)
            for _ in range(4):
                work()
            size = sum(
                each.size + (0 if each.lane is None else sys.getsizeof(each.lane))
                for each in streams(tracer)
            )
            found[f"{mode}{', C' if c_calls else ''}"] = size / tracer.stop().stats.events
    return found


def ns_per_event(events: int) -> tuple[int, float]:
    """Post-processing of a long tree: (events, ns each)."""
    gc.collect()
    tracer = started(mode="tree")
    # fib(n) makes about 1.62 ** n * 1.45 calls, of two events each
    while (
        sum(len(each.times if each.lane is None else each.lane) for each in streams(tracer))
        < events
    ):
        fib(25)
    start = time.process_time()
    columns = tracer.stop()
    spent = time.process_time() - start
    assert Tree(columns).calls("*.fib") * 2 <= columns.stats.events
    return columns.stats.events, spent * 1e9 / columns.stats.events


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--events", type=int, default=10_000_000)
    arguments = parser.parse_args()
    missed: list[str] = []

    def target(what: str, figure: float, limit: float) -> None:
        verdict = "met" if figure <= limit else f"MISSED by {figure / limit - 1:.0%}"
        print(f"  {what}: {figure:.2f} (limit {limit:g}): {verdict}")
        if figure > limit:
            missed.append(what)

    backend = choose_backend()
    print(f"{backend.backend}, core {backend.core}")
    print(f"Python {sys.version.split()[0]}, median slowdown of {arguments.rounds} rounds")
    table = slowdowns(arguments.rounds)
    names = list(modes())
    print("  " + "".join(f"{name:>12}" for name in ("", *names)))
    for workload, row in table.items():
        print("  " + f"{workload:>12}" + "".join(f"{row[name]:>11.2f}x" for name in names))

    print("targets")
    for workload, row in table.items():
        if backend.core == "python":
            if sys.version_info >= (3, 12):
                ratio = row["counts"] / row["cProfile"]
                target(f"{workload}: counts / cProfile", ratio, OF_CPROFILE_LIMIT)
            continue
        if workload not in LIBRARIES:
            continue
        if sys.version_info >= (3, 12):
            target(f"{workload}: counts / alone", row["counts"], COUNTS_LIMIT)
        for theirs in ("its rows", "viz. rows"):
            if theirs in row:
                target(f"{workload}: rows, C / {theirs}", row["rows, C"] / row[theirs], 1.0)
    for mode, figure in bytes_per_event().items():
        target(f"bytes per event, {mode}", figure, BYTES_LIMIT[backend.core])
    events, ns = ns_per_event(arguments.events)
    target(f"ns per event to make rows of {events:,} events", ns, NS_LIMIT)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
