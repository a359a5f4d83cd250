"""A copy of the examples, and what is run in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from outside_ci import outside_ci

EXAMPLES = Path(__file__).parent.parent / "examples"


def copy_examples() -> Path:
    """The copy: a folder, alone in one for temporary files."""
    folder = Path(tempfile.mkdtemp()) / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(folder: Path, *args: str) -> None:
    """Run ``python -m`` in a folder, as if not in CI; what fails is shown, and ends this process."""
    done = subprocess.run(
        [sys.executable, "-m", *args],
        cwd=folder,
        env=outside_ci(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
