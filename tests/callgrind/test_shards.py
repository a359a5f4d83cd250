"""Shards of pytest-split: the integers of one run, and after a merge its very files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_instrcount.cli.main import main

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

SUITE = """
import pytest
pytestmark = pytest.mark.instrcount

def test_list(): [x * x for x in range(300)]
def test_dict(): {str(n): n for n in range(200)}
"""


def baselines_of(project: pytest.Pytester, name: str, *args: str) -> dict[str, str]:
    project.runpytest_subprocess(
        "--instrcount-update-baseline", f"--instrcount-baseline-dir=../{name}", *args
    )
    return texts(project.path.parent / name)


def texts(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.json"))
    }


def test_two_shards_are_one_run(project: pytest.Pytester) -> None:
    """Copied together they have the same counts; merged they are the same, byte for byte."""
    project.makepyfile(test_a=SUITE, test_b=SUITE.replace("300", "400"))
    one = baselines_of(project, "one")
    shards = [
        baselines_of(project, f"s-{group}", "--splits=2", f"--group={group}", "--instrcount-shard")
        for group in (1, 2)
    ]
    assert len(one) == 4 and [len(shard) for shard in shards] == [2, 2]
    for name, text in (shards[0] | shards[1]).items():
        copied, whole = json.loads(text), json.loads(one[name])
        copied.pop("profile"), whole.pop("profile")  # where what is known of noise stands
        assert copied == whole
    parent = project.path.parent
    assert (
        main(["merge", "--into", str(parent / "m"), str(parent / "s-1"), str(parent / "s-2")]) == 0
    )
    assert texts(parent / "m") == one
