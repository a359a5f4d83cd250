"""For all tests: pytest's own fixture for running pytest, examples without a clock, no collection."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester"]

#: PYTEST_ADDOPTS without the plugins of coroutines, whose tests take them back. pytest-asyncio has a fixture
#: for each test, with which what repeats is a process of its own; importing anyio's is half of a start.
WITHOUT_COROUTINES = "-pno:asyncio -pno:anyio"
#: and without Hypothesis's, which imports all of Hypothesis at the end of each run
FEW_PLUGINS = f"{WITHOUT_COROUTINES} -pno:hypothesispytest"
#: The environment of a run that looks at something else than noise: an update takes half as long.
TWO_LAYOUTS = {
    "PYTHONPATH": str(Path(__file__).parent / "shorter"),
    "PYTEST_ADDOPTS": f"{FEW_PLUGINS} -ptwo_layouts",
}

# No clock decides: on a loaded machine the making of examples is slow, too. In CI always the same ones.
settings.register_profile(
    "project",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("project")

# Byte code is stale by the second and the size of a file: a test that writes another one of the same
# size at once would run the first one.
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# Tests say themselves whether they run in CI; most unset CI alone.
for _name in ("BUILD_NUMBER", "TF_BUILD", "TOX_ENV_NAME"):
    os.environ.pop(_name, None)

# Workers of pytest-xdist and jobs in the background ignore Ctrl-C, and what they start would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def started_by_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``pytest``, however these tests were started: commands begin so, too."""
    monkeypatch.setattr(sys, "orig_argv", ["python", "pytest"])


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """The collector off, as the gate has it: its callbacks (Hypothesis has one) are calls, too."""
    collecting = gc.isenabled()
    gc.disable()
    yield
    if collecting:
        gc.enable()
