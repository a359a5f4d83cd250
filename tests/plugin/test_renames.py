"""A test that is renamed or moved keeps its baseline."""

from __future__ import annotations

import pytest

from pytest_instrcount.session.renames import _globals
from tests.plugin.conftest import Project

SUITE = """
import pytest
pytestmark = pytest.mark.instrcount

def test_a():
    assert sum(range(9))

@pytest.mark.parametrize("n", [1, 2])
def test_b(n):
    assert max(range(n + 1)) == n
"""
RENAMED = SUITE.replace("test_a", "test_total")
MOVED = "import pytest\npytestmark = pytest.mark.instrcount\n\ndef test_a():\n    assert sum(range(9))\n"
SAID = "renamed: test_it.py::test_a -> test_it.py::test_total"


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three tests with baselines, in CI from then on."""
    project.write(SUITE)
    project.update()
    monkeypatch.setenv("CI", "1")
    return project


def test_it_is_compared_with_the_baseline_that_it_had(suite: Project) -> None:
    suite.write(RENAMED)
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["instrcount: 3 unchanged", SAID])
    assert not suite.verdicts().keys() & {"test_a"}
    suite.valgrind.costs["test_total"] = 10_200
    assert suite.verdicts()["test_total"] == "regressed"
    assert suite.measure().ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("policy", ["all", "failing"])
def test_an_update_carries_it_over(suite: Project, policy: str) -> None:
    suite.write(RENAMED)
    suite.update(f"--instrcount-update-policy={policy}").stdout.fnmatch_lines([SAID])
    assert sorted(suite.baselines()) == ["test_b[1]", "test_b[2]", "test_total"]
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK and "renamed" not in result.stdout.str()


def test_one_that_is_moved_to_another_file(suite: Project) -> None:
    suite.write(SUITE.replace("def test_a():\n    assert sum(range(9))\n", ""), test_other=MOVED)
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["renamed: test_it.py::test_a -> test_other.py::test_a"])


@pytest.mark.parametrize(
    "source",
    [
        RENAMED.replace("sum(range(9))", "sum(range(8))"),
        RENAMED + "\ndef test_copy():\n    assert sum(range(9))\n",
        RENAMED.replace("[1, 2]", "[2, 3]"),
    ],
    ids=["another body", "two that fit", "other parameters"],
)
def test_what_may_be_another_test_is_new(suite: Project, source: str) -> None:
    """And the old one is gone, as ever; both fail in CI."""
    suite.write(source)
    result = suite.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*baseline-gone*"])


BESIDE = """
import pytest

def work():
    return sum(range(9))

class Proxy:  # for what is there in a request alone
    def __getattribute__(self, name):
        raise RuntimeError

request = Proxy()

@pytest.fixture
def data():
    return [1]

@pytest.mark.instrcount
def test_a(data):
    assert work() or request
"""


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (("data", "data"), True),
        (("range(9)", "range(8)"), False),
        (("return [1]", "return [2]"), False),
        (("def work():", "N = 3\ndef work():"), True),
        (("def work():\n    return sum(range(9))", "from textwrap import dedent as work"), False),
    ],
)
def test_names_mean_what_they_meant(
    project: Project, change: tuple[str, str], moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where tests are one line that calls a function, another test would take the baseline else."""
    project.write(BESIDE)
    project.update()
    monkeypatch.setenv("CI", "1")
    project.write("", test_other=BESIDE.replace(*change).replace("test_a", "test_b"))
    result = project.measure()
    assert ("renamed: test_it.py::test_a -> test_other.py::test_b" in result.stdout.lines) is moved
    assert (result.ret == pytest.ExitCode.OK) is moved


def test_a_part_of_the_tests_tells_nothing(suite: Project) -> None:
    suite.write(RENAMED)
    result = suite.measure("test_it.py::test_total", "--instrcount-missing=note")
    result.stdout.fnmatch_lines(["instrcount: 1 new"])
    result.stdout.no_fnmatch_line("renamed*")


IN_CLASS = """
import pytest

ROWS = [1, 2]

class TestBig:
    rows = 9
    other = 1

    def setup_method(self):
        self.made = 5

    def work(self):
        return sum(range(self.rows))

    @pytest.mark.instrcount
    def test_sum(self):
        assert self.work() or self.rows or ROWS
"""


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (("other = 1", "other = 2"), True),
        (("rows = 9", "rows = 8"), False),
        (("self.made = 5", "self.made = 6"), False),
        (("sum(range(", "min(range("), False),
        (("[1, 2]", "[1, 2, 3]"), False),
    ],
)
def test_a_class_is_what_its_tests_use_of_it(
    project: Project, change: tuple[str, str], moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under another name: a test that finds something else there is another test."""
    project.write(IN_CLASS)
    project.update()
    monkeypatch.setenv("CI", "1")
    project.write(IN_CLASS.replace(*change).replace("TestBig", "TestSmall"))
    assert (project.measure().ret == pytest.ExitCode.OK) is moved


HUGE = """
import pytest

def tree(depth):
    return {"name": f"n{depth}", "kids": [tree(depth - 1), tree(depth - 1)] if depth else []}

class Proxy:  # for what is there in a request alone
    def __getattr__(self, name):
        raise RuntimeError

TREE, WORDS, ROWS, SELF = tree(7), {f"word{n}" for n in range(1500)}, [[0.0] * 1000] * 1000, []
SELF.append(SELF)

class TestAll:
    request = Proxy()

    @pytest.mark.instrcount
    def test_all(self):
        assert TREE and WORDS and ROWS and SELF and self.request is not None
"""


def test_whatever_a_module_holds_is_looked_at_in_no_time(project: Project) -> None:
    """And is asked nothing."""
    project.write(HUGE)
    project.update().assert_outcomes(passed=1)
    (item,) = project.pytester.getitems(HUGE)
    assert isinstance(item, pytest.Function)
    assert len(repr([*_globals(item.function, item.function.__code__)])) < 500_000


SETS = """
    def test_a():
        for letter in "slow":
            assert letter in {"s", "l", "o", "w", "fast", "faster"}
"""
MADE = """
    import functools

    def plainly(function):
        @functools.wraps(function)
        def wrapper():
            return function()
        return wrapper

    def count_to(number):
        def test():
            sum(range(number))
        return test

    test_nine = count_to(9)

    @plainly
    def test_a():
        assert max(1, 2)

    @plainly
    def test_b():
        assert min(1, 2)

    def test_c():
        assert max(1, 2)
"""


def bodies(pytester: pytest.Pytester, source: str, seed: str = "0") -> dict[str, str]:
    """Name of a test -> what `body_of` says, in a process that hashes strings by this seed."""
    pytester.makepyfile(source)
    pytester.makeconftest(
        """
        from pytest_instrcount.session.renames import body_of

        def pytest_collection_finish(session):
            for item in session.items:
                print("\\nbody", item.name, body_of(item) or "-")
        """
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", seed)
        result = pytester.runpytest_subprocess("-sq", "--collect-only", "-p", "no:cacheprovider")
    lines = (line.split() for line in result.outlines if line.startswith("body "))
    return {name: body for _, name, body in lines}


def test_a_body_is_the_same_in_every_process(pytester: pytest.Pytester) -> None:
    """The order of a set in its code is not."""
    assert len({bodies(pytester, SETS, seed)["test_a"] for seed in "12345"}) == 1


def test_the_body_is_that_of_the_test_itself(pytester: pytest.Pytester) -> None:
    """Not of what decorates it; one that was made by a function has none."""
    found = bodies(pytester, MADE)
    assert found["test_nine"] == "-"
    assert found["test_a"] == found["test_c"] != found["test_b"]


def test_parameters_are_known_by_their_values(pytester: pytest.Pytester) -> None:
    """However they are named: pytest 9.2 names those of more than 100 characters in another way."""
    named = ["[{0}, {1}]", "[{1}, {0}], ids=['one', 'two']"]
    values = repr("a" * 150), repr("b" * 150)
    source = "import pytest\n@pytest.mark.parametrize('n', {})\ndef test_a(n): sum(range(9))\n"
    seen = [bodies(pytester, source.format(each.format(*values))) for each in named]
    assert seen[0].keys() != seen[1].keys()
    assert sorted(seen[0].values()) == sorted(seen[1].values())
    assert len({*seen[0].values()}) == 2


def test_a_number_that_python_does_not_write(pytester: pytest.Pytester) -> None:
    """It has more than 4,300 digits: nothing says what the test does, and the run goes on."""
    source = """
        import pytest
        LARGE = 10**5_000

        @pytest.mark.parametrize("n", [LARGE], ids=["large"])
        def test_parameter(n): sum(range(9))

        def test_global(): assert LARGE

        def test_small(): assert max(1, 2)
    """
    found = bodies(pytester, source)
    assert found["test_parameter[large]"] == found["test_global"] == "-" != found["test_small"]


def test_classes_that_do_not_let_themselves_be_looked_at(pytester: pytest.Pytester) -> None:
    """Their metaclasses have no hash, or raise; typing has one on 3.15, which is deprecated."""
    source = """
        import pytest
        def refuse(*_): raise RuntimeError("asked")
        class Closed(type):
            __eq__ = __getattribute__ = refuse
            __hash__ = None
        class Kind(metaclass=Closed): pass
        VALUE = type.__call__(Kind)

        def test_class(): Kind
        def test_value(): VALUE

        class TestIt:
            kind, value = Kind, VALUE
            def test_members(self): self.kind, self.value
    """
    found = bodies(pytester, source)
    assert "-" not in found.values() and len({*found.values()}) == 3
