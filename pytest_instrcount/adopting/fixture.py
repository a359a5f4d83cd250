"""The ``benchmark`` fixture of a measured run: looks like pytest-benchmark's, counts like ours."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_instrcount.adopting.untimed import Stats

if TYPE_CHECKING:
    from pytest_instrcount.fixture import InstrCount

T = TypeVar("T")


class Benchmark:
    """What a test takes as ``benchmark`` or ``codspeed_benchmark``; one use per test.

    Anything that tests set on pytest-benchmark's object can be set here. ``group`` is shown in
    the table; the rest is kept for the test. How often a call is repeated is chosen as for any
    other test: rounds and iterations are there to steady a clock.

    >>> from pytest_instrcount.fixture import InstrCount
    >>> benchmark = Benchmark("test_a.py::test_sum", InstrCount("test_a.py::test_sum", None))
    >>> benchmark(sum, [1, 2, 3])
    6
    """

    def __init__(
        self,
        nodeid: str,
        instrcount: InstrCount,
        group: str | None = None,
        callspec: Any = None,
    ) -> None:
        self._instrcount = instrcount
        self._undo: list[Callable[[], object]] = []
        self.fullname = nodeid
        self.name = nodeid.rpartition("::")[2]
        self.group = group
        self.param = None if callspec is None else callspec.id
        self.params = None if callspec is None else callspec.params
        self.extra_info: dict[str, Any] = {}
        self.stats: Stats | None = None
        self.enabled, self.disabled = True, False
        self.has_error = self.skipped = False
        self.cprofile_stats = None
        #: whether the test has compared times, which were not measured
        self.times_compared = False

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For those who ask with isinstance: pytest-benchmark's, where it is loaded."""
        theirs = sys.modules.get("pytest_benchmark.fixture")
        return Benchmark if theirs is None else theirs.BenchmarkFixture

    def __call__(self, function_to_benchmark: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Count that call, and return its value."""
        __tracebackhide__ = True
        with _Use(self):
            return self._instrcount(function_to_benchmark, *args, **kwargs)

    def pedantic(
        self,
        target: Callable[..., T],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> T:
        """Count one call of each round, between its set-up and its tear-down.

        One round without a set-up is counted as it is: a single call, without a warm-up.

        Raises ValueError for numbers that pytest-benchmark refuses; they are not used else.
        """
        __tracebackhide__ = True
        for name, value, least in (
            ("iterations", iterations, 1),
            ("rounds", rounds, 1),
            ("warmup_rounds", warmup_rounds, 0),
        ):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"benchmark.pedantic: {name}={value!r} is not an int >= {least}")
        if setup is not None and iterations > 1:
            raise ValueError("benchmark.pedantic: with setup, iterations must be 1")
        # of their set-ups, all that is not true brings no arguments
        renew = None if setup is None else lambda: setup() or None
        # who asks for one call may have what can be used up by it
        once = rounds == iterations == 1 and not warmup_rounds and setup is None
        with _Use(self):
            return self._instrcount.pedantic(
                target, tuple(args), kwargs or {}, renew, teardown, rounds=1 if once else None
            )

    def weave(self, target: Any, **kwargs: Any) -> None:
        """Count the call that the code under test makes of ``target``, until the test ends.

        ``target`` is a function or a dotted name; whatever else aspectlib knows, where it is
        installed, as with pytest-benchmark.
        """
        try:
            aspectlib: Any = importlib.import_module("aspectlib")
        except ImportError:
            if kwargs:
                raise
            self._undo.append(replace_function(target, self._counted))
        else:
            self._undo.append(aspectlib.weave(target, self._counted, **kwargs).rollback)

    patch = weave

    def _counted(self, function: Callable[..., T]) -> Callable[..., T]:
        def counted(*args: Any, **kwargs: Any) -> T:
            __tracebackhide__ = True
            return self(function, *args, **kwargs)

        return counted

    def end(self) -> None:
        """Undo what was woven."""
        while self._undo:
            self._undo.pop()()


class _Use:
    """Around the one use: whether it failed, and the stats after it."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._benchmark.stats = Stats(self._benchmark)
        else:
            self._benchmark.has_error = True


def replace_function(
    target: Any, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[[], None]:
    """Put a wrapped function in the place of one, where its module or class has it.

    ``target``: the function, or its dotted name. Returns what puts the function back. Raises
    ImportError where there is no function of that name.
    """
    if not isinstance(target, str):
        target = f"{target.__module__}.{target.__qualname__}"
    path, _, name = target.rpartition(".")
    owner = _find(path)
    function = vars(owner).get(name)
    if not callable(function):
        raise ImportError(
            f"{target} is no function; to weave more than functions, install aspectlib"
        )
    setattr(owner, name, wrap(function))
    return lambda: setattr(owner, name, function)


def _find(path: str) -> Any:
    """A module or a class in one, by its dotted name."""
    try:
        return importlib.import_module(path)
    except ImportError:
        outer, dot, name = path.rpartition(".")
        if not dot:
            raise
        return getattr(_find(outer), name)
