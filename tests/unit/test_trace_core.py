"""The core in C: the same as the one in Python, and no reference too many or too few."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.util
import math
import sys
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Generator
from copy import copy
from types import ModuleType
from typing import Any

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace import core as cores
from pytest_instrcount.trace.cfunctions import CFunctions
from pytest_instrcount.trace.columns import Columns
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import Tracer, trace_call
from tests.invariants import broken_invariants
from tests.unit.trace_workloads import WORKLOADS, trace_warm
from tests.unit.tracing import BACKENDS

#: The backend that has a core in C.
BACKEND: Any = BACKENDS[-1]
native = pytest.mark.skipif(
    not importlib.util.find_spec("pytest_instrcount.trace._core"), reason="it is not built"
)


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Chooses a core."""
    return lambda name: monkeypatch.setenv(cores.VARIABLE, name)


def rows(columns: Columns) -> list[tuple[object, ...]]:
    """All but the times."""
    return [
        (columns.keys[key], parent, flags, columns.threads[thread].name)
        for key, parent, flags, thread in zip(
            columns.key, columns.parent, columns.flags, columns.thread
        )
    ]


def leaf() -> None:
    pass


def call_leaf(times: int) -> None:
    for _ in range(times):
        leaf()


def numbers(n: int) -> Generator[int, None, None]:
    try:
        yield from range(n)
    finally:
        leaf()


def use_generators() -> None:
    list(numbers(3))
    one = numbers(9)
    next(one)
    with contextlib.suppress(KeyError):
        one.throw(KeyError)
    two = numbers(9)
    next(two)
    two.close()
    numbers(1).close()


def use_exceptions() -> None:
    def fail(n: int) -> None:
        if n:
            fail(n - 1)
        int("x")

    for wanted in (ValueError, Exception):
        with contextlib.suppress(wanted):
            fail(4)
    with contextlib.suppress(TypeError):
        len(0)  # type: ignore[arg-type]


def use_threads() -> None:
    for _ in range(3):
        thread = threading.Thread(target=use_generators, name="worker")
        thread.start()
        thread.join()


def use_tasks() -> None:
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async def main() -> None:
        await asyncio.gather(*map(work, range(4)))

    asyncio.run(main())


class Same(list):  # type: ignore[type-arg]
    """Of a class in Python, with methods in C."""


def use_builtins() -> None:
    items, append = Same(), Same().append
    for n in range(5):
        items.append(n)
        append(n)
        {0: 1}.get(n)
        dict.fromkeys("ab")
        sorted(items, key=str)
        "a".join(map(str, items))
        list.__new__(Same)
        type.mro(Same)
        str.maketrans("a", "b")
        super(Same, items).pop()
        defaultdict(int).copy()
        copy(defaultdict(int))
        items.append(n)


OWN = [use_generators, use_exceptions, use_threads, use_tasks, use_builtins]


@native
@pytest.mark.parametrize("name", WORKLOADS)
def test_both_cores_record_the_same_of_libraries(name: str, choose: Callable[[str], None]) -> None:
    """Row by row: function, caller, and how it was entered and left."""
    choose("c")
    first = rows(trace_warm(name, BACKEND))
    choose("python")
    assert first == rows(trace_warm(name, BACKEND))


@native
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("work", OWN)
@pytest.mark.parametrize("mode", ["counts", "tree"])
def test_both_cores_record_the_same(
    work: Callable[[], None], mode: Any, backend: Any, choose: Callable[[str], None]
) -> None:
    """The same of what is hard for a tracer."""
    options = TraceOptions(mode=mode, backend=backend, c_calls=True)
    found = []
    for name in ("c", "python"):
        choose(name)
        work()
        _, columns = trace_call(options, work)
        assert broken_invariants(columns) == ()
        found.append(rows(columns))
    if work in (use_threads, use_tasks):  # of the library's own, how often it waits varies
        found = [[each[::2] for each in one if "test_trace_core" in str(each)] for one in found]
    assert found[0] == found[1]


def test_the_core_is_chosen(choose: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a variable; without it, it is C where that was built, and no error where it was not."""
    choose("python")
    assert cores.core_name(BACKEND) == "python"
    monkeypatch.setattr(cores, "_MODULE", "pytest_instrcount.trace._missing")
    choose("c")
    with pytest.raises(InstrcountError, match=r"PYTEST_INSTRCOUNT_CORE=c.*_missing") as caught:
        cores.core_name(BACKEND)
    assert caught.value.slug == "tracer-backend"
    choose("")
    assert cores.core_name(BACKEND) == "python"
    choose("rust")
    with pytest.raises(InstrcountError, match="no such core"):
        cores.core_name(BACKEND)


@native
def test_the_core_in_c_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the backend that it is for."""
    monkeypatch.delenv(cores.VARIABLE, raising=False)
    assert [cores.core_name(each) for each in BACKENDS] == ["python", "c"][-len(BACKENDS) :]


def test_names_that_a_c_function_alone_does_not_tell() -> None:
    """Of two names for one C function, and of a method of a metaclass, the name is needed as well."""
    functions = CFunctions()
    known: list[tuple[Any, bool, bool]] = [
        ([].append, True, True),
        (len, True, True),
        (str.join, True, True),
        (dict.fromkeys, True, True),
        (Same.__new__, True, False),
        (int.mro, False, True),
        (deque().copy, False, True),  # it is __copy__, too
        (defaultdict().copy, False, False),  # and dict has another
    ]
    for called, by_function, by_name in known:
        function = functions.find(called)
        assert functions.find_kept(called) == (function, by_function, by_name), called


@native
def test_python_is_asked_for_a_name_twice_at_most(
    choose: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a C function has two, as `Pattern.match` from CPython 3.15 on."""
    choose("c")
    asked: list[object] = []
    find = CFunctions.find_kept

    def note(self: CFunctions, called: object) -> object:
        asked.append(called)
        return find(self, called)

    monkeypatch.setattr(CFunctions, "find_kept", note)

    def work() -> None:
        called: Callable[[], object]
        for called in (deque().copy, deque().__copy__, deque.mro):
            for _ in range(50):
                called()

    with Tracer(TraceOptions(c_calls=True)) as tracer:
        work()
    names = "copy", "__copy__", "mro"
    assert [tracer.tree.calls(f"collections.deque.{name}") for name in names] == [50] * 3
    assert len([each for each in asked if "deque" in repr(each)]) <= 6


@native
def test_references_are_given_back(choose: Callable[[str], None]) -> None:
    """Of what was recorded, and of all that a trace is made of."""
    choose("c")
    options = TraceOptions(mode="tree", c_calls=True, max_events=2_000)

    def work() -> None:
        call_leaf(3_000)
        for each in OWN:
            each()

    def trace() -> weakref.ref[Tracer]:
        with Tracer(options) as tracer:
            work()
        assert tracer.columns.stats.truncated
        return weakref.ref(tracer)

    trace()
    gc.collect()
    counted = [leaf.__code__, leaf, len, Same]
    before = [sys.getrefcount(each) for each in counted], len(gc.get_objects())
    for _ in range(5):
        assert trace()() is None
        gc.collect()
    after = [sys.getrefcount(each) for each in counted], len(gc.get_objects())
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) < 50


@native
def test_objects_are_not_kept_alive(choose: Callable[[str], None]) -> None:
    """Neither arguments, nor what builtin methods are bound to."""
    choose("c")

    class Mine(list):  # type: ignore[type-arg]
        pass

    def work() -> weakref.ref[Mine]:
        one = Mine()
        append = one.append
        append(1)
        return weakref.ref(one)

    with Tracer(TraceOptions(c_calls=True)) as tracer:
        found = work()
        assert found() is None
    assert tracer.tree.calls("builtins.list.append") == 1


@pytest.mark.parametrize("core", ["python", pytest.param("c", marks=native)])
def test_a_thread_keeps_nothing_alive(core: str, choose: Callable[[str], None]) -> None:
    """Of what the function has that starts it, nor of its callers."""
    choose(core)

    class Mine(list):  # type: ignore[type-arg]
        pass

    def work() -> weakref.ref[Mine]:
        one = Mine()
        thread = threading.Thread(target=leaf)
        thread.start()
        thread.join()
        return weakref.ref(one)

    gc.disable()
    try:
        with Tracer(TraceOptions()):
            assert work()() is None
    finally:
        gc.enable()


@native
def test_threads_that_end_in_the_middle(choose: Callable[[str], None]) -> None:
    """What they recorded outlives them; a thread of the next trace is not taken for one of them."""
    choose("c")
    for _ in range(3):
        with Tracer(TraceOptions(mode="tree", max_events=200_000)) as tracer:
            threads = [threading.Thread(target=call_leaf, args=(500,)) for _ in range(8)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            del threads, each
            gc.collect()
        assert tracer.tree.calls("*.leaf") == 4_000
        assert broken_invariants(tracer.columns) == ()


@native
def test_errors_of_the_trace_itself_reach_the_body(
    choose: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in what C asks of Python is raised where the event was, and the trace can be ended."""
    choose("c")

    really = CFunctions.find_kept

    def fail(self: CFunctions, called: object) -> object:
        if called is math.hypot:
            raise ZeroDivisionError
        return really(self, called)

    monkeypatch.setattr(CFunctions, "find_kept", fail)
    with Tracer(TraceOptions(c_calls=True)) as tracer:
        with pytest.raises(ZeroDivisionError):
            math.hypot(3, 4)
        leaf()
    assert tracer.tree.calls("*.leaf") == 1


@native
@pytest.mark.parametrize("wrong", [(), (1,), (1, 2, 3), (None, None, None, None)])
def test_wrong_arguments_are_errors(wrong: tuple[object, ...]) -> None:
    """No crash."""
    module: ModuleType = importlib.import_module("pytest_instrcount.trace._core")
    for function in (module.make, module.feed):
        with pytest.raises(TypeError):
            function(*wrong)
    made = module.make(False, None, None, None, None, None)
    with pytest.raises(TypeError):
        type(made)()
    with pytest.raises(TypeError):
        module.feed(object(), [], b"", object())
    for capacity in (0, sys.maxsize):
        with pytest.raises(ValueError, match="capacity"):
            made.lane(capacity)
    for callback in ("py_start", "py_throw", "call", "c_return"):
        if hasattr(made, callback):
            with pytest.raises(TypeError):
                getattr(made, callback)()


@native
def test_memory_of_an_event(choose: Callable[[str], None]) -> None:
    """A pointer, and with a clock its reading."""
    choose("c")
    for mode, most in (("counts", 9), ("tree", 17)):
        tracer = Tracer(TraceOptions(mode=mode))  # type: ignore[arg-type]
        tracer.start()
        call_leaf(50_000)
        assert tracer._recorder is not None
        (stream,) = tracer._recorder.recording().streams
        size, events = sys.getsizeof(stream.lane), len(stream.lane)
        tracer.stop()
        assert events > 100_000
        assert size / events < most
