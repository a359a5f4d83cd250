"""A trace from start to stop: conflicts, threads, what ends it, what bounds it."""

from __future__ import annotations

import _thread
import contextlib
import cProfile
import subprocess
import sys
import sysconfig
import threading
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace import own
from pytest_instrcount.trace.backends import choose_backend
from pytest_instrcount.trace.columns import Flag
from pytest_instrcount.trace.fold import Contexts
from pytest_instrcount.trace.monitoring import TOOL_IDS, take_tool
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import Tracer, trace_call
from tests.invariants import resume_counts
from tests.unit.tracing import (
    BACKENDS,
    checked,
    core,  # noqa: F401 (each test with both)
    each_backend,
    each_mode,
    shown,
    stays_on_setprofile,
    trace,
    with_monitoring,
)

monitoring: Any = getattr(sys, "monitoring", None)


def leaf() -> None:
    pass


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def is_clean() -> bool:
    """Nothing of ours is left in this interpreter."""
    if sys.getprofile() is not None or threading.getprofile() is not None:
        return False
    if not isinstance(_thread.start_new_thread, types.BuiltinFunctionType):
        return False
    return monitoring is None or all(monitoring.get_tool(tool) is None for tool in TOOL_IDS)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    assert is_clean()
    yield
    assert is_clean()


@contextlib.contextmanager
def held(*tools: int) -> Iterator[None]:
    """Tool ids that someone else has."""
    for tool in tools:
        monitoring.use_tool_id(tool, f"holder of {tool}")
    try:
        yield
    finally:
        for tool in tools:
            monitoring.free_tool_id(tool)


def options(**wishes: Any) -> TraceOptions:
    """From what parametrize hands out."""
    return TraceOptions(**wishes)


def refusal(**wishes: Any) -> InstrcountError:
    """The error that a start must end in; nothing is left of it."""
    with pytest.raises(InstrcountError) as caught:
        Tracer(options(**wishes)).start()
    return caught.value


@each_backend
def test_own_work_is_not_charged(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs at the start and at the end has not taken the time that starting and stopping took."""
    kind = choose_backend(backend)
    switched: list[int] = []

    def switch_on(self: Any, switch: Any = kind._switch_on) -> None:
        switch(self)
        switched.append(time.perf_counter_ns())

    # a frame of ours is not shown
    switch_on.__code__ = switch_on.__code__.replace(co_filename=own.__file__)
    monkeypatch.setattr(kind, "_switch_on", switch_on)
    tracer = Tracer(options(backend=backend, mode="tree"))

    def body() -> None:
        before = time.perf_counter_ns()
        tracer.stop(before)
        switched.append(before)

    tracer.start()
    body()
    columns, (first, last) = checked(tracer.columns).columns, switched
    before = [row for row, flags in enumerate(columns.flags) if flags & Flag.START_FRAME]
    assert before
    assert min(columns.start) >= first - len(before)
    assert {columns.end[row] for row in (*before, len(before))} == {last}
    assert columns.flags[len(before)] & Flag.OPEN


@each_backend
def test_another_profiler_is_named(backend: str) -> None:
    """A hook of sys.setprofile is somebody's."""

    def hook(frame: FrameType, event: str, argument: object) -> None:
        pass

    sys.setprofile(hook)
    try:
        error = refusal(backend=backend)
    finally:
        sys.setprofile(None)
    assert error.slug == "tracer-busy"
    assert "hook" in error.why


@each_backend
def test_cprofile_is_named(backend: str) -> None:
    """From 3.12 on sys.getprofile() does not tell: the holder of the tool id does."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        error = refusal(backend=backend)
    finally:
        profile.disable()
    assert error.slug == "tracer-busy"
    assert "rofile" in error.why
    assert ("tool id 2" in error.why) == (sys.version_info >= (3, 12))


@each_backend
def test_two_traces_do_not_nest(backend: str) -> None:
    """The second is refused, the first goes on."""
    with Tracer(options(backend=backend)) as tracer:
        error = refusal(backend=backend)
        leaf()
    assert "pytest-instrcount" in error.why
    assert tracer.tree.calls("*.leaf") == 1


@with_monitoring
def test_tool_ids_that_are_taken_are_skipped() -> None:
    """4, then 3, then 2; with none left, all holders are named."""
    with held(4):
        assert take_tool() == 3
        monitoring.free_tool_id(3)
    with held(4, 3):
        assert take_tool() == 2
        monitoring.free_tool_id(2)
    with held(4, 3, 2):
        assert "tool id 2" in refusal(backend="monitoring").why
        with pytest.raises(InstrcountError, match="holder of 4 has 4, holder of 3 has 3"):
            take_tool()


@with_monitoring
def test_coverage_may_have_its_tool_id() -> None:
    """1 is coverage's, 0 a debugger's: both can be at it."""
    with held(0, 1):
        assert trace(leaf, backend="monitoring").calls("*.leaf") == 1


@each_backend
@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_an_exception_ends_it(backend: str, kind: type[BaseException]) -> None:
    """Also one that nobody catches as a rule; what was recorded is there."""

    def fail() -> None:
        with tracer:
            leaf()
            raise kind

    tracer = Tracer(options(backend=backend))
    with pytest.raises(kind):
        fail()
    assert is_clean()
    assert tracer.tree.calls("*.leaf") == 1


def test_the_order_of_start_and_stop() -> None:
    """Results before the end are an error, so is a second start; a second stop is none."""
    tracer = Tracer()
    with pytest.raises(InstrcountError, match="not started"):
        tracer.stop()
    tracer.start()
    with pytest.raises(InstrcountError, match="still runs"):
        _ = tracer.columns
    assert tracer.stop() is tracer.stop()
    with pytest.raises(InstrcountError, match="started before"):
        tracer.start()


def test_a_backend_that_is_not_there() -> None:
    """By name, or in this version."""
    with pytest.raises(InstrcountError) as caught:
        choose_backend("ptrace")
    assert caught.value.slug == "tracer-backend"
    assert choose_backend().backend == BACKENDS[-1]
    if sys.version_info < (3, 12):
        with pytest.raises(InstrcountError, match=r"3\.12"):
            choose_backend("monitoring")


@each_backend
@each_mode
def test_threads_that_start_meanwhile(backend: str, mode: str) -> None:
    """Each has a root of its own, and what threading does around it is not counted."""

    def body() -> None:
        for _ in range(3):
            thread = threading.Thread(target=fib, args=(3,), name="same")
            thread.start()
            thread.join()

    tree = trace(body, backend=backend, mode=mode)
    assert tree.calls("*.fib") == 15
    assert [thread.name for thread in tree.columns.threads[1:]] == ["same"] * 3
    roots = [node.name for node in tree.roots if node.thread.number and node.calls]
    assert roots == ["threading.Thread.run"] * 3
    assert tree.columns.stats.unmatched_exits == 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="up to 3.11 they cannot be reached")
@each_backend
@each_mode
def test_threads_that_were_there(backend: str, mode: str) -> None:
    """From 3.12 on they are heard, too."""
    go, done = threading.Event(), threading.Event()

    def wait() -> None:
        go.wait(10)
        fib(3)
        done.set()

    thread = threading.Thread(target=wait, name="before")
    thread.start()

    def body() -> None:
        go.set()
        done.wait(10)

    tree = trace(body, backend=backend, mode=mode)
    thread.join()
    assert tree.calls("*.fib") == 5
    (first, *_) = tree.find("*.fib")
    assert first.thread.name == "before"


@each_backend
def test_a_thread_that_outlives_the_trace(backend: str) -> None:
    """It is left alone from then on."""
    go, started = threading.Event(), threading.Event()
    left: list[object] = []

    def outlive() -> None:
        started.set()
        go.wait(10)
        fib(5)
        left.append(sys.getprofile())

    def body() -> None:
        threads.append(threading.Thread(target=outlive))
        threads[0].start()
        started.wait(10)

    threads: list[threading.Thread] = []
    tree = trace(body, backend=backend)
    go.set()
    threads[0].join()
    assert left == [None]
    assert tree.calls("*.fib") == 0
    assert tree.columns.stats.open_at_stop > 0


@each_backend
@each_mode
def test_frames_that_were_on_the_stack(backend: str, mode: str) -> None:
    """They are shown up to a limit, and are no calls."""

    def down(n: int) -> None:
        if n:
            down(n - 1)
        else:
            with Tracer(wanted) as tracer:
                leaf()
            trees.append(checked(tracer.columns))

    trees: list[Any] = []
    for limit in (128, 5, 0):
        wanted = options(backend=backend, mode=mode, start_frames=limit)
        down(140)
        tree = trees.pop()
        before = [node for node in tree.walk() if node.flags & Flag.START_FRAME]
        assert len(before) == limit
        assert tree.calls() == 1
        assert tree.calls("*.leaf") == 1
        assert shown(tree) == ["leaf"]
        assert tree.to_text() == f"{__name__}.leaf  1"


@each_backend
def test_leaving_frames_that_were_on_the_stack(backend: str) -> None:
    """Their exits match; those of frames above the limit are counted, and nothing else happens."""

    def down(n: int, limit: int) -> None:
        if n:
            down(n - 1, limit)
        else:
            tracers.append(Tracer(options(backend=backend, start_frames=limit)))
            tracers[-1].start()

    tracers: list[Tracer] = []
    down(5, 128)
    leaf()
    columns = tracers.pop().stop()
    assert checked(columns).calls() == 1
    assert columns.stats.unmatched_exits == 0
    down(5, 3)
    leaf()
    columns = tracers.pop().stop()
    assert checked(columns).calls() == 1
    assert columns.stats.unmatched_exits > 0


@each_backend
@each_mode
@pytest.mark.parametrize("max_events", [10, 500, 1200])
def test_beyond_the_bound_counts_stay_exact(backend: str, mode: str, max_events: int) -> None:
    """Rows are folded; the trace says so."""

    def walk(n: int) -> Iterator[int]:
        if n:
            yield from walk(n - 1)
        yield n

    def body() -> None:
        fib(12)
        list(walk(30))
        with contextlib.suppress(KeyError):
            raise KeyError

    whole = trace(body, backend=backend, mode=mode, c_calls=True)
    folded = trace(body, backend=backend, mode=mode, c_calls=True, max_events=max_events)
    assert folded.columns.stats.truncated
    assert not whole.columns.stats.truncated
    assert folded.call_counts() == whole.call_counts()
    assert resume_counts(folded) == resume_counts(whole)
    assert folded.to_text() == whole.to_text()
    assert folded.diff(whole) == []
    assert folded.columns.stats.events == whole.columns.stats.events
    assert len(folded) < len(whole)
    assert "truncated" in repr(folded)


@each_backend
def test_recursion_a_hundred_thousand_deep(backend: str) -> None:
    """All is done in loops."""
    script = f"""
import sys
sys.setrecursionlimit(10**6)
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import trace_call
from pytest_instrcount.trace.tree import Tree
from tests.invariants import broken_invariants
def down(n):
    if n: down(n - 1)
for mode, bound in ("counts", 50_000), ("tree", 2_000_000):
    options = TraceOptions(mode=mode, backend={backend!r}, max_events=bound)
    _, columns = trace_call(options, down, 100_000)
    tree = Tree(columns)
    assert tree.calls("*.down") == 100_001
    assert tree.to_text() == "<string>.down  100001", tree.to_text()
    assert tree.diff(tree) == [] and broken_invariants(tree.columns) == ()
    assert tree.columns.stats.unmatched_exits == 0
    assert columns.stats.truncated == (bound < 100_000)
"""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, cwd=root)


@with_monitoring
def test_a_thread_made_without_threading() -> None:
    """The callbacks for one thread alone are changed before it starts."""
    done = threading.Event()

    def run() -> None:
        fib(4)
        done.set()

    def body() -> None:
        _thread.start_new_thread(run, ())
        fib(3)
        done.wait(10)

    tree = trace(body, backend="monitoring")
    assert tree.columns.stats.unmatched_exits == 0
    by_thread = {
        number: sum(1 for node in tree.find("*.fib") if node.thread.number == number)
        for number in (0, 1)
    }
    assert by_thread == {0: 5, 1: 9}


def test_a_trace_takes_what_a_call_gives() -> None:
    """Arguments go in, the value comes out, an exception goes through."""
    value, columns = trace_call(TraceOptions(), lambda a, b: a + b, 1, b=2)
    assert value == 3
    assert len(columns.threads) == 1
    with pytest.raises(ZeroDivisionError):
        trace_call(TraceOptions(), lambda: 1 // 0)


def test_free_threaded_builds_before_3_14(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their hooks race: a clear word instead."""
    if sys.version_info >= (3, 14):
        pytest.skip("safe from 3.14 on")
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1)
    with pytest.raises(InstrcountError) as caught:
        choose_backend()
    assert caught.value.slug == "tracer-free-threaded"


@each_backend
@each_mode
def test_our_own_frames_are_left_out(backend: str, mode: str) -> None:
    """With all below them; but a transparent one passes on what the user's code does."""
    space: dict[str, Any] = {"sorted": sorted}
    source = "def hidden(func): return func()\ndef passing(func):\n  len([])\n  return func()\n"
    exec(compile(source, own.__file__, "exec"), space)
    hidden, passing = space["hidden"], own.transparent(space["passing"])

    def body() -> None:
        hidden(leaf)
        passing(leaf)
        passing(lambda: passing(leaf))

    tree = trace(body, backend=backend, mode=mode, c_calls=True)
    assert shown(tree) == ["body", "  leaf", "  <lambda>", "    leaf"]
    assert tree.columns.stats.unmatched_exits == 0


def drops_by_recursion() -> None:
    def deeper() -> None:
        deeper()

    with contextlib.suppress(RecursionError):
        deeper()
    leaf()


def drops_by_cprofile() -> None:
    profile = cProfile.Profile()
    profile.enable()
    leaf()
    profile.disable()
    leaf()


def drops_by_setprofile() -> None:
    sys.setprofile(None)
    leaf()


def takes_over() -> None:
    sys.setprofile(lambda frame, event, argument: None)
    leaf()


@pytest.mark.parametrize(
    "body",
    [
        drops_by_recursion,
        pytest.param(
            drops_by_cprofile,
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 12), reason="it leaves the hook alone"
            ),
        ),
        drops_by_setprofile,
        takes_over,
    ],
)
@pytest.mark.parametrize("mode", ["counts", "tree"])
def test_a_hook_that_is_gone_at_the_end(body: Callable[[], None], mode: Any) -> None:
    """What was called after it is missing: there is no trace, and the next one is whole."""
    if body in (drops_by_recursion, drops_by_setprofile) and stays_on_setprofile():
        pytest.skip("the hook in C stays")
    tracer = Tracer(TraceOptions(mode=mode, backend="setprofile"))
    tracer.start()
    body()
    with pytest.raises(InstrcountError) as caught:
        tracer.stop()
    assert caught.value.slug == "tracer-lost"
    assert "calls are missing" in str(caught.value)
    with pytest.raises(InstrcountError):
        tracer.stop()
    assert sys.getprofile() is None
    _, columns = trace_call(TraceOptions(backend="setprofile"), leaf)
    assert len(columns)


def in_a_thread(body: Callable[[], None]) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def drops_for_threads() -> None:
    threading.setprofile(None)
    in_a_thread(leaf)


@pytest.mark.parametrize(
    "body",
    [
        partial(in_a_thread, drops_by_cprofile),
        partial(in_a_thread, takes_over),
        drops_for_threads,
    ],
)
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring is in all threads")
@each_mode
def test_a_hook_that_is_gone_in_a_thread(body: Callable[[], None], mode: Any) -> None:
    """It has ended by then, and its calls are missing; or those of threads that start later are."""
    tracer = Tracer(TraceOptions(mode=mode, backend="setprofile"))
    tracer.start()
    body()
    with pytest.raises(InstrcountError, match="calls are missing") as caught:
        tracer.stop()
    assert caught.value.slug == "tracer-lost"
    assert sys.getprofile() is threading.getprofile() is None


@each_mode
def test_a_hook_that_stays_in_a_thread(mode: Any) -> None:
    """Its last moment is no call of anybody's."""
    tree = trace(lambda: in_a_thread(leaf), mode=mode, backend="setprofile", c_calls=True)
    assert tree.calls("*.leaf") == 1
    assert tree.calls("*__del__") == tree.calls("*_note_end") == tree.calls("*getprofile*") == 0


@pytest.mark.parametrize("body", [drops_by_recursion, drops_by_setprofile])
@each_mode
def test_a_hook_in_c_stays(body: Callable[[], None], mode: str) -> None:
    """After a RecursionError, and after a sys.setprofile(None)."""
    if not stays_on_setprofile():
        pytest.skip("a hook in Python does not")
    tree = trace(body, mode=mode, backend="setprofile", c_calls=True)
    assert tree.calls("*.leaf") == 1
    assert [line.strip() for line in shown(tree)][-1] == "leaf"
    assert (tree.calls("*.deeper") > 100) == (body is drops_by_recursion)
    assert tree.columns.stats.unmatched_exits == tree.columns.stats.unfinished == 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="it takes the hook away")
def test_cprofile_beside_the_hook() -> None:
    """Both see all calls."""
    tree = trace(drops_by_cprofile, backend="setprofile")
    assert [line.strip() for line in shown(tree)].count("leaf") == 2


@pytest.mark.skipif(monitoring is None, reason="sys.monitoring is there from Python 3.12 on")
@pytest.mark.parametrize("frees", [True, False])
def test_a_tool_of_monitoring_that_is_gone(*, frees: bool) -> None:
    """A body that empties the tools of others, as some debuggers do."""
    tracer = Tracer(TraceOptions(backend="monitoring"))
    tracer.start()
    for tool in TOOL_IDS:
        if monitoring.get_tool(tool) is not None:
            monitoring.set_events(tool, 0)
            if frees:
                monitoring.free_tool_id(tool)
    leaf()
    with pytest.raises(InstrcountError) as caught:
        tracer.stop()
    assert caught.value.slug == "tracer-lost"
    with Tracer(TraceOptions(backend="monitoring")) as again:
        leaf()
    assert again.tree.calls("*leaf") == 1


@each_backend
def test_time_of_folding_is_nobodys(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call in which the trace makes room for itself takes as long as without that."""
    slept = 0.0
    really = Contexts.absorb

    def slow(self: Contexts, *args: Any) -> Any:
        nonlocal slept
        before = time.perf_counter()
        time.sleep(0.2)
        slept += time.perf_counter() - before
        return really(self, *args)

    monkeypatch.setattr(Contexts, "absorb", slow)

    def outer() -> None:
        for _ in range(2_000):
            leaf()

    options: Any = {"mode": "tree", "backend": backend, "max_events": 500}
    with Tracer(TraceOptions(**options)) as tracer:
        began = time.perf_counter()
        outer()
        elapsed, within = time.perf_counter() - began, slept
    columns = tracer.columns
    assert columns.stats.truncated and within > 0.8
    (row,) = (
        row
        for row in range(len(columns))
        if columns.keys[columns.key[row]].qualname.endswith("outer")
    )
    assert columns.ns(row) / 1e9 <= elapsed - within
