"""Updating baselines: which are written, when none is, and which files are never overwritten."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.gate.store.baseline_json import SCHEMA
from pytest_instrcount.session.outcomes import Outcomes
from tests.plugin.conftest import Project

SUITE = """
import pytest
pytestmark = pytest.mark.instrcount

def test_same(): pass

def test_slower(): pass

def test_faster(): pass

def test_within(): pass

def test_new(): pass
"""


@pytest.fixture
def moved(project: Project) -> Project:
    """Baselines of 10,000, one missing, and costs that have changed since."""
    project.write(SUITE)
    project.update("--deselect", "test_it.py::test_new")
    assert len(project.baselines()) == 4
    project.valgrind.costs |= {"test_slower": 11_000, "test_faster": 9_000, "test_within": 10_001}
    return project


@pytest.mark.parametrize(
    ("args", "changed"),
    [
        ((), {"test_slower": 11_000, "test_faster": 9_000}),
        (
            ("--instrcount-update-policy=all",),
            {"test_slower": 11_000, "test_faster": 9_000, "test_within": 10_001},
        ),
        (("--instrcount-update-policy=missing",), {}),
        (("--instrcount-update-policy=failing",), {"test_slower": 11_000}),
    ],
)
def test_policies(moved: Project, args: tuple[str, ...], changed: dict[str, int]) -> None:
    """What is unchanged is left alone, so that small steps add up; ``all`` stores every count."""
    before = moved.baseline_ir()
    assert set(before.values()) == {10_000}
    moved.update(*args)
    assert moved.baseline_ir() == before | changed | {"test_new": 10_000}


def test_what_is_accepted_does_not_fail(moved: Project) -> None:
    """An update exits 0, in CI too; the section says how many files were written, once."""
    result = moved.update()
    result.assert_outcomes(passed=5)
    assert result.ret == pytest.ExitCode.OK
    assert result.stdout.str().count("baselines written") == 1
    assert "accept:" not in result.stdout.str()
    assert moved.measure().ret == pytest.ExitCode.OK


def test_a_first_run_says_how_long_it_takes(
    moved: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From what counting each test once took."""
    take = Outcomes.take

    def slow(outcomes: Outcomes, *test: Any) -> str | None:
        test[-1]["seconds"] = 600.0
        return take(outcomes, *test)

    monkeypatch.setattr(Outcomes, "take", slow)
    said = re.compile(
        r"instrcount: measuring \d tests again, and in 3 other layouts, about \d+ minutes"
    )
    assert any(said.fullmatch(line) for line in moved.update().stdout.lines)


def test_update_in_ci(moved: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag wins over CI."""
    monkeypatch.setenv("CI", "true")
    assert moved.update().ret == pytest.ExitCode.OK
    assert "test_new" in moved.baselines()


def test_what_is_not_stored_still_fails(moved: Project) -> None:
    """``missing`` leaves the regression, which fails; the command to accept it would do so."""
    result = moved.update("--instrcount-update-policy=missing")
    result.assert_outcomes(passed=5, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    accept = [line for line in result.stdout.lines if "accept: " in line]
    assert accept
    assert "--instrcount-update-policy" not in accept[0]
    assert accept[0].count("--instrcount-update-baseline") == 1


def test_policy_from_the_ini(moved: Project) -> None:
    """The ini twin alone, without the update flag, writes nothing."""
    moved.pytester.makeini("[pytest]\ninstrcount_update_policy = missing\n")
    moved.measure()
    assert "test_new" not in moved.baselines()
    moved.update()
    assert moved.baseline_ir()["test_slower"] == 10_000
    assert "test_new" in moved.baselines()


def test_the_accepting_command_accepts_what_the_run_has_shown(moved: Project) -> None:
    """It names the tests, keeps what tells the project, and leaves out how the run was shown."""
    result = moved.measure("-x", "-vk", "slower or new or within", "--rootdir=.", "test_it.py")
    names = "test_it.py::test_slower test_it.py::test_new"
    result.stdout.fnmatch_lines(
        [
            "  accept: pytest --instrcount-update-baseline test_it.py::test_slower --rootdir=.",
            f"  accept: pytest --instrcount-update-baseline {names} --rootdir=.",
        ]
    )
    before = moved.baseline_ir()
    moved.update("--rootdir=.", *names.split())
    assert moved.baseline_ir() == before | {"test_slower": 11_000, "test_new": 10_000}


def test_the_accepting_command_is_for_where_it_is_typed(
    moved: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests are named from the folder in which pytest was started."""
    (moved.path / "sub").mkdir()
    monkeypatch.chdir(moved.path / "sub")
    moved.measure("--rootdir=..", "../test_it.py").stdout.fnmatch_lines(
        ["  accept: pytest --instrcount-update-baseline ../test_it.py::test_slower --rootdir=.."]
    )


def test_a_partial_update_touches_what_ran(moved: Project) -> None:
    """-k, paths: other baselines stay as they are, and none is deleted."""
    moved.update("-k", "slower")
    moved.update("test_it.py::test_faster")
    assert moved.baseline_ir() == {
        "test_same": 10_000,
        "test_slower": 11_000,
        "test_faster": 9_000,
        "test_within": 10_000,
    }


def test_equal_files_are_not_touched(moved: Project) -> None:
    """A second update changes no byte and no time."""
    moved.update()
    paths = list(moved.baselines().values())
    for path in paths:
        os.utime(path, ns=(0, 0))
    moved.update()
    assert [path.stat().st_mtime_ns for path in paths] == [0] * 5


FAILING = """
import pytest

def test_first(): assert 0

@pytest.mark.instrcount
def test_a(): pass

@pytest.mark.instrcount
def test_last(): assert 0
"""


@pytest.mark.parametrize("args", [("-x",), ("--maxfail=2",)])
def test_stopped_by_a_failure_writes_nothing(project: Project, args: tuple[str, ...]) -> None:
    """An update that -x or --maxfail stops is not whole; the note says so."""
    project.write(FAILING)
    result = project.update(*args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["gate skipped: the run was interrupted; no baseline was written"])
    assert not project.baselines()


def test_interrupted_by_the_user_writes_nothing(project: Project) -> None:
    """Ctrl-C while a result is awaited: exit 2, no baseline, no gate, the zygote is ended."""
    project.write(SUITE)

    def interrupt(name: str) -> None:
        if name == "test_faster":
            raise KeyboardInterrupt

    project.valgrind.while_waiting = interrupt
    result = project.update()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["gate skipped: the run was interrupted; no baseline was written"])
    assert not project.baselines()
    assert project.valgrind.started[-1].ended == 1
    assert "gate skipped: the run was interrupted" in project.measure().outlines


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("raise KeyboardInterrupt", pytest.ExitCode.INTERRUPTED),
        ("pytest.exit('enough')", pytest.ExitCode.INTERRUPTED),
        ("pytest.exit('enough', 7)", 7),  # such a status leaves out the summary
    ],
)
@pytest.mark.parametrize("mark", ["@pytest.mark.instrcount", "@pytest.mark.filterwarnings()"])
def test_a_test_that_ends_the_session(
    project: Project, statement: str, status: int, mark: str
) -> None:
    """Measured or native: the session ends as in pytest, and nothing is written."""
    project.write(
        f"import pytest\n"
        f"@pytest.mark.instrcount\ndef test_a(): pass\n"
        f"{mark}\ndef test_end(): {statement}\n"
        f"def test_never(): pass\n"
    )
    result = project.update()
    assert result.ret == status
    assert not project.baselines()
    if status == pytest.ExitCode.INTERRUPTED:
        result.stdout.fnmatch_lines(["gate skipped: *"])
    assert "error" not in result.stdout.lines[-1]
    assert "2 passed" not in result.stdout.str()


def test_collection_errors_write_nothing(project: Project) -> None:
    """A file that cannot be imported ends the run before any test."""
    project.write(SUITE, test_broken="import no_such_module")
    result = project.update()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not project.baselines()


def test_failing_tests_hinder_no_update_of_others(project: Project) -> None:
    """Without -x the run is whole: what passed is stored."""
    project.write(FAILING)
    result = project.update()
    result.assert_outcomes(passed=1, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert set(project.baselines()) == {"test_a"}


# --- files that are no baselines ----------------------------------------------------------------


def damage(project: Project, how: str) -> tuple[Path, bytes]:
    path = project.baselines()["test_same"]
    text = path.read_text()
    if how == "cut":
        text = text[: len(text) // 2]
    elif how == "conflict":
        text = f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> other\n"
    elif how == "pointer":
        text = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    elif how == "newer":
        text = text.replace(f'"schema": {SCHEMA}', '"schema": 99')
    elif how == "mismatch":
        text = json.dumps(
            {**json.loads(text), "nodeid": "test_it.py::test_other", "profile": "0" * 12}
        )
    elif how == "folder":
        path.unlink()
        path.mkdir()
        return path, b""
    path.write_text(text)
    return path, path.read_bytes()


KEPT = ("test_same", "test_slower", "test_faster", "test_within", "test_new")

KINDS = {
    "cut": "baseline-damaged",
    "pointer": "baseline-damaged",
    "conflict": "baseline-conflict",
    "newer": "baseline-newer",
    "mismatch": "baseline-mismatch",
    "folder": "baseline-unreadable",
}


@pytest.mark.parametrize(("how", "slug"), KINDS.items())
def test_files_that_are_no_baselines_are_named(project: Project, how: str, slug: str) -> None:
    """The test is an error with one slug, the file and one command; the others are compared."""
    project.write(SUITE)
    project.update()
    path, _ = damage(project, how)
    result = project.measure()
    result.assert_outcomes(passed=5, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    error = text[text.index("ERROR at teardown of test_same") : text.index("- instrcount -")]
    lines = [line for line in error.splitlines()[1:] if line and not line.startswith("---")]
    assert len(lines) == 2
    assert lines[0].startswith("instrcount: ")
    assert path.name in lines[0]
    assert lines[0].endswith(f" [{slug}]")
    assert lines[1].startswith("  fix: ")
    assert (lines[1] == "  fix: git lfs pull") is (how == "pointer")
    result.stdout.fnmatch_lines(["instrcount: 4 unchanged, 1 failed"])


@pytest.mark.parametrize("whose", ["ours", "another"])
def test_a_folder_that_may_not_be_entered(project: Project, whose: str) -> None:
    """Each test is an error; another environment's is as if it were not there."""
    project.write(SUITE)
    project.update()
    [folder] = {path.parents[1] for path in project.baselines().values()}
    if whose == "another":
        folder = folder.rename(folder.with_name("cp300-linux-x86_64"))
    project.pytester.makeconftest(  # root may enter all
        f"""
        import os
        stat = os.stat
        def denied(path, *args, **kwargs):
            if isinstance(path, (str, os.PathLike)) and {f"{folder}/"!r} in os.fspath(path):
                raise PermissionError(13, "Permission denied", os.fspath(path))
            return stat(path, *args, **kwargs)
        os.stat = denied
        """
    )
    result = project.measure("test_it.py")
    assert "INTERNALERROR" not in f"{result.stdout}{result.stderr}"
    denied = {"errors": 5} if whose == "ours" else {}
    result.assert_outcomes(passed=5, **denied)


def make_older(project: Project) -> None:
    """As an older release has left them."""
    for path in project.baselines().values():
        path.write_text(path.read_text().replace(f'"schema": {SCHEMA}', '"schema": 5'))


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("-k", "slower", "-v"),
        pytest.param(
            ("--instrcount-backend=bytecode",),
            marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new"),
        ),
    ],
)
def test_baselines_of_an_older_format_are_refused_once(
    project: Project, args: tuple[str, ...]
) -> None:
    """A usage error for all of them, with the command that makes them anew."""
    project.write(SUITE)
    project.update(*args)
    make_older(project)
    result = project.measure(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = f"{result.stdout}\n{result.stderr}"
    assert text.count("[baseline-older]") == 1
    assert "INTERNALERROR" not in text
    lines = text[text.index("instrcount: the baselines in ") :].splitlines()
    assert lines[0].endswith("(schema 5, this release reads 6) [baseline-older]")
    options = "".join(f" {each}" for each in args if "backend" in each)
    command = f"pytest --instrcount-update-baseline{options}"
    assert lines[1] == f"  fix: {command}    # measures all of them again"


@pytest.mark.parametrize("policy", ["changed", "all", "missing", "failing"])
def test_an_update_replaces_baselines_of_an_older_format(project: Project, policy: str) -> None:
    """Whatever they held, with every policy: nothing can be compared with them."""
    project.write(SUITE)
    project.update()
    make_older(project)
    project.valgrind.usual = 20_000
    result = project.update(f"--instrcount-update-policy={policy}")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["instrcount: 5 baselines written to *"])
    assert project.baseline_ir() == dict.fromkeys(KEPT, 20_000)


@pytest.mark.parametrize("policy", ["changed", "all", "missing", "failing"])
@pytest.mark.parametrize("how", [how for how in KINDS if how != "conflict"])
def test_they_are_never_overwritten(project: Project, how: str, policy: str) -> None:
    """An update leaves such a file as it is, and says so as an error; the others are written."""
    project.write(SUITE)
    project.update()
    path, data = damage(project, how)
    project.valgrind.usual = 20_000
    result = project.update(f"--instrcount-update-policy={policy}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*{path.name}*"])
    assert path.read_bytes() == data if path.is_file() else not list(path.iterdir())


@pytest.mark.parametrize("policy", ["changed", "all", "missing", "failing"])
def test_an_update_settles_a_conflict(project: Project, policy: str) -> None:
    """By measuring: of two branches that changed a test, neither has counted what the merge does."""
    project.write(SUITE)
    project.update()
    path, _ = damage(project, "conflict")
    project.valgrind.costs["test_same"] = 20_000
    result = project.update(f"--instrcount-update-policy={policy}")
    assert result.ret == pytest.ExitCode.OK
    assert json.loads(path.read_text())["ir"] == 20_000
    assert project.verdicts() == dict.fromkeys(KEPT, "unchanged")


def test_the_command_of_the_message_mends_it(project: Project) -> None:
    """After ``rm`` and the update of this one test it is compared again; no other is accepted."""
    project.write(SUITE)
    project.update()
    path, _ = damage(project, "cut")
    project.valgrind.costs["test_slower"] = 20_000
    test = "test_it.py::test_same"
    project.measure().stdout.fnmatch_lines(
        [f"  fix: rm *{path.name} && pytest --instrcount-update-baseline {test}"]
    )
    path.unlink()
    project.update(test)
    assert project.verdicts() == dict.fromkeys(KEPT, "unchanged") | {"test_slower": "regressed"}


@pytest.mark.parametrize("how", ["cut", "conflict", "mismatch"])
def test_no_command_of_a_message_accepts_other_tests(project: Project, how: str) -> None:
    """What deletes a file makes that one anew."""
    project.write(SUITE)
    project.update()
    damage(project, how)
    project.measure().stdout.fnmatch_lines(
        ["  fix: *pytest --instrcount-update-baseline test_it.py::test_same*"]
    )


def test_a_folder_that_cannot_be_written(project: Project) -> None:
    """Exit 4 with the file and what to look at; no traceback."""
    project.write(SUITE)
    (project.path / "instrcount_baselines").write_text("a file in the way")
    result = project.update()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert result.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.TESTS_FAILED)
    assert "instrcount_baselines" in result.stdout.str() + result.stderr.str()
