"""The doctor on spoiled machines, as a user calls it; no test is measured."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Doctor = Callable[..., pytest.RunResult]

#: Runs what it is given natively, where requests to Valgrind do nothing.
VALGRIND = """#!/bin/sh
[ "$1" = --version ] && echo valgrind-3.19.0 && exit
for word; do case $word in --*) shift;; *) break;; esac; done
exec "$@"
"""


@pytest.fixture
def doctor(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Doctor:
    """Call it in an empty project, with a Valgrind that starts anything."""
    folder = tmp_path / "bin"
    folder.mkdir()
    valgrind = folder / "valgrind"
    valgrind.write_text(VALGRIND)
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
            "ok    starts       pytest runs under Callgrind, with the plugins of this project",
            "warn  baselines    instrcount_baselines has none for cp*",
            "                   fix: pytest --instrcount-update-baseline",
            "doctor: * ok, * warn",  # a second one on a stripped Python
        ]
    )


@pytest.mark.parametrize(
    ("conftest", "said"),
    [
        (
            "import os\nif 'INSTRCOUNT_CHILD' in os.environ: 1 / 0",
            "pytest cannot run under Valgrind",
        ),
        (
            "import pytest_instrcount.callgrind.inside.main as ours\nours.gc = None",
            "pytest-instrcount itself failed under Valgrind",
        ),
    ],
)
def test_what_a_run_starts_is_started(
    doctor: Doctor, pytester: pytest.Pytester, conftest: str, said: str
) -> None:
    """With the conftest of the project; a failure is not Valgrind's, and is told as what it is."""
    pytester.makeconftest(conftest)
    result = doctor()
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"fail  starts       {said}*"])
    assert "valgrind --tool" not in result.stdout.str()


def test_a_valgrind_that_does_not_start(
    doctor: Doctor, pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """What it says last is shown."""
    script = VALGRIND.replace('exec "$@"', "echo 'cannot map the stack' >&2; exit 1")
    (tmp_path / "bin" / "valgrind").write_text(script)
    result = doctor()
    result.stdout.fnmatch_lines(
        ["fail  starts       pytest cannot run under Valgrind here: *", "*cannot map the stack*"]
    )
    result.stdout.fnmatch_lines(["*fix: valgrind --tool=callgrind *"])


def test_no_valgrind(doctor: Doctor, pytester: pytest.Pytester) -> None:
    """The setting of the project is looked at; with a test, why that was not counted."""
    pytester.makeini("[pytest]\ninstrcount_valgrind = no-such-valgrind\n")
    result = doctor("test_it.py::test_a")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "fail  valgrind     there is no 'no-such-valgrind' to run [[]valgrind-missing]",
            "                   fix: --instrcount-valgrind=valgrind, *",
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


def test_a_conftest_that_ends_python(doctor: Doctor, pytester: pytest.Pytester) -> None:
    pytester.makeconftest("raise SystemExit('not today')")
    result = doctor()
    assert result.ret == 2
    result.stderr.fnmatch_lines(["SystemExit: not today [[]doctor-project]"])


def test_a_test_that_is_not_there(doctor: Doctor, pytester: pytest.Pytester) -> None:
    """Exit code 2, and one that would do."""
    pytester.makepyfile(test_it="def test_b(instrcount): instrcount(sum, [1])")
    result = doctor("test_it.py::test_a")
    assert result.ret == 2
    result.stderr.fnmatch_lines(
        ["*no test test_it.py::test_a*", "  fix: *doctor test_it.py::test_b"]
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
    pytester.path.joinpath(".gitignore").write_text("*.gz\n")
    doctor().stdout.fnmatch_lines(
        ["warn  baselines    git ignores", f" *instrcount_baselines/{key}/a.profile.gz: *"]
    )
