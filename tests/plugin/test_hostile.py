"""Files and processes of strangers in a whole run: told as text, judged as errors, never obeyed."""

from __future__ import annotations

import html.parser
import json
import os
from xml.etree import ElementTree

import pytest

from pytest_instrcount.callgrind.zygote import Problem
from tests.baselines import plant_profile, read_whole, tree_values
from tests.plugin.conftest import Project

BODY = """
    import pytest

    @pytest.mark.instrcount
    def test_a(): pass

    @pytest.mark.instrcount
    def test_b(): pass
"""
OBEYED = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\n::error::now\n  ##[group]now"


def check_text(text: str) -> None:
    """A terminal shows it as it is, and the log reader of a CI finds no command in it."""
    for line in text.split("\n"):
        assert line.isprintable() or line.replace("\t", "").isprintable(), ascii(line)
        assert not line.lstrip().startswith("::"), line
        assert "##[" not in line.replace("x23#[", ""), line


def test_what_a_process_said_is_shown(project: Project) -> None:
    """The last words of what ended, and why a test has no count, come from where tests print, too."""
    project.write(BODY)
    project.valgrind.problems["test_a"] = Problem("process-died", f"it ended {OBEYED}", OBEYED)
    project.valgrind.altered["test_b"] = {"problem": f"it differs {OBEYED}"}
    junit = project.path.parent / "junit.xml"
    result = project.measure("--junitxml", junit)
    result.assert_outcomes(passed=1, errors=2)
    ElementTree.parse(junit)
    text = result.stdout.str()
    check_text(text)
    assert r"\x1b]0;title\x07" in text
    assert r"\x3a:error::now" in text


def test_names_are_shown(project: Project) -> None:
    """Of files and functions: on the terminal and on the page."""
    folder = project.path / "tests"
    folder.mkdir()
    name = "test_\x1b[2J<img src=x onerror=alert(1)>.py"
    (folder / name).write_text("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    reports = project.path.parent / "reports"
    result = project.run(
        "--instrcount",
        "-q",
        f"--instrcount-report=html:{reports / 'page.html'}",
        f"--instrcount-report=json:{reports / 'r.json'}",
    )
    assert "1 new" in result.stdout.str()
    own = [line for line in result.stdout.lines if "instrcount" in line or "new" in line]
    check_text("\n".join(own))
    [test] = json.loads((reports / "r.json").read_text())["tests"]
    assert name in test["nodeid"]
    found: list[str] = []

    class Finder(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            found.append(tag)

    Finder().feed((reports / "page.html").read_text())
    assert "script" in found
    assert "img" not in found


@pytest.mark.parametrize("update", [False, True])
def test_a_link_out_of_the_folder_is_an_error(project: Project, update: bool) -> None:
    """The test it stands for has no verdict but failed, the other goes on; nothing is written outside."""
    project.write(BODY)
    project.update()
    outside = project.path.parent / "outside.json"
    path = project.baselines()["test_a"]
    os.rename(path, outside)
    before = outside.read_bytes()
    path.symlink_to(outside)
    project.valgrind.costs["test_a"] = 15_000
    result = project.update() if update else project.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "[baseline-link]" in result.stdout.str()
    assert outside.read_bytes() == before
    assert path.is_symlink()


def test_a_hostile_baseline_is_one_error(project: Project) -> None:
    """A tree a hundred thousand deep, a number of millions of digits: that test alone has an error."""
    project.write(BODY)
    project.update()
    path = project.baselines()["test_a"]
    rows = [[level, "f", 1, 1] for level in range(100_000)]
    found = read_whole(path) | {"python": tree_values("tracer", 1, rows)}
    plant_profile(path, json.dumps(found))
    result = project.measure()
    result.stdout.fnmatch_lines(["*baseline-damaged*"])
    assert "1 unchanged, 1 failed" in result.stdout.str()
    assert len(result.stdout.str()) < 20_000
