"""The page that lists the faults, and the tests that it names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| .+ \| .+ \| `(test_.+)` \|$", re.MULTILINE)


def test_each_row_names_a_test_that_is_there() -> None:
    """And each fault is in one row."""
    rows = ROW.findall((ROOT / "docs" / "explanation" / "faults.md").read_text())
    assert len(rows) >= 45
    assert len(rows) == len(set(rows))
    words = [
        "-m",
        "pytest",
        "--collect-only",
        "-m",
        "",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/faults",
    ]
    listed = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    there = {line.removeprefix("tests/faults/") for line in listed.splitlines() if "::" in line}
    assert set(rows) <= there, set(rows) - there
    faults = {test for test in there if "::test_fault[" in test or "::test_blow[" in test}
    assert faults <= set(rows), faults - set(rows)
