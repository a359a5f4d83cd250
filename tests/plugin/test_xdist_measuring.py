"""``--instrcount`` under pytest-xdist, as far as it goes without Valgrind: what is wrong is said once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.names import own_key

pytest.importorskip("xdist")


@pytest.fixture
def spread(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project, and a Valgrind that has a version and does nothing else."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    fake = pytester.path.parent / "valgrind"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo valgrind-3.19.0\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    pytester.makepyfile("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    return pytester


def run(spread: pytest.Pytester, *args: str) -> pytest.RunResult:
    given = [f"-p{name}" for name in ("xdist.plugin", "pytest_instrcount.plugin")]
    return spread.runpytest_subprocess(*given, "-pno:cacheprovider", *args)


def check(result: pytest.RunResult, *words: str) -> None:
    """Exit 4, and one line of errors that has these words."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert len(errors) == 1, result.errlines
    text = "\n".join(result.errlines)
    assert all(word in text for word in words), text
    assert "Traceback" not in text + str(result.stdout)


@pytest.mark.parametrize("args", [("-n2",), ("--dist=load", "--tx=2*popen")])
def test_no_valgrind(spread: pytest.Pytester, args: tuple[str, ...]) -> None:
    """Told before any worker starts."""
    result = run(spread, "--instrcount", "--instrcount-valgrind=./none", *args)
    check(result, "there is no './none' to run", "[valgrind-missing]")
    assert "workers" not in str(result.stdout)


def test_no_valgrind_where_a_worker_is(spread: pytest.Pytester) -> None:
    """The controller needs none; the worker's trouble ends the run."""
    spread.path.joinpath("there").mkdir()
    folder = spread.path.parent / "there"
    folder.mkdir()
    args = f"--tx=popen//chdir={folder}", f"--rsyncdir={spread.path}", str(spread.path)
    result = run(spread, "--instrcount", "--dist=load", "--instrcount-valgrind=./none", *args)
    check(result, "there is no './none' to run", "[valgrind-missing]")


def test_wrong_markers(spread: pytest.Pytester) -> None:
    """Every worker finds them, and they are listed once."""
    spread.makepyfile("import pytest\n@pytest.mark.instrcount(max=1)\ndef test_a(): pass\n")
    check(run(spread, "--instrcount", "-n2"), "has no argument 'max'", "[marker]")


def test_wrong_settings(spread: pytest.Pytester) -> None:
    result = run(spread, "--instrcount", "-n2", "--instrcount-max-delta=much")
    check(result, "instrcount_max_delta", "[settings]")


def test_baselines_of_an_older_format(spread: pytest.Pytester) -> None:
    """A worker meets one when it begins the test; all tests are to be measured again."""
    (test,) = spread.path.glob("test_*.py")
    path = Store(spread.path / "instrcount_baselines", own_key()).path(f"{test.name}::test_a")
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 4}')
    check(run(spread, "--instrcount", "-n2"), "are of an older format", "[baseline-older]")


def test_a_plan_of_setups_measures_nothing(spread: pytest.Pytester) -> None:
    result = run(spread, "--instrcount", "-n1", "--setup-plan")
    assert result.ret == 0
    assert "instrcount:" not in str(result.stdout)


def test_a_plugin_of_pytest_that_is_off(spread: pytest.Pytester) -> None:
    """Without --setup-only there is nothing to ask it, in the controller and in workers."""
    given = "--instrcount", "-n1", "-pno:setuponly", "--instrcount-valgrind=./none"
    check(run(spread, *given), "there is no './none' to run", "[valgrind-missing]")


def test_without_the_option_nothing_is_sent(spread: pytest.Pytester) -> None:
    """The plugin leaves workers alone."""
    spread.makeconftest(
        """
        def pytest_configure(config):
            given = getattr(config, "workerinput", {})
            assert not [name for name in given if name.startswith("instrcount")]
        """
    )
    assert run(spread, "-n1").ret == 0
    assert not list(Path(spread.path).glob("instrcount*"))
