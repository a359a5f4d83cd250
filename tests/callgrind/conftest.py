"""Running pytest with real Valgrind, and reading what it reported."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FEW_PLUGINS, TWO_LAYOUTS

Counts = dict[str, int]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project, outside CI, measured in two layouts."""
    monkeypatch.delenv("CI", raising=False)
    for name, value in TWO_LAYOUTS.items():
        monkeypatch.setenv(name, value)
    pytester.makeini("[pytest]\n")
    return pytester


@pytest.fixture
def all_layouts(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """In as many layouts as a user's."""
    monkeypatch.setenv("PYTEST_ADDOPTS", FEW_PLUGINS)


@pytest.fixture
def run(project: pytest.Pytester) -> Callable[..., tuple[pytest.RunResult, dict[str, Any]]]:
    """Run pytest with --instrcount; returns what it printed and its report, by nodeid."""

    def run_pytest(*args: str) -> tuple[pytest.RunResult, dict[str, Any]]:
        report = project.path.parent / "report.json"
        report.unlink(missing_ok=True)
        result = project.runpytest_subprocess(
            "--instrcount", f"--instrcount-report=json:{report}", *args
        )
        tests = json.loads(report.read_text())["tests"] if report.exists() else []
        return result, {test["nodeid"]: test for test in tests}

    return run_pytest


def valgrind_processes(folder: Path) -> set[int]:
    """Process ids of all that runs under Callgrind in a folder."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                command = Path("/proc", entry, "cmdline").read_bytes()
                there = Path("/proc", entry, "cwd").readlink()
            except OSError:
                continue
            if b"--tool=callgrind" in command and there == folder:
                found.add(int(entry))
    return found
