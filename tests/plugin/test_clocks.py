"""Clocks of other plugins: they bound no test that is measured, whichever way they end one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.plugin.conftest import TWO_TESTS, Project

#: Set and cancelled as pytest-timeout 2.4 does.
TIMEOUT = """
import os, signal, threading, pytest

def pytest_addoption(parser):
    parser.addini("timeout", "")
    parser.addini("timeout_method", "")

class Hooks:
    @pytest.hookspec(firstresult=True)
    def pytest_timeout_set_timer(item, settings): pass
    @pytest.hookspec(firstresult=True)
    def pytest_timeout_cancel_timer(item): pass

def pytest_addhooks(pluginmanager):
    pluginmanager.add_hookspecs(Hooks)

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.config.hook.pytest_timeout_set_timer(item=item, settings=None)
    yield
    item.config.hook.pytest_timeout_cancel_timer(item=item)

@pytest.hookimpl(trylast=True)
def pytest_timeout_set_timer(item, settings):
    seconds = float(item.config.getini("timeout"))
    if item.config.getini("timeout_method") == "thread":
        item.timer = threading.Timer(seconds, os._exit, (1,))
        item.timer.start()
        return True
    def handler(number, frame):
        pytest.fail(f"Timeout (>{seconds}s) from pytest-timeout.")
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    return True

@pytest.hookimpl(trylast=True)
def pytest_timeout_cancel_timer(item):
    if hasattr(item, "timer"):
        item.timer.cancel()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return True
"""
MEASURED = """
import time
import pytest_instrcount.session.zygote as starting
from pytest_instrcount.callgrind import facts
from tests.plugin.conftest import FakeValgrind

fake = FakeValgrind(while_waiting=lambda name: time.sleep(1.0))
starting.Zygote, facts.find_valgrind = fake.make_zygote, fake.find

def pytest_sessionstart(session):
    fake.sessions.append(session)
"""
NATIVE = "\ndef test_native(): import time; time.sleep(1)\n"


@pytest.fixture
def slow(project: Project) -> Project:
    """Each result is there after a second."""
    project.valgrind.while_waiting = lambda name: time.sleep(1.0)
    project.pytester.makeconftest(TIMEOUT)
    return project


def test_pytest_timeout_is_no_limit_for_waiting(slow: Project) -> None:
    """It is one for tests that are not measured."""
    slow.pytester.makeini("[pytest]\ntimeout = 0.5\n")
    slow.write(TWO_TESTS + NATIVE)
    result = slow.measure()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*Timeout (>0.5s) from pytest-timeout*", "instrcount: 2 new"])


@pytest.mark.parametrize(
    "ini",
    [
        "timeout = 0.5\ntimeout_method = thread",
        "timeout = 60\nfaulthandler_timeout = 0.5\nfaulthandler_exit_on_timeout = true",
    ],
)
def test_clocks_that_would_end_the_process(
    slow: Project, monkeypatch: pytest.MonkeyPatch, ini: str
) -> None:
    slow.pytester.makeini(f"[pytest]\n{ini}\n")
    slow.write(TWO_TESTS)
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parents[2]}:{slow.path}")
    plugin = slow.path / "measured.py"  # in a process of its own, the fake with it
    plugin.write_text(MEASURED)
    slow.pytester.plugins[:] = ["pytest_instrcount.plugin", "measured"]
    result = slow.pytester.runpytest_subprocess("--instrcount")
    result.assert_outcomes(passed=2)
    assert "Timeout" not in result.stderr.str()
