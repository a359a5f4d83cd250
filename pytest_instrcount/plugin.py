"""Entry point for pytest: options, marker, fixture. Light, since every pytest run imports it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_instrcount.stash import COUNTING, INSIDE

if TYPE_CHECKING:
    from pytest_instrcount.fixture import InstrCount

#: sys.path as the interpreter was started with, before a conftest or an ini file adds to it.
STARTED_WITH = tuple(sys.path)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare options and ini settings."""
    from pytest_instrcount.options import add_options

    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; measure if the user wants it."""
    from pytest_instrcount.options import MARKER_LINE

    config.addinivalue_line("markers", MARKER_LINE)
    if wants_to_measure(config):
        from pytest_instrcount.session import start_measuring

        start_measuring(config, STARTED_WITH)


def wants_to_measure(config: pytest.Config) -> bool:
    """Whether the user asked for it; never inside Valgrind, nor where no test is to run."""
    asked = any(
        config.getoption(name)
        for name in ("instrcount", "instrcount_update_baseline", "instrcount_prune")
    ) or config.getini("instrcount")
    idle = (
        "collectonly",
        "help",
        "version",
        "showfixtures",
        "show_fixtures_per_test",
        "markers",
        "cacheshow",
    )
    return (
        bool(asked)
        and not config.stash.get(INSIDE, False)
        and not any(getattr(config.option, name, False) for name in idle)
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """The fixture implies the marker, so that ``-m instrcount`` finds both."""
    if "instrcount" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(
        "instrcount"
    ):
        item.add_marker("instrcount")


@pytest.fixture
def instrcount(request: pytest.FixtureRequest) -> InstrCount:
    """Count the instructions of one call, and return the value of the call.

    Without --instrcount the call is made once, as if it were written without the fixture.
    """
    from pytest_instrcount.fixture import InstrCount

    counting = request.config.stash.get(COUNTING, None)
    if counting is not None:
        fixture: InstrCount = counting(request)
        return fixture
    return InstrCount(request.node.nodeid, None)
