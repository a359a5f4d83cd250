"""What a measured test reported is told again: output, times, warnings, fixtures, as in pytest."""

from __future__ import annotations

import re

import pytest

from tests.plugin.conftest import Project

LOUD = """
import sys, warnings, pytest
pytestmark = pytest.mark.instrcount

@pytest.fixture
def loud():
    print("set up")
    yield
    print("torn down")

def test_loud(loud):
    print("called")
    print("to stderr", file=sys.stderr)

def test_fails(loud):
    print("called and failed")
    assert [1, 2] == [1, 3]
"""


def test_verbose_names_each_test_once(project: Project) -> None:
    """-v: one line for a test, with its outcome and the percentage of the run."""
    project.write(LOUD)
    text = project.measure("-v").stdout.str()
    assert len(re.findall(r"^test_it.py::test_loud PASSED +\[ 50%\]$", text, re.M)) == 1
    assert len(re.findall(r"^test_it.py::test_fails FAILED +\[100%\]$", text, re.M)) == 1


def test_failures_have_pytests_explanation_and_output(project: Project) -> None:
    """The rewritten assert, the sections of captured output, the line of the file."""
    project.write(LOUD)
    result = project.measure()
    result.stdout.fnmatch_lines(
        [
            "*_ test_fails _*",
            ">       assert [[]1, 2[]] == [[]1, 3[]]",
            "E       assert [[]1, 2[]] == [[]1, 3[]]",
            "E         At index 1 diff: 2 != 3",
            "test_it.py:16: AssertionError",
            "*- Captured stdout setup -*",
            "set up",
            "*- Captured stdout call -*",
            "called and failed",
            "*- Captured stdout teardown -*",
            "torn down",
            "FAILED test_it.py::test_fails - assert [[]1, 2[]] == [[]1, 3[]]",
        ]
    )


@pytest.mark.parametrize("option", ["--tb=line", "--tb=no", "-ra", "--show-capture=no", "-rP"])
def test_presentation_is_the_native_one(project: Project, option: str) -> None:
    """Options of how to show it need no help from inside: the lines are those of a native run."""
    project.write(LOUD)

    def lines(*args: str) -> list[str]:
        shown = [line for line in project.run(option, *args).stdout.lines if line]
        start = next(n for n, line in enumerate(shown) if line.startswith("test_it.py"))
        kept = [line for line in shown[start:] if "instrcount" not in line]
        table = re.compile(r"test +baseline|-+  -+|test_it.py::test_loud +-|  accept:")
        return [re.sub(r" in [0-9.]+s", "", line) for line in kept if not table.match(line)]

    assert lines("--instrcount") == lines()


def test_output_is_shown_once_with_s(project: Project) -> None:
    """-s: what the test printed, each line once, and no section of it later."""
    project.write(LOUD)
    result = project.measure("-s")
    text = result.stdout.str()
    for line in ("called\n", "called and failed\n"):
        assert text.count(line) == 1
    assert text.count("set up\n") == 2
    assert text.count("torn down\n") == 2
    assert result.stderr.str().count("to stderr") == 1
    assert "Captured stdout" not in text


def test_setup_show(project: Project) -> None:
    """--setup-show: the fixtures of a measured test, as natively; without it, none is seen."""
    project.write(LOUD)
    lines = [
        "*SETUP    F loud",
        "*test_it.py::test_loud (fixtures used: loud)*",
        "*TEARDOWN F loud*",
    ]
    project.run("--setup-show").stdout.fnmatch_lines(lines)
    project.measure("--setup-show").stdout.fnmatch_lines(lines)
    assert "SETUP " not in project.measure("-vv").stdout.str()


def test_durations(project: Project) -> None:
    """--durations lists a measured test with the seconds that it took inside."""
    project.write(
        """
        import time, pytest
        @pytest.mark.instrcount
        def test_slow(): time.sleep(0.03)
        """
    )
    result = project.measure("--durations=1", "-vv")
    (line,) = [line for line in result.stdout.lines if re.match(r"[0-9.]+s call ", line)]
    assert line.endswith("test_it.py::test_slow")
    assert 0.03 <= float(line.partition("s")[0]) < 3


def test_warnings_come_through(project: Project) -> None:
    """A warning given inside is in the summary, under the test; a category of the suite's, too."""
    project.write(
        """
        import warnings, pytest

        class Own(UserWarning):
            def __init__(self, first, second): super().__init__(first)

        @pytest.mark.instrcount
        def test_warns():
            warnings.warn("old ways", DeprecationWarning)
            warnings.warn(Own("two arguments", 2))
        """
    )
    result = project.measure("-W", "default")
    result.assert_outcomes(passed=1, warnings=2)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_warns",
            "*test_it.py:8: DeprecationWarning: old ways",
            "*two arguments",
        ]
    )


def test_warnings_as_errors(project: Project) -> None:
    """-W error fails the measured test, not the run."""
    project.write(
        "import warnings, pytest\n"
        "@pytest.mark.instrcount\ndef test_warns(): warnings.warn('x')\n"
        "@pytest.mark.instrcount\ndef test_calm(): pass\n"
    )
    project.measure("-W", "error").assert_outcomes(failed=1, passed=1)


def test_skips_keep_their_place(project: Project) -> None:
    """-rs: file and line of a skip come through, tuples and all."""
    project.write(
        "import pytest\n@pytest.mark.instrcount\ndef test_a():\n    pytest.skip('no need')\n"
    )
    project.measure("-rs").stdout.fnmatch_lines(["SKIPPED [[]1[]] test_it.py:4: no need"])


def test_capture_is_asked_in_vain(project: Project) -> None:
    """capsys, tmp_path and monkeypatch are the test's own inside, as natively."""
    project.write(
        """
        import os, pytest

        @pytest.mark.instrcount
        def test_a(capsys, tmp_path, monkeypatch):
            print("mine")
            assert capsys.readouterr().out == "mine\\n"
            (tmp_path / "f").write_text("")
            monkeypatch.setenv("ONLY_INSIDE", "1")

        def test_native():
            assert "ONLY_INSIDE" not in os.environ
        """
    )
    project.measure().assert_outcomes(passed=2)


def test_waiting_is_said_now_and_then(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """After half a minute without a result a line says which test is awaited."""
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    monkeypatch.setattr("pytest_instrcount.session.progress._PULSE_SECONDS", 0.0)
    project.measure().stdout.fnmatch_lines(["instrcount: waiting for test_it.py::test_a (* s)"])
    monkeypatch.undo()


def test_waiting_is_said_in_80_columns(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long id its end."""
    name = f"test_{'long_' * 20}name"
    project.write(f"import pytest\n@pytest.mark.instrcount\ndef {name}(): pass\n")
    monkeypatch.setattr("pytest_instrcount.session.progress._PULSE_SECONDS", 0.0)
    lines = [line for line in project.update().outlines if "waiting for" in line]
    assert lines
    assert all("_name (" in line and len(line) <= 80 for line in lines)
    monkeypatch.undo()


def test_progress_of_what_pytest_does_not_show(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first run measures again, with no dot of pytest's: it says how far it is."""
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\ntest_b = test_a\n")
    monkeypatch.setattr("pytest_instrcount.session.progress._PULSE_SECONDS", 0.0)
    project.update().stdout.fnmatch_lines(
        [
            "*instrcount: measuring 2 tests again, and in 3 other layouts",
            "instrcount: 0 of 2 done, waiting for test_it.py::test_a (* s)",
            "instrcount: 1 of 2 done, waiting for test_it.py::test_b (* s)",
            "instrcount: measuring 2 tests by Python function *",
            "instrcount: 0 of 2 done, waiting for test_it.py::test_a (* s)",
            "instrcount: 1 of 2 done, waiting for test_it.py::test_b (* s)",
        ]
    )
    monkeypatch.undo()


#: pytest's recipe for tests that build on each other.
INCREMENTAL = """
    import pytest

    def pytest_runtest_makereport(item, call):
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            item.parent.failed = item.name

    def pytest_runtest_setup(item):
        if hasattr(item.parent, "failed"):
            pytest.xfail(f"{item.parent.failed} failed")
    """
#: As pytest-dependency has it, and one that wants what is there in the process of the test alone.
RESULTS = """
    import pytest

    ended = []

    @pytest.fixture
    def page():
        return "a page"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item):
        report = yield
        ended.append(f"{item.name} {report.when} {report.outcome}")
        report.sections.append(("made", "by a conftest"))
        if item.name == "test_c" and report.failed:
            report.page = item.funcargs["page"]
        return report

    def pytest_terminal_summary(terminalreporter):
        terminalreporter.write_line(", ".join(ended))
    """


def test_plugins_know_that_a_measured_test_failed(project: Project) -> None:
    """What comes next builds on it."""
    project.pytester.makeconftest(INCREMENTAL)
    project.write(
        "import pytest\n@pytest.mark.instrcount\ndef test_a(): assert 0\ndef test_b(): pass\n"
    )
    result = project.measure("-rx")
    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["XFAIL *test_b - *test_a failed"])


def test_plugins_know_how_measured_tests_ended(project: Project) -> None:
    """What they make of a report is what they made of it where the test ran; what they raise is said."""
    project.pytester.makeconftest(RESULTS)
    project.write(
        """
        import pytest
        pytestmark = pytest.mark.instrcount
        def test_a(): pass
        def test_b(): pytest.skip("not here")
        def test_c(page): assert 0
        """
    )
    result = project.measure()
    result.assert_outcomes(passed=1, skipped=1, failed=1)
    result.stdout.fnmatch_lines(
        ["test_a setup passed, test_a call passed, test_a teardown passed, *"]
    )
    result.stdout.fnmatch_lines(["*, test_b call skipped, *"])
    result.stdout.fnmatch_lines(["*, test_c call failed, *"])
    joined = " ".join(map(str.strip, result.stdout.lines))
    assert (
        "test_c: the pytest_runtest_makereport of a conftest was told how it ended, and raised KeyError"
        in joined
    )
    assert joined.count("by a conftest") == 1


ATTRIBUTES = """
    import pytest

    # one element each: the order of more is not that of their making
    GIVEN = {
        "tags": {("a", frozenset({b"\\xff"}))}, "pair": (1, [2, (3,)]), "none": {}, "ratio": float("inf"),
        "keys": {1: "a", None: {True: 1.5}, ("a", 1): b"", "b": set()}, "like_ours": {"set": [1]},
    }

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        report = (yield).get_result()
        vars(report).update(GIVEN)
        report.other = {1: len}

    def pytest_runtest_logreport(report):
        if report.when == "call":
            found = {name: getattr(report, name) for name in GIVEN}
            print("\\nall the same" if repr(found) == repr(GIVEN) else found, report.other)
"""


def test_what_a_hook_puts_on_a_report_keeps_its_type(project: Project) -> None:
    """As without measuring, and under pytest-xdist; another object is its text."""
    project.pytester.makeconftest(ATTRIBUTES)
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    project.run("-s").stdout.fnmatch_lines(["all the same {1: <built-in function len>}"])
    project.measure("-s").stdout.fnmatch_lines(["all the same {1: '<built-in function len>'}"])
