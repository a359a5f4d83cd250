"""What ``--instrcount-report`` writes beside JSON: the page, speedscope's file, folded stacks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.baselines import plant, read_whole
from tests.plugin.conftest import DEARER_TREE, TREE, TWO_TESTS, Project
from tests.schemas import complaints

SPEEDSCOPE = Path(__file__).parents[1] / "data" / "trace" / "speedscope-schema.json"


@pytest.fixture
def suite(project: Project) -> Project:
    """Two tests with baselines, of which one is twice as dear now."""
    project.write(TWO_TESTS)
    project.write(shop="def f(): pass")
    project.valgrind.python["test_a"] = TREE
    project.update().assert_outcomes(passed=2)
    project.valgrind.python["test_a"] = DEARER_TREE
    project.valgrind.costs["test_a"] = 20_000
    return project


def written(project: Project, kind: str, *args: str) -> str:
    path = project.outside / f"report.{kind}"
    project.measure(f"--instrcount-report={kind}:{path}", *args)
    return path.read_text()


def blocks(page: str) -> dict[str, Any]:
    """The data in a page, by its place."""
    found = re.findall(
        r'<script type="application/json" id="([^"]+)">(.*?)</script>', page, re.DOTALL
    )
    return {name: json.loads(text) for name, text in found}


def test_page(suite: Project) -> None:
    """Old and new trees of what regressed; of the other the baseline's, and the page says so."""
    found = blocks(written(suite, "html"))
    assert [each["verdict"] for each in found["run"]["tests"]] == ["regressed", "unchanged"]
    assert found["run"]["environment"]["valgrind"] == "3.19.0"
    changed, same = found["test-0"]["python"], found["test-1"]["python"]
    assert changed["functions"][0]["name"] == "test_a"
    assert changed["functions"][0]["self_delta"] == 9_900
    names = changed["names"]
    assert names == ["test_a (test_it.py)", "f (shop.py)"]
    assert changed["old"] == [0, 0, 100, 1, 1, 1, 9_900, 10]
    assert changed["new"] == [0, 0, 100, 1, 1, 1, 19_800, 20]
    assert same["from_baseline"] is True
    assert same["old"] is None
    assert same["new"] == [0, 0, 10_000, 1]


def test_page_without_trees(suite: Project) -> None:
    """It says how to have them."""
    for path in suite.baselines().values():
        plant(path, {**read_whole(path), "python": None})
    found = blocks(written(suite, "html", "--instrcount-blame=off"))
    assert found["test-0"]["python"] is None
    assert "--instrcount" in found["test-0"]["no_python"]


def test_speedscope(suite: Project) -> None:
    """A profile for each test; the file passes speedscope's schema."""
    found = json.loads(written(suite, "speedscope"))
    assert complaints(found, json.loads(SPEEDSCOPE.read_text())) == []
    assert [each["name"].partition(" (")[0] for each in found["profiles"]] == [
        "test_it.py::test_a",
        "test_it.py::test_b",
    ]
    assert [each["endValue"] for each in found["profiles"]] == [19_900, 10_000]
    assert {frame["name"] for frame in found["shared"]["frames"]} == {"test_a", "test_b", "f"}


def test_collapsed(suite: Project) -> None:
    """A line for each stack, per call of the test."""
    assert written(suite, "collapsed").splitlines() == [
        "test_it.py::test_a;test_a (test_it.py) 100",
        "test_it.py::test_a;test_a (test_it.py);f (shop.py) 19800",
        "test_it.py::test_b;test_b (test_it.py) 10000",
    ]


@pytest.mark.parametrize("kind", ["html", "speedscope", "collapsed"])
def test_reports_of_nothing(project: Project, kind: str) -> None:
    """A run that measured nothing writes a whole file all the same."""
    project.write("def test_native(): pass")
    path = project.outside / "report"
    result = project.measure(f"--instrcount-report={kind}:{path}")
    assert result.ret == 0
    assert path.exists()


@pytest.mark.parametrize("kind", ["html", "speedscope", "collapsed"])
def test_reports_that_cannot_be_written(suite: Project, kind: str) -> None:
    """A file in the way of its folder: an error with a command, and nothing beside it."""
    (suite.outside / "report").write_text("")
    result = suite.measure(f"--instrcount-report={kind}:{suite.outside / 'report' / 'new'}")
    result.stderr.fnmatch_lines(
        ["*cannot be written: *[[]report-write]", f"  fix: *--instrcount-report={kind}:PATH*"]
    )
    assert [each.name for each in suite.outside.iterdir()] == ["report"]


def test_markdown(suite: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table and the text of the failure, in a file of its own and in that of others."""
    summary = suite.outside / "summary.md"
    summary.write_text("# mine\n")
    text = written(suite, "markdown", f"--instrcount-report=markdown-append:{summary}")
    assert text.startswith("### instrcount: 1 unchanged, 1 regressed\n")
    assert (
        "| `test_it.py::test_a` | 10,000 | 20,000 | +100\xa0% | +1\xa0% | **regressed**, " in text
    )
    assert "    100 %  test_it.py:3 test_a\n" in text
    assert summary.read_text() == f"# mine\n\n{text}"


@pytest.mark.parametrize(
    ("option", "name"),
    [
        (option, name)
        for option in (
            "--instrcount-report=json:",
            "--instrcount-report=html:",
            "--instrcount-report=markdown:",
            "--instrcount-report=markdown-append:",
            "--instrcount-report=speedscope:",
            "--instrcount-report=collapsed:",
            "--instrcount-timings-csv=",
        )
        for name in ("test_it.py", "link.json", "tox.ini", "folder", "data.txt")
    ],
)
def test_what_a_run_reads_is_not_written_over(project: Project, option: str, name: str) -> None:
    """Refused before the first test: a test file, a link to one, the ini file, a file of doctests."""
    project.write(TWO_TESTS + "\ndef test_ran(): open('ran', 'w').close()\n")
    (project.path / "tox.ini").write_text("[pytest]\n")
    (project.path / "pytest.ini").unlink(missing_ok=True)
    (project.path / "folder").mkdir()
    (project.path / "link.json").symlink_to("test_it.py")
    (project.path / "data.txt").write_text(">>> 1\n1\n")
    before = {path: path.read_bytes() for path in project.path.iterdir() if path.is_file()}
    result = project.measure("--doctest-glob=data.txt", f"{option}{name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{name}: *; write another path"])
    after = {path: path.read_bytes() for path in project.path.iterdir() if path.is_file()}
    assert after == before


@pytest.mark.parametrize("selected", [("-k", "nothing"), ("--instrcount-only",)])
def test_a_file_without_selected_tests_is_not_written_over(
    project: Project, selected: tuple[str, ...]
) -> None:
    """It was collected all the same."""
    project.write(TWO_TESTS)
    data = project.path / "data.txt"
    data.write_text(">>> 1\n1\n")
    report = "--instrcount-report=json:data.txt"
    result = project.measure("--doctest-glob=data.txt", report, *selected)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert data.read_text() == ">>> 1\n1\n"


@pytest.mark.parametrize("what", ["bundle", "keep", "csv", "json"])
def test_links_and_devices_stay(project: Project, what: str) -> None:
    """Every output follows a link, and writes to what is no file."""
    target, link = project.outside / "target.json", project.path / "link.json"
    link.symlink_to(target)
    project.write("import pytest\n@pytest.mark.instrcount(max_ir=1)\ndef test_a(): pass\n")
    option = {
        "bundle": f"--instrcount-bundle={link}",
        "keep": f"--instrcount-keep={project.path / 'kept'}",
        "csv": f"--instrcount-timings-csv={link}",
        "json": f"--instrcount-report=json:{link}",
    }[what]
    project.update()
    project.valgrind.costs["test_a"] = 50_000
    if what == "keep":  # one that was kept before became a link
        project.measure(option)
        kept = next(
            each
            for each in project.path.glob("kept/**/*.callgrind.out")
            if "baseline" not in each.name and "python" not in each.name
        )
        kept.rename(target)
        kept.symlink_to(target)
        link = kept
        target.write_bytes(b"")
    project.measure(option)
    assert link.is_symlink()
    assert target.stat().st_size
