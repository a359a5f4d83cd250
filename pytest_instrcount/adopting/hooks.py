"""The plugin object that adopts benchmarks; registered in measured runs, and inside Valgrind."""

from __future__ import annotations

import inspect
import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_instrcount.adopting.fixture import Benchmark
from pytest_instrcount.adopting.leftovers import MARKERS, BenchmarkHooks
from pytest_instrcount.stash import BENCHMARK

if TYPE_CHECKING:
    from pytest_instrcount.fixture import InstrCount

_THEIR_PLUGINS = ("pytest_benchmark.plugin", "pytest_codspeed.plugin")
_THEIR_FIXTURES = ("benchmark", "codspeed_benchmark", "benchmark_weave")
_THEIR_MARKERS = ("benchmark", "codspeed_benchmark")


def adopt_benchmarks(config: pytest.Config) -> None:
    """Have benchmarks measured as tests of ours are; the plugins they were written for step aside.

    To be called before their ``pytest_configure``, which makes folders. Their fixtures stay known.
    """
    manager, option = config.pluginmanager, config.option
    if getattr(option, "benchmark_only", False):
        option.instrcount_only = True
    for plugin in list(manager.get_plugins()):
        if getattr(plugin, "__name__", "") in _THEIR_PLUGINS:
            manager.unregister(plugin)
    if not hasattr(manager.hook, "pytest_benchmark_update_json") or (
        not manager.hook.pytest_benchmark_update_json.has_spec()
    ):
        manager.add_hookspecs(BenchmarkHooks)
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    manager.register(Adoption(), "instrcount-adoption")


class Adoption:
    """Their fixtures, and the marker of ours for each of their tests.

    A fixture of a conftest or a test file comes before those of plugins, and among plugins the
    one that was registered last: this one.
    """

    def __init__(self) -> None:
        self._adopted: set[str] = set()
        #: test -> where a fixture of the project's own is that it takes by a name of theirs
        self._own: dict[str, str] = {}

    @pytest.fixture
    def benchmark(
        self, request: pytest.FixtureRequest, instrcount: InstrCount
    ) -> Generator[Benchmark, None, None]:
        """Count the instructions of what pytest-benchmark would time."""
        benchmark = benchmark_of(request.node, instrcount)
        yield benchmark
        benchmark.end()

    @pytest.fixture
    def codspeed_benchmark(
        self, request: pytest.FixtureRequest, instrcount: InstrCount
    ) -> Benchmark:
        """The same, by the name that pytest-codspeed gives it."""
        return benchmark_of(request.node, instrcount)

    @pytest.fixture
    def benchmark_weave(self, benchmark: Benchmark) -> Any:
        """``benchmark.weave``."""
        return benchmark.weave

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Mark what takes one of the fixtures above, or has a marker of theirs."""
        if not isinstance(item, pytest.Function):
            return
        if takes_benchmark(item) or any(map(item.get_closest_marker, _THEIR_MARKERS)):
            self._adopted.add(item.nodeid)
            if item.get_closest_marker("instrcount") is None:
                item.add_marker("instrcount")
        elif place := own_fixture(item):
            self._own[item.nodeid] = place

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """One line, where there are such tests, and one for each place that keeps tests from being such."""
        number = sum(item.nodeid in self._adopted for item in items)
        lines = []
        if number:
            tests = f"{number} benchmark{'' if number == 1 else 's'}"
            lines.append(
                f"instrcount: adopted {tests} of pytest-benchmark or pytest-codspeed "
                "(instrcount_adopt_benchmarks)"
            )
        places = [self._own[item.nodeid] for item in items if item.nodeid in self._own]
        for place in dict.fromkeys(places):
            tests = f"{places.count(place)} test{'' if places.count(place) == 1 else 's'}"
            lines.append(
                f"instrcount: not measured: {tests} with the fixture {place}, which takes the place of "
                "the adopted one; have it take and use that (def benchmark(benchmark)), or rename it"
            )
        return lines


def benchmark_of(item: Any, instrcount: InstrCount) -> Benchmark:
    """The one benchmark of a test, made when it is first asked for."""
    if BENCHMARK not in item.stash:
        callspec = getattr(item, "callspec", None)
        item.stash[BENCHMARK] = Benchmark(item.nodeid, instrcount, group_of(item), callspec)
    return item.stash[BENCHMARK]  # type: ignore[no-any-return]


def takes_benchmark(item: Any) -> bool:
    """Whether a test takes a fixture of ours by a name of theirs, and not the project's own.

    A project's own fixture may take ours and add to it: then it is ours that counts.
    """
    definitions = item._fixtureinfo.name2fixturedefs
    for name in _THEIR_FIXTURES:
        for definition in reversed(definitions.get(name) or ()):
            if getattr(definition.func, "__module__", "") == __name__:
                return True
            if name not in definition.argnames:
                break
    return False


def own_fixture(item: Any) -> str:
    """Name and place of a fixture of the project's own that stands before ours; "" if there is none."""
    for name in _THEIR_FIXTURES:
        found: list[Any] = list(item._fixtureinfo.name2fixturedefs.get(name) or ())
        if any(getattr(each.func, "__module__", "") == __name__ for each in found):
            code = getattr(inspect.unwrap(found[-1].func), "__code__", None)
            if code is None:
                return f"{name} ({found[-1].baseid})"
            file = os.path.relpath(code.co_filename, item.config.rootpath)
            return f"{name} ({file}:{code.co_firstlineno})"
    return ""


def group_of(item: pytest.Item) -> str | None:
    """The group that a marker of theirs names."""
    for marker in _THEIR_MARKERS:
        for mark in item.iter_markers(marker):
            group = mark.kwargs.get("group")
            if group is not None:
                return str(group)
    return None
