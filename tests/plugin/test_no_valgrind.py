"""Valgrind that is missing, old or broken; a zygote that cannot be had; tests that break under it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.callgrind.zygote import Problem
from tests.baselines import read_whole
from tests.plugin.conftest import Project

MARKED = """
import pytest
pytestmark = pytest.mark.instrcount

def test_a(): pass

def test_b(): pass
"""

find_valgrind = facts.find_valgrind


@pytest.fixture
def really(project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Project]:
    """Look for a valgrind that is a script of these lines."""
    monkeypatch.setattr(facts, "find_valgrind", find_valgrind)
    folder = project.outside / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def make(script: str) -> Project:
        (folder / "valgrind").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "valgrind").chmod(0o755)
        return project

    return make


def check(result: pytest.RunResult, *words: str) -> None:
    """Exit 4, one line of what and why, one with the command, nothing of Python."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in result.stderr.lines if line]
    assert len(lines) == 2
    for word in words:
        assert word in lines[0]
    assert lines[1].startswith("  fix: ")


def test_missing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says so and, of a name that was given, to correct it; the option's name is shown."""
    monkeypatch.setattr(facts, "find_valgrind", find_valgrind)
    project.write(MARKED)
    result = project.measure("--instrcount-valgrind=no-such-valgrind")
    check(result, "instrcount: ", "'no-such-valgrind'", "[valgrind-missing]")
    result.stderr.fnmatch_lines(["  fix: --instrcount-valgrind=valgrind, *"])


def test_old(really: Callable[[str], Project]) -> None:
    """The version that was found and the oldest that would do."""
    check(really("echo valgrind-3.14.0").measure(), "3.14.0", "3.15 or later", "[valgrind-old]")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'cannot map' >&2; exit 1", "'cannot map'"),
        ("exit 0", "'nothing'"),
        ("echo something else", "'something else'"),
    ],
)
def test_broken(really: Callable[[str], Project], script: str, words: str) -> None:
    """What it said in the place of a version."""
    check(really(script).measure(), words, "[valgrind-broken]")


def test_not_executable(really: Callable[[str], Project]) -> None:
    """A file that the system does not run."""
    project = really("")
    Path(project.outside / "bin" / "valgrind").write_bytes(b"\x7fELFnot")
    check(project.measure(), "does not run", "[valgrind-broken]")


def test_not_linux(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the suite runs natively once the option is left out."""
    monkeypatch.setattr(facts, "find_valgrind", find_valgrind)
    monkeypatch.setattr("sys.platform", "darwin")
    check(project.measure(), "Linux only", "darwin", "[not-linux]")


def test_unknown_machine(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor without client requests is told before Valgrind is looked for."""
    monkeypatch.setattr(facts, "find_valgrind", find_valgrind)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    check(project.measure(), "not written for riscv64", "[machine]")


def test_no_proc(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc Valgrind dies of it: said by name, with what to type."""
    there = os.path.isdir
    monkeypatch.setattr(facts, "find_valgrind", find_valgrind)
    monkeypatch.setattr("os.path.isdir", lambda path: path != "/proc/self/task" and there(path))
    check(project.measure(), "reads /proc", "[no-proc]")


def test_no_zygote(project: Project) -> None:
    """The run ends with its reason, exit 4, and writes nothing."""
    project.valgrind.dead = "pytest cannot run under Valgrind here: out of memory"
    project.write(MARKED)
    result = project.update()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*instrcount: pytest cannot run under Valgrind here: out of memory [[]zygote-failed]"]
    )
    assert not project.baselines()
    assert project.valgrind.started[-1].ended == 1


@pytest.mark.parametrize("ci", [False, True])
def test_a_test_that_breaks_is_an_error(
    project: Project, monkeypatch: pytest.MonkeyPatch, ci: bool
) -> None:
    """It has Valgrind's last words and the verdict failed; the others are measured and stored."""
    project.write(MARKED)
    project.update()
    program = "pytest"
    if ci:
        monkeypatch.setenv("CI", "true")
        program = "bin/python -m pytest"
        monkeypatch.setattr(sys, "orig_argv", [*program.split(), "--instrcount"])
    project.valgrind.problems["test_a"] = Problem(
        "process-died", "its process was killed by SIGSEGV before the test ended", "Invalid read"
    )
    result = project.measure()
    result.assert_outcomes(passed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_a*",
            "instrcount: its process was killed by SIGSEGV before the test ended [[]process-died]",
            "--- the last lines under Valgrind ---",
            "Invalid read",
            f"  fix: {program} test_it.py::test_a    # without --instrcount: does it end there, too?",
            "instrcount: 1 unchanged, 1 failed",
        ]
    )
    assert project.verdicts() == {"test_a": "failed", "test_b": "unchanged"}


@pytest.mark.parametrize(
    ("altered", "words"),
    [
        ({"problem": "it passed once and failed when it was repeated\nAssertionError: 2nd"}, "2nd"),
        ({"counted": None}, "the process that counts it was killed"),
        ({"dumps": []}, "Callgrind left 0 dumps of the test"),
        ({"problem": "x" * 300}, "xxx"),
    ],
)
def test_a_test_that_was_not_counted_is_an_error(
    project: Project, altered: dict[str, Any], words: str
) -> None:
    """The test passed and has no count: an error at teardown, no baseline, no comparison."""
    project.write(MARKED)
    project.valgrind.altered["test_a"] = altered
    result = project.update()
    result.assert_outcomes(passed=2, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_a*", f"*{words}*"])
    result.stdout.fnmatch_lines(["instrcount: * [[]*]"])
    result.stdout.fnmatch_lines(["*instrcount: 1 new, 1 failed"])
    assert set(project.baselines()) == {"test_b"}


def test_a_count_of_nothing_is_an_error(project: Project) -> None:
    """A dump with no instructions is no measurement of 0."""
    project.write(MARKED)
    project.valgrind.costs["test_a"] = 0
    result = project.measure()
    result.stdout.fnmatch_lines(["*Callgrind counted nothing*[[]no-count]*"])
    assert project.verdicts()["test_a"] == "failed"


def test_a_fixture_that_is_never_called_is_an_error(project: Project) -> None:
    """A passing test that takes the fixture and does not use it measures nothing."""
    project.write("def test_a(instrcount): pass")
    result = project.measure()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*takes the instrcount fixture and never calls it*"])


@pytest.mark.parametrize(
    "lines",
    [
        "def test_b(request): request.getfixturevalue('instrcount')(len, 'a')",
        "def test_b(request): request.node.add_marker('instrcount')",
        "@pytest.fixture\ndef late(request): request.node.add_marker('instrcount')\n"
        "def test_b(late): pass",
    ],
)
def test_a_test_that_asks_while_it_runs_is_an_error(project: Project, lines: str) -> None:
    """What is measured was settled before; without --instrcount it passes."""
    project.write(f"import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n{lines}\n")
    project.run().assert_outcomes(passed=2)
    result = project.measure()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*while it ran, and was not counted [[]not-measured]"])


def test_a_call_that_raises_is_an_error_that_says_so(project: Project) -> None:
    """Even where the test expects that: nothing came back that could be counted again."""
    project.write(
        """
        import pytest
        def test_a(instrcount):
            with pytest.raises(ZeroDivisionError):
                instrcount(lambda: 1 / 0)
        """
    )
    result = project.measure()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*instrcount was called with *and that raised an exception*"])


def test_real_dumps(project: Project) -> None:
    """Two files that Callgrind wrote: the empty one is subtracted, functions keep their names."""
    project.write(MARKED)
    project.valgrind.recorded["test_a"] = "cp311-json.out", "cp311-empty.out"
    project.update()
    assert "_json.c:scanstring_unicode" in read_whole(project.baselines()["test_a"])["functions"]
    assert project.verdicts()["test_a"] == "unchanged"
