"""--instrcount-timings, its CSV and the debug folder, in runs without Valgrind."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pytest_instrcount.callgrind.zygote import Problem
from pytest_instrcount.host.account import current as book
from pytest_instrcount.host.account import get_records
from pytest_instrcount.host.account.debug import LOG
from tests.plugin.conftest import Project

TESTS = """
    import time
    import pytest

    @pytest.mark.instrcount
    def test_a(): pass

    @pytest.mark.instrcount
    def test_b(): pass

    def test_native(): time.sleep(0.05)
    """


def test_the_table_is_the_end_of_the_run(project: Project) -> None:
    """After pytest's last line: phases, counters, records, what to change."""
    project.write(TESTS)
    result = project.update("--instrcount-timings")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "*3 passed*",
            "*- instrcount timings -*",
            "phase * wall * share * all processes * times",
            "tests, natively * s * % * s * 1",
            "explained: * % of * s",
            "asked: 2 by Python function, 2 first counts, 8 layouts",
            "first counts: 2 new",
            "verdicts: 2 new",
            "records: 2 of 2 kept",
            "most of it: *",
            "  change: *",
        ]
    )
    assert [record.nodeid for record in get_records()] == [
        "test_it.py::test_a",
        "test_it.py::test_b",
    ]
    assert {(record.ir, record.verdict, record.calls) for record in get_records()} == {
        (10_000, "new", 3)
    }


def test_nothing_is_said_unless_it_is_asked_for(project: Project) -> None:
    """Nor is it without --instrcount."""
    project.write(TESTS)
    assert "timings" not in project.measure().stdout.str()
    assert "timings -" not in project.run("--instrcount-timings").stdout.str()


def test_csv(project: Project) -> None:
    """By phase and function, where pytest was started; it adds up to the wall time."""
    project.write(TESTS)
    project.measure("--instrcount-timings-csv=folder/t.csv")
    with (project.path / "folder/t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    functions = {(row["phase"], row["function"]) for row in rows}
    assert {("parse", "read_profile"), ("compare", "Findings.rule")} <= functions
    (native,) = (row for row in rows if row["phase"] == "tests, natively")
    assert float(native["wall_seconds"]) >= 0.05


def test_a_csv_that_cannot_be_written(project: Project) -> None:
    """All is told first; then exit 4."""
    project.write(TESTS)
    (project.path / "file").write_text("")
    result = project.measure("--instrcount-timings-csv=file/t.csv")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["instrcount: 2 new", "*3 passed*"])
    result.stderr.fnmatch_lines(["*t.csv: * [[]timings-write]", "  fix: *"])


@pytest.mark.parametrize("option", ["timings-csv", "debug"])
def test_a_name_that_is_none(project: Project, option: str) -> None:
    project.write(TESTS)
    result = project.measure(f"--instrcount-{option}=")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"--instrcount-{option}=: write the name of a *"])


def debug_folders(project: Project) -> list[Path]:
    return sorted((project.path / "debug").iterdir())


def test_the_debug_folder(project: Project) -> None:
    """One for each run, with a log, the timings, and a record of each failed measurement."""
    project.write(TESTS)
    project.valgrind.problems["test_a"] = Problem("timeout", "it did not end", "where it was")
    project.valgrind.altered["test_b"] = {"dumps": []}
    before = list(LOG.handlers)
    for _ in range(2):
        project.measure("--instrcount-debug=debug").assert_outcomes(passed=2, errors=2)
    assert LOG.handlers == before
    folders = debug_folders(project)
    assert len(folders) == 2
    for folder in folders:
        assert (
            "pytest --instrcount --instrcount-debug=debug"
            in (folder / "instrcount.log").read_text()
        )
        assert (folder / "timings.csv").read_text().startswith("phase,function,worker")
        found = {path.name: json.loads(path.read_text()) for path in (folder / "failed").iterdir()}
        assert sorted(found) == ["test_it.py__test_a.json", "test_it.py__test_b.json"]
        timeout = found["test_it.py__test_a.json"]
        assert (timeout["problem"], timeout["why"]) == ("timeout", "it did not end [timeout]")
        assert "where it was" in timeout["detail"]
        assert found["test_it.py__test_b.json"]["problem"] == "no-dump"


def test_logging_is_left_alone_by_a_run_that_ends_early(project: Project) -> None:
    """Wrong markers, or no Valgrind: the handler is gone, too."""
    project.write(TESTS.replace("instrcount\n", "instrcount(speed=1)\n"))
    before = list(LOG.handlers)
    result = project.measure("--instrcount-debug=debug")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert debug_folders(project)
    assert LOG.handlers == before
    assert book.current() is None


def test_a_debug_folder_that_cannot_be_made(project: Project) -> None:
    """Before anything is measured."""
    project.write(TESTS)
    (project.path / "debug").write_text("a file")
    result = project.measure("--instrcount-debug=debug")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*[[]debug-write]", "  fix: *"])
    assert project.valgrind.looked_for == 0


def test_a_limit_of_records(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set in a conftest, it holds; the end says how to keep all."""
    monkeypatch.setattr(book, "_limit", 64)
    project.write(
        TESTS,
        conftest="""
        from pytest_instrcount.host.account import set_record_limit
        def pytest_sessionstart(): set_record_limit(1)
        """,
    )
    result = project.measure("--instrcount-timings")
    result.stdout.fnmatch_lines(
        ["records: 1 of 2 kept", "  change: pytest_instrcount.host.account.set_record_limit(2) *"]
    )
    assert [record.nodeid for record in get_records()] == ["test_it.py::test_b"]


def test_the_page(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its example runs in a conftest, and reads what there is."""
    monkeypatch.setattr(book, "_limit", 64)
    page = (Path(__file__).parents[2] / "docs/reference/account.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0].replace("\n", "\n    ")
    conftest = f"def pytest_instrcount_summary():\n    {code}"
    project.write(TESTS, conftest=conftest)
    result = project.measure("-s")
    result.stdout.fnmatch_lines(["*test_it.py::test_a 10000 new {*", "*'verdicts': {'new': 2}*"])
    assert get_records() == []
