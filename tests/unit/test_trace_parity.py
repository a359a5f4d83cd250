"""Counts of 28 uses of libraries: from both backends, in other processes, with other hash seeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.invariants import differing
from tests.unit.trace_workloads import WORKLOADS, counts_of
from tests.unit.tracing import BACKENDS

ROOT = Path(__file__).parents[2]


def in_process(seed: int, *names: str) -> dict[str, dict[str, int]]:
    """What a new process with this hash seed counts."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.trace_workloads", BACKENDS[-1], *names],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.PIPE,
        timeout=120,
    )
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(len(BACKENDS) < 2, reason="one backend only")
@pytest.mark.parametrize("name", WORKLOADS)
def test_both_backends_give_equal_tables(name: str) -> None:
    """Python functions, resumes and builtins."""
    assert differing(counts_of(name, "monitoring"), counts_of(name, "setprofile")) == {}


def test_counts_do_not_depend_on_process_seed_or_company() -> None:
    """Zero is the tolerance: three hash seeds, in a new order, and one workload alone."""
    first = in_process(0)
    assert set(first) == set(WORKLOADS)
    assert all(sum(counts.values()) >= 5 for counts in first.values())
    other = in_process(7, *reversed(WORKLOADS))
    varying = {name: differing(first[name], other[name]) for name in WORKLOADS}
    assert {name: each for name, each in varying.items() if each} == {}
    assert in_process(3, "json") == {"json": first["json"]}
