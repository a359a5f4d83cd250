"""The marker: its arguments, where it may stand, and the fixture that implies it."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project


def test_all_mistakes_in_one_message(project: Project) -> None:
    """Wrong arguments are found at collection, before a test runs: exit 4, every test named."""
    project.write(
        """
        import pytest

        @pytest.mark.instrcount(max_delta=1, calls="many")
        def test_a(): pass

        @pytest.mark.instrcount(speed=1)
        def test_b(): pass

        @pytest.mark.instrcount("1%")
        def test_c(): pass

        @pytest.mark.instrcount(warmup=-1, timeout=0, isolation="thread")
        class TestD:
            def test_d(self): pass

        @pytest.mark.instrcount(max_delta="2%")
        def test_right(): pass
        """
    )
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    says = "instrcount marker"
    for line in (
        "ERROR: instrcount: wrong markers [[]marker]",
        f"test_it.py::test_a: the {says} max_delta=1: 1 is ambiguous: percent or instructions[?]; write *",
        f"test_it.py::test_a: the {says} calls='many': write a whole number, 1 or more",
        f"test_it.py::test_b: the {says} has no argument 'speed' (it has max_delta, *)",
        f"test_it.py::test_c: the {says} takes keyword arguments only, like max_delta='1%'",
        f"test_it.py::TestD::test_d: the {says} warmup=-1: write a whole number, 0 or more",
        f"test_it.py::TestD::test_d: the {says} timeout=0: write seconds, more than 0",
        f"test_it.py::TestD::test_d: the {says} isolation='thread': choose one of fork, process",
    ):
        result.stderr.fnmatch_lines([line])
    assert "test_right" not in result.stderr.str()
    result.assert_outcomes()
    assert not project.valgrind.started[-1].orders


def test_values_whose_own_code_raises(project: Project) -> None:
    """They are wrong like all others: an array, which has no truth, and what cannot even be shown."""
    project.write(
        """
        import pytest

        class Odd:
            def fails(self, *args): raise RuntimeError("odd")
            __repr__ = __eq__ = __bool__ = __len__ = __iter__ = fails
            __hash__ = object.__hash__

        @pytest.mark.instrcount(max_delta=Odd(), isolation=Odd(), scaling=Odd(), sizes=Odd())
        def test_a(): pass

        @pytest.mark.instrcount(max_delta=10**5000, calls=-10**5000, max_ir=10**5000, max_allocs_delta=10**5000)
        def test_huge(): pass

        @pytest.mark.instrcount(calls="9\\n" * 5000)
        def test_long(): pass
        """
    )
    project.run().assert_outcomes(passed=3)
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for name in ("max_delta", "isolation", "scaling", "sizes"):
        result.stderr.fnmatch_lines([f"test_it.py::test_a: the instrcount marker {name}=a Odd: *"])
    for name in ("max_delta", "calls", "max_ir", "max_allocs_delta"):
        result.stderr.fnmatch_lines(
            [f"test_it.py::test_huge: the instrcount marker {name}=a int: *"]
        )
    assert max(map(len, result.stderr.lines)) < 400


def test_two_tests_of_one_id(project: Project) -> None:
    """Ids of several parameters are joined by "-": one case of the two would never run."""
    project.write(
        """
        import pytest

        @pytest.mark.parametrize("b", ["r", "q-r"])
        @pytest.mark.parametrize("a", ["p-q", pytest.param("p", marks=pytest.mark.instrcount)])
        def test_a(a, b): pass
        """
    )
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["test_it.py::test_a[[]p-q-r]: another test has this id, *"])
    project.run().assert_outcomes(passed=4)


def test_a_doctest_of_the_same_id(project: Project) -> None:
    """The module's, beside a function of the module's name."""
    project.write(
        '"""\n>>> 1\n1\n"""\nimport pytest\n@pytest.mark.instrcount\ndef test_it(): pass\n'
    )
    result = project.measure("--doctest-modules")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["test_it.py::test_it: another test has this id*: rename one of them"]
    )


@pytest.mark.parametrize("marker", ["instrcount", "trace_profile"])
def test_a_test_outside_rootdir(project: Project, marker: str) -> None:
    """Its id would be of the argument that led to it, and two files would have one baseline."""
    root = project.path / "root"
    root.mkdir()
    project.write(f"import pytest\n@pytest.mark.{marker}\ndef test_a(): pass\n")
    result = project.measure(f"--rootdir={root}", str(project.path / "test_it.py"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_it.py is not below rootdir; fix: pytest --rootdir=DIR"])


def test_arguments_reach_the_measurement(project: Project) -> None:
    """Each argument of the marker wins over the option, and None leaves it to the option."""
    project.write(
        """
        import pytest

        @pytest.mark.instrcount(warmup=1, calls=2, timeout=3, isolation="process")
        def test_all(): pass

        @pytest.mark.instrcount(warmup=None, calls=5)
        def test_some(): pass
        """
    )
    project.measure("--instrcount-warmup=9", "--instrcount-calls=8", "--instrcount-timeout=7")
    orders = project.valgrind.orders
    order = orders["test_it.py::test_all"]
    assert (order.warmup, order.calls, order.timeout) == (1, 2, 3.0)
    assert (order.isolation, order.pilot) == ("process", False)
    order = orders["test_it.py::test_some"]
    assert (order.warmup, order.calls, order.timeout, order.isolation) == (9, 5, 7.0, "fork")


def test_the_nearest_marker_wins_argument_by_argument(project: Project) -> None:
    """Function before class before module; what one does not say, the next one may."""
    project.write(
        """
        import pytest
        pytestmark = pytest.mark.instrcount(warmup=1, calls=1, timeout=1)

        @pytest.mark.instrcount(calls=2, timeout=2)
        class TestC:
            @pytest.mark.instrcount(timeout=3)
            def test_a(self): pass
        """
    )
    project.measure()
    (order,) = project.valgrind.orders.values()
    assert (order.warmup, order.calls, order.timeout) == (1, 2, 3.0)


def test_the_marker_of_a_class_wins_over_that_of_its_base(project: Project) -> None:
    """And that of a parameter over the function's, though pytest has both the other way round."""
    project.write(
        """
        import pytest
        limit = lambda text: pytest.mark.instrcount(max_delta=text)

        class Base:
            pytestmark = limit("5%")
            def test_a(self): pass
            @limit("6%")
            def test_b(self): pass

        class Middle(Base): pass

        @limit("7%")
        class TestSub(Middle): pass

        @limit("1%")
        @limit("8%")
        class TestTwice(Base): pass

        @pytest.mark.parametrize("n", [1, pytest.param(2, marks=limit("9%"))])
        @limit("10%")
        def test_c(n): pass
        """
    )
    found = {test["nodeid"][12:]: test["limit"] for test in project.report()["tests"]}
    assert found == {
        "TestSub::test_a": "+7 %",
        "TestSub::test_b": "+6 %",
        "TestTwice::test_a": "+8 %",
        "TestTwice::test_b": "+6 %",
        "test_c[1]": "+10 %",
        "test_c[2]": "+9 %",
    }


def test_limit_from_the_marker_then_the_option_then_the_ini_then_one_percent(
    project: Project,
) -> None:
    """The order of who may set a limit."""
    project.write(
        """
        import pytest

        @pytest.mark.instrcount
        def test_plain(): pass

        @pytest.mark.instrcount(max_delta="5%|100ir")
        def test_marked(): pass
        """
    )

    def limits(*args: str) -> list[str]:
        return [test["limit"] for test in project.report(*args)["tests"]]

    assert limits() == ["+1 %", "+5 % | 100 ir"]
    project.pytester.makeini("[pytest]\ninstrcount_max_delta = 2%\n")
    assert limits() == ["+2 %", "+5 % | 100 ir"]
    assert limits("--instrcount-max-delta=0.03") == ["+3 %", "+5 % | 100 ir"]


def test_fixture_implies_the_marker(project: Project) -> None:
    """``-m instrcount`` selects what has the marker and what takes the fixture, usefixtures too."""
    project.write(
        """
        import pytest

        def test_fixture(instrcount): instrcount(sum, [1])

        @pytest.mark.usefixtures("instrcount")
        def test_used(): pass

        @pytest.mark.instrcount
        def test_marker(): pass

        def test_neither(): pass
        """
    )
    result = project.run("-m", "instrcount", "-v")
    result.assert_outcomes(passed=3, deselected=1)
    assert "test_neither" not in result.stdout.str()
    result = project.run("-m", "not instrcount", "-v")
    result.assert_outcomes(passed=1, deselected=3)


def test_marker_beside_the_fixture_keeps_its_arguments(project: Project) -> None:
    """A test that has both is measured once, by the marker's arguments."""
    project.write(
        """
        import pytest

        @pytest.mark.instrcount(calls=4)
        def test_both(instrcount): instrcount(sum, [1])
        """
    )
    project.measure()
    (order,) = project.valgrind.orders.values()
    assert order.calls == 4


def test_marker_is_registered(project: Project) -> None:
    """It works under --strict-markers, and --markers shows its arguments."""
    project.write("import pytest\n@pytest.mark.instrcount(calls=1)\ndef test_a(): pass\n")
    project.run("--strict-markers").assert_outcomes(passed=1)
    project.run("--markers").stdout.fnmatch_lines(
        ["@pytest.mark.instrcount(max_delta=None, max_allocs_delta=None, warmup=None, calls=*"]
    )


def test_what_is_no_python_function_cannot_be_measured(project: Project) -> None:
    """An item of another kind that carries the marker is named."""
    project.pytester.makeconftest(
        """
        import pytest

        class Row(pytest.Item):
            def runtest(self): pass

        class Table(pytest.File):
            def collect(self):
                row = Row.from_parent(self, name="row")
                row.add_marker("instrcount")
                yield row

        def pytest_collect_file(parent, file_path):
            if file_path.suffix == ".table":
                return Table.from_parent(parent, path=file_path)
        """
    )
    (project.path / "a.table").write_text("")
    result = project.measure("a.table")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    why = "only Python test functions can be measured: mark only what is a pytest.Function"
    result.stderr.fnmatch_lines([f"a.table::row: {why}"])


def test_classes_and_parameters(project: Project) -> None:
    """Methods, unittest methods and parametrized tests are measured each by its own id."""
    project.write(
        """
        import pytest, unittest
        pytestmark = pytest.mark.instrcount

        class TestPlain:
            @pytest.mark.parametrize("text", ["a::b", "x y", "é"])
            def test_p(self, text): assert text

        class TestOld(unittest.TestCase):
            def test_u(self): self.assertTrue(True)
        """
    )
    project.update().assert_outcomes(passed=4)
    assert len(list(project.path.glob("instrcount_baselines/**/*.json"))) == 4
    assert set(project.verdicts().values()) == {"unchanged"}
