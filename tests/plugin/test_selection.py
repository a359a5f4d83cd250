"""What a run selects, what it knows of baselines without a test, and what it may delete."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.plugin.conftest import Project

FILE = """
import pytest
pytestmark = pytest.mark.instrcount

def test_{0}1(): pass

def test_{0}2(): pass
"""


@pytest.fixture
def suite(project: Project) -> Project:
    """Two files with two tests each, and baselines for all."""
    project.write(test_a=FILE.format("a"), test_b=FILE.format("b"))
    project.update()
    return project


def lose_a2(project: Project) -> None:
    project.write(test_a="import pytest\n@pytest.mark.instrcount\ndef test_a1(): pass\n")


def unmark_a2(project: Project) -> None:
    project.write(
        test_a="import pytest\n@pytest.mark.instrcount\ndef test_a1(): pass\ndef test_a2(): pass\n"
    )


def stale(project: Project, *args: str) -> list[str]:
    return [name for name, verdict in project.verdicts(*args).items() if verdict == "stale"]


# --- selection ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "measured"),
    [
        (("-k", "a1 or b2"), ["test_a1", "test_b2"]),
        (("-m", "not instrcount"), []),
        (("test_b.py",), ["test_b1", "test_b2"]),
        (("test_b.py::test_b2", "test_a.py::test_a1"), ["test_b2", "test_a1"]),
        (("--deselect", "test_a.py::test_a1"), ["test_a2", "test_b1", "test_b2"]),
    ],
)
def test_what_is_selected_is_measured(
    suite: Project, args: tuple[str, ...], measured: list[str]
) -> None:
    """In the order of the run, and nothing else; nothing is stale by being left out."""
    assert suite.verdicts(*args) == dict.fromkeys(measured, "unchanged")
    assert (
        [id_.partition("::")[2] for id_ in suite.valgrind.orders] == measured if measured else True
    )


def test_a_test_that_is_asked_for_twice(suite: Project) -> None:
    """``--keep-duplicates``: it runs twice, measured each time, and nothing waits for ever."""
    result = suite.measure("--keep-duplicates", "test_a.py", "test_a.py")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["instrcount: 2 unchanged"])


# --- stale --------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [lose_a2, unmark_a2])
def test_stale_is_listed_and_never_fails(suite: Project, change: Callable[[Project], None]) -> None:
    """A baseline whose test is gone, or is no longer measured."""
    change(suite)
    result = suite.measure()
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["test_a.py::test_a2 * stale *", "instrcount: 3 unchanged, 1 stale"]
    )
    assert "test_a2" in suite.baselines()


def test_a_file_that_is_gone(suite: Project) -> None:
    """All its baselines are stale, whatever was asked for."""
    (suite.path / "test_b.py").unlink()
    assert stale(suite) == ["test_b1", "test_b2"]
    assert stale(suite, "test_a.py") == ["test_b1", "test_b2"]


def test_an_update_deletes_nothing(suite: Project) -> None:
    """Only --instrcount-prune does."""
    lose_a2(suite)
    suite.update()
    assert "test_a2" in suite.baselines()


@pytest.mark.parametrize(
    "args",
    [
        ("test_b.py",),
        ("test_a.py::test_a1",),
        ("--ignore=test_a.py",),
        ("--lf",),
    ],
)
def test_what_was_not_collected_is_not_stale(suite: Project, args: tuple[str, ...]) -> None:
    """A part of the tests says nothing about the others."""
    suite.valgrind.costs["test_a1"] = 20_000
    suite.measure()
    suite.valgrind.costs.clear()
    assert stale(suite, *args) == []


def test_last_failed_leaves_out_tests_of_each_file(suite: Project) -> None:
    """It does not collect them, and no file is left out: none is stale, and a new test is none of them."""
    suite.write(
        test_b="import pytest\npytestmark = pytest.mark.instrcount\n"
        "def test_b1(): pass\ndef test_b2(): pass\ndef test_b9(): pass"
    )
    suite.valgrind.costs.update(test_a1=20_000, test_b9=20_000)
    suite.measure("--instrcount-missing=fail")
    args = "--lf", "--instrcount-missing=fail"
    assert suite.verdicts(*args) == {"test_a1": "regressed", "test_b9": "new"}
    assert suite.run("--instrcount-prune", "--lf").ret == pytest.ExitCode.USAGE_ERROR


def test_skipped_tests_are_not_stale(suite: Project) -> None:
    """Skipped in the test, by a marker, or as a whole file."""
    suite.write(
        test_a="""
        import pytest
        pytestmark = pytest.mark.instrcount

        def test_a1(): pytest.skip()

        @pytest.mark.skip
        def test_a2(): pass
        """,
        test_b="import pytest\npytest.skip(allow_module_level=True)\n",
    )
    assert stale(suite) == []


def test_broken_files_are_not_stale(suite: Project) -> None:
    """A file that cannot be imported, and a class in it that cannot be collected."""
    suite.write(
        test_a="import no_such_module",
        test_b="""
        import pytest
        pytestmark = pytest.mark.instrcount

        def test_b1(): pass

        class TestBroken:
            @pytest.mark.parametrize("x", [1])
            def test_no_x(self): pass
        """,
    )
    assert stale(suite, "--continue-on-collection-errors") == []


def test_baselines_of_other_environments_are_left_alone(suite: Project) -> None:
    """They are neither stale here nor pruned."""
    (folder,) = suite.path.glob("instrcount_baselines/cp*")
    folder.rename(folder.with_name("cp399-linux-x86_64"))
    assert stale(suite) == []
    suite.measure("--instrcount-prune")
    assert len(suite.baselines()) == 4


# --- prune --------------------------------------------------------------------------------------


def test_prune_deletes_what_is_stale(suite: Project) -> None:
    """On a whole run; each file is named, empty folders go, and it implies --instrcount."""
    lose_a2(suite)
    (suite.path / "test_b.py").unlink()
    result = suite.run("--instrcount-prune")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["deleted *" + "test_a2-*.json"])
    assert set(suite.baselines()) == {"test_a1"}
    assert not list(suite.path.glob("instrcount_baselines/*/test_b"))
    assert suite.verdicts() == {"test_a1": "unchanged"}


def test_prune_of_nothing(suite: Project) -> None:
    """A whole run without a stale baseline deletes none."""
    assert suite.run("--instrcount-prune").ret == pytest.ExitCode.OK
    assert len(suite.baselines()) == 4


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("-k", "a1"), "3 tests were deselected"),
        (("-m", "not slow", "--deselect=test_a.py::test_a1"), "1 tests were deselected"),
        (("test_a.py::test_a1",), "only some tests of a file were asked for"),
    ],
)
def test_prune_is_refused_on_a_part(suite: Project, args: tuple[str, ...], why: str) -> None:
    """Exit 4, why, and the command of a whole run; not even a file that is gone is deleted."""
    suite.measure()
    extra = suite.path / "test_c.py"
    extra.write_text(FILE.format("c"))
    suite.update("test_c.py")
    extra.unlink()
    result = suite.run("--instrcount-prune", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"*instrcount: nothing was pruned, since {why} [[]prune-partial]",
            "  fix: pytest --instrcount-prune",
        ]
    )
    assert len(suite.baselines()) == 6


def test_prune_is_refused_where_last_failed_leaves_files_out(suite: Project) -> None:
    """Where nothing has failed --lf leaves out none, and is no part."""
    assert suite.run("--instrcount-prune", "--lf").ret == pytest.ExitCode.OK
    suite.write(test_d="def test_fails(): assert 0")
    assert suite.run().ret == pytest.ExitCode.TESTS_FAILED
    result = suite.run("--instrcount-prune", "--lf")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*nothing was pruned, since --lf leaves tests out [[]prune-partial]"]
    )
    assert len(suite.baselines()) == 4


def test_prune_is_refused_after_collection_errors(suite: Project) -> None:
    """A file that cannot be imported may have tests."""
    suite.write(test_a="import no_such_module")
    result = suite.run("--instrcount-prune", "--continue-on-collection-errors")
    result.stderr.fnmatch_lines(["*some files could not be collected*"])
    assert len(suite.baselines()) == 4


def test_prune_refused_still_gates(suite: Project) -> None:
    """The regression is told before the refusal."""
    suite.valgrind.costs["test_a1"] = 20_000
    result = suite.run("--instrcount-prune", "-k", "a1")
    result.stdout.fnmatch_lines(["+100 % (limit 1 %): *", "  test_a1: Ir 10,000 -> 20,000"])


def test_prune_is_refused_when_interrupted(suite: Project) -> None:
    """-x with a failing test: the run does not know all."""
    suite.write(test_a="def test_a1(): assert 0")
    suite.run("--instrcount-prune", "-x")
    assert len(suite.baselines()) == 4


# --- shards -------------------------------------------------------------------------------------

# As pytest-split: the others are deselected. As pytest-shard: they are gone without a word.
SPLIT = """
    def pytest_collection_modifyitems(config, items):
        mine = [item for item in items if item.name.endswith("1")]
        {}
        items[:] = mine
"""
TELLS = "config.hook.pytest_deselected(items=[item for item in items if item not in mine])"


@pytest.mark.parametrize("tells", [TELLS, "pass"])
def test_tests_of_another_shard_are_not_stale(suite: Project, tells: str) -> None:
    """Whoever leaves them out, and whether it says so; they cannot be pruned either."""
    suite.pytester.makeconftest(SPLIT.format(tells))
    assert suite.verdicts() == {"test_a1": "unchanged", "test_b1": "unchanged"}
    result = suite.run("--instrcount-prune")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*since 2 tests were deselected [[]prune-partial]"])
    assert len(suite.baselines()) == 4
