"""``--instrcount-keep``: which files a run leaves, what is in them, and what cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Row
from tests.plugin.conftest import CALLS, TWO_TESTS, FakeValgrind, Project


@pytest.fixture
def suite(project: Project) -> Project:
    """Two tests in a folder, with baselines of 10,000 each."""
    project.pytester.mkdir("tests").joinpath("test_it.py").write_text(TWO_TESTS)
    project.valgrind.python["test_a"] = {"tests/test_it.py:test_a": (10_000, 1)}
    project.update().assert_outcomes(passed=2)
    return project


def kept(project: Project) -> dict[str, Path]:
    """The files that were kept, without the hash in their names."""
    found = {}
    for path in sorted(project.path.glob("kept/**/*")):
        if path.is_file():
            name, _, rest = str(path.relative_to(project.path / "kept")).rpartition("-")
            found[name + rest[8:]] = path
    return found


def test_each_measured_test_leaves_its_profile(suite: Project) -> None:
    """Nothing else, and nothing but that; the baselines are as they were."""
    before = suite.tree()
    result = suite.measure("--instrcount-keep=kept")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["profiles of 2 tests are in kept, for kcachegrind and callgrind_annotate"]
    )
    files = kept(suite)
    assert list(files) == [f"tests/test_it/test_{each}.callgrind.out" for each in "ab"]
    assert len(suite.tree() - before) == 2 + len(("kept", "kept/tests", "kept/tests/test_it"))
    path = files["tests/test_it/test_a.callgrind.out"]
    profile = parse_profile(path)
    # the switch is left in it
    assert profile.total == CALLS * (10_000 + 7)
    assert profile.rows["work.c:work"] == Row(CALLS * 7_500, CALLS)
    head = path.read_text().splitlines()[:7]
    assert "cmd: tests/test_it.py::test_a" in head
    assert "desc: Counted: 3 calls of the test, all costs are their sum" in head


def test_a_failure_has_both_sides(suite: Project) -> None:
    """The text names both; what it is made of by Python function is there for both, too."""
    valgrind: FakeValgrind = suite.valgrind
    valgrind.costs["test_a"] = 20_000
    valgrind.python["test_a"] = {"tests/test_it.py:test_a": (20_000, 1)}
    result = suite.measure("--instrcount-keep=kept")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "+100 % (limit 1 %): test_a test_it.py:4, its own code",
            "  test_a: Ir 10,000 -> 20,000",
            "  profile now:    kept/tests/test_it/test_a-*.callgrind.out",
            "  profile before: kept/tests/test_it/test_a-*.baseline.callgrind.out",
            "  accept: pytest --instrcount-update-baseline tests/test_it.py::test_a",
        ]
    )
    files = kept(suite)
    assert list(files) == [
        "tests/test_it/test_a.baseline.callgrind.out",
        "tests/test_it/test_a.baseline.python.callgrind.out",
        "tests/test_it/test_a.callgrind.out",
        "tests/test_it/test_a.python.callgrind.out",
        "tests/test_it/test_b.callgrind.out",
    ]
    a = "tests/test_it/test_a"
    assert parse_profile(files[f"{a}.baseline.callgrind.out"]).total == CALLS * 10_000
    for suffix, ir in (("", 20_000), (".baseline", 10_000)):
        profile = parse_profile(files[f"{a}{suffix}.python.callgrind.out"])
        assert profile.inclusive == {"test_it.py:test_a": CALLS * ir}
    # the function is in one file for both, where its source is
    assert f" {suite.path}/tests/test_it.py\n" in files[f"{a}.python.callgrind.out"].read_text()
    assert f" {suite.path}/tests/test_it.py\n" in (
        files[f"{a}.baseline.python.callgrind.out"].read_text()
    )


def test_what_is_kept_is_of_the_last_run_of_a_test(suite: Project) -> None:
    """A test that was not run keeps its files; one that was has no old side of another run."""
    suite.valgrind.costs |= {"test_a": 20_000, "test_b": 20_000}
    suite.measure("--instrcount-keep=kept").assert_outcomes(passed=2, failed=2)
    before = {path: path.read_bytes() for path in kept(suite).values()}
    assert len(before) == 8
    suite.valgrind.costs |= {"test_a": 10_000, "test_b": 10_000}
    suite.measure("--instrcount-keep=kept", "-k", "test_b").assert_outcomes(passed=1, deselected=1)
    after = {path: path.read_bytes() for path in kept(suite).values()}
    assert len(after) == 5
    assert {path for path in after if after[path] == before[path]} == {
        path for path in before if path.name.startswith("test_a-")
    }


@pytest.mark.parametrize("given", ["tox.ini", "tox.ini/below", ""])
def test_a_folder_that_cannot_be_is_told_at_once(suite: Project, given: str) -> None:
    """Before anything is measured, with what to type."""
    started = len(suite.valgrind.started)
    result = suite.measure(f"--instrcount-keep={given}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    if given:
        result.stderr.fnmatch_lines(
            [
                "ERROR: instrcount: profiles cannot be kept in *: * [[]keep-write]",
                "  fix: pytest --instrcount --instrcount-keep=DIR with a DIR you may write to",
            ]
        )
    else:
        result.stderr.fnmatch_lines(["--instrcount-keep=: write the name of a folder"])
    assert len(suite.valgrind.started) == started


def test_a_file_that_cannot_be_is_told_at_the_end(suite: Project) -> None:
    """The verdicts are none the worse; no half of a file is left."""
    (suite.path / "kept").mkdir()
    (suite.path / "kept" / "tests").write_text("in the way")
    suite.valgrind.costs["test_a"] = 20_000
    result = suite.measure("--instrcount-keep=kept")
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: instrcount: profiles cannot be kept in */kept/tests/*"])
    assert "profile now" not in result.stdout.str()
    assert list(suite.path.glob("kept/*")) == [suite.path / "kept" / "tests"]


def test_nothing_is_kept_without_measuring(suite: Project) -> None:
    """The option alone does not measure, and makes no folder."""
    suite.run("--instrcount-keep=kept").assert_outcomes(passed=2)
    suite.measure("--instrcount-keep=kept", "--collect-only")
    assert not (suite.path / "kept").exists()


@pytest.mark.parametrize("answer", [{"counted": None, "dumps": []}, {"dumps": []}])
def test_a_test_that_is_not_counted_leaves_nothing(
    suite: Project, answer: dict[str, object]
) -> None:
    """Neither does it disturb what is there."""
    suite.valgrind.altered["test_a"] = answer
    suite.measure("--instrcount-keep=kept").assert_outcomes(passed=2, errors=1)
    assert list(kept(suite)) == ["tests/test_it/test_b.callgrind.out"]
