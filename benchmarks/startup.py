"""How much the installed plugin slows pytest's start when --instrcount is not given.

    python benchmarks/startup.py

Starts pytest on an empty folder again and again, with the plugin and with ``-p no:instrcount`` in
turn, and prints the median of the differences of user time in milliseconds.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

RUNS = 40


def user_seconds(folder: str, *args: str) -> float:
    """User time of one start."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        differences = [
            user_seconds(folder) - user_seconds(folder, "-p", "no:instrcount") for _ in range(RUNS)
        ]
    print(f"{1000 * statistics.median(differences):.1f} ms of user time, median of {RUNS} pairs")


if __name__ == "__main__":
    main()
