"""What a supervisor takes away when the run ends in the middle of a test."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.callgrind import perf_map
from pytest_instrcount.callgrind.scratch import Scratch
from pytest_instrcount.callgrind.supervisor import main
from pytest_instrcount.callgrind.supervisor.running import Runs


def test_maps_of_python_functions_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython writes them outside of the folder of the run."""
    monkeypatch.setattr(perf_map, "PERF_MAP", f"{tmp_path}/perf-{{pid}}.map")
    monkeypatch.setattr(main, "own_children", list)
    for pid in (1, 2, 3):
        tmp_path.joinpath(f"perf-{pid}.map").touch()
    folder = tmp_path / "run"
    folder.mkdir()
    order = SimpleNamespace(by_python=True)
    run: Any = SimpleNamespace(pid=1, counter=2, folder=folder, test=SimpleNamespace(order=order))
    ended: Any = SimpleNamespace(end_all=list)
    lock = os.open(folder, os.O_RDONLY)
    state: Any = SimpleNamespace(
        folder=folder, scratch=Scratch(folder, lock), send_queue=SimpleNamespace(send=list)
    )
    runs = Runs(state, ended, lambda: None, [run])
    supervisor: Any = SimpleNamespace(zygotes=ended, files=ended, state=state, runs=runs)
    main.Supervisor.end_all(supervisor)
    os.close(lock)
    assert [path.name for path in tmp_path.iterdir()] == ["perf-3.map"]
