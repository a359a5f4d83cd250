"""Entry point for pytest: options, marker, fixture. Light, since every pytest run imports it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_instrcount.config.stash import CI, COUNTING, INSIDE, MISTAKES, is_traced

if TYPE_CHECKING:
    from pytest_instrcount.fixtures.instrcount import InstrCount
    from pytest_instrcount.fixtures.trace.fixture import TraceProfile

#: The folder of this package, with a slash at its end.
HERE = __file__.removesuffix("plugin.py")

#: sys.path as the interpreter was started with, before a conftest or an ini file adds to it; what is no text,
#: the import system passes over.
STARTED_WITH = tuple(each for each in sys.path if isinstance(each, str))

#: Options with which pytest runs no test.
_IDLE = """
    collectonly help version showfixtures show_fixtures_per_test markers cacheshow setuponly setupplan
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare options and ini settings."""
    from pytest_instrcount.config.options import add_options

    add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Generator[None, Any, Any]:
    """Know the options of plugins whose benchmarks are adopted, where they are not installed."""
    import os

    from pytest_instrcount.config.options import adopts_benchmarks
    from pytest_instrcount.host import programs  # noqa: F401 - it keeps what a conftest may replace
    from pytest_instrcount.host.ci import ci_variable

    early_config.stash[CI] = ci_variable(os.environ)
    result = yield

    if adopts_benchmarks(early_config, early_config.known_args_namespace):
        from pytest_instrcount.fixtures.benchmark.leftovers import declare_options

        declare_options(parser)
    return result


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others may implement."""
    from pytest_instrcount import hookspec

    pluginmanager.add_hookspecs(hookspec)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> pytest.ExitCode | None:
    """Write a first job, or adopt benchmarks before the plugins that they were written for are configured."""
    from pytest_instrcount.config.options import adopts_benchmarks

    if config.getoption("instrcount_init"):
        from pytest_instrcount.config.first_job import write_first_job

        print(write_first_job(config.rootpath), end="")
        return pytest.ExitCode.OK
    if adopts_benchmarks(config, config.option):
        from pytest_instrcount.fixtures.benchmark.hooks import adopt_benchmarks

        adopt_benchmarks(config)
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; measure if the user wants it."""
    from pytest_instrcount.config.options import MARKER_LINE, TRACE_MARKER_LINE

    config.addinivalue_line("markers", MARKER_LINE)
    config.addinivalue_line("markers", TRACE_MARKER_LINE)
    # a worker of pytest-xdist hands its traces over to the controller
    if config.getoption("trace_profile") is not None and not (
        hasattr(config, "workerinput") or config.stash.get(INSIDE, False)
    ):
        from pytest_instrcount.fixtures.trace.whole import watch_run

        watch_run(config)
    if wants_to_measure(config):
        from pytest_instrcount.config.options import uses_xdist
        from pytest_instrcount.session.backend import BYTECODE, choose_backend

        chosen = choose_backend(config)
        if chosen is None:
            return
        backend, settings = chosen
        # the controller of pytest-xdist measures nothing, and its workers write nothing
        if backend == BYTECODE:
            from pytest_instrcount.session.bytecode.run import start_counting as start
        elif hasattr(config, "workerinput"):
            from pytest_instrcount.session.xdist.worker import start_worker as start
        elif uses_xdist(config.option):
            from pytest_instrcount.session.xdist.controller import start_controller as start
        else:
            from pytest_instrcount.session.against.sides import start_side as start
        start(config, settings, STARTED_WITH)


def wants_to_measure(config: pytest.Config) -> bool:
    """True if the user asked for it; always False inside Valgrind, and if no test is to run."""
    from pytest_instrcount.config.options import asks_to_measure

    asked = asks_to_measure(config, config.option)
    idle = any(getattr(config.option, name, False) for name in _IDLE.split())
    return asked and not idle and not config.stash.get(INSIDE, False)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with ``scaling`` is run at the sizes of its marker, if its argument is ``size``."""
    if "size" in metafunc.fixturenames and any(
        "scaling" in mark.kwargs for mark in metafunc.definition.iter_markers("instrcount")
    ):
        from pytest_instrcount.session.budgets import sizes_to_give

        sizes = sizes_to_give(metafunc.definition)
        if sizes:
            metafunc.parametrize("size", sizes)


def pytest_itemcollected(item: pytest.Item) -> None:
    """The fixture implies the marker, so that ``-m instrcount`` finds both."""
    if "instrcount" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(
        "instrcount"
    ):
        item.add_marker("instrcount")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """With --instrcount-only and --instrcount-skip, leave out the others, once all markers are there."""
    yield
    only, skip = config.getoption("instrcount_only"), config.getoption("instrcount_skip")
    if only or skip:
        from pytest_instrcount.session.selection import deselect

        deselect(config, items, only=only, skip=skip)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Find what is wrong with traces before any test runs, if one is traced."""
    config = session.config
    idle = config.getoption("collectonly", False) or config.stash.get(INSIDE, False)
    if not idle and any(map(is_traced, session.items)):
        from pytest_instrcount.fixtures.trace.hooks import check_items

        try:
            check_items(config, [item for item in session.items if is_traced(item)])
        except pytest.UsageError as error:
            # what a worker of pytest-xdist raises ends that worker, and is shown to nobody
            if hasattr(config, "workeroutput"):
                text = str(error).encode(errors="backslashreplace").decode()
                config.workeroutput[MISTAKES] = text
            raise


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Under pytest-xdist: what a worker has found wrong ends the run, as it does without."""
    mistakes = getattr(node, "workeroutput", {}).get(MISTAKES)
    if mistakes:
        raise pytest.UsageError(mistakes)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """For a failing assert on a number of calls, show the callers."""
    tree = sys.modules.get("pytest_instrcount.trace.tree")
    return tree.explain_calls(op, left, right) if tree else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Of an error that a wrong use of ours has raised, show the user's lines and none of ours."""
    error, errors = call.excinfo, sys.modules.get("pytest_instrcount.errors")
    if error is not None and errors is not None and errors.is_misuse(error):
        for entry in error.traceback:
            if str(entry.path).startswith(HERE):
                # pytest asks it, for a frame without one of its own
                entry.frame.f_globals["__tracebackhide__"] = errors.is_misuse


@pytest.fixture
def instrcount(request: pytest.FixtureRequest) -> InstrCount:
    """Count the instructions of one call, and return the value of the call.

    Without --instrcount the call is made once, as if it were written without the fixture.
    """
    from pytest_instrcount.fixtures.instrcount import InstrCount

    counting = request.config.stash.get(COUNTING, None)
    if counting is not None:
        fixture: InstrCount = counting(request)
        return fixture
    if not request.node.get_closest_marker("instrcount"):  # asked for by request.getfixturevalue
        request.node.add_marker("instrcount")
    return InstrCount(request.node.nodeid, None)


@pytest.fixture
def trace_profile(request: pytest.FixtureRequest) -> TraceProfile:
    """Trace the calls that are made through it, or in its with-block; the tree is in ``.tree``."""
    from pytest_instrcount.fixtures.trace.hooks import trace_of

    return trace_of(request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Trace a test that carries the marker or takes the fixture."""
    if not is_traced(item):
        return (yield)
    from pytest_instrcount.fixtures.trace.hooks import trace_item

    with trace_item(item):
        return (yield)
