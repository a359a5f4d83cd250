"""What a user sees of a measured test is what pytest shows of any test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.valgrind


def test_reports_are_those_of_pytest(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """Outcomes, output, warnings, properties and fixtures of every scope come through."""
    project.makeconftest(
        """
        import os, pytest
        @pytest.fixture(scope="session")
        def where():
            return os.environ.get("INSTRCOUNT_CHILD", "native")
        """
    )
    project.makepyfile(
        test_suite="""
        import os, threading, warnings, pytest
        pytestmark = pytest.mark.instrcount

        def test_passes(where, record_property, cache, capsys, monkeypatch):
            record_property("key", "value")
            assert len(where) == 8
        def test_fails():
            print("printed")
            assert [1, 2] == [1, 3]
        @pytest.mark.skip(reason="not today")
        def test_skips(): pass
        @pytest.mark.xfail
        def test_expected(): assert 0
        def test_warns(): warnings.warn("careful")
        def test_stateful(seen=[]):
            seen.append(1)
            assert len(seen) == 1
        def test_unused(instrcount): pass
        @pytest.mark.parametrize("name", ["a::b", "c/d", "\\xe9"])
        def test_names(name): assert name
        """,
        test_skipped_inside="""
        import os, pytest
        if os.environ.get("INSTRCOUNT_CHILD"): pytest.skip("no DATABASE_URL", allow_module_level=True)
        @pytest.mark.instrcount
        def test_not_here(): pass
        """,
        test_native="""
        import os
        def test_native(where):
            assert where == "native" and "INSTRCOUNT_CHILD" not in os.environ
        """,
    )
    before = {path.name for path in project.path.iterdir()}
    result, tests = run("--junitxml=../junit.xml", "-p", "no:randomly")
    result.assert_outcomes(passed=8, failed=1, errors=3, skipped=1, xfailed=1, warnings=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*test_skipped_inside.py: Skipped: no DATABASE_URL",
            "fix: let the variables through *: instrcount_env = NAME in the ini file*",
            "*test_stateful*",
            "*passed once and failed when it was repeated*",
            "*takes the instrcount fixture and never calls it*",
            "E       assert [[]1, 2[]] == [[]1, 3[]]",
            "*Captured stdout call*",
            "printed",
            "*UserWarning: careful*",
        ]
    )
    verdicts = {nodeid.partition("::")[2]: test["verdict"] for nodeid, test in tests.items()}
    assert verdicts["test_passes"] == "new"
    assert verdicts["test_stateful"] == verdicts["test_unused"] == "failed"
    assert "test_fails" not in verdicts
    assert "test_skips" not in verdicts
    junit = project.path.parent.joinpath("junit.xml").read_text()
    assert 'name="key" value="value"' in junit
    assert 'name="instrcount.ir"' in junit
    after = {path.name for path in project.path.iterdir()}
    # What pytest and its fixture for this test write themselves.
    after -= {
        ".pytest_cache",
        "__pycache__",
        "stdout",
        "stderr",
        "runpytest-0",
        "runpytest-current",
    }
    assert after == before


def assert_all_alike_but(uncounted: str, tests: dict[str, Any]) -> None:
    """One test has no count, and all others within a per cent the same."""
    counts = {nodeid.partition("::")[2]: test["ir"] for nodeid, test in tests.items()}
    assert counts.pop(uncounted) is None
    assert max(counts.values()) < 1.01 * min(counts.values())


def test_what_plugins_do_to_a_test_is_measured(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """What they left at it is there in each repetition, and a body that they call twice is no repetition."""
    project.makeconftest(
        """
        import pytest
        SIZE = pytest.StashKey()
        class Special(pytest.Function):
            def __init__(self, *args, size, **kwargs):
                super().__init__(*args, **kwargs)
                self.size = size
        def pytest_pycollect_makeitem(collector, name, obj):
            if name == "test_special":
                return Special.from_parent(collector, name=name, size=600)
        def pytest_collection_modifyitems(items):
            for item in items:
                item.stash[SIZE] = getattr(item, "size", 600)
        def pytest_runtest_call(item):
            item.module.SIZE = item.stash.get(SIZE, 1)
        @pytest.hookimpl(tryfirst=True)
        def pytest_pyfunc_call(pyfuncitem):
            if pyfuncitem.name == "test_twice":
                pyfuncitem.obj()
        """
    )
    project.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.instrcount
        SIZE = 1
        def test_stash(): assert sum(i * i for i in range(SIZE))
        def test_special(): assert sum(i * i for i in range(SIZE))
        def test_here(): assert sum(i * i for i in range(600))
        def test_twice(): pass
        """
    )
    result, tests = run("--instrcount-blame=off")
    assert_all_alike_but("test_twice", tests)
    result.stdout.fnmatch_lines(["*called it 2 times in one run of the test*"])


def test_what_a_test_is_called_with_is_measured(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """By an item of the project's own, or by a hook that makes values of parameters."""
    for folder in ("own", "hook"):
        project.mkdir(folder)
    project.path.joinpath("own/conftest.py").write_text(
        """
import pytest
class Mine(pytest.Function):
    def runtest(self): self.obj(600)
def pytest_pycollect_makeitem(collector, name, obj):
    return Mine.from_parent(collector, name=name) if name == "test_own" else None
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "test_around":
            item.runtest = item.obj
"""
    )
    project.path.joinpath("hook/conftest.py").write_text(
        """
def pytest_fixture_setup(fixturedef, request):
    request.param = {"many": 600}[request.param]
"""
    )
    test = "import pytest\npytestmark = pytest.mark.instrcount\n"
    body = "(n): assert sum(i * i for i in range(n))\n"
    project.path.joinpath("own/test_own.py").write_text(
        test
        + "def test_own(n=1): assert sum(i * i for i in range(n))\n"
        + "def test_around(n=600): assert sum(i * i for i in range(n))\n"
        + f"@pytest.mark.parametrize('n', [600])\ndef test_here{body}"
    )
    project.path.joinpath("hook/test_hook.py").write_text(
        f"{test}@pytest.mark.parametrize('n', ['many'])\ndef test_parameter{body}"
    )
    result, tests = run("--instrcount-blame=off")
    assert_all_alike_but("test_around", tests)
    result.stdout.fnmatch_lines(["*does not call the test function of a repetition*"])


def test_what_comes_behind_the_body_is_no_silence(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """Work that a plugin does with what the body returned is refused; a test knows that it began."""
    project.makeconftest(
        """
        import pytest
        STARTED = []
        def pytest_runtest_logstart(nodeid):
            STARTED.append(nodeid)
        @pytest.hookimpl(tryfirst=True)
        def pytest_pyfunc_call(pyfuncitem):
            if pyfuncitem.name == "test_returns":
                list(pyfuncitem.obj())
                return True
        """
    )
    project.makepyfile(
        """
        import pytest
        from conftest import STARTED
        pytestmark = pytest.mark.instrcount
        def steps(): yield sum(range(600))
        def test_returns(): return steps()
        def test_starts(): assert STARTED
        """
    )
    result, tests = run("--instrcount-blame=off")
    assert [test["ir"] is None for test in tests.values()] == [True, False]
    why = "instrcount: test_returns returns a generator, whose work nobody has done *"
    result.stdout.fnmatch_lines([f"{why}[[]unconsumed]", "  fix: *"])


def test_ids_must_be_the_same_inside(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """An id that depends on the process is an error that names both."""
    project.makepyfile(
        test_suite="""
        import os, pytest
        @pytest.mark.instrcount
        @pytest.mark.parametrize("name", ["in" if "INSTRCOUNT_CHILD" in os.environ else "out"])
        def test_name(name): pass
        """
    )
    result, _ = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_name[[]out[]]*", "*test_name[[]in[]]*"])
