"""The ``trace_profile`` fixture and marker on pytest's side: what is traced, and when."""

from __future__ import annotations

import functools
import inspect
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.build import build_timeline
from pytest_instrcount.trace.columns import Columns, ReplayStats
from pytest_instrcount.trace.event import EventKind, ThreadEvents
from pytest_instrcount.trace.events import EventList
from pytest_instrcount.trace.own import transparent
from pytest_instrcount.trace.recognize import Recognizer, with_builtin
from pytest_instrcount.trace.session import Session
from pytest_instrcount.trace.timeline import Recorded
from pytest_instrcount.trace.tracer import TraceOptions, Tracer
from pytest_instrcount.trace.tree import Tree
from pytest_instrcount.tracing.settings import TraceWish

P = ParamSpec("P")
T = TypeVar("T")

_EMPTY: array[int] = array("q")
_NO_CALLS = Columns(
    (), _EMPTY, _EMPTY, _EMPTY, _EMPTY, _EMPTY, _EMPTY, (), ReplayStats("none"), clock=True
)

#: What pytest calls on the way to a fixture or a test is not the test's doing.
_NOT_THE_TEST = ("_pytest.", "pluggy.", "pytest_instrcount.")


class TraceProfile:
    """Traces calls of a test: ``trace_profile(func, *args)``, or what is in a with-block.

    With the marker the whole body is traced. ``tree`` is the last trace that ended.

    >>> trace_profile = TraceProfile(TraceWish())
    >>> trace_profile(len, "abc")
    3
    >>> int(trace_profile.tree.calls("*.nothing"))
    0
    """

    def __init__(
        self, wish: TraceWish, *, clock: bool = False, recognizers: tuple[Recognizer, ...] = ()
    ) -> None:
        self._wish = wish
        self._recorded = Recorded(memory=wish.max_memory_delta is not None)
        self._options = TraceOptions(
            mode="tree" if clock else "counts",
            c_calls=wish.c_calls,
            backend=wish.backend,
            start_frames=0,
            recognizers=recognizers,
        )
        self._running: Tracer | Session | None = None
        self._columns: list[Columns] = []
        self._ranges: list[tuple[ThreadEvents, ...]] = []

    def __call__(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Trace ``func(*args, **kwargs)`` and return its value."""
        __tracebackhide__ = True
        if not callable(func):
            raise TypeError(f"trace_profile traces a call: {func!r} cannot be called")
        with self:
            return func(*args, **kwargs)

    def __enter__(self) -> TraceProfile:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to record; raises InstrcountError "tracer-busy" if it runs already."""
        if self._running is not None:
            raise InstrcountError(
                "tracer-busy",
                "this test is traced already",
                "leave the with-block first; under the marker, the body is traced as it is",
            )
        if self._wish.tracer == "legacy":
            session = Session(profile_memory=self._recorded.memory)
            session.begin()
            self._running = session
        else:
            found = with_builtin(self._options.recognizers)
            tracer = Tracer(replace(self._options, recognizers=found))
            tracer.start()
            self._running = tracer

    def stop(self) -> None:
        """End; what was recorded is kept."""
        running, self._running = self._running, None
        if isinstance(running, Session):
            self._ranges.append(running.stop())
        elif running is not None:
            self._columns.append(running.stop())

    @property
    def traces(self) -> int:
        """How many traces have ended."""
        return len(self._columns) + len(self._ranges)

    @property
    def ranges(self) -> list[tuple[ThreadEvents, ...]]:
        """Of each trace by the legacy tracer all that it recorded."""
        return self._ranges

    @property
    def tree(self) -> Tree:
        """The calls of the last trace. Raises InstrcountError before the end of the first."""
        if not self._columns:
            raise InstrcountError(
                "tracer-order",
                "there is no tree yet"
                if self._wish.tracer == "python"
                else "the legacy tracer records ranges, which are in .events",
                "use trace_profile(func, ...) or a with-block first; the Python tracer is "
                "the marker's tracer='python'",
            )
        return Tree(self._columns[-1])

    @property
    def events(self) -> EventList:
        """Calls, or ranges of the legacy tracer, as a list of events that are a tree, too."""
        if self._ranges:
            return EventList(build_timeline(_NO_CALLS, self._ranges[-1], self._recorded))
        self.tree  # noqa: B018 (it raises)
        columns = self._columns[-1]
        recorded = replace(self._recorded, modules=bool(columns.objects))
        return EventList(build_timeline(columns, (), recorded))

    def call_counts(self) -> dict[str, int]:
        """``module:qualname`` -> calls, or name of a range -> ranges; of all traces together."""
        found: Counter[str] = Counter()
        for columns in self._columns:
            for name, calls in Tree(columns).call_counts().items():
                if not f"{name.partition(':')[0]}.".startswith(_NOT_THE_TEST):
                    found[name] += calls
        for threads in self._ranges:
            for thread in threads:
                found.update(e.name for e in thread.events if e.kind is EventKind.PUSH)
        return {name: found[name] for name in sorted(found) if found[name]}

    def memory(self) -> dict[str, int]:
        """Name of a range -> most bytes that were in use within it, above its begin."""
        found: dict[str, int] = {}
        for threads in self._ranges:
            for thread in threads:
                for event in thread.events:
                    if event.kind is EventKind.MEMORY:
                        found[event.name] = max(found.get(event.name, 0), event.peak)
        return {name: found[name] for name in sorted(found)}

    def rows(self) -> list[list[Any]]:
        """Depth, file, first line, qualified name and calls of each place of the last trace."""
        return call_rows(self._columns[-1]) if self._columns else []

    def branches(self, most: int = 200) -> list[str]:
        """The calls of the last trace as an indented tree, so many lines."""
        if not self._columns:
            return []
        return Tree(self._columns[-1]).to_text().splitlines()[:most]


def call_rows(columns: Columns) -> list[list[Any]]:
    """All places of a trace, callers first: depth, file, first line, qualified name, calls."""
    paths: list[tuple[int, ...]] = []
    calls: Counter[tuple[int, ...]] = Counter()
    for row in range(len(columns)):
        parent, key = columns.parent[row], columns.key[row]
        path = (*(paths[parent] if parent >= 0 else ()), key)
        paths.append(path)
        calls[path] += columns.calls(row)
    rows = []
    for path in sorted(calls):
        called = columns.keys[path[-1]]
        file = called.file or called.module
        rows.append([len(path) - 1, file, called.firstlineno, called.qualname, calls[path]])
    return rows


def passed_ceilings(counts: dict[str, int], wish: TraceWish) -> tuple[tuple[str, int, int], ...]:
    """Ceilings of ``max_calls`` that were passed: pattern, ceiling, calls.

    >>> passed_ceilings({"m:f": 3}, TraceWish(max_calls={"m:*": 2, "m.g": 0}))
    (('m:*', 2, 3),)
    """
    found = []
    for pattern, most in wish.max_calls.items():
        wanted = pattern.replace(":", ".")
        calls = sum(n for name, n in counts.items() if fnmatchcase(name.replace(":", "."), wanted))
        if calls > most:
            found.append((pattern, most, calls))
    return tuple(found)


def traced(function: Callable[..., Any], trace: TraceProfile) -> Callable[..., Any]:
    """The function with the trace around its own code, so that nothing of pytest's is in it."""
    if inspect.iscoroutinefunction(function):
        # it is resumed by the event loop, and resumes the body in turn
        @functools.wraps(function)
        @transparent
        async def traced_coroutine(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            with trace:
                return await function(*args, **kwargs)

        return traced_coroutine

    @functools.wraps(function)
    def traced_function(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with trace:
            return function(*args, **kwargs)

    return traced_function
