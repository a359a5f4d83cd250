"""Without --instrcount nothing happens; and some runs never look for Valgrind."""

from __future__ import annotations

import pytest

from pytest_instrcount.errors import InstrcountError
from tests.plugin.conftest import Project

SUITE = """
import pytest

def double(number): return 2 * number

@pytest.mark.instrcount(max_delta="1%")
def test_marker(): pass

def test_call(instrcount):
    assert instrcount(double, 21) == 42
    assert instrcount._nodeid == "test_it.py::test_call"

def test_keywords(instrcount):
    assert instrcount(dict, [("a", 1)], b=2) == {"a": 1, "b": 2}

def test_decorator(instrcount):
    @instrcount
    def value():
        return 42
    assert value == 42

def test_pedantic(instrcount):
    done = []
    def set_up():
        done.append("setup")
        return (20,), {"b": 1}
    def target(a, b):
        done.append("call")
        return a + b
    def tear_down(a, b): done.append(("teardown", a, b))
    value = instrcount.pedantic(
        target, setup=set_up, teardown=tear_down, warmup_rounds=3, rounds=5)
    assert value == 21
    assert done == ["setup", "call", ("teardown", 20, 1)]
"""


def test_nothing_is_said_or_written(project: Project) -> None:
    """No header, no section, no folder; marker and fixture work; Valgrind is not looked for."""
    project.valgrind.version = InstrcountError("valgrind-missing", "there is none", "install it")
    project.write(SUITE)
    before = project.tree()
    result = project.run("-v", "--strict-markers")
    result.assert_outcomes(passed=5)
    assert "valgrind" not in result.stdout.str().lower()
    assert "instrcount:" not in result.stdout.str()
    assert project.tree() == before
    assert not project.valgrind.looked_for
    assert not project.valgrind.started


@pytest.mark.parametrize("args", [(), ("--instrcount",)])
def test_second_use_is_an_error_that_names_the_first(
    project: Project, args: tuple[str, ...]
) -> None:
    """One call per test, measured or not."""
    project.write(
        """
        def test_twice(instrcount):
            instrcount(sum, [1])
            instrcount.pedantic(len, ([1],))
        """
    )
    result = project.run(*args)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*RuntimeError: instrcount counts one call per test; test_it.py::test_twice used it "
            "first for sum at test_it.py:2, and now for len: make two tests of it"
        ]
    )


@pytest.mark.parametrize("args", [(), ("--instrcount",)])
def test_exceptions_of_the_call_come_through(project: Project, args: tuple[str, ...]) -> None:
    """A call that raises fails the test, as without the fixture."""
    project.write(
        """
        import pytest

        def test_raises(instrcount): instrcount(int, "x")

        def test_expected(instrcount):
            with pytest.raises(ValueError):
                instrcount(int, "x")
        """
    )
    result = project.run(*args, "-k", "raises")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*ValueError: invalid literal for int()*"])
    project.run("-k", "expected").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize("main", ["--instrcount", "--instrcount-update-baseline"])
@pytest.mark.parametrize(
    "args",
    [
        ("--co",),
        ("--collect-only", "-q"),
        ("--help",),
        ("--version",),
        ("--fixtures",),
        ("--fixtures-per-test",),
        ("--markers",),
        ("--cache-show",),
        ("--setup-only",),
        ("--setup-plan",),
        ("--setup-plan", "--instrcount-against=HEAD~1"),
    ],
)
def test_runs_that_measure_nothing_need_no_valgrind(
    project: Project, args: tuple[str, ...], main: str
) -> None:
    """They never look for it and never start it, also where the ini says to measure."""
    project.valgrind.version = AssertionError("looked for Valgrind")
    project.write(SUITE)
    before = project.tree()
    result = project.run(main, *args)
    assert result.ret == pytest.ExitCode.OK
    assert not project.valgrind.looked_for
    assert project.tree() == before


def test_the_fixture_has_help(project: Project) -> None:
    """--fixtures says in a line what it does."""
    project.run("--fixtures").stdout.fnmatch_lines(["instrcount -- *", "*Count the instructions*"])


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_setup_only_and_plan_are_pytests_own(project: Project, option: str) -> None:
    """No test body runs there, so nothing is measured, and CI's gate is not asked."""
    project.write(SUITE)
    result = project.measure(option)
    assert result.ret == pytest.ExitCode.OK
    assert "instrcount:" not in result.stdout.str()


SYRUPY = """
def pytest_addoption(parser):
    parser.addoption("--snapshot-update", action="store_true", dest="update_snapshots")
    parser.addoption("--snapshot-disable-unused", action="store_true", dest="disable_unused_snapshots")
    parser.addoption("--inline-snapshot", dest="inline_snapshot")
def pytest_unconfigure(config):
    print("unused snapshots are looked for:", not config.option.disable_unused_snapshots)
"""


@pytest.mark.parametrize(
    "option", ["--pdb", "--snapshot-update", "--inline-snapshot=report,create"]
)
def test_debugging_runs_natively(project: Project, option: str) -> None:
    """The tests run here, and a note says that nothing was measured."""
    project.pytester.makeconftest(SYRUPY)
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    result = project.measure(option)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["nothing is measured under --pdb, --trace, --snapshot-update, --inline-snapshot:"]
    )
    assert not project.valgrind.started
    result.stdout.fnmatch_lines(["unused snapshots are looked for: True"])


def test_snapshots_of_measured_tests_are_used(project: Project) -> None:
    """Under Valgrind: syrupy would count them as unused here, and fail the run."""
    project.pytester.makeconftest(SYRUPY)
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    for args in (
        (),
        ("--inline-snapshot=report",),
    ):  # what writes nothing keeps nobody from measuring
        result = project.measure(*args)
        result.stdout.fnmatch_lines(["unused snapshots are looked for: False"])
