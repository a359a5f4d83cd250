"""Programs that are run for their answer: one that does not end goes, with all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_program(
    command: Sequence[str],
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program; returns its output and exit status. Raises OSError, and subprocess.TimeoutExpired.

    ``subprocess.run`` would end the program alone: a script that waits for another leaves that behind.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=cwd,
        start_new_session=True,
    ) as process:
        try:
            said, errors = process.communicate(timeout=seconds)
        except BaseException:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)  # not reaped yet: the id is its own
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, said, errors)
