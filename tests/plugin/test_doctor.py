"""The doctor on spoiled machines, as a user calls it; no test is measured."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Doctor = Callable[..., pytest.RunResult]


@pytest.fixture
def doctor(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Doctor:
    """Call it in an empty project, with a Valgrind that starts anything."""
    folder = tmp_path / "bin"
    folder.mkdir()
    valgrind = folder / "valgrind"
    valgrind.write_text('#!/bin/sh\n[ "$1" = --version ] && echo valgrind-3.19.0\nexit 0\n')
    valgrind.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.delenv("CI", raising=False)
    pytester.makeini("[pytest]\n")

    def call(*args: str) -> pytest.RunResult:
        return pytester.run(sys.executable, "-m", "pytest_instrcount", "doctor", *args)

    return call


def test_a_healthy_machine(doctor: Doctor) -> None:
    """Nothing fails; a project without baselines is told what to type."""
    result = doctor()
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "ok    python       CPython *",
            "ok    valgrind     3.19.0,*",
            "ok    starts       this Python runs under Callgrind",
            "warn  baselines    instrcount_baselines has none for cp*",
            "                   fix: pytest --instrcount-update-baseline",
            "doctor: * ok, *1 warn",
        ]
    )


def test_no_valgrind(doctor: Doctor, pytester: pytest.Pytester) -> None:
    """The setting of the project is looked at; with a test, why that was not counted."""
    pytester.makeini("[pytest]\ninstrcount_valgrind = no-such-valgrind\n")
    result = doctor("test_it.py::test_a")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "fail  valgrind     there is no 'no-such-valgrind' to run [[]valgrind-missing]",
            "                   fix: sudo apt-get install valgrind *",
            "fail  leaks        test_it.py::test_a was not counted: see valgrind above",
        ]
    )


def test_a_hash_seed_that_is_let_through(
    doctor: Doctor, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found without a measurement; the line for the ini is the remedy."""
    pytester.makeini("[pytest]\ninstrcount_env = TOKEN PYTHONHASHSEED\n")
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    result = doctor()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*PYTHONHASHSEED (here '77', else '1')", "*fix: in the ini: instrcount_env = TOKEN"]
    )


def test_settings_that_pytest_refuses(doctor: Doctor, pytester: pytest.Pytester) -> None:
    """Exit code 2, and what is wrong with them."""
    pytester.makeini("[pytest]\ninstrcount_max_delta = much\n")
    result = doctor()
    assert result.ret == 2
    result.stderr.fnmatch_lines(["*[[]doctor-project]", "  fix: pytest --collect-only *"])
    result.stderr.fnmatch_lines(["instrcount_max_delta = 'much'*"])


def test_a_test_that_is_not_there(doctor: Doctor, pytester: pytest.Pytester) -> None:
    """Exit code 2, and one that would do."""
    pytester.makepyfile(test_it="def test_b(instrcount): instrcount(sum, [1])")
    result = doctor("test_it.py::test_a")
    assert result.ret == 2
    result.stderr.fnmatch_lines(
        ["*no test test_it.py::test_a*", "  fix: *doctor 'test_it.py::test_b'"]
    )


def test_git_ignores_the_baselines(doctor: Doctor, pytester: pytest.Pytester) -> None:
    """They would be missing in every clone."""
    pytester.run("git", "init", "-q")
    pytester.path.joinpath(".gitignore").write_text("*_baselines/\n")
    result = doctor()
    key = result.stdout.str().partition("has none for ")[2].split()[0]
    folder = pytester.path / "instrcount_baselines" / key
    folder.mkdir(parents=True)
    folder.joinpath("a.json").write_text("{}")
    doctor().stdout.fnmatch_lines(["warn  baselines    git ignores instrcount_baselines:*"])
