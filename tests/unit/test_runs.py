"""What the supervisor keeps of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_instrcount.callgrind import runs


def a_run(folder: Path, index: int, pid: int) -> runs.Run:
    """A run whose process has counted: two dumps behind a pilot's three."""
    unused: Any = None
    run = runs.Run(runs.Test(index, {}), unused, unused, 0.0, "child", folder, {})
    run.parent = type("Process", (), {"pid": pid})()
    run.counter, run.wanted_dumps = pid, [3, 4]
    for number in range(1, 6):
        (folder / f"out.{pid}.{number}").write_text(f"{index} {number}")
    (folder / f"out.{pid}").touch()
    return run


def test_dumps_outlive_their_process_id(tmp_path: Path) -> None:
    """Ids come round: a process that has the id of one before takes away nothing of it."""
    first = a_run(tmp_path, 7, pid=300)
    first.keep_counted()
    second = a_run(tmp_path, 8, pid=300)
    second.keep_counted()
    kept = [[Path(path).read_text() for path in run.counted_dumps] for run in (first, second)]
    assert kept == [["7 4", "7 5"], ["8 4", "8 5"]]
    assert len(list(tmp_path.iterdir())) == 4
