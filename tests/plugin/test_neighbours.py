"""Native tests between measured ones: fixtures of wider scope begin and end where they should."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Project

CONFTEST = """
import json, os, pytest

LOG = []
HERE = os.getpid()

def note(what):
    if os.getpid() == HERE:
        LOG.append(what)

def pytest_sessionfinish(session):
    with open(session.config.rootpath / "log.json", "w") as file:
        json.dump(LOG, file)

@pytest.fixture(scope="session")
def for_session():
    note("+session")
    yield
    note("-session")

@pytest.fixture(scope="module")
def for_module(request):
    note(f"+{request.module.__name__}")
    yield
    note(f"-{request.module.__name__}")

@pytest.fixture(scope="class")
def for_class(request):
    note(f"+{request.cls.__name__}")
    yield
    note(f"-{request.cls.__name__}")

@pytest.fixture(autouse=True)
def noted(request):
    note(request.node.name)
"""


def log_of(project: Project, *args: str) -> list[str]:
    """What the native process did, in order; nothing may have been left set up."""
    result = project.measure(*args)
    text = result.stdout.str()
    assert "previous item was not torn down properly" not in text
    assert result.ret == pytest.ExitCode.OK, text
    log: list[str] = json.loads((project.path / "log.json").read_text())
    return log


def test_a_module_fixture_lives_over_a_measured_test(project: Project) -> None:
    """Set up by the first native test, kept for the last one, ended before the next file."""
    project.pytester.makeconftest(CONFTEST)
    project.write(
        test_one="""
        import pytest
        def test_native1(for_session, for_module): pass
        @pytest.mark.instrcount
        def test_measured(for_session, for_module): pass
        def test_native2(for_module): pass
        """,
        test_two="""
        import pytest
        def test_native3(for_session): pass
        """,
    )
    assert log_of(project) == [
        "+session",
        "+test_one",
        "test_native1",
        "test_native2",
        "-test_one",
        "test_native3",
        "-session",
    ]


def test_a_measured_test_at_the_end_of_a_file(project: Project) -> None:
    """It is the last to share the module's fixtures: they end after it, before the next file."""
    project.pytester.makeconftest(CONFTEST)
    project.write(
        test_one="""
        import pytest
        def test_native1(for_session, for_module): pass
        @pytest.mark.instrcount
        def test_measured1(for_module): pass
        @pytest.mark.instrcount
        def test_measured2(for_module): pass
        """,
        test_two="""
        import pytest
        @pytest.mark.instrcount
        def test_measured3(for_module): pass
        def test_native2(for_module): pass
        """,
        test_zzz="""
        import pytest
        @pytest.mark.instrcount
        def test_measured4(for_session): pass
        """,
    )
    assert log_of(project) == [
        "+session",
        "+test_one",
        "test_native1",
        "-test_one",
        "+test_two",
        "test_native2",
        "-test_two",
        "-session",
    ]


def test_classes_in_between(project: Project) -> None:
    """The same for classes, with native and measured methods mixed."""
    project.pytester.makeconftest(CONFTEST)
    project.write(
        """
        import pytest

        class TestA:
            def test_native1(self, for_class, for_module): pass
            @pytest.mark.instrcount
            def test_measured1(self, for_class): pass

        class TestB:
            @pytest.mark.instrcount
            def test_measured2(self, for_class): pass
            def test_native2(self, for_class): pass
            @pytest.mark.instrcount
            def test_measured3(self, for_class): pass

        def test_native3(): pass
        """
    )
    assert log_of(project) == [
        "+test_it",
        "+TestA",
        "test_native1",
        "-TestA",
        "+TestB",
        "test_native2",
        "-TestB",
        "test_native3",
        "-test_it",
    ]


def test_measured_tests_alone_set_up_nothing_here(project: Project) -> None:
    """Their fixtures belong to their own process."""
    project.pytester.makeconftest(CONFTEST)
    project.write(
        """
        import pytest
        pytestmark = pytest.mark.instrcount
        def test_a(for_session, for_module): pass
        def test_b(for_session, for_module): pass
        """
    )
    assert log_of(project) == []


def test_the_order_is_the_native_one(project: Project) -> None:
    """Measured and native tests are reported in the order of the collection."""
    project.write(
        """
        import pytest
        def test_1(): pass
        @pytest.mark.instrcount
        def test_2(): pass
        def test_3(): pass
        @pytest.mark.instrcount
        def test_4(): pass
        """
    )
    project.measure("-v").stdout.fnmatch_lines(
        [f"test_it.py::test_{number} PASSED*" for number in range(1, 5)]
    )


def test_an_error_in_a_neighbours_teardown_is_told(project: Project) -> None:
    """A module fixture that fails after a measured test is an error of that test."""
    project.write(
        test_one="""
        import pytest

        @pytest.fixture(scope="module")
        def breaks():
            yield
            if not getattr(pytest, "inside", False):
                raise OSError("too late")

        def test_native(breaks): pass

        @pytest.mark.instrcount
        def test_measured(): pass
        """,
        test_two="def test_after(): pass",
    )
    result = project.measure()
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_measured*", "*OSError: too late"])


def test_a_neighbours_teardown_may_end_the_session(project: Project) -> None:
    """``pytest.exit`` in a module fixture's teardown ends the run there, too."""
    project.write(
        test_one="""
        import pytest

        @pytest.fixture(scope="module")
        def ends():
            yield
            pytest.exit("enough")

        def test_native(ends): pass

        @pytest.mark.instrcount
        def test_measured(): pass
        """,
        test_two="def test_never(): pass",
    )
    result = project.update()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not project.baselines()
    result.stdout.fnmatch_lines(["*Exit: enough*"])
