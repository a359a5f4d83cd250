"""What the docs show under real Valgrind: the tutorial from its first line to its last, and Timer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.blocks import Block, blocks
from tests.conftest import FEW_PLUGINS

pytestmark = pytest.mark.valgrind

ROOT = Path(__file__).parents[2]

#: What belongs to a Python, a Valgrind, a C library, a machine or a terminal.
_FACTS = re.compile(r", \d+ at a time|[+-]?\d[\d,.]*| +|-{2,}|={2,}")


def shape(line: str) -> str:
    """A line without its numbers and its filling, and whether layouts differ, which depends on the path."""
    return _FACTS.sub(" ", line.replace("mean Ir", "Ir")).strip()


@pytest.mark.long
def test_the_tutorial(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed as it stands: each command does what is said, and prints the lines that are shown."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", FEW_PLUGINS)
    slug, test, change = (block.text for block in blocks("tutorial"))
    Path("slug.py").write_text(slug)
    Path("test_slug.py").write_text(test)
    assert pytester.run(sys.executable, "-m", "pytest").parseoutcomes() == {"passed": 2}
    _, new, update, unchanged, slower, accept = (
        block for block in blocks("commands") if block.page == "tutorial/first-gate.md"
    )
    follow(pytester, new, 0)
    follow(pytester, update, 0)
    follow(pytester, unchanged, 0)
    old = "    for letter in title.lower():\n"
    assert old in slug
    Path("slug.py").write_text(slug.replace(old, change))
    follow(pytester, slower, 1)
    follow(pytester, accept, 0)


def test_the_readme(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """One function of the examples is slowed down as examples/run does it, and the failure is the one shown."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", FEW_PLUGINS)
    script = (ROOT / "examples/run").read_text()
    shown = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    steps = re.findall(r"^== (.*)", shown, re.MULTILINE)
    assert len(steps) == 2
    assert all(f'say "{step}"' in script for step in steps)
    shutil.copytree(ROOT / "examples/tests", "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "examples/pytest.ini", "pytest.ini")
    workload = (ROOT / "examples/workload.py").read_text()
    Path("workload.py").write_text(workload)
    command = sys.executable, "-m", "pytest", "--instrcount", "tests/test_workload.py"
    assert pytester.run(*command, "--instrcount-update-baseline").ret == 0

    (edit,) = re.findall(r"^sed -i 's/(.*?)/(.*?)/' workload\.py", script, re.MULTILINE)
    slower = workload.replace(edit[0].replace("\\", ""), edit[1])
    assert slower != workload
    Path("workload.py").write_text(slower)
    result = pytester.run(*command)
    assert result.ret == 1
    printed = iter([*map(shape, result.outlines)])
    # what C functions are called is an affair of the Python, and there are no other tests here,
    # beside which layouts differ by three instructions
    told = shown.partition(f"== {steps[1]}\n")[2].partition("  by C function")[0]
    told = re.sub(r"  in the usual layout.*\n", "", told)
    lines = [shape(line) for line in told.splitlines()]
    assert len(lines) == 6
    assert [line for line in lines if line not in printed] == []


def follow(pytester: pytest.Pytester, block: Block, code: int) -> None:
    """Type the first command of a block, which prints the lines below it."""
    name, *words = block.typed[0].split()
    result = pytester.run(Path(sys.executable).with_name(name), *words)
    assert result.ret == code
    printed = iter([*map(shape, result.outlines)])
    # what C functions are called is an affair of the Python
    shown = (
        shape(line) for line in block.shown if ".c" not in line and " more layouts" not in line
    )
    assert [line for line in shown if line not in printed] == []


@pytest.mark.parametrize("block", blocks("counted"), ids=lambda block: block.place)
def test_timers(block: Block, tmp_path: Path) -> None:
    """A script prints what it has counted; of a call alone the result is looked at."""
    text = block.text
    if "print(" not in text:
        text = f"from pytest_instrcount import Timer\nprint({text.rstrip()})\n"
    (tmp_path / "example.py").write_text(text)
    command = [sys.executable, "-Werror", "example.py"]
    if 'language="c++"' in text and shutil.which(os.environ.get("CXX", "c++")) is None:
        pytest.skip("no compiler of C++")
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    ran = re.search(r"number=(\d+)", text)
    assert ran is not None
    assert f"{ran[1]} runs, 1 thread\n" in ended.stdout
    for shown in blocks("output"):
        if shown.text.startswith("CallgrindStats\n") and "sorted" in text:
            printed = [
                *filter(lambda line: "without debug symbols" not in line, ended.stdout.splitlines())
            ]
            assert [*map(shape, printed)] == [*map(shape, shown.text.splitlines())]
