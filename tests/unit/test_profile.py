"""``profile``: from a block of code to its events."""

from __future__ import annotations

import asyncio
import dataclasses
import doctest
import pstats
import re
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_instrcount
from pytest_instrcount.errors import InstrcountError, InstrcountWarning
from pytest_instrcount.trace.check import broken_rules
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.events.function_event import FunctionEvent, FunctionEventAvg
from pytest_instrcount.trace.events.profile import ProfileStats, profile
from pytest_instrcount.trace.ranges.ranges import record_function
from pytest_instrcount.trace.ranges.session import Session, mark, start
from pytest_instrcount.trace.tracer import Tracer
from tests.perfetto import load

BACKENDS = ["setprofile", *(["monitoring"] if sys.version_info >= (3, 12) else [])]


def leaf(n: int) -> int:
    return n + 1


def branch(n: int) -> int:
    return sum(leaf(number) for number in range(n))


def fails() -> None:
    raise LookupError("on purpose")


def raised(error: type[BaseException]) -> None:
    leaf(1)
    raise error


def counts(prof: profile | EventList) -> dict[str, int]:
    """Calls by the last part of the name, of this module and of ranges."""
    found: dict[str, int] = {}
    for one in prof.key_averages():
        if one.kind == "range" or one.key.startswith(__name__ + "."):
            name = one.key.removeprefix(__name__ + ".")
            found[name] = found.get(name, 0) + one.count
    return {name: count for name, count in found.items() if count}


@pytest.mark.parametrize("backend", ["auto", *BACKENDS])
def test_calls_are_counted(backend: Any) -> None:
    """The same by both backends."""
    with profile(backend=backend) as prof:
        branch(3)
        leaf(0)
    assert counts(prof) == {"branch": 1, "branch.<locals>.<genexpr>": 1, "leaf": 4}
    assert prof.stats.backend == (BACKENDS[-1] if backend == "auto" else backend)
    assert broken_rules(prof.timeline) == ""


def test_events_in_order() -> None:
    """With what they ran in, and their times."""
    with profile() as prof:
        branch(1)
    events = [event for event in prof.function_events if event.name.startswith(__name__)]
    names = [event.name.rpartition(".")[2] for event in events]
    assert names == ["test_events_in_order", "branch", "<genexpr>", "leaf", "<genexpr>"]
    assert [event.count for event in events] == [0, 1, 1, 1, 0]
    assert events[3].cpu_parent == events[2]
    assert all(event.cpu_time_total >= event.self_cpu_time_total >= 0 for event in events)


def test_ranges_lie_among_calls() -> None:
    """A child of the call that opened it, and parent of those within."""
    with profile() as prof:
        with record_function("load"):
            leaf(1)
        leaf(2)
    load_, first, second = [
        event for event in prof.function_events if event.name in ("load", f"{__name__}.leaf")
    ]
    assert (load_.kind, load_.cpu_parent) == ("range", second.cpu_parent)
    assert first.cpu_parent == load_


def test_nothing_of_ours_is_seen() -> None:
    """The user looks for the own code."""
    with profile(c_calls=True) as prof:
        with record_function("r"):
            pass
        mark("here")
    kinds = {event.name: event.kind for event in prof.function_events if event.count}
    assert kinds == {"r": "range"}
    assert [one.name for one in prof.timeline.marks] == ["here"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda prof: prof.function_events,
        lambda prof: prof.stats,
        lambda prof: prof.timeline,
        lambda prof: prof.key_averages(),
        lambda prof: prof.total_average(),
        lambda prof: prof.table(),
        lambda prof: prof.self_cpu_time_total,
        lambda prof: prof.export_chrome_trace("x"),
        lambda prof: prof.export_stacks("x"),
        lambda prof: prof.export_json("x"),
    ],
)
def test_results_before_the_end(ask: Callable[[profile], object]) -> None:
    """Raise, and the repr says why: before, within, and within a second run."""
    prof = profile()
    with pytest.raises(InstrcountError, match="profile-unfinished"):
        ask(prof)
    with prof:
        pass
    with prof:
        assert repr(prof) == str(prof) == "<unfinished profile>"
        with pytest.raises(InstrcountError) as error:
            ask(prof)
        assert error.value.slug == "profile-unfinished"
    assert repr(prof) == f"<profile of {len(prof.function_events):,} events>"
    assert str(prof) == prof.table()


def test_switched_off() -> None:
    """It does nothing, and says so when asked."""
    with profile(False) as prof:
        assert sys.getprofile() is None
        leaf(1)
    assert repr(prof) == "<unfinished profile>"
    with pytest.raises(InstrcountError) as error:
        prof.table()
    assert error.value.fix == "profile(enabled=True)"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"use_cuda": True}, "nothing of devices: no times"),
        ({"use_device": "cuda"}, "nothing of devices: no times"),
        ({"with_flops": True}, "nothing of operators: no FLOPs"),
    ],
)
def test_what_torch_would_record(arguments: dict[str, Any], said: str) -> None:
    """Is asked for in vain: a warning, and all else is recorded."""
    with pytest.warns(InstrcountWarning, match=said), profile(**arguments) as prof:
        leaf(1)
    assert counts(prof) == {"leaf": 1}


def test_other_arguments_of_torch() -> None:
    """Are taken and do nothing."""
    with profile(
        use_kineto=True,
        use_cpu=False,
        experimental_config=object(),
        acc_events=True,
        custom_trace_id_callback=str,
        post_processing_timeout_s=1.0,
        activity_filters={},
    ) as prof:
        leaf(1)
    assert counts(prof) == {"leaf": 1}


def test_arguments_can_be_read() -> None:
    """By torch's names."""
    prof = profile(with_stack=True, profile_memory=True)
    assert (prof.with_stack, prof.profile_memory) == (True, True)
    others = (prof.record_shapes, prof.with_modules, prof.with_flops, prof.use_device)
    assert others == (False, False, False, None)


def test_events_are_one_list() -> None:
    """What the user takes out of it is out of the tables."""
    with profile() as prof:
        leaf(1)
    events = prof.function_events
    events[:] = [event for event in events if event.name.endswith(".leaf")]
    assert prof.function_events is events
    assert [one.count for one in prof.key_averages()] == [1]


def test_not_reentrant() -> None:
    """The second enter is refused, and the first run goes on."""
    prof = profile()
    with prof:
        with pytest.raises(InstrcountError) as error:
            prof.__enter__()
        assert error.value.slug == "profile-reentrant"
        leaf(1)
    assert counts(prof)["leaf"] == 1


def test_a_second_run_appends() -> None:
    """Events, windows and statistics of both."""
    prof = profile()
    for number in (1, 2):
        with prof:
            leaf(number)
        assert (counts(prof), prof.stats.runs) == ({"leaf": number}, number)
    first, second = prof.timeline.windows
    assert first[1] < second[0]
    starts = [event.start_ns for event in prof.function_events]
    assert starts == sorted(starts)
    assert len(prof.timeline.tracks) == 1
    assert broken_rules(prof.timeline) == ""


def test_stats() -> None:
    """The window, the events, and what it cost."""
    with profile() as prof:
        branch(100)
    stats = prof.stats
    assert stats.runs == 1
    assert stats.events == len(prof.function_events)
    assert (stats.unmatched, stats.unfinished, stats.truncated) == (0, 0, False)
    assert prof.self_cpu_time_total / 1e6 <= stats.window_seconds * 1.01
    seconds = [
        getattr(stats, field.name)
        for field in dataclasses.fields(ProfileStats)
        if field.name.endswith("_seconds")
    ]
    assert len(seconds) == 5
    assert all(0 < one < 60 for one in seconds)


@pytest.mark.parametrize("error", [LookupError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_exception_passes_through(error: type[BaseException]) -> None:
    """And nothing stays installed."""
    prof = profile(profile_memory=True)
    with pytest.raises(error), prof:
        raised(error)
    assert counts(prof) == {"raised": 1, "leaf": 1}
    assert sys.getprofile() is None
    with profile() as again:
        leaf(1)
    assert counts(again) == {"leaf": 1}


def test_errors_are_flagged() -> None:
    """Of calls that were left by an exception."""
    with profile() as prof, warnings.catch_warnings():
        try:
            fails()
        except LookupError:
            leaf(1)
    errors = {one.key: one.errors for one in prof.key_averages() if one.errors}
    assert errors == {f"{__name__}.fails": 1}


def test_another_trace_is_active() -> None:
    """It is named, and our sessions are off again."""
    with Tracer(), pytest.raises(InstrcountError) as error, profile():
        pass
    assert error.value.slug == "tracer-busy"
    start().stop()


def test_another_session_is_on() -> None:
    """It goes on, and no tracer is left."""
    session = start()
    with pytest.raises(InstrcountError) as error, profile():
        pass
    assert error.value.slug == "session-on"
    assert sys.getprofile() is None
    session.stop()
    with profile():
        pass


def test_c_calls() -> None:
    """Only when asked for."""
    with profile() as without:
        len("abc")
    with profile(c_calls=True) as prof:
        len("abc")
    assert "builtins.len" not in {event.name for event in without.function_events}
    assert "builtins.len" in {event.name for event in prof.function_events}


@record_function("step")
def steps() -> Iterator[int]:
    yield leaf(1)
    yield leaf(2)


@record_function("task")
async def task() -> None:
    await asyncio.sleep(0)
    leaf(3)


@record_function("plain")
def plain() -> None:
    leaf(4)


def test_what_decorated_functions_call() -> None:
    """Is seen; our wrappers around them are not."""
    with profile() as prof:
        list(steps())
        asyncio.run(task())
        plain()
    # ranges and functions of one name are counted together
    assert counts(prof) == {"step": 1, "steps": 1, "task": 2, "plain": 2, "leaf": 4}


def in_a_thread() -> None:
    leaf(1)
    with record_function("there"):
        leaf(2)


def test_threads() -> None:
    """Each is a track of its own, with an arrow from where a range was opened."""
    with profile() as prof, record_function("here"):
        thread = threading.Thread(target=in_a_thread, name="worker")
        thread.start()
        thread.join()
    assert counts(prof) == {"here": 1, "there": 1, "in_a_thread": 1, "leaf": 2}
    assert [track.name for track in prof.timeline.tracks] == ["MainThread", "worker"]
    (flow,) = prof.timeline.flows
    assert (flow.name, flow.from_track, flow.to_track) == ("there", 0, 1)


def test_only_the_own_thread() -> None:
    """Others run, and are not shown."""
    with profile(threads=False) as prof, record_function("here"):
        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
    assert counts(prof) == {"here": 1}
    assert {event.thread for event in prof.function_events} == {0}
    assert prof.timeline.flows == ()
    assert broken_rules(prof.timeline) == ""


def test_a_range_that_ends_elsewhere() -> None:
    """It is kept, beside the tree, with both threads."""
    opened = record_function("far")

    def close() -> None:
        opened.__exit__(None, None, None)

    with profile() as prof:
        opened.__enter__()
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
    (far,) = [event for event in prof.function_events if event.name == "far"]
    assert (far.is_async, far.thread, far.end_thread != far.thread) == (True, 0, True)


def test_a_range_that_does_not_end() -> None:
    """It lasts as long as the recording, and says so."""
    opened = record_function("open")
    with profile() as prof:
        opened.__enter__()
    opened.__exit__(None, None, None)
    (event,) = [event for event in prof.function_events if event.name == "open"]
    assert event.unfinished
    assert event.end_ns >= prof.timeline.windows[0][1]


def test_memory() -> None:
    """Bytes per range, without those of the ranges within."""
    kept = []
    with profile(profile_memory=True) as prof, record_function("outer"):
        with record_function("inner"):
            kept.append(bytearray(1_000_000))
        kept.append(bytearray(3_000_000))
    ranges = {one.key: one for one in prof.key_averages() if one.kind == "range"}
    assert ranges["inner"].cpu_memory_usage == pytest.approx(1_000_000, rel=0.05)
    assert ranges["outer"].cpu_memory_usage == pytest.approx(4_000_000, rel=0.05)
    assert ranges["outer"].self_cpu_memory_usage == pytest.approx(3_000_000, rel=0.05)
    table = prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=1)
    assert table.splitlines()[2].startswith("outer")
    assert len(prof.timeline.memory) >= 4


def test_tracemalloc_is_left_as_it_was() -> None:
    """Off, or on for another session that measures."""
    with profile(profile_memory=True):
        other = in_another_context(lambda: start(profile_memory=True))
    assert tracemalloc.is_tracing()
    other.stop()
    assert not tracemalloc.is_tracing()


def in_another_context(begin: Callable[[], Session]) -> Session:
    """A session of a thread of its own, which has ended since."""
    found: list[Session] = []
    thread = threading.Thread(target=lambda: found.append(begin()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_of_the_recorder_is_taken_out(backend: Any) -> None:
    """Forty bytes a call would hide what the user's code allocates."""
    kept = []
    with profile(profile_memory=True, backend=backend) as prof:
        for name in ("first", "second"):
            with record_function(name):
                branch(10_000)
                kept.append(bytearray(1_000_000))
            with record_function("nothing"):
                branch(1_000)
    ranges = {one.key: one for one in prof.key_averages() if one.kind == "range"}
    for name in ("first", "second"):
        assert ranges[name].cpu_memory_usage == pytest.approx(1_000_000, rel=0.01)
    assert abs(ranges["nothing"].cpu_memory_usage) < 2_000


def test_shapes() -> None:
    """Of what a decorated function is given."""

    class Matrix:
        shape = (2, 3)

    @record_function("multiply")
    def multiply(left: Matrix, right: Matrix) -> None:
        pass

    with profile(record_shapes=True) as prof:
        multiply(Matrix(), Matrix())
    averages = prof.key_averages(group_by_input_shape=True)
    (one,) = [average for average in averages if average.key == "multiply"]
    assert one.input_shapes == ((2, 3), (2, 3))


def test_stacks() -> None:
    """With files and lines, from this function on."""
    with profile(with_stack=True) as prof:
        branch(1)
    (event,) = [event for event in prof.function_events if event.name.endswith(".branch")]
    line = branch.__code__.co_firstlineno
    assert event.stack[0].endswith(f"test_profile.py({line}): {__name__}.branch")
    assert event.stack[1].endswith("test_stacks")
    (one,) = [
        average
        for average in prof.key_averages(group_by_stack_n=2)
        if average.key.endswith(".branch")
    ]
    assert one.stack == event.stack[:2]


def test_truncated() -> None:
    """Counts stay exact, and all that needs no timeline can be written."""
    with profile(max_events=100, with_stack=True) as prof, record_function("r"):
        for _ in range(500):
            branch(2)
    assert prof.stats.truncated
    assert counts(prof) == {"r": 1, "branch": 500, "branch.<locals>.<genexpr>": 500, "leaf": 1000}
    assert broken_rules(prof.timeline) == ""
    totals = {one.key.rpartition(".")[2]: one for one in prof.key_averages()}
    assert totals["branch"].total_ns >= totals["leaf"].total_ns > 0


@pytest.fixture
def recorded() -> profile:
    with profile(with_stack=True, profile_memory=True) as prof, record_function("outer"):
        branch(3)
        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()
    return prof


def test_real_traces_load(recorded: profile, tmp_path: Path) -> None:
    """In Perfetto with no dropped slice, in pstats, and back."""
    recorded.export_chrome_trace(tmp_path / "trace.json")
    assert load(tmp_path / "trace.json").dropped == []
    recorded.export_pstats(tmp_path / "trace.pstats")
    assert pstats.Stats(str(tmp_path / "trace.pstats")).total_calls > 5  # type: ignore[attr-defined]
    recorded.export_json(tmp_path / "trace.plain.json")
    assert EventList.from_json(tmp_path / "trace.plain.json").timeline == recorded.timeline
    recorded.export_stacks(tmp_path / "stacks")
    assert f"{__name__}.branch;" in (tmp_path / "stacks").read_text()
    recorded.export_speedscope(tmp_path / "trace.speedscope.json")
    recorded.export_collapsed(tmp_path / "collapsed", "bytes")


def test_recursion_100_000_deep(tmp_path: Path) -> None:
    """From the call to the file."""

    def down(n: int) -> None:
        if n:
            down(n - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(110_000)
    try:
        with profile(with_stack=True) as prof:
            down(100_000)
    finally:
        sys.setrecursionlimit(limit)
    (one,) = [one for one in prof.key_averages() if one.key.endswith(".down")]
    assert one.count == 100_001
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert load(tmp_path / "trace.json").dropped == []
    prof.export_stacks(tmp_path / "stacks")
    prof.export_pstats(tmp_path / "pstats")
    prof.export_speedscope(tmp_path / "speedscope")
    prof.export_json(tmp_path / "json")


NAMES = (
    *("Parameter", "Recognizer", "recognize_class"),
    *("EnforceUnique", "EventList", "FunctionEvent", "RecordProfile", "StepTracker"),
    *("emit_itt", "emit_nvtx", "load_nvprof", "mark", "profile", "record_function"),
)


def test_a_backend_that_is_none_is_told_at_once() -> None:
    """Where it is written, not where the block begins."""
    with pytest.raises(
        InstrcountError, match=r"backend 'x' \[tracer-backend\]\n  fix: .*setprofile"
    ):
        profile(backend="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_public_names(name: str) -> None:
    """All can be imported from the package, which imports them when they are asked for."""
    assert getattr(pytest_instrcount, name).__name__ == name
    assert name in pytest_instrcount.__all__
    assert name in dir(pytest_instrcount)


def test_page() -> None:
    """The examples of the page run, and all methods stand in it."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "profile.md"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert (failed, tried > 5) == (0, True)
    text = page.read_text()
    assert "::: pytest_instrcount.FunctionEvent\n    options:\n      members: null\n" in text
    for owner in (profile, EventList, FunctionEventAvg):
        names = {*vars(owner), *getattr(owner, "__slots__", ())}
        public = {name for name in names - {*vars(FunctionEvent)} if not name.startswith("_")}
        assert {name for name in public if not re.search(rf"\b{name}\b", text)} == set()
    for field in dataclasses.fields(ProfileStats):
        assert f"`{field.name}`" in text


def test_messages() -> None:
    """Each slug of this front end stands in the page of messages."""
    package = Path(pytest_instrcount.__file__).parent / "trace"
    page = (Path(__file__).parents[2] / "docs" / "reference" / "messages.md").read_text()
    slugs = {
        slug
        for file in package.rglob("*.py")
        for slug in re.findall(
            r'"(profile-[a-z-]+|trace-(?:unreadable|damaged|newer))"', file.read_text()
        )
    }
    assert {slug for slug in slugs if f"### {slug}\n" not in page} == set()


def test_folded_times_add_up() -> None:
    """What was running when rows were folded, and still runs at the end, has its time, too."""

    def busy() -> int:
        return sum(range(2000))

    with profile(max_events=20) as prof:
        for _ in range(30):
            busy()
    assert prof.stats.truncated
    assert all(average.self_cpu_time_total >= 0 for average in prof.key_averages())
    assert prof.self_cpu_time_total > 0
