"""The scripts of the page for torch's users, by torch's import and by ours: ``tox -e torch``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.blocks import BLOCKS, Block

pytest.importorskip("torch")

SCRIPTS = [
    block for block in BLOCKS if block.page == "how-to/from-torch.md" and block.language == "python"
]


def run(text: str, folder: Path) -> str:
    """What a script prints."""
    (folder / "script.py").write_text(text)
    command = [sys.executable, "script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("block", SCRIPTS, ids=lambda block: block.place)
def test_either_import(block: Block, tmp_path: Path) -> None:
    """Nothing but the import is changed."""
    module = "torch.utils.benchmark" if "Timer" in block.text else "torch.autograd.profiler"
    assert run(block.text, tmp_path)
    assert run(
        block.text.replace("from pytest_instrcount import", f"from {module} import"), tmp_path
    )
