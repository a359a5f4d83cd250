"""Coroutines under real Valgrind: by the fixture and by the marker, on every kind of event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"

COMMON = """
import asyncio, pytest, anyio

def crunch(n):
    return sum(i * i for i in range(n))

async def work(n):
    for _ in range(n):
        await anyio.sleep(0)
        crunch(100)
    return n
"""

ASYNCIO = (
    COMMON
    + """
from functools import partial

class Worker:
    async def __call__(self, n):
        return await work(n)

@pytest.mark.asyncio
class TestAsyncio:
    async def test_fixture(self, instrcount):
        assert await instrcount(work, 3) == 3
        assert await work(1) == 1  # the loop goes on

    async def test_object(self, instrcount):
        assert await instrcount(partial(Worker(), 3)) == 3

    async def test_more(self, instrcount):
        assert await instrcount(work, 4) == 4

    async def test_pedantic(self, instrcount):
        async def take(items):
            await work(3)
            return items.pop()
        assert await instrcount.pedantic(take, setup=lambda: (([1],), {})) == 1

    @pytest.mark.instrcount
    async def test_marked(self):
        await asyncio.gather(work(2), work(2))
        await asyncio.wait_for(work(1), 1000)

    async def test_left_over(self, instrcount):
        async def leave():
            asyncio.get_running_loop().call_soon(crunch, 10_000)
        await instrcount(leave)

    async def test_socket(self, instrcount):
        async def echo(reader, writer):
            while line := await reader.readline():
                writer.write(line)
            writer.close()
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(*address)
        async def ask():
            writer.write(b"hello\\n")
            return await reader.readline()
        assert await instrcount(ask) == b"hello\\n"
        assert await ask() == b"hello\\n"  # what the fork did with the selector is its own
        other_reader, other_writer = await asyncio.open_connection(*address)
        other_writer.write(b"you\\n")
        assert await other_reader.readline() == b"you\\n"
        for each in writer, other_writer:
            each.close()
            await each.wait_closed()
        server.close()

    async def test_not_awaited(self, instrcount):
        instrcount(work, 3)

@pytest.mark.asyncio(loop_scope="module")
class TestOneLoop:
    @pytest.mark.instrcount
    async def test_marked(self):
        await work(3)

    async def test_fixture(self, instrcount):
        await instrcount(work, 3)

def test_run(instrcount):
    assert asyncio.run(instrcount(work, 3)) == 3
"""
)

BACKENDS = (
    COMMON
    + """
pytestmark = pytest.mark.anyio

@pytest.fixture
async def ready():
    await work(1)
    yield 3
    await work(1)

async def group(n):
    async with anyio.create_task_group() as tasks:
        for _ in range(n):
            tasks.start_soon(work, n)

@pytest.mark.instrcount
async def test_marked(anyio_backend, ready):
    await group(ready)

async def test_fixture(instrcount, ready):
    await instrcount(group, ready)

async def test_work(instrcount):
    await instrcount(work, 3)
"""
)


@pytest.fixture
def project(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-ptwo_layouts")
    project.makeini(INI)
    return project


@pytest.fixture
def no_anyio(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where asyncio is all that is needed: importing anyio is half of a start."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-pno:anyio -ptwo_layouts")


def test_coroutines_are_counted(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """Until they return, on the loop that runs; and the same again, alone and in another order."""
    project.makepyfile(test_loop=ASYNCIO, test_backends=BACKENDS)
    result, first = run("-rE", "--instrcount-update-baseline", "--instrcount-blame=off")
    result.assert_outcomes(passed=17, errors=1, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "*instrcount was called with work at test_loop.py:* and not awaited*[[]not-measured]",
            "*RuntimeWarning: coroutine 'instrcount(work)' was never awaited*",
        ]
    )
    counts = {nodeid: test["ir"] for nodeid, test in first.items() if test["ir"] is not None}
    by_name = {nodeid.partition("::")[2]: ir for nodeid, ir in counts.items()}
    assert len(by_name) == 16
    # Callgrind gives the loop's own cost to the same function in every layout
    # how far layouts move the raw counts of these small tests
    assert all(test["spread"] < 0.1 for test in first.values() if test["ir"] is not None)
    # a step of the loop, and of what it runs meanwhile
    step = by_name["TestAsyncio::test_more"] - by_name["TestAsyncio::test_fixture"]
    assert step > 10_000
    for name in ("TestAsyncio::test_object", "TestAsyncio::test_pedantic", "test_run"):
        assert 0.9 < by_name[name] / by_name["TestAsyncio::test_fixture"] < 1.1
    assert 0.9 < by_name["TestOneLoop::test_marked"] / by_name["TestOneLoop::test_fixture"] < 1.1
    assert by_name["TestAsyncio::test_left_over"] < 20_000
    for backend in ("asyncio", "trio"):
        assert 0.9 < by_name[f"test_marked[{backend}]"] / by_name[f"test_fixture[{backend}]"] < 1.1
    for args in (tuple(reversed(counts)), ("test_backends.py::test_marked[trio]",)):
        result, tests = run(*args)
        assert result.ret == 0
        assert {nodeid: test["ir"] for nodeid, test in tests.items()}.items() <= counts.items()
        assert {test["delta"] for test in tests.values()} == {0.0}


LEFT = (
    COMMON
    + """
@pytest.mark.asyncio
class TestLeft:
    async def test_fixture(self, instrcount):
        async def leave():
            asyncio.create_task(work(3))
        await instrcount(leave)

    @pytest.mark.instrcount
    async def test_marked(self):
        asyncio.create_task(work(3))

    async def test_nothing(self, instrcount):
        other = asyncio.create_task(asyncio.sleep(9))
        await instrcount(work, 3)
        other.cancel()
"""
)


def test_tasks_that_go_on_are_named(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """What they do after the call is not counted; one that somebody else has begun is no part of it."""
    project.makepyfile(test_it=LEFT)
    result, tests = run("--instrcount-blame=off")
    result.assert_outcomes(passed=3)
    said = ["work goes on in a task after the call has returned, which is not counted"]
    remarks = [
        tests[f"test_it.py::TestLeft::test_{name}"]["remarks"] for name in ("fixture", "marked")
    ]
    assert remarks == [said, said]
    assert tests["test_it.py::TestLeft::test_nothing"]["remarks"] == []


@pytest.mark.usefixtures("no_anyio")
def test_a_slower_coroutine_is_named(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """The gate finds it behind the loop, and says which function it was."""
    body = """
        import asyncio
        async def step(n):
            await asyncio.sleep(0)
            return sum(i for i in range(n))
        async def work():
            return [await step({}) for _ in range(5)]
        """
    project.makepyfile(package=body.format(1000))
    project.makepyfile(
        """
        import pytest
        from package import work

        @pytest.mark.asyncio
        async def test_it(instrcount):
            assert len(await instrcount(work)) == 5
        """
    )
    run("--instrcount-update-baseline")
    project.makepyfile(package=body.format(1100))
    result, tests = run("--instrcount-max-delta=1%")
    assert [test["verdict"] for test in tests.values()] == ["regressed"]
    assert 0.05 < next(iter(tests.values()))["delta"] < 0.15
    result.stdout.fnmatch_lines(["*package.py:* step*"])


@pytest.mark.usefixtures("no_anyio")
def test_threads_are_counted(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """What a test hands to a thread is counted with it, however it comes back."""
    project.makepyfile(
        """
        import asyncio, threading, pytest
        pytestmark = pytest.mark.instrcount

        def crunch():
            sum(i * i for i in range(10_000))

        def test_here():
            crunch()

        def test_thread():
            thread = threading.Thread(target=crunch)
            thread.start()
            thread.join()

        @pytest.mark.asyncio
        async def test_to_thread():
            await asyncio.to_thread(crunch)

        @pytest.mark.asyncio
        async def test_executor_that_stays(instrcount):
            await instrcount(asyncio.to_thread, crunch)
        """
    )
    result, tests = run()
    result.assert_outcomes(passed=4)
    here, *others = (test["ir"] for test in tests.values())
    # a hand-over costs something, and not the same on each CPython
    assert all(here < ir < 1.2 * here for ir in others), tests
