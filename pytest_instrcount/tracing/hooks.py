"""Where pytest runs a test: its body and phases are traced as the marker says, its trace is kept."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EACCES
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Protocol

import pytest

from pytest_instrcount.body import replaced_body
from pytest_instrcount.errors import InstrcountError, InstrcountWarning
from pytest_instrcount.gate.names import file_name, folder_parts
from pytest_instrcount.stash import INSIDE, TRACE
from pytest_instrcount.trace.recognize import Recognizer
from pytest_instrcount.trace.run import TestEvents
from pytest_instrcount.tracing.ceilings import idle_ceilings
from pytest_instrcount.tracing.fixture import TraceProfile, passed_ceilings, traced
from pytest_instrcount.tracing.recognizers import load_recognizers
from pytest_instrcount.tracing.settings import TraceWish, load_trace_settings, trace_wish_of
from pytest_instrcount.tracing.whole import attach
from pytest_instrcount.unobeyed import unobeyed

_SETTINGS = pytest.StashKey[TraceWish]()
_RECOGNIZERS = pytest.StashKey[tuple[Recognizer, ...]]()


def wish_of(item: pytest.Item) -> TraceWish:
    """What is wanted of this test, whose marker has been checked."""
    base = item.config.stash.get(_SETTINGS, None)
    if base is None:
        base = item.config.stash[_SETTINGS] = load_trace_settings(item.config)
    return trace_wish_of(item, base)[0]


def check_items(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Check the markers of all traced tests, and what is to be recognised.

    Raises pytest.UsageError with all mistakes at once.
    """
    base = config.stash[_SETTINGS] = load_trace_settings(config)
    mistakes = [
        f"{item.nodeid}: the trace_profile marker {each}"
        for item in items
        for each in trace_wish_of(item, base)[1]
    ]
    if mistakes:
        raise pytest.UsageError(
            unobeyed("\n".join(["instrcount: wrong markers [marker]", *mistakes]))
        )
    recognizers_of(config)
    if base.folder is not None:
        _make_folder(base.folder)


def _make_folder(folder: Path) -> None:
    """Now, since it is of no use to run all tests first."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(EACCES, os.strerror(EACCES), str(folder))
    except OSError as error:
        raise pytest.UsageError(
            f"instrcount: traces cannot be written: {error} [trace-write]\n"
            "  fix: pytest --trace-profile=DIR with a DIR you may write to"
        ) from None


def recognizers_of(config: pytest.Config) -> tuple[Recognizer, ...]:
    """What the ini and the hook want recognised, found once. Raises pytest.UsageError."""
    found = config.stash.get(_RECOGNIZERS, None)
    if found is None:
        found = config.stash[_RECOGNIZERS] = load_recognizers(config)
    return found


def trace_of(item: Any) -> TraceProfile:
    """The trace of this test, made when it is first asked for."""
    trace = item.stash.get(TRACE, None)
    if trace is None:
        wish = wish_of(item)
        trace = item.stash[TRACE] = TraceProfile(
            wish, clock=True, recognizers=recognizers_of(item.config)
        )
    assert isinstance(trace, TraceProfile)
    return trace


@contextmanager
def trace_item(item: Any) -> Iterator[None]:
    """While a test runs: trace what its marker wants, and write its trace where that is wanted."""
    hooks = TraceHooks(item)
    manager = item.config.pluginmanager
    manager.register(hooks)
    try:
        yield
    finally:
        manager.unregister(hooks)


class TraceHooks:
    """The plugin object of one test that is traced."""

    def __init__(self, item: Any) -> None:
        self._item = item
        self._wish = wish_of(item)
        self._begin_ns = 0
        #: of a test that is run again: how many of its traces were sent before
        self._sent = 0

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item is self._item:
            self._begin_ns = perf_counter_ns()
        with self._phase(item, "setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, Any]:
        if not self._traces(item, "call"):
            return (yield)
        trace = trace_of(item)
        with replaced_body(item, traced(item.obj, trace)):
            result = yield
        passed = passed_ceilings(trace.call_counts(), self._wish)
        if passed:
            pytest.fail("\n".join(ceiling_lines(passed, trace)), pytrace=False)
        # a measured run says it below its table; and what a teardown calls is still to come
        if not self._is_measured_run() and "teardown" not in self._wish.phases:
            for idle in idle_ceilings(trace.call_counts(), self._wish):
                item.warn(InstrcountWarning(f"instrcount: {idle} [max-calls]"))
        return result

    def _is_measured_run(self) -> bool:
        return self._item.config.pluginmanager.hasplugin("instrcount-run")  # type: ignore[no-any-return]

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            with self._phase(item, "teardown"):
                return (yield)
        finally:
            if item is self._item:
                self._write()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        report = yield
        trace = item.stash.get(TRACE, None)
        wanted = self._wish.folder is not None and not item.config.stash.get(INSIDE, False)
        if item is self._item and call.when == "teardown" and wanted and trace is not None:
            before, self._sent = self._sent, trace.traces
            if self._sent > before:
                thread = threading.current_thread()
                test = TestEvents(
                    item.nodeid, threading.get_ident(), thread.name,
                    self._begin_ns, perf_counter_ns(), tuple(trace.ranges[before:]),
                )  # fmt: skip
                attach(report, test, item.config)
        return report

    def _write(self) -> None:
        """Write the trace; as a part of the test, so that a failure is one of the test."""
        trace, folder = self._item.stash.get(TRACE, None), self._wish.folder
        if trace is None or not trace.traces or folder is None:
            return
        try:
            write_trace(trace_path(folder, self._item.nodeid), trace)
        except InstrcountError as error:
            pytest.fail(str(error), pytrace=False)

    def _traces(self, item: object, phase: str) -> bool:
        # what is counted under Valgrind is never traced, and what is measured is traced apart
        inside = self._item.config.stash.get(INSIDE, False)
        return (
            item is self._item and self._wish.marked and phase in self._wish.phases and not inside
        )

    @contextmanager
    def _phase(self, item: Any, phase: str) -> Iterator[None]:
        if not self._traces(item, phase):
            yield
            return
        with trace_of(item):
            yield


def ceiling_lines(passed: tuple[tuple[str, int, int], ...], trace: TraceProfile) -> list[str]:
    """What a failure says of ceilings that were passed: each, and where the calls come from."""
    lines = [f"{pattern}: {calls} calls, at most {most} allowed" for pattern, most, calls in passed]
    branches = trace.branches(40)
    if branches:
        return [*lines, "the calls of the test:", *(f"  {line}" for line in branches)]
    ranges = sorted(trace.call_counts().items(), key=lambda each: -each[1])[:40]
    return [*lines, "the ranges of the test:", *(f"  {name}  {number}" for name, number in ranges)]


def trace_path(folder: Path, nodeid: str) -> Path:
    """Where the trace of a test is, below the folder that the user named.

    >>> trace_path(Path("traces"), "tests/test_x.py::test_b[1/2]").as_posix()
    'traces/tests/test_x/test_b_1_2-f825a071.trace.json'
    """
    name = file_name(nodeid).removesuffix(".json") + ".trace.json"
    return folder.joinpath(*folder_parts(nodeid), name)


def write_trace(path: Path, trace: TraceProfile) -> None:
    """Write the last trace of a test for a viewer; where nothing was recorded, no file is left.

    Raises InstrcountError if it cannot be written.
    """
    try:
        trace.events.export_chrome_trace(path)
    except InstrcountError as error:
        if error.slug != "profile-empty":
            raise
        # that of an earlier run would be taken for this one's
        with suppress(OSError):
            path.unlink()


# Measured: the same test twice, each time as if it were the first.


class Repeats(Protocol):
    """What runs a test again (``callgrind.repeat.Repeater``)."""

    def trace_phases(self, trace: TraceProfile, wish: TraceWish) -> None:
        """All phases once more, with fresh fixtures, and traced."""


def trace_by_function(repeater: Repeats) -> list[list[Any]]:
    """Calls of the body by function and place: depth, file, first line, qualified name, calls.

    The second of two repetitions, builtin functions included, with the collector off.
    """
    wish = TraceWish(c_calls=True, marked=True)
    collecting = gc.isenabled()
    for _ in range(2):
        trace = TraceProfile(wish)
        gc.collect()
        gc.disable()
        try:
            repeater.trace_phases(trace, wish)
        finally:
            if collecting:
                gc.enable()
    return trace.rows()


def trace_twice(item: Any, repeater: Repeats) -> dict[str, Any]:
    """Call counts of two repetitions of a test that has run, with the collector off."""
    wish = wish_of(item)
    # now, since what a lookup imports is to be there before both
    recognizers = recognizers_of(item.config)
    traces = []
    collecting = gc.isenabled()
    for _ in range(2):
        trace = TraceProfile(wish, recognizers=recognizers)
        gc.collect()
        gc.disable()
        try:
            repeater.trace_phases(trace, wish)
        finally:
            if collecting:
                gc.enable()
        traces.append(trace)
    first, second = (trace.call_counts() for trace in traces)
    memory = [trace.memory() for trace in traces]
    return {
        "first": first,
        "second": second,
        # what is allocated once and for all is in one of them alone
        "memory": {name: min(each.get(name, 0) for each in memory) for name in memory[0]},
        "branches": traces[1].branches(),
    }
