"""``--instrcount-update-inline``: counts in the tests, as ``max_ir``, and no folder."""

from __future__ import annotations

import re

import pytest

from tests.plugin.conftest import Project

SUITE = """
import pytest
from pytest import mark

LIMIT = 5

@pytest.mark.instrcount
def test_bare(): pass

@pytest.mark.instrcount()
def test_empty(): pass

@mark.instrcount(max_delta="2%")
@pytest.mark.parametrize("n", [1, 2])
def test_given(n): pass

@pytest.mark.instrcount(
    warmup=3,  # é, and a ) in a comment
    calls=4,
)
def test_lines(): pass

@pytest.mark.instrcount(max_ir=9_999, calls=2)
def test_too_low(): pass

@pytest.mark.instrcount(max_ir=10_050)
def test_holds(): pass

@pytest.mark.instrcount(max_ir=90_000)
def test_too_high(): pass

@pytest.mark.instrcount(max_ir=7)
@pytest.mark.instrcount(max_ir=8)
def test_nearest(): pass

@pytest.mark.instrcount(max_ir="9_999 ir")
def test_text(): pass

@pytest.mark.instrcount(max_ir="10050ir")
def test_text_holds(): pass

if LIMIT:
    @pytest.mark.instrcount
    def test_bare_within(): pass
else:
    try: import nowhere
    except ImportError: pass

class TestClass:
    with pytest.MonkeyPatch.context():
        @pytest.mark.instrcount
        def test_bare(self): pass
"""
WRITTEN = (
    re.sub(r"instrcount(?=\n *def test_bare)", "instrcount(max_ir=10_100)", SUITE)
    .replace("instrcount()", "instrcount(max_ir=10_100)")
    .replace('max_delta="2%"', 'max_delta="2%", max_ir=20_400')
    .replace("calls=4", "calls=4, max_ir=10_100")
    .replace('"9_999 ir"', "10_100")
    .replace("9_999", "10_100")
    .replace("90_000", "10_100")
    .replace("max_ir=8)", "max_ir=10_100)")
)
OTHERS = """
import pytest

LIMIT = 5

@pytest.mark.instrcount(max_ir=LIMIT * 10_000)
def test_variable(): pass

@pytest.mark.instrcount(calls=(2))
def test_parentheses(): pass

@(pytest.mark.instrcount)()
def test_called_outside(): pass

@pytest.mark.instrcount(**{"calls": 2})
def test_unpacked(): pass

if LIMIT:
    @pytest.mark.instrcount
    def test_twice(): pass
else:
    @pytest.mark.instrcount
    def test_twice(): pass

class TestMarked:
    pytestmark = pytest.mark.instrcount
    def test_in_class(self): pass

def test_fixture(instrcount): instrcount(len, "")
"""
WHY = "no single decorator that can take it, or a parameter has its own"
PARAMETERS = """
import pytest

@pytest.mark.parametrize("n", [1, pytest.param(50, marks=pytest.mark.instrcount(max_ir=7))])
@pytest.mark.instrcount
def test_a(n): pass
"""


def test_each_form_of_a_marker(project: Project) -> None:
    """The count and the limit more, in three digits; all else stays, a link too, without a folder."""
    kept = project.path.parent / "kept.py"
    kept.write_text(SUITE)
    kept.chmod(0o755)
    (project.path / "test_it.py").symlink_to(kept)
    project.valgrind.costs["test_given[2]"] = 20_000
    result = project.run("--instrcount-update-inline")
    text = (project.path / "test_it.py").read_text()
    assert text == WRITTEN
    assert (project.path / "test_it.py").is_symlink() and kept.stat().st_mode & 0o777 == 0o755
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["instrcount: max_ir written to 10 markers"])
    assert not (project.path / "instrcount_baselines").exists()
    result = project.run("--instrcount-update-inline")
    result.stdout.fnmatch_lines(["instrcount: max_ir written to 0 markers"])
    assert (project.path / "test_it.py").read_text() == WRITTEN


def test_it_gates_from_then_on(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI as well, where an update passes and a check does not."""
    (project.path / "test_it.py").write_text(SUITE)
    project.run("--instrcount-update-inline")
    monkeypatch.setenv("CI", "1")
    check = "--instrcount", "--instrcount-missing=note"
    project.valgrind.costs["test_bare"] = 10_101
    result = project.run(*check)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*test_bare*over its max_ir of 10,100*"])
    assert project.run("--instrcount-update-inline", check[1]).ret == pytest.ExitCode.OK
    assert project.run(*check).ret == pytest.ExitCode.OK


def test_what_has_no_place_for_it_is_named(project: Project) -> None:
    """Each of them, and left as it is: a number that is computed, a marker of a class, none at all."""
    (project.path / "test_it.py").write_text(OTHERS)
    result = project.run("--instrcount-update-inline")
    assert (project.path / "test_it.py").read_text() == OTHERS
    said = " ".join(result.stdout.str().split())
    names = ["variable", "parentheses", "called_outside", "unpacked", "twice", "fixture"]
    told = [f"test_it.py::test_{name}" for name in names]
    assert f"max_ir not written ({WHY}): " in said
    assert all(each in said for each in (*told, "test_it.py::TestMarked::test_in_class"))


def test_a_parameter_with_its_own(project: Project) -> None:
    """Its case is named, left out of the largest, and keeps failing: what is written is not its ceiling."""
    (project.path / "test_it.py").write_text(PARAMETERS)
    project.valgrind.costs["test_a[50]"] = 90_000
    result = project.run("--instrcount-update-inline")
    text = (project.path / "test_it.py").read_text()
    assert text == PARAMETERS.replace("instrcount\ndef", "instrcount(max_ir=10_100)\ndef")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*test_a[[]50]*over its max_ir of 7*"])
    said = " ".join(result.stdout.str().split())
    assert f"max_ir not written ({WHY}): test_it.py::test_a[50]" in said


def test_tests_that_fail_keep_what_they_have(project: Project) -> None:
    project.write("import pytest\n@pytest.mark.instrcount\ndef test_a(): assert False\n")
    before = (project.path / "test_it.py").read_text()
    assert project.run("--instrcount-update-inline").ret == pytest.ExitCode.TESTS_FAILED
    assert (project.path / "test_it.py").read_text() == before


def test_not_beside_another_commit(project: Project) -> None:
    (project.path / "test_it.py").write_text(SUITE)
    result = project.run("--instrcount-update-inline", "--instrcount-against=HEAD")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
