"""A session of the Python tracer: start, run something, stop, look at the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.assemble import replay
from pytest_instrcount.trace.backends import choose_backend
from pytest_instrcount.trace.columns import Columns, leave_out
from pytest_instrcount.trace.filters import Filter
from pytest_instrcount.trace.fold import Folder
from pytest_instrcount.trace.own import transparent
from pytest_instrcount.trace.recorder import Recorder, TraceOptions
from pytest_instrcount.trace.tree import Tree

P = ParamSpec("P")
T = TypeVar("T")


class Tracer:
    """Records what is called, in all threads, until it is stopped; once.

    >>> def double(n): return 2 * n
    >>> with Tracer() as tracer:
    ...     _ = double(1) + double(2)
    >>> tracer.tree.calls("*.double")
    2
    """

    def __init__(self, options: TraceOptions = TraceOptions()) -> None:  # noqa: B008 (frozen)
        self.options = options
        self._recorder: Recorder | None = None
        self._columns: Columns | None = None

    def start(self) -> None:
        """Begin; raises InstrcountError ``tracer-busy`` if another profiler or trace is active."""
        if self._recorder is not None:
            raise InstrcountError("tracer-order", "this trace was started before", "make a new one")
        options, timed = self.options, self.options.mode == "tree"
        backend = choose_backend(options.backend, native=not options.has_text)
        self._folder = Folder(
            clock=timed,
            unpaired=backend.backend == "setprofile",
            min_ns=options.min_ns if timed else 0,
        )
        self._filter = Filter(
            self._folder.table, options.include, options.ignore, options.max_depth
        )
        recorder = backend(options, self._folder.fold, self._filter)
        recorder.install()
        self._recorder = recorder

    def stop(self, at_ns: int = 0) -> Columns:
        """End, and give the rows; a second call gives them again.

        ``at_ns``: since when what runs is no longer the user's, if not from now on. Raises InstrcountError
        ``tracer-lost`` if the hook was gone by then, and calls are missing.
        """
        if self._columns is None:
            if self._recorder is None:
                raise InstrcountError("tracer-order", "this trace was not started", "call start()")
            if not self._recorder.lost:
                self._recorder.uninstall(at_ns)
            if self._recorder.lost:
                raise InstrcountError(
                    "tracer-lost",
                    f"{self._recorder.lost} has ended this trace before its end: calls are missing",
                    "leave that out of what is traced (the core in C traces past a RecursionError; "
                    "from Python 3.12 on, sys.monitoring does, and beside other profilers)",
                )
            columns = replay(self._recorder.recording(), self._folder)
            later = self._filter.later
            self._columns = leave_out(columns, later.__contains__) if later else columns
        return self._columns

    def abandon(self) -> None:
        """End in a forked child, without rows: they are its parent's."""
        if self._recorder is not None and self._columns is None:
            self._recorder.uninstall()
            self._columns = Columns()

    def watch_tasks(self) -> bool:
        """Have steps of tasks told, if asyncio was imported since the start; returns whether it was."""
        return self._recorder is not None and self._recorder.watch_tasks()

    def watch_greenlets(self) -> None:
        """Have switches of this thread's greenlets told, if greenlet was imported since the start."""
        if self._recorder is not None:
            self._recorder.watch_greenlets()

    @property
    def columns(self) -> Columns:
        """The rows; raises InstrcountError ``tracer-order`` before the end."""
        if self._columns is None:
            raise InstrcountError("tracer-order", "this trace still runs", "call stop() first")
        return self._columns

    @property
    def tree(self) -> Tree:
        """The rows as a tree; raises InstrcountError ``tracer-order`` before the end."""
        return Tree(self.columns)

    @property
    def size(self) -> int:
        """Bytes of its streams that ``tracemalloc`` sees, without what these refer to.

        >>> Tracer().size
        0
        """
        return 0 if self._recorder is None else self._recorder.size

    def __enter__(self) -> Tracer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


@transparent
def trace_call(
    options: TraceOptions, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> tuple[T, Columns]:
    """Call, and give the value and the rows.

    >>> value, columns = trace_call(TraceOptions(), lambda: 7)
    >>> value, len(columns.keys) >= 1
    (7, True)
    """
    with Tracer(options) as tracer:
        value = func(*args, **kwargs)
    return value, tracer.columns
