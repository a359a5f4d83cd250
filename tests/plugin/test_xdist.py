"""Traces under pytest-xdist: the same files as without, what is wrong is said once, nobody is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import Project

pytest.importorskip("xdist")

HERE = "-n0"
SPREAD = "-n2"
BOTH = pytest.mark.parametrize("processes", [HERE, SPREAD])


class Spread:
    """A project whose runs are processes of their own, with pytest-xdist."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.path = project.path
        self.folder = project.outside / "traces"

    def write(self, text: str, **files: str) -> None:
        self.project.write(text, **files)

    def run(self, *args: str) -> pytest.RunResult:
        given = [f"-p{name}" for name in ("xdist.plugin", "pytest_instrcount.plugin")]
        return self.project.pytester.runpytest_subprocess(*given, "-pno:cacheprovider", *args)

    def trace(self, *args: str) -> pytest.RunResult:
        return self.run(f"--trace-profile={self.folder}", *args)

    def files(self) -> list[str]:
        """All there is below the folder."""
        return sorted(
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if not path.is_dir()
        )

    def names(self, pattern: str) -> list[str]:
        """What was called or named in the one trace whose file matches; in order."""
        (path,) = self.folder.rglob(pattern)
        return [event["name"] for event in events_in(path) if event["ph"] in "Xb"]


def events_in(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


@pytest.fixture
def spread(project: Project, monkeypatch: pytest.MonkeyPatch) -> Spread:
    package = Path(__file__).parents[2]
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), *([path] if path else [])]))
    project.pytester.plugins.clear()  # they are named on the command line
    return Spread(project)


# --- a file per test ------------------------------------------------------------------------------

MANY = """
    import asyncio, json, unittest
    import pytest
    from pytest_instrcount import record_function

    def helper(n):
        return n + 1

    @pytest.mark.trace_profile
    @pytest.mark.parametrize("text", ["a/b", "../up", "\u00e9\u4e2d", "", "x" * 90, "a b", "a_b"])
    def test_ids(text):
        helper(1)

    @pytest.mark.trace_profile
    def test_asyncio():
        async def work(n):
            await asyncio.sleep(0)
            return helper(n)
        async def main():
            return await asyncio.gather(work(1), work(2))
        assert asyncio.run(main()) == [2, 3]

    @pytest.mark.trace_profile(tracer="legacy")
    def test_asyncio_ranges():
        @record_function("task")
        async def work():
            await asyncio.sleep(0)
        async def main():
            await asyncio.gather(work(), work())
        asyncio.run(main())

    @pytest.mark.trace_profile
    class TestUnit(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.one = 1

        def test_unit(self):
            assert helper(self.one) == 2

    @pytest.mark.trace_profile
    class TestAsyncUnit(unittest.IsolatedAsyncioTestCase):
        async def test_unit(self):
            await asyncio.sleep(0)
            helper(1)

    @pytest.mark.trace_profile(phases=("setup", "call", "teardown"), max_calls={"conftest:*": 2})
    def test_phases(made):
        helper(1)

    def test_fixture(made, trace_profile):
        with trace_profile:
            helper(made)

    def test_other():
        helper(1)
    """
CONFTEST = """
    import pytest

    def build(n):
        return n

    @pytest.fixture
    def made():
        yield build(1)
        build(2)
    """


@BOTH
def test_every_traced_test_has_its_file(spread: Spread, processes: str) -> None:
    """Coroutines, unittest, fixtures of a conftest, any id; with workers the very same names."""
    spread.write(MANY, conftest=CONFTEST)
    spread.trace(processes).assert_outcomes(passed=14)
    names = [path.rpartition("-")[0] for path in spread.files() if path.startswith("test_it/")]
    assert sorted(names) == sorted(
        [
            "test_it/TestAsyncUnit.test_unit",
            "test_it/TestUnit.test_unit",
            "test_it/test_asyncio",
            "test_it/test_asyncio_ranges",
            "test_it/test_fixture",
            "test_it/test_phases",
            "test_it/test_ids",
            "test_it/test_ids_a_b",
            "test_it/test_ids_a_b",
            "test_it/test_ids_a_b",
            "test_it/test_ids_.._up",
            "test_it/test_ids_xe9_u4e2d",
            "test_it/test_ids_" + "x" * 51,
        ]
    )
    assert spread.names("test_asyncio-*").count("test_it.helper") == 2
    assert spread.names("test_asyncio_ranges-*") == ["task", "task"]
    for name in ("TestUnit*", "TestAsyncUnit*", "test_ids_xx*", "test_fixture-*"):
        assert spread.names(name).count("test_it.helper") == 1, name


@BOTH
def test_an_empty_trace_is_no_file(spread: Spread, processes: str) -> None:
    """Nor is it the end of the run; and the file of an earlier run does not stand for it."""
    text = """
        import pytest
        from pytest_instrcount import record_function

        @pytest.mark.trace_profile(tracer="legacy")
        def test_a():
            BODY

        def test_z(): pass
        """
    spread.write(text.replace("BODY", "record_function('load').__enter__()"))
    spread.trace(processes).assert_outcomes(passed=2)
    assert spread.names("test_a-*") == ["load"]
    spread.write(text.replace("BODY", "pass"))
    spread.trace(processes).assert_outcomes(passed=2)
    assert not list(spread.folder.rglob("test_a-*"))


@BOTH
def test_a_trace_that_cannot_be_written_is_an_error_of_its_test(
    spread: Spread, processes: str
) -> None:
    """The other tests go on, and theirs are written."""
    spread.write(
        """
        import pytest

        @pytest.mark.trace_profile
        @pytest.mark.parametrize("n", range(4))
        def test_a(n): str(n)
        """
    )
    spread.trace(processes).assert_outcomes(passed=4)
    (path,) = spread.folder.rglob("test_a_2-*")
    path.unlink()
    path.mkdir()
    result = spread.trace(processes)
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_a[[]2]*", "*[[]profile-write]"])
    assert len(list(spread.folder.rglob("test_a_*"))) == 4


@BOTH
def test_a_folder_that_cannot_be_made(spread: Spread, processes: str) -> None:
    """Before any test runs: exit 4, and what to type."""
    spread.write(MANY, conftest=CONFTEST)
    spread.folder.write_text("a file")
    result = spread.trace(processes)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert text.count("traces cannot be written") == 1, text
    assert "[trace-write]" in text
    assert "INTERNALERROR" not in text
    assert "passed" not in text


@BOTH
def test_wrong_markers(spread: Spread, processes: str) -> None:
    """Named as without workers: once, before any test runs."""
    spread.write(
        """
        import pytest

        @pytest.mark.trace_profile(speed="\\ud800")
        def test_a(): pass
        def test_b(): pass
        """
    )
    result = spread.run(processes)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert text.count("test_a: the trace_profile marker has no argument 'speed'") == 1, text
    assert "INTERNALERROR" not in text
    assert "passed" not in text


@BOTH
def test_a_passed_ceiling_is_told_once(spread: Spread, processes: str) -> None:
    """In the summary of the controller, with the calls."""
    spread.write(
        """
        import pytest

        def helper(): pass

        @pytest.mark.trace_profile(max_calls={"test_it:helper": 1})
        @pytest.mark.parametrize("n", range(4))
        def test_a(n):
            for _ in range(n): helper()
        """
    )
    result = spread.run(processes)
    result.assert_outcomes(passed=2, failed=2)
    text = result.stdout.str()
    for calls in (2, 3):
        line = f"\ntest_it:helper: {calls} calls, at most 1 allowed\n"
        assert text.count(line) == 1, text
