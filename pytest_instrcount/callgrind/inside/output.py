"""What the process of a test prints: into files of its own, and once."""

from __future__ import annotations

import faulthandler
import os
from contextlib import suppress

import pytest


def print_nowhere() -> None:
    """Discard output from here on: it has been printed once, and kept."""
    with suppress(OSError):  # where the test has left no descriptor
        nothing = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(nothing, descriptor)
        os.close(nothing)


def keep_last_words(scratch: str, child: str) -> None:
    """Have faulthandler, if it is on, write to a file of this process's own: errors are everybody's."""
    if faulthandler.is_enabled():
        path = os.path.join(scratch, "dumps", f"words.{child}")
        faulthandler.enable(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND))


def restart_capture(config: pytest.Config) -> None:
    """Open capture files of this process's own: inherited ones share their position in the file."""
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is not None:
        manager.stop_global_capturing()
        manager.start_global_capturing()
        manager.suspend_global_capture()
