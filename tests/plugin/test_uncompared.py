"""In CI a selected test that has a baseline is compared, or fails the run, or its cause is allowed."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.cli import main as cli
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.session import variables
from pytest_instrcount.session.selection import Selection
from tests.plugin.conftest import Project

SUITE = """
import os
import pytest

OUTSIDE = os.getpid()  # what measures a test is another process

@pytest.mark.instrcount
def test_a(): pass

@pytest.mark.instrcount
def test_b(): pass
"""

GONE = SUITE.replace("@pytest.mark.instrcount\ndef test_b(): pass", "")
UNMARKED = SUITE.replace("@pytest.mark.instrcount\ndef test_b", "def test_b")
SKIPPED = SUITE.replace(
    "test_b(): pass", "test_b():\n    if os.getpid() != OUTSIDE: pytest.skip('no DATABASE_URL')"
)
XFAILED = SUITE.replace(
    "test_b(): pass", "test_b():\n    if os.getpid() != OUTSIDE: pytest.xfail('no DATABASE_URL')"
)
WARMED = SUITE.replace("instrcount\ndef test_b", "instrcount(warmup=5)\ndef test_b")
ISOLATED = SUITE.replace("instrcount\ndef test_b", "instrcount(isolation='process')\ndef test_b")
UNUSED = SUITE.replace("instrcount\ndef test_b()", "benchmark\ndef test_b(benchmark)")

#: What a command that is advised has to say, too.
ELSEWHERE = ("-o", "python_files=b*.py", "--instrcount-baseline-dir=kept")

CASES = {
    "gone": (GONE, "stale", "baseline-gone"),
    "unmarked": (UNMARKED, "stale", "baseline-unmarked"),
    "skipped": (SKIPPED, "uncounted", "skipped-inside"),
    "warmup": (WARMED, "incomparable", "baseline-incomparable"),
    "isolation": (ISOLATED, "incomparable", "baseline-incomparable"),
    "uncounted": (UNUSED, "uncounted", "uncounted"),
}


@pytest.fixture
def suite(project: Project) -> Project:
    """Two measured tests with baselines."""
    project.write(SUITE)
    project.update()
    return project


@pytest.fixture
def in_ci(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setenv("CI", "true")


@pytest.mark.parametrize("cause", CASES)
def test_each_cause_fails_in_ci(suite: Project, in_ci: Callable[[], None], cause: str) -> None:
    """One more failed report, which says what happened and what to do."""
    text, verdict, slug = CASES[cause]
    suite.write(text)
    in_ci()
    result = suite.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            f"test_b: * [[]{slug}]",
            f"  or allow it: instrcount_allow = {cause}, in the ini file",
            f"{verdict.upper()} test_it.py::test_b*",
        ]
    )
    assert result.parseoutcomes()["failed"] == 1
    assert {*re.findall(r"\[ *(\d+)%\]", result.stdout.str())} == {"100"}
    assert suite.verdicts() == {"test_a": "unchanged", "test_b": verdict}


@pytest.mark.parametrize("cause", CASES)
def test_each_cause_can_be_allowed(suite: Project, in_ci: Callable[[], None], cause: str) -> None:
    """By its own word, and by no other."""
    suite.write(CASES[cause][0])
    in_ci()
    suite.pytester.makeini(f"[pytest]\ninstrcount_allow = {cause}\n")
    assert suite.measure().ret == pytest.ExitCode.OK
    others = " ".join(each for each in CASES if each != cause)
    suite.pytester.makeini(f"[pytest]\ninstrcount_allow = {others}\n")
    assert suite.measure().ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("cause", "line"),
    [
        ("gone", "1 baseline without its test, which is gone: test_it.py::test_b"),
        ("unmarked", "1 baseline whose test is not measured any more: test_it.py::test_b"),
        (
            "skipped",
            "1 test not compared, since it has not passed under Valgrind: test_it.py::test_b",
        ),
        ("uncounted", "1 test not compared, since nothing of it was counted: test_it.py::test_b"),
        ("warmup", "1 baseline of another environment or way: warmup 20 -> 5 *"),
    ],
)
def test_elsewhere_it_is_said(suite: Project, cause: str, line: str) -> None:
    """Outside CI one line for each cause, and the run passes."""
    suite.write(CASES[cause][0])
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK
    joined = " ".join(map(str.strip, result.stdout.lines))
    assert line.rstrip("*") in joined


def test_an_expected_failure_under_valgrind_alone(
    suite: Project, in_ci: Callable[[], None]
) -> None:
    """Is as good as a skip."""
    suite.write(XFAILED)
    in_ci()
    result = suite.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_b: * [[]skipped-inside]", "  no DATABASE_URL"])


@pytest.mark.parametrize("allowed", ["", "skipped"])
def test_one_that_fails_natively_fails(suite: Project, allowed: str) -> None:
    """Though it was skipped under Valgrind, whatever may be left uncompared: as without the plugin."""
    suite.write(SKIPPED.replace("skip('no DATABASE_URL')", "skip('no DATABASE_URL')\n    assert 0"))
    result = suite.measure("-o", f"instrcount_allow={allowed}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, skipped=1, failed=1)
    result.stdout.fnmatch_lines(["*assert 0"])


#: Those of the test itself: of its sub-tests reports are made within its call.
TELLS = """
import pytest
TOLD = []

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if item.name == "test_b" and type(report) is pytest.TestReport:
        TOLD.append(call.when)
    return report

def pytest_terminal_summary(terminalreporter):
    phases = [when for n, when in enumerate(TOLD) if when != "call" or "call" not in TOLD[:n]]
    terminalreporter.write_line(f"told of test_b: {phases}")
"""


@pytest.mark.parametrize("left_out", ["skip", "xfail"])
@pytest.mark.parametrize("breaks", [False, True])
def test_a_block_that_is_left_out_under_valgrind_alone(
    suite: Project, in_ci: Callable[[], None], left_out: str, breaks: bool
) -> None:
    """The test has passed, and what it is for was not done: it runs natively, and is told as there."""
    pytest.importorskip("_pytest.subtests")
    block = f"if os.getpid() != OUTSIDE: pytest.{left_out}('no DATABASE_URL')"
    body = f"    with subtests.test():\n        {block}\n        assert {not breaks}"
    suite.write(SUITE.replace("test_b(): pass", f"test_b(subtests):\n{body}"))
    suite.pytester.makeconftest(TELLS)
    in_ci()
    result = suite.measure()
    result.stdout.fnmatch_lines(["told of test_b: ['setup', 'call', 'teardown']"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert suite.verdicts()["test_a"] == "unchanged"
    if breaks:
        result.stdout.fnmatch_lines(["*AssertionError", "*FAILED test_it.py::test_b*"])
        assert result.stdout.str().count("SUBFAILED") == 1
    else:
        result.stdout.fnmatch_lines(["test_b: * [[]skipped-inside]", "  no DATABASE_URL"])


FAILS_IN_BLOCKS = {
    "pytest": (
        "@pytest.mark.instrcount\n"
        "def test_a(subtests):\n"
        "    for n in range(3):\n"
        "        with subtests.test(): assert n == 1\n"
    ),
    "unittest": (
        "import unittest\n"
        "class TestIt(unittest.TestCase):\n"
        "    @pytest.mark.instrcount\n"
        "    def test_a(self):\n"
        "        for n in range(3):\n"
        "            with self.subTest(): assert n == 1\n"
    ),
}


@pytest.mark.parametrize(
    ("kind", "ends"),
    [("pytest", {"failed": 3, "passed": 1}), ("unittest", {"failed": 2, "passed": 2})],
)
def test_failed_blocks_end_their_test_as_natively(
    project: Project, kind: str, ends: dict[str, int]
) -> None:
    """Also for those that run it again: pytest fails a test for its own sub-tests, not for unittest's."""
    pytest.importorskip("_pytest.subtests")
    project.write("import pytest\n" + FAILS_IN_BLOCKS[kind] + "def test_b(): pass\n")
    natively = project.run("-rf")
    assert natively.parseoutcomes().items() >= ends.items()
    again = project.run("--last-failed").parseoutcomes()
    measured = project.measure("-rf")
    assert measured.parseoutcomes() == natively.parseoutcomes()
    assert project.run("--last-failed").parseoutcomes() == again
    test_fails = "FAILED test_it.py::test_a - contains 2 failed subtests" in measured.outlines
    assert test_fails == (kind == "pytest")


SKIPS_LESS = {
    "a sub-test": (
        "import unittest\n"
        "class TestCase(unittest.TestCase):\n"
        "    @pytest.mark.instrcount\n"
        "    def test_a(self):\n"
        "        for n in range(2):\n"
        "            with self.subTest(n=n):\n"
        "                if n: self.skipTest('not 1')\n"
    ),
    "a teardown": (
        "@pytest.fixture\n"
        "def late():\n"
        "    yield\n"
        "    pytest.skip('late')\n"
        "@pytest.mark.instrcount\n"
        "def test_a(late): pass\n"
    ),
}


@pytest.mark.parametrize("part", SKIPS_LESS)
def test_what_skips_a_part_of_itself_is_compared(
    project: Project, in_ci: Callable[[], None], part: str
) -> None:
    """It has passed, and was counted: nothing takes it for a skipped one."""
    project.write("import pytest\n" + SKIPS_LESS[part])
    project.update()
    in_ci()
    assert project.measure().ret == pytest.ExitCode.OK
    assert set(project.verdicts().values()) == {"unchanged"}
    project.valgrind.costs = {"test_a": 12_000}
    assert project.measure().ret == pytest.ExitCode.TESTS_FAILED
    assert set(project.verdicts().values()) == {"regressed"}


@pytest.mark.parametrize(
    "change",
    [
        ("instrcount\ndef test_b", "instrcount\n@pytest.mark.skip(reason='today')\ndef test_b"),
        ("test_b(): pass", "test_b(): pytest.skip('today')"),
        ("test_b(): pass", "test_b(): pytest.xfail('today')"),
        (
            "instrcount\ndef test_b(): pass",
            "instrcount\n@pytest.mark.xfail\ndef test_b(): assert 0",
        ),
    ],
)
def test_skipped_natively_too(
    suite: Project, in_ci: Callable[[], None], change: tuple[str, str]
) -> None:
    """That is pytest's to report: one line, and no failure."""
    suite.write(SUITE.replace(*change))
    in_ci()
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK
    joined = " ".join(map(str.strip, result.stdout.lines))
    assert "1 test with a baseline was skipped or expected to fail: test_it.py::test_b" in joined


def test_expected_to_fail_and_passed(project: Project) -> None:
    """It ran as before the marker came; an update gives it a baseline, and only then it is compared."""
    marked = SUITE.replace("instrcount\ndef test_b", "instrcount\n@pytest.mark.xfail\ndef test_b")
    project.write(marked)
    project.update("test_it.py::test_a").assert_outcomes(passed=1)
    assert project.verdicts() == {"test_a": "unchanged"}
    project.update().assert_outcomes(passed=1, xpassed=1)
    assert project.verdicts() == {"test_a": "unchanged", "test_b": "unchanged"}
    project.valgrind.costs = {"test_b": 12_000}
    result = project.measure()
    result.assert_outcomes(passed=1, xpassed=1, failed=1)
    assert project.verdicts() == {"test_a": "unchanged", "test_b": "regressed"}


TAKEN = """
    import pytest

    @pytest.hookimpl(tryfirst=True, wrapper=True)
    def pytest_runtest_protocol(item):
        result = yield
        return result

    class Runs:
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(self, item, nextitem):
            if item.name != "test_b":
                return None
            item.config.pluginmanager.getplugin("runner").runtestprotocol(item, nextitem=nextitem)
            return True

    def pytest_collection_finish(session):
        session.config.pluginmanager.register(Runs())
    """


@pytest.mark.parametrize("has_baseline", [True, False])
def test_a_test_that_another_plugin_runs(
    project: Project, in_ci: Callable[[], None], has_baseline: bool
) -> None:
    """It has passed natively, and nothing was counted."""
    project.write(SUITE if has_baseline else GONE)
    project.update()
    project.write(SUITE)
    project.pytester.makeconftest(TAKEN)
    in_ci()
    result = project.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_b: * [[]uncounted]"])


def test_an_update_says_what_another_plugin_runs(project: Project) -> None:
    """There is nothing of it to be stored."""
    project.write(SUITE)
    project.pytester.makeconftest(TAKEN)
    result = project.update()
    joined = " ".join(map(str.strip, result.stdout.lines))
    assert (
        "1 test was not counted under Valgrind, and has no baseline: test_it.py::test_b" in joined
    )
    result.stdout.fnmatch_lines(["*1 baseline written*"])


def test_a_skip_without_a_baseline_is_said(project: Project) -> None:
    """The first update of such a test stores nothing."""
    project.write(SKIPPED)
    result = project.update()
    joined = " ".join(map(str.strip, result.stdout.lines))
    assert (
        "1 test was not counted under Valgrind, and has no baseline: test_it.py::test_b" in joined
    )


# --- another environment ------------------------------------------------------------------------


def test_another_environment_is_one_failure(suite: Project, in_ci: Callable[[], None]) -> None:
    """For the run, with both mends."""
    suite.valgrind.version = "3.24.0"
    in_ci()
    result = suite.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "2 of 2 tests have baselines of another environment [[]baseline-incomparable]",
            "  valgrind: 3.19.0 -> 3.24.0",
            "  accept: pytest --instrcount-update-baseline",
            "  or measure both sides: pytest --instrcount-against=REF",
        ]
    )


@pytest.mark.parametrize(
    ("ini", "args", "code"),
    [
        ("", (), 1),
        ("auto", (), 1),
        ("warn", (), 4),  # nothing was compared at all
        ("warn", ("--instrcount-incomparable=fail",), 1),
        ("fail", ("--instrcount-incomparable=warn",), 4),
    ],
)
def test_the_command_line_wins(
    suite: Project, in_ci: Callable[[], None], ini: str, args: tuple[str, ...], code: int
) -> None:
    """Over the ini file; what is not said is auto."""
    suite.pytester.makeini(f"[pytest]\ninstrcount_incomparable = {ini}\n" if ini else "[pytest]\n")
    suite.valgrind.version = "3.24.0"
    in_ci()
    assert suite.measure(*args).ret == code


def test_a_wrong_word(suite: Project) -> None:
    """Is told with the right ones."""
    suite.pytester.makeini("[pytest]\ninstrcount_allow = stale\n")
    result = suite.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*instrcount_allow: 'stale' is none of gone, uncollected, unmarked, skipped, *isolation"]
    )


@pytest.mark.parametrize("option", ["--pdb", "--trace"])
def test_a_gate_that_measures_nothing(
    suite: Project, in_ci: Callable[[], None], option: str
) -> None:
    """In CI, an option under which tests run natively ends the run before the first."""
    in_ci()
    result = suite.measure(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--snapshot-update, --inline-snapshot: nothing is measured with them, and CI is set"]
    )


# --- who knows all tests ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 1),
        (("--instrcount-only",), 1),
        (("-m", "instrcount"), 1),
        (("test_it.py",), 1),
        (("test_it.py::test_a",), 0),
        (("-k", "test_a"), 0),
        (("--deselect", "test_it.py::test_c"), 0),
        (("--instrcount-update-baseline",), 0),
        (("--instrcount-prune",), 0),
    ],
)
@pytest.mark.parametrize("cause", ["gone", "unmarked"])
def test_stale_is_judged_by_who_knows_all(
    suite: Project, in_ci: Callable[[], None], cause: str, args: tuple[str, ...], code: int
) -> None:
    """Not by a run from which a measured test was left out, unless it was to run the very test."""
    if cause == "unmarked" and "test_it.py::test_c" in args:
        code = 1
    more = "\n@pytest.mark.instrcount\ndef test_c(): pass\n"
    suite.write(SUITE + more)
    suite.update()
    suite.write(CASES[cause][0] + more)
    in_ci()
    assert suite.measure(*args).ret == code


@pytest.mark.parametrize(
    ("conftest", "ini", "args", "code"),
    [
        pytest.param("collect_ignore = ['test_it.py']", "", (), 1, id="collect_ignore"),
        pytest.param("", "python_files = test_other.py", (), 1, id="python_files"),
        pytest.param("", "python_files = test_other.py", (".",), 1, id="an argument that holds it"),
        pytest.param("", "", ("test_other.py",), 0, id="another file was asked for"),
        pytest.param("", "python_files = test_other.py", ("./x/..",), 1, id="a longer way"),
        pytest.param(
            "", "python_files = test_other.py", ("--lf",), 1, id="--lf that leaves out none"
        ),
        pytest.param("", "python_files = test_other.py", ("--pyargs",), 1, id="no module"),
        pytest.param("", "python_files = test_other.py", ("--pyargs", "."), 1, id="a path"),
        pytest.param("", "", ("--pyargs", "test_other"), 0, id="another module"),
        pytest.param("", "", ("--ignore=test_it.py",), 0, id="left out by an option"),
        pytest.param("", "", ("--ignore-glob=*_it.py",), 0, id="left out by a pattern"),
        pytest.param(
            "collect_ignore = ['test_it.py']",
            "addopts = --ignore=build --ignore-glob=*.txt",
            (),
            1,
            id="an option leaves out something else",
        ),
        pytest.param("", "", ("-k", "test_other"), 0, id="deselected"),
        pytest.param(
            "", "python_files = test_other.py\ninstrcount_allow = uncollected", (), 0, id="allowed"
        ),
    ],
)
def test_a_file_that_is_left_out_of_a_whole_run(
    suite: Project,
    in_ci: Callable[[], None],
    conftest: str,
    ini: str,
    args: tuple[str, ...],
    code: int,
) -> None:
    """Its tests are there, and have baselines: nobody asked to leave them out."""
    suite.write(test_other=SUITE.replace("test_b", "test_other"))
    suite.update()
    suite.write(conftest=conftest)
    suite.path.joinpath("x").mkdir()
    suite.path.joinpath("pytest.ini").write_text(f"[pytest]\n{ini}\n")
    in_ci()
    result = suite.measure(*args)
    assert result.ret == code
    if code:
        result.stdout.fnmatch_lines(
            [
                "*test_a: it has a baseline, and its file was not collected [[]baseline-uncollected]",
                "  or allow it: instrcount_allow = uncollected, in the ini file",
            ]
        )


def test_a_test_that_a_conftest_takes_out_is_named(
    suite: Project, in_ci: Callable[[], None]
) -> None:
    """It may be another shard's, so it does not fail; pytest counts it nowhere."""
    suite.write(
        conftest="def pytest_collection_modifyitems(items):\n"
        "    items[:] = [item for item in items if item.name != 'test_b']\n"
    )
    in_ci()
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK
    joined = " ".join(map(str.strip, result.stdout.lines))
    assert "took 1 test with a baseline out of the run: test_it.py::test_b" in joined


def test_a_plain_test_that_a_conftest_takes_out_hides_no_stale_one(
    suite: Project, in_ci: Callable[[], None]
) -> None:
    suite.write(
        SUITE.replace("def test_b", "def manual_b") + "\ndef test_manual(): pass\n",
        conftest="def pytest_collection_modifyitems(items):\n"
        "    items[:] = [item for item in items if item.name != 'test_manual']\n",
    )
    in_ci()
    result = suite.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["test_b: its baseline is there, and the test is gone [[]baseline-gone[]]"]
    )


@pytest.mark.parametrize("args", [("-k", "test_a"), ("--instrcount-only",)])
def test_markers_that_come_last(
    suite: Project, in_ci: Callable[[], None], args: tuple[str, ...]
) -> None:
    """Of a test that -k has left out nobody knows whether it would have got its marker."""
    suite.write(
        "def test_a(): pass\ndef test_b(): pass\n",
        conftest="import pytest\n@pytest.hookimpl(trylast=True)\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items: item.add_marker(pytest.mark.instrcount)\n",
    )
    in_ci()
    assert suite.measure(*args).ret == pytest.ExitCode.OK


def test_what_is_deselected_may_be_no_test(suite: Project) -> None:
    """As pytest-testmon's, which have an id at most."""
    hook = "def pytest_collection_modifyitems(config):\n"
    suite.write(conftest=f"{hook}    config.hook.pytest_deselected(items=[object()])\n")
    assert suite.measure().ret == pytest.ExitCode.OK


def test_ids_that_name_no_file(suite: Project) -> None:
    """A conftest's: a run of another file does not know whether their tests are gone."""
    [path, *_] = suite.baselines().values()
    selection = Selection(suite.pytester.parseconfig("test_it.py"))
    assert (selection.stale("adds numbers"), selection.stale("no.py::test")) == (None, Cause.gone)
    assert Selection(suite.pytester.parseconfig()).stale("adds numbers") is Cause.gone
    suite.write("")
    result = suite.run("--instrcount-prune")
    result.stderr.fnmatch_lines(["*nothing was pruned, since no test was collected *"])
    assert path.exists()


def test_a_module_that_is_skipped_is_pytests_to_report(
    suite: Project, in_ci: Callable[[], None]
) -> None:
    suite.write(test_other=SUITE.replace("test_b", "test_other"))
    suite.update()
    suite.write("import pytest\npytest.skip('not here', allow_module_level=True)\n")
    in_ci()
    assert suite.measure().ret == pytest.ExitCode.OK


def test_a_prune_leaves_what_was_not_collected(suite: Project) -> None:
    """The test is there; it may be another run's."""
    suite.path.joinpath("pytest.ini").write_text("[pytest]\npython_files = test_other.py\n")
    suite.write(test_other=SUITE)
    before = suite.baselines()
    suite.measure("--instrcount-prune")
    assert suite.baselines() == before


def first_fix(result: pytest.RunResult) -> str:
    return next(line for line in result.outlines if "fix: " in line).partition("fix: ")[2]


def test_the_prune_that_is_advised_has_the_options_of_the_run(
    suite: Project, in_ci: Callable[[], None]
) -> None:
    """Typed as it stands, it deletes what the run has called gone."""
    suite.write(b1=SUITE)
    suite.measure(*ELSEWHERE, "--instrcount-update-baseline", ".")
    suite.path.joinpath("b1.py").unlink()
    suite.write(b2=SUITE)
    suite.measure(*ELSEWHERE, "--instrcount-update-baseline", ".")
    in_ci()
    result = suite.measure(*ELSEWHERE, "-k", "test", ".")
    command = shlex.split(first_fix(result), comments=True)
    assert command[:2] == ["pytest", "--instrcount-prune"]
    assert "-k" not in command
    suite.run(*command[1:])
    assert suite.measure(*ELSEWHERE, ".").ret == pytest.ExitCode.OK


@pytest.mark.parametrize(("text", "is_said"), [(GONE, True), (UNMARKED, True), (SKIPPED, False)])
def test_the_prune_is_advised_outside_ci(suite: Project, text: str, is_said: bool) -> None:
    """Where it would help, and not by the run that does it."""
    suite.write(text)
    line = "  delete stale baselines: pytest --instrcount-prune"
    assert any(each.startswith(line) for each in suite.measure().outlines) is is_said
    assert line not in suite.measure("--instrcount-prune").stdout.str()


def test_the_mend_of_a_damaged_baseline_has_the_options_of_the_run(
    suite: Project, in_ci: Callable[[], None]
) -> None:
    """It measures into the folder that the run reads."""
    suite.write(b1=SUITE)
    suite.measure(*ELSEWHERE, "--instrcount-update-baseline", ".")
    path = next(suite.path.glob("kept/*/*/test_a-*.json"))
    path.write_text("{}")
    result = suite.measure(*ELSEWHERE, "b1.py")
    remove, update = (shlex.split(each) for each in first_fix(result).split(" && "))
    assert remove[0] == "rm"
    Path(suite.path, remove[1]).unlink()
    suite.run(*update[1:])
    in_ci()
    assert suite.measure(*ELSEWHERE, "b1.py").ret == pytest.ExitCode.OK


def test_a_run_that_is_ended_with_exit_code_0_fails_in_ci(
    suite: Project, in_ci: Callable[[], None]
) -> None:
    suite.write(test_z="import pytest\ndef test_z(): pytest.exit('done', returncode=0)\n")
    assert suite.measure().ret == pytest.ExitCode.OK
    in_ci()
    result = suite.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*ended before its counts were judged*[[]not-judged]"])


@pytest.mark.parametrize("how", ["an exit", "--instrcount-only", "--instrcount-against=HEAD"])
def test_a_run_that_judges_nothing_fails_in_ci(
    suite: Project, in_ci: Callable[[], None], how: str
) -> None:
    """Ended before its tests are known, or with a debugger, beside which nothing is measured."""
    leaves = "import pytest\ndef pytest_collection(): pytest.exit('no database', returncode=0)\n"
    suite.write(conftest=leaves if how == "an exit" else "")
    in_ci()
    result = suite.measure() if how == "an exit" else suite.run(how, "--pdb")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("how", ["clear()", "pop('CI')"])
def test_a_conftest_cannot_leave_ci(suite: Project, in_ci: Callable[[], None], how: str) -> None:
    """It may change the environment of its tests; where the run is, was settled before."""
    suite.write(UNMARKED, conftest=f"import os\nos.environ.{how}\n")
    in_ci()
    before = dict(os.environ)
    result = suite.measure()
    os.environ.update(before)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("cause", ["gone", "unmarked"])
def test_shards_are_judged_by_merge(
    suite: Project,
    in_ci: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
    cause: str,
) -> None:
    """Each shard without the test passes; the merge of their reports fails, unless the cause is allowed."""
    more = "\n@pytest.mark.instrcount\ndef test_c(): pass\n"
    suite.write(SUITE + more)
    suite.update()
    suite.write(CASES[cause][0] + more)
    in_ci()
    paths: list[str] = []
    for number, left_out in enumerate(("test_a", "test_c")):
        paths.append(str(suite.outside / f"{number}.json"))
        result = suite.measure(
            f"--deselect=test_it.py::{left_out}", f"--instrcount-report=json:{paths[-1]}"
        )
        assert result.ret == (cause == "unmarked")
    into = str(suite.outside / "all.json")
    assert cli.main(["merge", "--into", into, *paths]) == 1
    assert f"stale test_it.py::test_b ({cause})" in capsys.readouterr().out
    assert cli.main(["merge", "--into", into, *paths, "--allow", cause]) == 0
    (entry,) = [
        each for each in json.loads(Path(into).read_text())["tests"] if each["verdict"] == "stale"
    ]
    assert entry["cause"] == cause


def test_ids_that_xdist_changes(pytester: pytest.Pytester) -> None:
    """``--dist=loadgroup`` adds groups to the ids of tests: none of them was left out."""
    selection = Selection(pytester.parseconfig())
    item: Any = SimpleNamespace(nodeid="test_it.py::test_a", get_closest_marker=str)
    selection.pytest_itemcollected(item)
    item.nodeid += "@group"
    session: Any = SimpleNamespace(items=[item])
    selection.pytest_collection_finish(session)
    assert selection.knows_all()
    session.items = []
    selection.pytest_itemcollected(item)
    selection.pytest_collection_finish(session)
    assert not selection.knows_all()


def test_a_variable_that_the_code_would_find(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes another way under Valgrind, which no count shows."""
    monkeypatch.setattr(variables, "environment_of", lambda _: {"GREETING": "1"})
    project.write(
        "import os, pytest\n"
        "@pytest.mark.instrcount\n"
        "def test_a(): assert not os.environ.get('GREETING')\n"
    )
    said = "GREETING is set, and not there under Valgrind: test_it.py would find it"
    project.measure().stdout.fnmatch_lines([said, "  (instrcount_env = GREETING in the ini file)"])
    project.measure("-o", "instrcount_env=GREETING").stdout.no_fnmatch_line(said)
    project.pytester.makeconftest(
        "from pytest_instrcount import ChildSpec\n"
        "def pytest_instrcount_child(): return ChildSpec(variables={'GREETING': ''})"
    )
    project.measure().stdout.no_fnmatch_line(said)
