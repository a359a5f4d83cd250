"""Sessions: start and stop, and what is carried into threads, executors and tasks."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.ranges.event import START_MARK, STOP_MARK, EventKind
from pytest_instrcount.trace.ranges.place import PLACE
from pytest_instrcount.trace.ranges.ranges import record_function
from pytest_instrcount.trace.ranges.remote import pack_events, unpack_events
from pytest_instrcount.trace.ranges.session import current, mark, start, stop
from tests.ranges import recorded, story

ORIGINAL_START = threading.Thread.start
ORIGINAL_SUBMIT = ThreadPoolExecutor.submit


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Any:
    """After each test no session is on, and nothing is patched."""
    yield
    with pytest.raises(InstrcountError, match="session-off"):
        current()
    assert threading.Thread.start is ORIGINAL_START
    assert ThreadPoolExecutor.submit is ORIGINAL_SUBMIT


def named(name: str) -> None:
    with record_function(name):
        pass


def run_in_thread(func: Any, *args: Any) -> None:
    thread = threading.Thread(target=func, args=args)
    thread.start()
    thread.join()


def test_first_and_last_event() -> None:
    """The two marks of the session define its window."""
    with recorded() as found:
        mark("between")
    assert [event.name for event in found.events] == [START_MARK, "between", STOP_MARK]
    times = [event.at_ns for event in found.events]
    assert times == sorted(times)


def test_stop_without_start() -> None:
    """There is nothing to stop."""
    with pytest.raises(InstrcountError) as caught:
        stop()
    assert caught.value.slug == "session-off"


def test_a_session_ends_once() -> None:
    """The second end of the same session is refused, too."""
    session = start()
    session.stop()
    with pytest.raises(InstrcountError, match="session-off"):
        session.stop()


def test_stop_without_consolidation_gives_nothing() -> None:
    """It ends, and its events are dropped."""
    start()
    named("a")
    assert stop(consolidate=False) == ()


def test_stop_without_cleanup_goes_on() -> None:
    """Events are given once; what ends later has its end in the next part."""
    session = start()
    with record_function("long"):
        named("a")
        first = stop(cleanup=False)
        named("b")
    second = session.stop()
    assert story(first) == ["+long", "+a", "-a"]
    assert story(second) == ["+b", "-b", "-long"]
    assert first[0].events[1].handle == second[0].events[-2].handle


def test_a_second_start_here_is_refused() -> None:
    """In the same thread; also in another context of it, and within a range."""
    with recorded():
        for call in (
            start,
            partial(contextvars.copy_context().run, start),
            partial(contextvars.Context().run, start),
        ):
            with record_function("within"), pytest.raises(InstrcountError) as caught:
                call()
            assert caught.value.slug == "session-on"


def test_start_after_stop_elsewhere() -> None:
    """A session may be stopped in another context than it was started in."""
    contextvars.copy_context().run(start().stop)
    assert PLACE.get() is not None
    with recorded() as found:
        named("a")
    assert found.story == ["+a", "-a"]


def test_threads_take_part() -> None:
    """What a thread does that is started within; it says which range it came from."""
    with recorded() as found:
        with record_function("outer"):
            run_in_thread(named, "inner")
        run_in_thread(named, "later")
    assert found.story == ["+outer", "-outer", "+inner", "-inner", "+later", "-later"]
    assert len(found.threads) == 3
    outer, inner, later = map(found.push, ("outer", "inner", "later"))
    assert (inner.sequence_nr, inner.origin_thread) == (outer.handle, 0)
    assert (later.sequence_nr, later.origin_thread) == (-1, 0)
    assert [inner.thread, later.thread] == [1, 2]


def test_only_our_variable_goes_into_threads() -> None:
    """What a thread sees of the user's own context stays as it is without us."""
    colour = contextvars.ContextVar("colour", default="none")
    seen: list[str] = []

    def look() -> None:
        seen.append(colour.get())

    run_in_thread(look)
    colour.set("red")
    run_in_thread(look)
    with recorded():
        run_in_thread(look)
    assert seen[1] == seen[2]


def test_a_thread_keeps_its_run() -> None:
    """Subclasses, instances with a run of their own, and threads that fail to start stay whole."""
    ran: list[str] = []

    class Worker(threading.Thread):
        def run(self) -> None:
            ran.append("subclass")
            named("worker")

    with recorded() as found:
        worker = Worker()
        worker.start()
        worker.join()
        own = threading.Thread()
        own.__dict__["run"] = lambda: ran.append("instance")
        own.start()
        own.join()
        with pytest.raises(RuntimeError, match="once"):
            own.start()
    assert ran == ["subclass", "instance"]
    assert "run" not in worker.__dict__
    assert own.__dict__["run"].__name__ == "<lambda>"
    assert found.story == ["+worker", "-worker"]


def test_a_thread_is_not_kept_alive() -> None:
    """The wrapper of a thread is gone once it runs."""
    with recorded():
        thread = threading.Thread(target=named, args=("a",))
        thread.start()
        thread.join()
        gone = weakref.ref(thread)
        del thread
        assert gone() is None or gc.collect() >= 0
        assert gone() is None


def test_a_thread_outlives_the_session() -> None:
    """What it does after the end is not recorded, and does not fail."""
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        with record_function("long"):
            named("before")
            done.set()
            go.wait(10)
        named("after")

    with recorded() as found:
        thread = threading.Thread(target=work)
        thread.start()
        done.wait(10)
    go.set()
    thread.join()
    assert found.story == ["+long", "+before", "-before"]
    assert found.session.late == 1


def test_executors_take_part() -> None:
    """Workers that were there before do so too; what is submitted elsewhere does not."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(named, "before").result()
        with recorded() as found:
            with record_function("outer"):
                pool.submit(named, "inner").result()
                assert list(pool.map(len, ["a", "bc"])) == [1, 2]
            contextvars.Context().run(lambda: pool.submit(named, "elsewhere").result())
        pool.submit(named, "after").result()
    assert found.story == ["+outer", "-outer", "+inner", "-inner"]
    assert found.push("inner").sequence_nr == found.push("outer").handle


def test_workers_started_within_forget_the_session() -> None:
    """A worker thread belongs to its pool, not to the one who submitted first."""
    with ThreadPoolExecutor(1) as pool, recorded() as found:
        pool.submit(named, "inside").result()
        contextvars.Context().run(lambda: pool.submit(named, "elsewhere").result())
    assert found.story == ["+inside", "-inside"]


def test_submit_with_keywords_and_errors() -> None:
    """The wrapped submit takes what the original takes, and gives what it gives."""

    def call(fn: int, *, self: int) -> int:
        return fn + self

    with recorded(), ThreadPoolExecutor() as pool:
        assert pool.submit(call, fn=1, self=2).result() == 3
        wrong: Any = "1"
        failed: Future[Any] = pool.submit(call, wrong, self=2)
        with pytest.raises(TypeError):
            failed.result()


def test_tasks_take_part() -> None:
    """Tasks inherit by themselves; each knows the range that it was made in."""

    async def work(name: str) -> None:
        with record_function(name):
            await asyncio.sleep(0)

    async def main() -> None:
        with record_function("main"):
            await asyncio.gather(work("a"), work("b"))

    with recorded() as found:
        asyncio.run(main())
    assert found.story == ["+main", "+a", "+b", "-a", "-b", "-main"]
    assert found.push("a").sequence_nr == found.push("main").handle
    assert found.push("b").sequence_nr == found.push("main").handle


def test_to_thread_and_run_in_executor() -> None:
    """The loop's own ways into threads."""

    async def main() -> None:
        await asyncio.to_thread(named, "to_thread")
        await asyncio.get_running_loop().run_in_executor(None, named, "executor")

    with recorded() as found:
        asyncio.run(main())
    assert sorted(found.story) == ["+executor", "+to_thread", "-executor", "-to_thread"]


def test_a_session_within_a_thread_takes_its_events() -> None:
    """From there on, until it ends; then they go to the inherited one again."""
    inner: list[str] = []

    def work() -> None:
        named("before")
        with recorded() as own:
            named("own")
            run_in_thread(named, "own thread")
            with pytest.raises(InstrcountError, match="session-on"):
                start()
        inner.extend(own.story)
        named("after")

    with recorded() as found:
        run_in_thread(work)
    assert inner == ["+own", "-own", "+own thread", "-own thread"]
    assert found.story == ["+before", "-before", "+after", "-after"]


def test_a_session_within_a_task_takes_its_events() -> None:
    """Tasks beside it go on with the inherited one."""
    inner: list[str] = []

    async def own() -> None:
        with recorded() as mine:
            named("own")
            await asyncio.sleep(0)
            named("own later")
        inner.extend(mine.story)
        named("own after")

    async def other() -> None:
        named("other")
        await asyncio.sleep(0)
        named("other later")

    async def main() -> None:
        await asyncio.gather(own(), other())

    with recorded() as found:
        asyncio.run(main())
    assert inner == ["+own", "-own", "+own later", "-own later"]
    begins = [name for name in found.story if name[0] == "+"]
    assert begins == ["+other", "+own after", "+other later"]


def test_two_threads_record_each_for_itself() -> None:
    """Sessions of unrelated threads do not meet, and the last one takes the wrappers off."""
    stories: dict[str, list[str]] = {}
    meet = threading.Barrier(2, timeout=10)

    def work(name: str) -> None:
        with recorded() as found:
            meet.wait()
            run_in_thread(named, name)
            meet.wait()
        stories[name] = found.story

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stories == {"a": ["+a", "-a"], "b": ["+b", "-b"]}


def test_another_wrapper_around_ours_stays() -> None:
    """Who patches the same function later keeps their patch; ours then only passes on."""
    calls: list[str] = []
    session = start()
    ours = threading.Thread.start

    def theirs(thread: threading.Thread) -> None:
        calls.append(thread.name)
        ours(thread)

    type.__setattr__(threading.Thread, "start", theirs)
    try:
        session.stop()
        run_in_thread(named, "a")
        with recorded() as found:
            run_in_thread(named, "b")
        assert threading.Thread.__dict__["start"] is theirs
    finally:
        type.__setattr__(threading.Thread, "start", ORIGINAL_START)
    assert len(calls) == 2
    assert found.story == ["+b", "-b"]


def test_numbers_of_threads_are_not_used_again() -> None:
    """The system's idents are."""
    with recorded() as found:
        for name in "abcde":
            run_in_thread(named, name)
    numbers = [one.number for one in found.threads]
    assert numbers == [0, 1, 2, 3, 4, 5]


def test_many_threads_at_once() -> None:
    """Each event is there once, in its thread's order."""

    def work() -> None:
        for n in range(200):
            with record_function(f"r{n}"):
                mark(f"m{n}")

    with recorded() as found:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    expected = [text for n in range(200) for text in (f"+r{n}", f"m{n}", f"-r{n}")]
    assert [story([one]) for one in found.threads if one.number] == [expected] * 8
    handles = [event.handle for event in found.events if event.kind is EventKind.PUSH]
    assert len(set(handles)) == 1600


def test_events_from_a_subprocess() -> None:
    """A child records for itself and hands plain values over."""
    code = (
        "import json\n"
        "from pytest_instrcount.trace.ranges.session import start, stop\n"
        "from pytest_instrcount.trace.ranges.ranges import record_function\n"
        "from pytest_instrcount.trace.ranges.remote import pack_events\n"
        "start()\n"
        "with record_function('child', 'text'): pass\n"
        "print(json.dumps(pack_events(stop())))\n"
    )
    with recorded() as found:
        with record_function("parent"):
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        found.session.add(unpack_events(json.loads(out.stdout)))
    child, parent = found.push("child"), found.push("parent")
    assert (child.node_id, child.remote, child.args) == (1, True, "text")
    assert parent.at_ns < child.at_ns < found.pop("parent").at_ns


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # 3.12: threads are alive
@pytest.mark.parametrize("memory", [False, True])
def test_a_forked_process_has_a_session_of_its_own(memory: bool) -> None:
    """It has inherited its parent's, as a thread has; what it records is what it hands over."""
    with recorded(profile_memory=memory) as found:
        with record_function("parent"):
            reader, writer = os.pipe()
            pid = os.fork()
            if not pid:
                try:
                    start(profile_memory=memory)
                    with record_function("child"):
                        pass
                    answer = json.dumps(pack_events(stop()))
                except BaseException as error:
                    answer = repr(error)
                os.write(writer, answer.encode())
                os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as pipe:
                answer = pipe.read()
            os.waitpid(pid, 0)
        found.session.add(unpack_events(json.loads(answer)))
    mine, childs = ([s for s in story([one]) if s[0] != "#"] for one in found.threads)
    assert (mine, childs) == (["+parent", "-parent"], ["+child", "-child"])
