"""Baselines whose profiles are not there: totals are compared, and an update restores them."""

from __future__ import annotations

import pytest

from tests.baselines import read_whole
from tests.plugin.conftest import TREE, TWO_TESTS, Project

REMARK = (
    "the baseline's profile is missing or damaged, so only totals were compared, which detect less"
)
FIX = "  fix: pytest --instrcount-update-baseline test_it.py::test_a test_it.py::test_b"
SAID = f"{REMARK}: test_it.py::test_a, test_it.py::test_b"


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two tests, of which layouts move one by 1 %, without profiles; in CI from then on."""
    project.write(TWO_TESTS)
    work, memory = "work.c:work", "obmalloc.c:PyObject_Malloc"
    project.valgrind.costs["test_a"] = {work: 9_000, memory: 1_000}
    project.valgrind.again["test_a"] = [
        {work: 9_000, memory: 1_000 + more} for more in (0, 50, -50, 0)
    ]
    project.valgrind.python |= {"test_a": TREE, "test_b": TREE}
    project.update()
    for profile in profiles(project):
        (project.path / profile).unlink()
    monkeypatch.setenv("CI", "1")
    return project


def words(result: pytest.RunResult) -> str:
    """What was printed, whatever the width."""
    return " ".join(result.stdout.str().split())


def profiles(project: Project) -> list[str]:
    return sorted(name for name in project.tree() if name.endswith(".profile.gz"))


def test_it_is_compared_and_said(suite: Project) -> None:
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK
    assert f"{SAID} {FIX.strip()}" in words(result)
    assert FIX in result.outlines
    first, second = suite.report()["tests"]
    assert first["delta"] == second["delta"] == 0
    assert first["detects"] > 0.0125 > 0.001 > second["detects"]
    assert first["remarks"] == [REMARK]
    page = suite.outside / "page.md"
    suite.measure(f"--instrcount-report=markdown:{page}")
    assert FIX in page.read_text().splitlines()


@pytest.mark.parametrize(("grown", "verdict"), [(100, "unchanged"), (150, "regressed")])
def test_what_leaves_the_range_of_the_totals_is_growth(
    suite: Project, grown: int, verdict: str
) -> None:
    """Within it any of the test might be noise; the other test has no such range."""
    suite.valgrind.costs |= {
        "test_a": {"work.c:work": 9_000 + grown, "obmalloc.c:PyObject_Malloc": 1_000},
        "test_b": 10_150,
    }
    suite.valgrind.again.clear()
    assert suite.verdicts() == {"test_a": verdict, "test_b": "regressed"}
    suite.measure().stdout.fnmatch_lines(
        ["+1.5 % (limit 1 %): Ir 10,000 -> 10,150", "  test_b: Ir 10,000 -> 10,150", "  accept: *"]
    )


@pytest.mark.parametrize("policy", ["changed", "all", "missing", "failing"])
def test_an_update_restores_it(suite: Project, policy: str) -> None:
    """With any policy; the count that was accepted is the count that is stored."""
    before = suite.baseline_ir()
    suite.update(f"--instrcount-update-policy={policy}").stdout.fnmatch_lines(
        ["*2 baselines written to *"]
    )
    assert len(profiles(suite)) == 2
    assert suite.baseline_ir() == before
    assert read_whole(suite.baselines()["test_a"])["python"]["how"] == "trampolines"
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK and "profile is" not in result.stdout.str()


def test_another_environment_is_known_by_its_hash(suite: Project) -> None:
    suite.valgrind.version = "3.99.0"
    result = suite.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*hash of all facts: * -> *"])


def test_prune_deletes_profiles_that_no_summary_names(suite: Project) -> None:
    """Those of a branch that was merged, not those that are used."""
    suite.update()
    (first, _) = used = profiles(suite)
    other = suite.path / first.replace(first.split(".")[-3], "0123456789ab")
    other.write_bytes(b"")
    assert f"/{other.name}" in words(suite.measure("--instrcount-prune"))
    assert profiles(suite) == used


def test_the_fix_stores_no_other_test(suite: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the run did not show is not accepted by it, and tests are named as they are typed here."""
    monkeypatch.setenv("COLUMNS", "40")
    (suite.path / "below").mkdir()
    monkeypatch.chdir(suite.path / "below")
    result = suite.measure("..", "-k", "test_b")
    fix = "  fix: pytest --instrcount-update-baseline ../test_it.py::test_b"
    assert fix in result.outlines
