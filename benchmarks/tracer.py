"""What a trace costs, beside cProfile, viztracer and yappi, on this Python and machine.

    python benchmarks/tracer.py            # exits 1 if a target is missed

The slowdown of each is its processor time over that of the same work alone, in the same round; the
rounds are shuffled, and the table has the median. Targets: on 3.12+ counts at most 1.1x cProfile's slowdown on
every workload; a tree with a clock at most 2.5x viztracer's on tomllib and markdown; at most 20 bytes
per event; rows of 10 million events made at under 600 ns an event.
viztracer, yappi and markdown are looked at where they are installed.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import gc
import importlib.util
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import Tracer
from pytest_instrcount.trace.tree import Tree

COUNTS_LIMIT = 1.1
TREE_LIMIT = 2.5
BYTES_LIMIT = 20.0
NS_LIMIT = 600.0

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


def repeat(times: int, func: Callable[[str], object], text: str) -> None:
    for _ in range(times):
        func(text)


def workloads() -> dict[str, Work]:
    found: dict[str, Work] = {
        "fib": lambda: fib(22),
        "len": len_loop,
        "generators": generators,
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


def with_cprofile(work: Work) -> float:
    profile = cProfile.Profile()
    profile.enable()
    try:
        return timed(work)
    finally:
        profile.disable()


def with_viztracer(work: Work) -> float:
    from viztracer import VizTracer

    tracer = VizTracer(verbose=0, tracer_entries=5_000_000)
    tracer.start()
    try:
        return timed(work)
    finally:
        tracer.stop()
        tracer.clear()


def with_yappi(work: Work) -> float:
    import yappi

    yappi.set_clock_type("wall")
    yappi.start()
    try:
        return timed(work)
    finally:
        yappi.stop()
        yappi.clear_stats()


def with_ours(**options: object) -> Callable[[Work], float]:
    def run(work: Work) -> float:
        tracer = Tracer(TraceOptions(max_events=50_000_000, **options))  # type: ignore[arg-type]
        tracer.start()
        try:
            return timed(work)
        finally:
            # without the rows: those are made after the trace
            assert tracer._recorder is not None
            tracer._recorder.uninstall()

    return run


def modes() -> dict[str, Callable[[Work], float]]:
    found: dict[str, Callable[[Work], float]] = {
        "alone": timed,
        "counts": with_ours(),
        "tree": with_ours(mode="tree"),
        "counts, C": with_ours(c_calls=True),
        "tree, C": with_ours(mode="tree", c_calls=True),
        "cProfile": with_cprofile,
    }
    for name, run in (("viztracer", with_viztracer), ("yappi", with_yappi)):
        if importlib.util.find_spec(name):
            found[name] = run
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


def bytes_per_event() -> dict[str, float]:
    """Of the raw streams, on the workload with most kinds of events."""
    found = {}
    all_work = workloads()
    work = all_work.get("markdown", all_work["fib"])
    for mode in ("counts", "tree"):
        for c_calls in (False, True):
            tracer = Tracer(TraceOptions(mode=mode, c_calls=c_calls, max_events=50_000_000))  # type: ignore[arg-type]
            tracer.start()
            for _ in range(4):
                work()
            assert tracer._recorder is not None
            tracer._recorder.uninstall()
            size = sum(stream.size for stream in tracer._recorder.recording().streams)
            events = tracer.stop().stats.events
            found[f"{mode}{', C' if c_calls else ''}"] = size / events
    return found


def ns_per_event(events: int) -> tuple[int, float]:
    """Post-processing of a long tree: (events, ns each)."""
    gc.collect()
    tracer = Tracer(TraceOptions(mode="tree", max_events=4 * events))
    tracer.start()
    # fib(n) makes about 1.62 ** n * 1.45 calls, of two events each
    while sum(len(stream.times) for stream in tracer._recorder.recording().streams) < events:  # type: ignore[union-attr]
        fib(25)
    assert tracer._recorder is not None
    tracer._recorder.uninstall()
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

    print(f"Python {sys.version.split()[0]}, median slowdown of {arguments.rounds} rounds")
    table = slowdowns(arguments.rounds)
    names = list(modes())
    print("  " + "".join(f"{name:>12}" for name in ("", *names)))
    for workload, row in table.items():
        print("  " + f"{workload:>12}" + "".join(f"{row[name]:>11.2f}x" for name in names))

    print("targets")
    for workload, row in table.items():
        if sys.version_info >= (3, 12):
            target(f"{workload}: counts / cProfile", row["counts"] / row["cProfile"], COUNTS_LIMIT)
        if workload in ("tomllib", "markdown") and "viztracer" in row:
            target(f"{workload}: tree / viztracer", row["tree"] / row["viztracer"], TREE_LIMIT)
    for mode, figure in bytes_per_event().items():
        target(f"bytes per event, {mode}", figure, BYTES_LIMIT)
    events, ns = ns_per_event(arguments.events)
    target(f"ns per event to make rows of {events:,} events", ns, NS_LIMIT)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
