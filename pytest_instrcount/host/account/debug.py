"""A folder for what a run leaves to look into: its log, those of Valgrind, each failed measurement."""

from __future__ import annotations

import json
import logging
import os
import shutil
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from pytest_instrcount.host.account.once import Once
from pytest_instrcount.host.account.records import MeasurementRecord

#: A logger that is in no hierarchy: it writes to debug folders, and nothing of it is in the logs
#: that pytest shows of a test, or in those of the user.
LOG = logging.Logger("pytest_instrcount", logging.DEBUG)
LOG.addHandler(logging.NullHandler())

LOG_NAME, FAILED, TIMINGS = "instrcount.log", "failed", "timings.csv"
_LONGEST_NAME = 80


class DebugFolder:
    """A folder of one run and one process; no file in it is ever overwritten.

    Raises OSError where it cannot be made. ``close`` takes its handler away.
    """

    def __init__(self, parent: Path, now: datetime | None = None) -> None:
        moment = (now or datetime.now()).strftime("%Y_%m_%d_%H_%M_%S_%f")
        self.path = free_name(parent / f"run_{moment}-pid_{os.getpid()}")
        self.path.mkdir(parents=True)
        self._once = Once()
        self._logs = 0
        self._stack = ExitStack()
        handler = logging.FileHandler(self.path / LOG_NAME, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._stack.callback(handler.close)
        self._stack.callback(LOG.removeHandler, handler)
        LOG.addHandler(handler)

    def close(self) -> None:
        """The log is complete."""
        self._stack.close()

    def failed(self, record: MeasurementRecord, detail: str) -> None:
        """Write down a measurement that failed; a second one of the same test gets a number."""
        name = "".join(char if char.isalnum() or char in "-_." else "_" for char in record.nodeid)
        path = self.path / FAILED / f"{name[-_LONGEST_NAME:]}.json"
        try:
            path.parent.mkdir(exist_ok=True)
            with free_name(path).open("x", encoding="utf-8") as file:
                json.dump(asdict(record) | {"detail": detail}, file, indent=1)
                file.write("\n")
        except OSError as error:
            self._say(f"a failed measurement cannot be written to {path}: {error}")

    def keep_logs(self, scratch: Path) -> None:
        """Copy what Valgrind and the processes under it have said, before it is deleted."""
        self._logs += 1
        for log in sorted(scratch.glob("*.log")):
            if log.stat().st_size:
                target = self.path / f"processes{self._logs}" / log.name
                with suppress(OSError):
                    target.parent.mkdir(exist_ok=True)
                    shutil.copyfile(log, free_name(target))

    def write(self, name: str, text: str) -> None:
        """Write one more file."""
        try:
            with free_name(self.path / name).open("x", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            self._say(f"{name} cannot be written: {error}")

    def _say(self, line: str) -> None:
        if self._once.first(line):
            LOG.warning(line)


def free_name(path: Path) -> Path:
    """The path, or the first of ``name-2.json``, ``name-3.json``, ... that is not there."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return found
