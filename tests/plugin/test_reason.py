"""``--instrcount-reason``: the ledger in the baselines, the cap, and what an update prints."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests.baselines import read_whole
from tests.plugin.conftest import TWO_TESTS, Project


@pytest.fixture
def suite(project: Project) -> Project:
    """Two tests with baselines of 10,000; the first costs 20 % more now, the second as before."""
    project.write(TWO_TESTS)
    project.update()
    project.valgrind.costs["test_a"] = 12_000
    return project


def stored(project: Project, name: str) -> dict[str, Any]:
    return read_whole(project.baselines()[name])


def test_the_ledger(suite: Project) -> None:
    """Old, new and why, one entry per change; what did not change has none."""
    suite.update("--instrcount-reason= more \n work").assert_outcomes(passed=2)
    assert stored(suite, "test_b")["ledger"] == []
    entry = {"old": 10_000, "new": 12_000, "reason": "more work", "commit": ""}
    assert stored(suite, "test_a")["ledger"] == [entry]
    before = suite.baselines()["test_a"].read_text()
    suite.update("--instrcount-reason=again")
    assert suite.baselines()["test_a"].read_text() == before
    suite.valgrind.costs["test_a"] = 13_000
    suite.update()
    assert stored(suite, "test_a")["ledger"] == [entry]
    assert stored(suite, "test_a")["ir"] == 13_000
    assert suite.measure().ret == pytest.ExitCode.OK


def test_the_commit(suite: Project) -> None:
    """That which is checked out, as git names it shortly."""
    for words in (
        ("init", "-q"),
        ("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "m"),
    ):
        subprocess.run(["git", *words], cwd=suite.path, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=suite.path, check=True, capture_output=True, text=True
    ).stdout
    suite.update("--instrcount-reason=why")
    assert stored(suite, "test_a")["ledger"][0]["commit"] == head[:12]


def test_what_is_printed(suite: Project) -> None:
    """A list for the pull request: of what moved, with the reason."""
    suite.write(TWO_TESTS + "\n@pytest.mark.instrcount\ndef test_new(): pass\n")
    result = suite.update("--instrcount-reason=more work")
    result.stdout.fnmatch_lines(
        [
            "instrcount: * baselines written to *",
            "",
            "Accepted instruction counts: more work",
            "",
            "- `test_it.py::test_a`: 10,000 -> 12,000 (+20 %)",
            "- 1 new",
        ],
        consecutive=True,
    )
    again = suite.update()
    assert "Accepted" not in again.stdout.str()
    suite.valgrind.costs["test_a"] = 13_000
    assert "Accepted" not in suite.update("-q").stdout.str()
    suite.valgrind.costs["test_a"] = 14_000
    suite.update().stdout.fnmatch_lines(["Accepted * (no reason given: --instrcount-reason)"])


CAP = "--instrcount-reason-above=5%"


@pytest.mark.parametrize("ir", [12_000, 8_000])
def test_a_jump_needs_a_reason(suite: Project, ir: int) -> None:
    """Either way; nothing is stored without one, not the tests that moved less either."""
    suite.valgrind.costs |= {"test_a": ir, "test_b": 10_300}
    before = {name: path.read_text() for name, path in suite.baselines().items()}
    result = suite.update(CAP)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: instrcount: nothing was stored: 1 test would move by more than 5 %, "
            f"test_a by {'+' if ir > 10_000 else '-'}20 %, and no reason is given [[]reason]",
            "  fix: pytest --instrcount-update-baseline* --instrcount-reason='why'",
        ]
    )
    assert {name: path.read_text() for name, path in suite.baselines().items()} == before
    assert suite.update(CAP, "--instrcount-reason=why").ret == pytest.ExitCode.OK
    assert suite.baseline_ir() == {"test_a": ir, "test_b": 10_300}


def test_what_needs_none(suite: Project) -> None:
    """A move up to the cap, a new test, a baseline of another environment, a policy that leaves it."""
    suite.write(TWO_TESTS + "\n@pytest.mark.instrcount\ndef test_new(): pass\n")
    assert suite.update(CAP, "--instrcount-update-policy=missing").ret == 1  # it regressed
    assert "test_new" in suite.baselines()
    suite.valgrind.costs["test_a"] = 10_500
    assert suite.update(CAP).ret == pytest.ExitCode.OK
    suite.valgrind.costs["test_a"] = 20_000
    suite.valgrind.version = "3.20.0"
    assert suite.update(CAP).ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--instrcount", "--instrcount-reason=x"), "*give it with --instrcount-update-baseline"),
        (("--instrcount-update-baseline", "--instrcount-reason="), "*write why, in 1 to 200 *"),
        (("--instrcount", "--instrcount-reason-above=5ir"), "*write a share of the count, like 5%"),
        (("--instrcount", "--instrcount-reason-above=x"), "*instrcount_reason_above = 'x': *"),
    ],
)
def test_settings_that_are_wrong(suite: Project, args: tuple[str, ...], said: str) -> None:
    result = suite.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_the_age_is_said_by_a_check(suite: Project) -> None:
    """Not by the update: what it stores is new."""

    def commit(subject: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgSign=false")
        for words in (
            ("init", "-q"),
            ("add", "."),
            (*who, "commit", "-qm", subject, "--allow-empty"),
        ):
            subprocess.run(["git", *words], cwd=suite.path, check=True)

    suite.update()
    commit("baselines")
    said = "the baselines were last changed 1 commit ago ("
    assert said not in suite.measure().stdout.str()
    commit("something else")
    assert said in suite.measure().stdout.str()
    assert said not in suite.update().stdout.str()
