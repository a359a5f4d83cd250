"""Tests that fail, skip or are expected to fail: no verdict, no baseline, pytest's own outcome."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.plugin.conftest import Project

NOT_PASSED = """
import pytest
pytestmark = pytest.mark.instrcount

def test_fails(): assert 1 == 2, "why"

def test_skips(): pytest.skip("here")

@pytest.mark.skip(reason="marked")
def test_marked_skip(): pass

@pytest.mark.xfail
def test_xfails(): assert 0

@pytest.mark.xfail
def test_xpasses(): pass

@pytest.fixture
def broken(): raise OSError("set-up")

def test_setup(broken): pass

@pytest.fixture
def breaks():
    yield
    raise OSError("tear-down")

def test_teardown(breaks): pass

@pytest.mark.xfail(strict=True)
def test_strict(): pass
"""


def test_no_verdict_and_no_baseline(project: Project) -> None:
    """What did not simply pass is not compared and not in the report; an update stores what passed."""
    project.write(NOT_PASSED)
    outcomes = {"failed": 2, "skipped": 2, "xfailed": 1, "xpassed": 1, "errors": 2, "passed": 1}
    project.measure().assert_outcomes(**outcomes)
    assert project.verdicts() == {}
    project.update().assert_outcomes(**outcomes)
    assert project.verdicts() == {"test_xpasses": "unchanged"}


def test_outcomes_are_those_of_a_native_run(project: Project) -> None:
    """Letters, summary lines and reasons are the same with and without measuring."""
    project.write(NOT_PASSED)

    def said(*args: str) -> list[str]:
        lines = project.run("-ra", "--tb=short", *args).stdout.lines
        start = next(n for n, line in enumerate(lines) if line.startswith("test_it.py"))
        timeless = [re.sub(r"=* in [0-9.]+s.*| =+$|^=+ ", "", line) for line in lines[start:]]
        return [line for line in timeless if "instrcount" not in line and line]

    assert said("--instrcount") == said()


COUNTED = """
import pytest

def test_asserts(instrcount):
    assert instrcount(sum, [1]) == 2

def test_skips(instrcount):
    instrcount(sum, [1])
    pytest.skip("after it was counted")

@pytest.mark.xfail
def test_xfails(instrcount):
    instrcount(sum, [1])
    assert 0

@pytest.mark.xfail
def test_xpasses(instrcount):
    instrcount(sum, [1])

@pytest.fixture
def breaks():
    yield
    raise OSError("tear-down")

def test_teardown(instrcount, breaks):
    instrcount(sum, [1])
"""


def test_counted_and_then_failed(project: Project) -> None:
    """The call was counted before the test failed: still no verdict, and nothing of it is stored."""
    project.write(COUNTED)
    outcomes = {"failed": 1, "skipped": 1, "xfailed": 1, "xpassed": 1, "errors": 1, "passed": 1}
    project.update().assert_outcomes(**outcomes)
    assert project.verdicts() == {"test_xpasses": "unchanged"}


@pytest.mark.parametrize(
    "altered", [{"problem": "it failed when it was repeated"}, {"counted": None}]
)
def test_failed_and_not_counted(project: Project, altered: dict[str, Any]) -> None:
    """A test that failed has its own failure and no second one about its count."""
    project.write("def test_a(instrcount):\n    assert instrcount(sum, [1]) == 2\n")
    project.valgrind.altered["test_a"] = altered
    project.measure().assert_outcomes(failed=1)


def test_a_failure_for_want_of_a_port_says_how_to_be_alone(project: Project) -> None:
    """Another test that is measured beside it may have what its fixture takes."""
    project.write(
        """
        import errno, os, pytest
        @pytest.fixture(scope="session")
        def server(): raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        def test_a(instrcount): assert instrcount(sum, [1]) == 2
        def test_b(instrcount, server): pass
        """
    )
    result = project.measure()
    result.assert_outcomes(failed=1, errors=1)
    (line,) = (line for line in result.outlines if line.startswith("several tests"))
    assert line.endswith("; one alone: taskset -c 0 pytest --instrcount test_it.py::test_b")


def test_a_regression_hides_no_failure(project: Project) -> None:
    """A test that regressed last time and fails now has its failure alone, and keeps its baseline."""
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    project.update()
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): assert 'x' == 'longer'\n")
    project.valgrind.usual = 20_000
    project.update().assert_outcomes(failed=1)
    assert project.baseline_ir() == {"test_a": 10_000}
    project.measure().stdout.fnmatch_lines(["E * assert 'x' == 'longer'"])


def test_a_gate_in_ci_without_a_test_of_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update would store nothing either."""
    monkeypatch.setenv("CI", "1")
    project.write("def test_a(): pass")
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["  fix: pytest without --instrcount: no test with a marker *"])


def test_a_gate_in_ci_needs_a_comparison(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI set and nothing compared: exit 4 with the command, also where all tests were skipped."""
    monkeypatch.setenv("CI", "1")
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pytest.skip()\n")
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(skipped=1)
    result.stderr.fnmatch_lines(
        [
            "*instrcount: this run compared no test with a baseline, and CI is set "
            "[[]nothing-compared]",
            "  fix: pytest --instrcount-update-baseline",
        ]
    )


@pytest.mark.parametrize(
    ("text", "args", "ret"),
    [
        ("def test_native(): pass", (), 4),
        ("def test_native(): assert 0", (), 1),
        ("def test_native(): pass", ("--instrcount-update-baseline",), 0),
        ("def test_native(): pass", ("--instrcount-prune",), 0),
        ("def test_native(): pass", ("--co",), 0),
        ("def test_a(instrcount): instrcount(int)", ("--instrcount-missing=note",), 4),
        ("def test_a(instrcount): instrcount(int)", ("--instrcount-update-baseline",), 0),
    ],
)
def test_what_is_a_gate_in_ci(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    args: tuple[str, ...],
    ret: int,
) -> None:
    """An update, a prune and a collection are none; a run that failed has its own status."""
    monkeypatch.setenv("CI", "true")
    project.write(text)
    assert project.measure(*args).ret == ret


def test_incomparable_is_no_comparison(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI with baselines of another Valgrind alone: nothing was gated, and that is said."""
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    project.update()
    monkeypatch.setenv("CI", "true")
    assert project.measure().ret == pytest.ExitCode.OK
    project.valgrind.version = "3.24.0"
    assert project.measure().ret == pytest.ExitCode.TESTS_FAILED
    args = "--instrcount-incomparable=warn"
    assert project.measure(args).ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("plugin", ["capture", "debugging", "setuponly", "setupplan", "logging"])
def test_without_one_of_pytests_own_plugins(project: Project, plugin: str) -> None:
    """Its options are not there then."""
    project.write(COUNTED)
    result = project.measure("-p", f"no:{plugin}", "-k", "not teardown")
    assert "INTERNALERROR" not in result.stdout.str()
    result.assert_outcomes(failed=1, skipped=1, xfailed=1, xpassed=1)
