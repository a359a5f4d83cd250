"""The hooks for others: each does what its docstring shows, and errors name the plugin."""

from __future__ import annotations

import doctest
import importlib.metadata
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_instrcount import hookspec
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import OTHER_SIDE
from tests.plugin.conftest import Project


@pytest.fixture(autouse=True)
def importable(project: Project) -> None:
    """The folder of the project is one that ``-p`` finds plugins in."""
    project.pytester.syspathinsert()


HOOKS = sorted(name for name in vars(hookspec) if name.startswith("pytest_instrcount_"))
ROOT = Path(__file__).parents[2]
TESTS = """
    import os
    import pytest

    @pytest.mark.instrcount
    def test_a(): pass

    @pytest.mark.instrcount(max_delta="7%")
    def test_b(): pass
    """


def example(name: str) -> str:
    """What the docstring of a hook shows."""
    text = getattr(hookspec, name).__doc__
    examples = doctest.DocTestParser().get_examples(text)
    assert f"def {name}(" in examples[-1].source
    return "".join(each.source for each in examples)


# --- what each does -------------------------------------------------------------------------------


def test_facts(project: Project) -> None:
    """As its example says: a fact more, and counts with another one are not compared."""
    project.write(TESTS, conftest=example("pytest_instrcount_environment"))
    project.update().assert_outcomes(passed=2)
    assert project.report()["environment"]["sqlite"] == sqlite3.sqlite_version
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text().replace("sqlite3.sqlite_version", "'1.0'"))
    assert project.verdicts() == {"test_a": "incomparable", "test_b": "incomparable"}
    conftest.unlink()
    result = project.measure("-v")
    result.stdout.fnmatch_lines(["*sqlite*"])


def test_a_child(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its example says: names let through, values set, both facts; a set value is one itself."""
    monkeypatch.setenv("APP_KEY", "secret")
    project.write(TESTS, conftest=example("pytest_instrcount_child"))
    environment = project.report()["environment"]
    made = project.valgrind.started[-1].setup.environment
    assert (made["APP_KEY"], made["APP_MODE"]) == ("secret", "bench")
    assert environment["let_through"] == "APP_KEY"
    assert environment["child"] == "APP_MODE=bench"
    assert "secret" not in str(environment)


def test_without_a_child_spec_the_facts_are_as_ever(project: Project) -> None:
    """Baselines of runs without such a plugin stay comparable."""
    project.write(TESTS)
    assert "child" not in project.report()["environment"]
    conftest = "def pytest_instrcount_child():\n    return None"
    project.write(TESTS, conftest=conftest)
    assert "child" not in project.report()["environment"]


def test_options_and_isolation_of_a_child(project: Project) -> None:
    """Options come after our own, also where Python functions are told apart; the user's word wins."""
    project.write(
        TESTS,
        conftest="""
        from pytest_instrcount import ChildSpec

        def pytest_instrcount_child():
            return ChildSpec(valgrind=("--smc-check=all-non-file",), isolation="process")
        """,
    )
    project.update().assert_outcomes(passed=2)
    asked = [*project.valgrind.started, *project.valgrind.blaming]
    assert len(asked) == 2
    for zygote in asked:
        assert zygote.setup.options_of_valgrind[-1] == "--smc-check=all-non-file"
    assert {order.isolation for order in project.valgrind.orders.values()} == {"process"}
    project.update("--instrcount-isolation=fork")
    assert {order.isolation for order in project.valgrind.orders.values()} == {"fork"}


def test_a_limit(project: Project) -> None:
    """As its example says; the marker wins, and it wins over the command line."""
    project.write(test_numpy=TESTS, test_other=TESTS, conftest=example("pytest_instrcount_limit"))
    found = {test["nodeid"]: test["limit"] for test in project.report()["tests"]}
    assert found["test_numpy.py::test_a"] == "+3 %"
    assert found["test_numpy.py::test_b"] == "+7 %"
    assert found["test_other.py::test_a"] == "+1 %"
    found = {
        test["nodeid"]: test["limit"]
        for test in project.report("--instrcount-max-delta=2%")["tests"]
    }
    assert found["test_numpy.py::test_a"] == "+3 %"
    assert found["test_other.py::test_a"] == "+2 %"


def test_the_first_limit_holds(project: Project) -> None:
    """That of the conftest nearer by; one of another folder is not asked."""
    give = "def pytest_instrcount_limit(item, limit):\n    return "
    project.write(TESTS, conftest=give + "'20%'")
    for name, more in (("near", "'30%'"), ("none", "None"), ("far", "1 / 0")):
        (project.path / name).mkdir()
        (project.path / name / "conftest.py").write_text(give + more)
        (project.path / name / f"test_{name}.py").write_text(
            "import pytest\n@pytest.mark.instrcount\ndef test_it(): pass\n"
        )
    (project.path / "far" / "test_far.py").write_text("def test_it(): pass\n")
    found = {test["nodeid"]: test["limit"] for test in project.report()["tests"]}
    assert found["test_it.py::test_a"] == "+20 %"
    assert found["near/test_near.py::test_it"] == "+30 %"
    assert found["none/test_none.py::test_it"] == "+20 %"


def test_results(project: Project) -> None:
    """As its example says, before the table; stale baselines, too; each test once, with its last word."""
    observer = example("pytest_instrcount_result").replace(
        "if result", "print(result.verdict)\n    if result"
    )
    project.write(TESTS)
    project.update()
    project.write(TESTS.replace("test_b", "test_c"), conftest=observer)
    project.valgrind.costs["test_a"] = 20_000
    result = project.measure("-s")
    result.stdout.fnmatch_lines(
        ["*regressed*", "*test_it.py::test_a 10000 -> 20000*", "new", "stale", "*FAILURES*"]
    )
    assert result.stdout.str().count("test_it.py::test_a 10000") == 1


def test_the_summary(project: Project) -> None:
    """As its example says: once, with all that the reports are made from."""
    project.write(TESTS, conftest=example("pytest_instrcount_summary"))
    result = project.measure("-s")
    result.stdout.fnmatch_lines([f"*2 tests with {sys.version.split()[0]}*"])


def test_nothing_is_final_after_an_interruption(project: Project) -> None:
    """No result is told, and the summary is that of what there is."""
    project.write(
        "import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n"
        "def test_z(): raise KeyboardInterrupt\n",
        conftest="""
        def pytest_instrcount_result(result): print("a last word on", result.nodeid)
        def pytest_instrcount_summary(summary): print("summary of", len(summary.results))
        """,
    )
    text = project.measure("-s").stdout.str()
    assert "summary of 1" in text
    assert "a last word" not in text


def test_the_side_of_the_other_commit_is_not_told(project: Project) -> None:
    """Under --instrcount-against its counts stand in for baselines: they are no results."""

    class Other:
        first_look = False

        @pytest.hookimpl(tryfirst=True)
        def pytest_configure(self, config: pytest.Config) -> None:
            config.stash[OTHER_SIDE] = self

        def settings(self, own: Settings) -> Settings:
            return own

    seen = "def pytest_instrcount_{0}({0}): print('was told', {0})\n"
    project.write(TESTS, conftest=seen.format("result") + seen.format("summary"))
    assert "was told" in project.measure("-s").stdout.str()
    project.pytester.plugins.append(Other())
    assert "was told" not in project.measure("-s").stdout.str()


def test_nobody_is_asked_where_nothing_is_measured(project: Project) -> None:
    """Without --instrcount no hook is called."""
    conftest = "\n".join(f"def {name}(): 1 / 0" for name in HOOKS)
    project.write(TESTS, conftest=conftest)
    project.run().assert_outcomes(passed=2)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", [name for name in HOOKS if "recognizers" not in name])
def test_an_error_names_the_plugin(project: Project, hook: str) -> None:
    """Exit 4, whose hook, where and what, and what to type; no traceback."""
    project.write(TESTS, broken=f"def {hook}():\n    1 / 0")
    result = project.measure("-pbroken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"ERROR: instrcount: the plugin broken failed in its {hook} [[]hook]",
            f"{project.path}/broken.py:2: ZeroDivisionError: *",
            "  fix: pytest -p no:broken    # without that plugin",
        ]
    )
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_an_observer_that_fails_hides_no_verdict(project: Project) -> None:
    """All tests are told to all observers, and the table is there."""
    project.write(
        TESTS,
        conftest="def pytest_instrcount_result(result): print('seen', result.nodeid)",
        broken="def pytest_instrcount_result(result): 1 / 0",
    )
    result = project.measure("-pbroken", "-s")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*seen*test_a", "*seen*test_b", "instrcount: 2 new"])


@pytest.mark.parametrize(
    ("hook", "given", "why"),
    [
        ("environment", "{'python': '3'}", "the fact 'python' is this plugin's own"),
        ("environment", "{'child': '3'}", "the fact 'child' is this plugin's own"),
        ("environment", "{'cores': 3}", "{'cores': 3} is no mapping of texts"),
        ("environment", "'cores'", "'cores' is no mapping of texts"),
        ("child", "{}", "{} is no ChildSpec"),
        ("child", "ChildSpec(valgrind=('--tool=none',))", "*--tool=none is not to be changed"),
        ("child", "ChildSpec(valgrind=('-v',))", "'-v' is no option"),
        ("child", "ChildSpec(valgrind='--v')", "valgrind is a text, not a tuple of them"),
        ("child", "ChildSpec(('A=1',))", "'A=1' is no name of a variable"),
        ("child", "ChildSpec((), {'TMPDIR': 'x'})", "TMPDIR is set for each process"),
        ("child", "ChildSpec((), {'A': 1})", "the variable 'A' is no text"),
        ("child", "ChildSpec(isolation='thread')", "isolation='thread'"),
        ("limit", "'fast'", "test_it.py::test_a: *'fast'*"),
        ("limit", "[]", "test_it.py::test_a: *"),
    ],
)
def test_an_answer_that_is_none(project: Project, hook: str, given: str, why: str) -> None:
    """It names the plugin, and says what to write instead."""
    text = f"from pytest_instrcount import ChildSpec\ndef pytest_instrcount_{hook}():\n    return {given}"
    project.write(TESTS, broken=text)
    result = project.measure("-pbroken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"ERROR: instrcount: the plugin broken gave from its pytest_instrcount_{hook} "
            "what is not to be used [[]hook-answer]",
            why,
            "  fix: *, or pytest -p no:broken    # without that plugin",
        ]
    )


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("environment(): return {'a': '1'}", "environment(): return {'a': '2'}", "*'a' is*"),
        (
            "child(): return ChildSpec(variables={'A': '1'})",
            "child(): return ChildSpec(variables={'A': '2'})",
            "*want A as*",
        ),
        (
            "child(): return ChildSpec(valgrind=('--sym-offsets=yes',))",
            "child(): return ChildSpec(valgrind=('--sym-offsets=no',))",
            "*want --sym-offsets as*",
        ),
    ],
)
def test_two_that_contradict_each_other(project: Project, one: str, other: str, why: str) -> None:
    """Both are named; two that agree are put together."""
    start = "from pytest_instrcount import ChildSpec\ndef pytest_instrcount_"
    project.write(TESTS, one=start + one, other=start + other)
    result = project.measure("-pone", "-pother")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([why])
    text = result.stderr.str()
    assert "one" in text
    assert "other" in text
    project.write(TESTS, other=start + one)
    project.measure("-pone", "-pother").assert_outcomes(passed=2)


def test_an_error_in_a_conftest(project: Project) -> None:
    """A conftest cannot be left out: its place is named."""
    project.write(TESTS, conftest="def pytest_instrcount_child(): 1 / 0")
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["  fix: mend conftest.py"])


# --- around them ----------------------------------------------------------------------------------


def test_wrappers_stay_around_them(project: Project) -> None:
    """Each plugin is called by itself, within the wrappers of all."""
    project.write(
        TESTS,
        wrapping="""
        import pytest
        @pytest.hookimpl(wrapper=True)
        def pytest_instrcount_limit(item):
            found = yield
            return found and "9%"
        """,
        conftest="def pytest_instrcount_limit(): return '5%'",
    )
    tests = project.report("-pwrapping")["tests"]
    assert [test["limit"] for test in tests] == ["+9 %", "+7 %"]


def test_random_numbers_are_the_tests_own(project: Project) -> None:
    """Hooks that draw some, and all that a measured run does, take none from the tests."""
    draws = "\n".join(f"def {name}(): random.random()" for name in HOOKS if "recogn" not in name)
    drawn = "import random, pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n"
    project.write(
        drawn + "def test_z():\n    print('drawn', random.random())\n",
        conftest=f"import random\nrandom.seed(3)\n{draws}\n",
    )
    rng = random.Random(3)
    result = project.measure("-s")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"*drawn {rng.random()}*"])


# --- a plugin of somebody else --------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example plugin, built and installed by pip into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    source = ROOT / "examples" / "plugin"
    done = subprocess.run(
        [*command, "--no-build-isolation", f"--target={folder}", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_plugin_that_is_installed(
    project: Project, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It uses all hooks; pytest finds it by its entry point."""
    monkeypatch.syspath_prepend(installed)
    (found,) = [
        point
        for point in importlib.metadata.entry_points(group="pytest11")
        if point.name == "instrcount-example"
    ]
    assert found.value == "pytest_instrcount_example"
    assert [name for name in HOOKS if not hasattr(found.load(), name)] == [
        "pytest_instrcount_recognizers"
    ]
    monkeypatch.setenv("EXAMPLE_KEY", "secret")
    project.write(
        TESTS + "\n    @pytest.mark.io\n    @pytest.mark.instrcount\n    def test_io(): pass\n"
    )
    plugin = "-pinstrcount-example"
    project.update(plugin, "--strict-markers").assert_outcomes(passed=3)
    project.valgrind.costs = {"test_a": 12_000, "test_io": 10_300}
    report = project.report(plugin)
    assert report["environment"]["sqlite"] == sqlite3.sqlite_version
    assert report["environment"]["child"] == "EXAMPLE_MODE=quiet"
    made = project.valgrind.started[-1].setup.environment
    assert (made["EXAMPLE_KEY"], made["EXAMPLE_MODE"]) == ("secret", "quiet")
    verdicts = {test["nodeid"].partition("::")[2]: test["verdict"] for test in report["tests"]}
    assert verdicts == {"test_a": "regressed", "test_b": "unchanged", "test_io": "unchanged"}
    (line,) = (project.path / "slower.jsonl").read_text().splitlines()
    assert line == '{"nodeid": "test_it.py::test_a", "before": 10000, "now": 12000}'
    result = project.measure(plugin)
    result.stdout.fnmatch_lines([f"example: 3 counts with SQLite {sqlite3.sqlite_version}"])
    project.run(plugin).assert_outcomes(passed=3)


# --- the page -------------------------------------------------------------------------------------
