"""The hooks that plugins and conftests may implement. Light: read at every start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_instrcount.config.child_spec import ChildSpec
    from pytest_instrcount.gate.limit import Limit
    from pytest_instrcount.gate.records import RunSummary, TestResult
    from pytest_instrcount.trace.recognize import Recognizer


@pytest.hookspec
def pytest_instrcount_recognizers(config: pytest.Config) -> Sequence[Recognizer]:  # type: ignore[empty-body]
    """Say whose objects a trace tells apart; asked once, before the first test that is traced.

    A `Recognizer` is the code of a method and what is to be shown of its object, which it is asked
    for when the object is first called. `recognize_class` makes those of a class. In a conftest:

    >>> from pytest_instrcount import Parameter, Recognizer
    >>> class Cache:
    ...     def __init__(self, size): self.size = size
    ...     def get(self, key): return None
    >>> def entries(cache):
    ...     return (Parameter("entries", shape=(cache.size,)),)
    >>> def pytest_instrcount_recognizers(config):
    ...     return [Recognizer(Cache.get.__code__, entries)]

    Where this plugin may be missing, mark it ``@pytest.hookimpl(optionalhook=True)``.
    """


@pytest.hookspec
def pytest_instrcount_environment(config: pytest.Config) -> Mapping[str, str]:  # type: ignore[empty-body]
    """Add facts that two counts must share to be compared: a version, a mode of the library.

    Asked once, when collection begins, where tests are measured: under pytest-xdist in each worker. What
    plugins say is put together; one name with two values ends the run. In a conftest or a plugin:

    >>> import sqlite3
    >>> def pytest_instrcount_environment(config):
    ...     return {"sqlite": sqlite3.sqlite_version}
    """


@pytest.hookspec
def pytest_instrcount_child(config: pytest.Config) -> ChildSpec | None:
    """Say what the processes under Valgrind get: variables, options of Valgrind, isolation.

    Asked once, when collection begins, where tests are measured: under pytest-xdist in each worker. What
    plugins say is put together; two that contradict each other end the run. The values of ``variables``
    must be the same in every run: they become facts of the environment.

    >>> from pytest_instrcount import ChildSpec
    >>> def pytest_instrcount_child(config):
    ...     return ChildSpec(let_through=("APP_KEY",), variables={"APP_MODE": "bench"})
    """


@pytest.hookspec(firstresult=True)
def pytest_instrcount_limit(item: pytest.Item, limit: Limit) -> Limit | str | None:
    """Give a test another limit than the run's, which is ``limit``.

    Asked once for each measured test whose marker has no ``max_delta``, when all are collected, where
    they are measured: under pytest-xdist in each worker. The first answer that is not None holds.

    >>> def pytest_instrcount_limit(item, limit):
    ...     return "3%" if item.path.name == "test_numpy.py" else None
    """


@pytest.hookspec
def pytest_instrcount_result(config: pytest.Config, result: TestResult) -> None:
    """Look at one test's count and verdict, once it is final and before the run says so.

    Called for each measured test and each stale baseline, when all is measured, judged and stored; under
    pytest-xdist in the controller alone. Never after an interruption: then nothing is final.

    >>> def pytest_instrcount_result(config, result):
    ...     if result.verdict == "regressed":
    ...         print(result.nodeid, result.baseline_ir, "->", result.ir)
    """


@pytest.hookspec
def pytest_instrcount_summary(config: pytest.Config, summary: RunSummary) -> None:
    """Look at the whole run, at its end, before it is on the terminal and in the reports.

    Called once, if anything was measured or traced; under pytest-xdist in the controller alone.

    >>> def pytest_instrcount_summary(config, summary):
    ...     print(len(summary.results), "tests with", summary.environment["python"])
    """
