"""A gate without one of its parts is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_instrcount import session
from pytest_instrcount.session.backend import PARTS
from tests.plugin.conftest import Project


@pytest.mark.parametrize("part", PARTS.split())
def test_no_part_is_left_out(project: Project, part: str) -> None:
    """It would be left out without a word: nothing would be measured, and the run be green."""
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    result = project.measure("-p", f"no:instrcount-{part}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*-p no:instrcount-{part} leaves out *[[]part-left-out[]]"])


def test_all_parts_are_known() -> None:
    """Each that is registered by a name, but for those that judge nothing."""
    sources = (path.read_text() for path in Path(session.__file__).parent.rglob("*.py"))
    named = set(re.findall(r'"instrcount-([a-z]+)"', "".join(sources)))
    assert named - {"nothing"} == {*PARTS.split()}


def test_all_parts_can_be_shown(project: Project) -> None:
    """Before they have begun, too, as ``--trace-config`` does."""
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    result = project.measure("--trace-config")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*instrcount-run*Counting*"])
