"""Programs that are run for their answer: one that does not end goes, with all that it has started."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

# now, before a conftest has `subprocess` start nothing
from subprocess import DEVNULL, PIPE, CompletedProcess
from subprocess import Popen as Popen


def run_program(
    command: Sequence[str],
    seconds: float | None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    pass_fds: Collection[int] = (),
) -> CompletedProcess[bytes]:
    """Run a program; returns its output and exit status. Raises OSError, and subprocess.TimeoutExpired.

    ``subprocess.run`` would end the program alone: a script that waits for another leaves that behind.
    """
    with Popen(
        command,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=env,
        cwd=cwd,
        pass_fds=pass_fds,
        start_new_session=True,
    ) as process:
        try:
            said, errors = process.communicate(timeout=seconds)
        except BaseException:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)  # not reaped yet: the id is its own
            process.kill()
            raise
    return CompletedProcess(command, process.returncode, said, errors)
