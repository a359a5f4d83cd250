"""``--instrcount-bundle``: when a run writes it, what is said of it, and that it shows the same again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_instrcount.cli.main import main
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile
from pytest_instrcount.gate.store.baseline import load_baseline
from pytest_instrcount.report.bundle import load_bundle
from pytest_instrcount.report.callgrind import BASELINE, COUNTED, PYTHON, PYTHON_BASELINE
from tests.baselines import plant, read_whole
from tests.plugin.conftest import Project

SUITE = """
import pytest

def helper(): pass

@pytest.mark.instrcount
def test_a(): helper(); helper()

@pytest.mark.instrcount
def test_b(): pass

@pytest.mark.trace_profile
def test_traced(): helper()
"""


@pytest.fixture
def suite(project: Project) -> Project:
    """Two measured tests and a traced one, with baselines."""
    project.write(SUITE)
    project.valgrind.python["test_a"] = {
        "test_it.py:test_a": (9_000, 1),
        "test_it.py:test_a;test_it.py:helper": (1_000, 1),
    }
    project.update().assert_outcomes(passed=3)
    return project


@pytest.fixture
def slower(suite: Project) -> Project:
    """One of the tests costs more, since it calls another function twice."""
    suite.valgrind.costs["test_a"] = 11_000
    suite.valgrind.python["test_a"] = {
        "test_it.py:test_a": (9_000, 1),
        "test_it.py:test_a;test_it.py:helper": (2_000, 2),
    }
    return suite


def failure_in(text: str) -> list[str]:
    """The lines of the one failure that pytest has shown."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.strip("_ ") == "test_a")
    end = next(n for n, line in enumerate(lines) if n > start and "accept:" in line)
    return lines[start + 1 : end + 1]


@pytest.mark.parametrize("name", ["b.json.gz", "below/b.json"])
def test_a_failure_is_shown_again(
    slower: Project,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same text, with its line of source, where neither the project nor Valgrind is."""
    result = slower.measure(f"--instrcount-bundle={name}", "-v")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            f"the failure of 1 test is in {name}; to print it again:",
            f"  python -m pytest_instrcount show {name}",
        ]
    )
    failure = failure_in(result.stdout.str())
    assert "    100 %  test_it.py:5 test_a" in failure
    assert any("helper(); helper()" in line for line in failure)
    assert failure[-1] == "  accept: pytest --instrcount-update-baseline test_it.py::test_a"
    path = slower.outside / "moved"
    (slower.path / name).rename(path)
    for each in slower.path.rglob("*.py"):
        each.unlink()
    monkeypatch.chdir(slower.outside)
    monkeypatch.setenv("PATH", "")
    capsys.readouterr()
    assert main(["show", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "1 failed test of"
    assert out[1].startswith(f"  pytest --instrcount --instrcount-bundle={name} -v")
    assert out[-len(failure) :] == failure


def counted_in(profile: str) -> int:
    """The calls that a profile is the sum of."""
    (calls,) = re.findall(r"^desc: Counted: (\d+) call", profile, re.MULTILINE)
    return int(calls)


def test_it_holds_both_sides(slower: Project) -> None:
    """As exact numbers and as profiles, in C and in Python."""
    slower.measure("--instrcount-bundle=b.json.gz")
    bundle = load_bundle(slower.path / "b.json.gz")
    (test,) = bundle.tests
    assert (test.nodeid, test.verdict) == ("test_it.py::test_a", "regressed")
    assert (test.numbers["denoised_ir"], test.numbers["delta"]) == (11_000, "1/10")
    assert (test.numbers["denoised_baseline_ir"], test.numbers["spread"]) == (10_000, "0")
    stored = load_baseline(slower.baselines()["test_a"])
    assert stored is not None and stored.python is not None

    def profile(side: str) -> Profile:
        path = slower.path / f"bundled{side}"
        path.write_text(test.profiles[side])
        return parse_profile(path)

    sides = (COUNTED, BASELINE, PYTHON, PYTHON_BASELINE)
    now, before, python, python_before = map(profile, sides)
    assert (before.total, before.rows) == (stored.total_ir, stored.rows)
    calls = counted_in(test.profiles[COUNTED])
    assert (now.total, calls) == (33_000, 3)
    assert python.rows["test_it.py:helper"].calls == 2 * calls
    assert python_before.rows["test_it.py:helper"].calls == calls
    assert "3.19.0" in test.profiles[BASELINE]
    assert list(bundle.versions) == ["pytest-instrcount", "CPython", "valgrind", "pytest", "on"]
    assert bundle.versions["pytest"] == pytest.__version__


def test_all_kinds_of_failures(suite: Project) -> None:
    """Of those that were not compared all is there that is known."""
    more = "\n@pytest.mark.instrcount\ndef test_new(): pass\n"
    suite.write(f"{SUITE}{more}\n@pytest.mark.instrcount(max_ir=20)\ndef test_over(): pass\n")
    suite.valgrind.traced["test_traced"] = {"test_it:helper": 5}
    suite.valgrind.altered["test_b"] = {"counted": None, "dumps": []}
    path = suite.baselines()["test_a"]
    stored = read_whole(path)
    plant(path, {**stored, "environment": {**stored["environment"], "valgrind": "3.18.0"}})
    suite.measure(
        "--instrcount-bundle=b.json", "--instrcount-missing=fail", "--instrcount-incomparable=fail"
    )
    bundle = load_bundle(suite.path / "b.json")
    tests = {test.nodeid.partition("::")[2]: test for test in bundle.tests}
    assert {name: test.verdict for name, test in tests.items()} == {
        "test_a": "incomparable",
        "test_b": "failed",
        "test_new": "new",
        "test_over": "over-budget",
        "test_traced": "regressed",
    }
    known = {
        name: (BASELINE in test.profiles, COUNTED in test.profiles) for name, test in tests.items()
    }
    assert known == {
        "test_a": (True, True),
        "test_b": (True, False),
        "test_new": (False, True),
        "test_over": (False, False),
        "test_traced": (False, False),
    }
    assert "3.18.0" in tests["test_a"].profiles[BASELINE]
    assert bundle.environment["valgrind"] == "3.19.0"
    assert tests["test_b"].text == ("test_b: the process that counts it was killed [not-measured]",)
    assert tests["test_traced"].text[0].startswith("test_traced: ")


def test_without_a_failure_there_is_none(slower: Project) -> None:
    """That of a run before goes, whatever else is there stays."""
    slower.measure("--instrcount-bundle=b.json.gz").assert_outcomes(passed=3, failed=1)
    slower.valgrind.costs["test_a"] = 10_000
    result = slower.measure("--instrcount-bundle=b.json.gz")
    result.assert_outcomes(passed=3)
    assert "to print it again" not in result.stdout.str()
    assert not (slower.path / "b.json.gz").exists()
    (slower.path / "mine.json").write_text("{}")
    slower.measure("--instrcount-bundle=mine.json").assert_outcomes(passed=3)
    assert (slower.path / "mine.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("b.zip", "--instrcount-bundle=b.zip: write PATH.json.gz, or PATH.json"),
        ("", "--instrcount-bundle=: write PATH.json.gz, or PATH.json"),
        ("folder.json", "--instrcount-bundle=*/folder.json: it is a folder; write another path"),
        ("tox.ini/b.json", "ERROR: instrcount: */b.json cannot be written: Not a directory *"),
    ],
)
def test_a_path_that_cannot_be_is_told_at_once(suite: Project, given: str, text: str) -> None:
    """Before anything is measured."""
    (suite.path / "folder.json").mkdir()
    started = len(suite.valgrind.started)
    result = suite.measure(f"--instrcount-bundle={given}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([text])
    assert len(suite.valgrind.started) == started


def test_what_fails_to_be_written_is_told_at_the_end(
    slower: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdicts are none the worse, and nobody is sent to a file that is not there."""

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pytest_instrcount.session.bundle.write_output", full)
    result = slower.measure("--instrcount-bundle=b.json")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: * cannot be written: No space left on device *"])
    assert "to print it again" not in result.stdout.str()
