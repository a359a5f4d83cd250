"""What is a call, a resume, a builtin: the same from both backends and on all Pythons."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import types
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import pytest

from pytest_instrcount.trace.columns import Flag
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import trace_call
from pytest_instrcount.trace.tree import Tree
from tests.invariants import resume_counts
from tests.unit.tracing import (
    BACKENDS,
    core,  # noqa: F401 (each test with both)
    each_backend,
    each_mode,
    shown,
    trace,
    with_monitoring,
)

HERE = __name__


def leaf() -> None:
    pass


def numbers(count: int) -> Generator[int, object, None]:
    for number in range(count):
        leaf()
        yield number


def stubborn() -> Generator[int, object, None]:
    """Survives what is thrown into it."""
    while True:
        with contextlib.suppress(KeyError):
            yield 1


def counts(tree: Tree, name: str) -> tuple[int, int]:
    """Calls and resumes of a function of this module."""
    return tree.calls(f"{HERE}.{name}"), tree.resumes(f"{HERE}.{name}")


@each_backend
@each_mode
def test_calls_nest(backend: str, mode: str) -> None:
    """A call is below its caller, in order."""

    def inner() -> None:
        leaf()

    def outer() -> None:
        inner()
        leaf()

    tree = trace(outer, backend=backend, mode=mode)
    assert shown(tree) == ["outer", "  inner", "    leaf", "  leaf"]
    assert tree.columns.stats.unmatched_exits == 0
    assert tree.columns.stats.open_at_stop == 0
    assert tree.columns.stats.backend == backend
    assert tree.columns.clock is (mode == "tree")


@each_backend
@each_mode
def test_generators_start_once_and_resume(backend: str, mode: str) -> None:
    """A start is a call, each further next() a resume."""
    tree = trace(lambda: list(numbers(3)), backend=backend, mode=mode)
    assert counts(tree, "numbers") == (1, 3)
    assert counts(tree, "leaf") == (3, 0)
    flags = [int(node.flags) for node in tree.find("*.numbers")]
    suspended = Flag.RESUME | Flag.YIELD
    assert flags == [Flag.YIELD, suspended, suspended, Flag.RESUME]


@each_backend
def test_a_generator_that_nobody_runs_is_no_call(backend: str) -> None:
    """Neither made and kept nor made and deleted; up to 3.11 the deletion looks like a call."""

    def body() -> None:
        kept = numbers(1)
        lost = numbers(1)
        del lost
        del kept

    tree = trace(body, backend=backend)
    assert counts(tree, "numbers") == (0, 0)
    assert shown(tree) == ["body"]


@each_backend
def test_a_generator_from_before_resumes(backend: str) -> None:
    """Its start was not seen: it is no call."""
    generator = numbers(2)
    next(generator)
    tree = trace(lambda: list(generator), backend=backend)
    assert counts(tree, "numbers") == (0, 2)


@each_backend
def test_throw_is_a_resume(backend: str) -> None:
    """Also where it cannot be told from next()."""

    def body() -> None:
        generator = stubborn()
        next(generator)
        generator.throw(KeyError())
        next(generator)

    tree = trace(body, backend=backend)
    # contextlib's own calls are not of this module
    assert counts(tree, "stubborn")[0] == 1
    # from 3.13 on, what is suspended in no "try" is closed without running it
    assert counts(tree, "stubborn")[1] in (2, 3)


@with_monitoring
def test_throw_and_close_are_flagged() -> None:
    """sys.monitoring says which one it is."""

    def careful() -> Generator[int, object, None]:
        try:
            yield 1
        finally:
            leaf()

    def body() -> None:
        thrown, closed, lost = careful(), careful(), careful()
        next(thrown), next(closed), next(lost)
        with pytest.raises(KeyError):
            thrown.throw(KeyError())
        closed.close()
        del lost

    tree = trace(body, backend="monitoring")
    entered = [node.flags for node in tree.find("*.careful") if not node.calls]
    assert entered == [
        Flag.THROW | Flag.ERROR,
        Flag.CLOSE | Flag.ERROR,
        Flag.CLOSE | Flag.ERROR,
    ]


@each_backend
def test_closing_counts_the_same_on_both(backend: str) -> None:
    """Of a generator that waits in a try, close() runs the rest of it: a resume."""

    def careful() -> Generator[int, object, None]:
        try:
            yield 1
        finally:
            leaf()

    def body() -> None:
        generator = careful()
        next(generator)
        generator.close()

    tree = trace(body, backend=backend)
    name = f"*.{careful.__name__}"
    assert (tree.calls(name), tree.resumes(name)) == (1, 1)


@each_backend
@each_mode
def test_coroutines_resume_after_each_await(backend: str, mode: str) -> None:
    """A start is a call, what goes on after an await that waited is a resume."""

    async def inner() -> int:
        await asyncio.sleep(0)
        leaf()
        return 1

    async def outer() -> int:
        return await inner() + await inner()

    def body() -> None:
        asyncio.run(outer())

    tree = trace(body, backend=backend, mode=mode)
    name = f"*.{test_coroutines_resume_after_each_await.__name__}.<locals>."
    assert (tree.calls(name + "outer"), tree.resumes(name + "outer")) == (1, 2)
    assert (tree.calls(name + "inner"), tree.resumes(name + "inner")) == (2, 2)
    assert tree.calls("*.leaf") == 2
    assert tree.columns.stats.unmatched_exits == 0


@each_backend
def test_async_generators(backend: str) -> None:
    """A start is a call, each further item a resume."""

    async def items() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    async def use() -> list[int]:
        return [each async for each in items()]

    tree = trace(lambda: asyncio.run(use()), backend=backend)
    assert (tree.calls("*.items"), tree.resumes("*.items")) == (1, 3)


@each_backend
@each_mode
def test_exceptions_are_flagged(backend: str, mode: str) -> None:
    """What an exception leaves is an error; who catches it is not."""

    def fail() -> None:
        raise KeyError

    def between() -> None:
        fail()

    def nothing() -> None:
        return None

    def body() -> None:
        nothing()
        try:
            between()
        except KeyError:
            leaf()

    tree = trace(body, backend=backend, mode=mode)
    flagged = {node.name.rpartition(".")[2] for node in tree.walk() if node.flags & Flag.ERROR}
    assert flagged == {"fail", "between"}
    assert sum(tree.columns.errors(node.row) for node in tree.walk()) == 2


class Text(str):
    __slots__ = ()


class Ordered(OrderedDict):  # type: ignore[type-arg]
    def update(self, *args: Any, **kwargs: Any) -> None:
        dict.update(self, {})
        super().update({})


def _c_call_names(body: Callable[[], object], backend: str) -> dict[str, int]:
    names = trace(body, backend=backend, c_calls=True).call_counts()
    return {name: number for name, number in names.items() if not name.startswith(HERE)}


C_BODIES: dict[str, tuple[Callable[[], object], dict[str, int]]] = {
    "function": (lambda: len([]), {"builtins:len": 1}),
    "method": (lambda: [1].append(1), {"builtins:list.append": 1}),
    # a method has the name of the class that defines it
    "of a subclass": (lambda: Text("ab").find("b"), {"builtins:str.find": 1}),
    "unbound": (lambda: str.find("ab", "b"), {"builtins:str.find": 1}),
    # METH_METHOD functions have a type of their own
    "with a class": (lambda: re.compile("a").match("a"), {"re:Pattern.match": 1}),
    # a MethodType around a builtin is that builtin; on 3.12 setprofile sees its exit only
    "bound": (lambda: types.MethodType(len, [])(), {"builtins:len": 1}),  # noqa: PLW0108
    "overridden": (
        Ordered().update,
        {"builtins:dict.update": 1, "collections:OrderedDict.update": 1},
    ),
    "class method": (lambda: dict.fromkeys("ab"), {"builtins:dict.fromkeys": 1}),
    "new": (lambda: object.__new__(object), {"builtins:object.__new__": 1}),
    "with a callback": (lambda: sorted([2, 1], key=lambda n: -n), {"builtins:sorted": 1}),
}


@each_backend
@pytest.mark.parametrize("case", C_BODIES)
def test_builtins_have_one_name(backend: str, case: str) -> None:
    """Whichever way they are called, and whoever hears of it."""
    body, expected = C_BODIES[case]
    body()  # caches of re
    found = _c_call_names(body, backend)
    if case == "with a class":
        found = {name: n for name, n in found.items() if "Pattern" in name}
    assert found == expected


@each_backend
def test_python_called_from_a_builtin_is_below_it(backend: str) -> None:
    """The builtin was called by who called it."""

    def key(number: int) -> int:
        return -number

    def body() -> None:
        sorted([1], key=key)

    tree = trace(body, backend=backend, c_calls=True)
    assert shown(tree) == ["body", "  sorted", "    key"]
    assert shown(trace(body, backend=backend)) == ["body", "  key"]


@each_backend
def test_a_builtin_that_raises(backend: str) -> None:
    """It is left, and flagged."""

    def body() -> None:
        with contextlib.suppress(TypeError):
            len(3)  # type: ignore[arg-type]
        leaf()

    tree = trace(body, backend=backend, c_calls=True)
    (found,) = tree.find("builtins.len")
    assert found.flags == Flag.ERROR
    (after,) = tree.find("*.leaf")
    assert after.parent is not None
    assert after.parent.name.endswith("body")


@each_backend
@each_mode
def test_greenlets_have_a_stack_each(backend: str, mode: str) -> None:
    """An exit is of the greenlet that runs, whatever was entered in others meanwhile."""
    greenlet = pytest.importorskip("greenlet")

    def a(other: Callable[[], None]) -> None:
        leaf()
        other()
        after()

    def after() -> None:
        pass

    def body() -> None:
        two: Any = greenlet.greenlet(lambda: a(one.switch))
        one: Any = greenlet.greenlet(lambda: a(two.switch))
        one.switch()
        after()

    tree = trace(body, backend=backend, mode=mode)
    assert tree.columns.stats.unfinished == 0
    assert tree.columns.stats.unmatched_exits == 0
    where = [
        (node.thread.greenlet, node.parent and node.parent.name) for node in tree.find("*.after")
    ]
    here = f"{HERE}.test_greenlets_have_a_stack_each.<locals>."
    assert where == [(1, here + "a"), (0, here + "body")]
    assert [node.thread.greenlet for node in tree.find("*.leaf")] == [1, 2]


@pytest.mark.skipif(len(BACKENDS) < 2, reason="one backend only")
def test_both_backends_count_python_and_c_alike() -> None:
    """A whole table, of code that has all of it."""

    def body() -> None:
        re.compile(r"(a|b)*c", re.IGNORECASE).sub(lambda found: found[0].upper(), "abc" * 5)
        sorted(numbers(5), key=lambda n: (n % 3, Text(n).find("1")))
        asyncio.run(asyncio.sleep(0))

    body()
    one, two = (trace(body, backend=backend, c_calls=True) for backend in BACKENDS)
    assert one.call_counts() == two.call_counts()
    assert resume_counts(one) == resume_counts(two)


@each_backend
def test_what_freeing_memory_calls_is_flagged(backend: str) -> None:
    """When it runs depends on the collector."""

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            leaf()

    def body() -> None:
        Cycle()
        leaf()
        gc.collect()

    tree = trace(body, backend=backend)
    first, second = tree.find(f"{HERE}.leaf")
    assert not first.flags & Flag.FINALIZER
    assert second.flags & Flag.FINALIZER


@each_backend
def test_nothing_that_the_collector_tracks_is_made_per_event(backend: str) -> None:
    """Else collections would come at other moments than without a trace."""
    allowed = 40

    def body() -> int:
        first = gc.get_count()[0]
        for _ in range(2000):
            leaf()
        return gc.get_count()[0] - first

    gc.collect()
    gc.disable()
    try:
        for mode in ("counts", "tree"):
            value, _ = trace_call(TraceOptions(mode=mode, backend=backend, c_calls=True), body)  # type: ignore[arg-type]
            assert value < allowed
    finally:
        gc.enable()
