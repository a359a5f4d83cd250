"""The suite of benchmarks/scale.py: so many marked tests of small calls of the standard library."""

from __future__ import annotations

import shutil
from pathlib import Path

WORK = Path(__file__).parent / "cost_workloads.py"
SUITE = """
import pytest
from cost_workloads import WORKLOADS

NAMES = list(WORKLOADS)

@pytest.mark.instrcount
@pytest.mark.parametrize("name, copy", [(NAMES[n % len(NAMES)], n) for n in range({first}, {last})])
def test_workload(name, copy):
    WORKLOADS[name]()
"""


def write_suite(folder: Path, tests: int, per_file: int) -> Path:
    """A project with that many tests, in files of at most ``per_file``."""
    folder.mkdir(parents=True)
    shutil.copy(WORK, folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for number, first in enumerate(range(0, tests, per_file)):
        text = SUITE.format(first=first, last=min(tests, first + per_file))
        (folder / f"test_part{number:04}.py").write_text(text)
    return folder
