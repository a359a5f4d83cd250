"""Lines for people are written at once: a log of CI is a file, in which they would come at the end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.plugin.conftest import TWO_TESTS, Project

#: In a process of its own, with the fake; it keeps what the log holds while a result is awaited.
PLUGIN = """
from pathlib import Path
import pytest_instrcount.session.zygote as starting
from pytest_instrcount.callgrind import facts
from tests.plugin.conftest import FakeValgrind

def look(name):
    Path(f"seen-{name}").write_text(Path("log").read_text())

fake = FakeValgrind(while_waiting=look)
starting.Zygote, facts.find_valgrind = fake.make_zygote, fake.find

def pytest_sessionstart(session):
    fake.sessions.append(session)
"""


def test_lines_come_at_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first result, that something is measured."""
    project.write(TWO_TESTS)
    (project.path / "measured.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parents[2]}:{project.path}")
    words = ("-m", "pytest", "-p", "pytest_instrcount.plugin", "-p", "measured", "--instrcount")
    with (project.path / "log").open("w") as log:
        code = project.pytester.popen([sys.executable, *words], stdout=log, stderr=log).wait(120)
    log_text = (project.path / "log").read_text()
    assert code == 0, log_text
    seen = (project.path / "seen-test_a").read_text()
    assert "instrcount: measuring 2 tests under Valgrind" in seen
