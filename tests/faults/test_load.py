"""The same integers on a machine with nothing to spare, and with runs side by side in one checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import TWO_LAYOUTS

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "load.py"


def test_load_changes_no_count() -> None:
    """All processors busy, and three runs at once; the benchmark does more of it."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--beside", "3", "--only", "processors", "side by side"],
        env=os.environ | TWO_LAYOUTS,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [line[-4:-1] for line in lines] == [["1", "10", "0"], ["1", "10", "0"], ["3", "30", "0"]]
