"""Verdicts end to end: what is measured, compared, said, and how the run ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_instrcount.callgrind.zygote import ZygoteFailed
from tests.baselines import plant, read_whole
from tests.plugin.conftest import TWO_TESTS, FakeValgrind, Project

SUITE = """
import pytest

@pytest.mark.instrcount
def test_a(): pass

@pytest.mark.instrcount
def test_b(): pass

def test_native(): pass
"""
ONE = "import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n"
SCHEMA = Path(__file__).parents[2] / "docs/reference/schemas/report-3.json"


@pytest.fixture
def suite(project: Project) -> Project:
    """Two measured tests and a native one, with baselines of 10,000 each."""
    project.write(SUITE)
    project.update().assert_outcomes(passed=3)
    return project


# --- each verdict -------------------------------------------------------------------------------


def test_new_is_a_note(project: Project) -> None:
    """Without a baseline the run passes and says what to type."""
    project.write(SUITE)
    result = project.measure()
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "instrcount: valgrind 3.19.0, CPython *, tracer *, core *, baselines in instrcount_baselines",
            "instrcount: measuring 2 tests under Valgrind, * at a time",
            "test * baseline * now * delta * limit",
            "test_it.py::test_a * - * 10,000 * new * +1 %",
            "instrcount: 2 new",
            "  accept: pytest --instrcount-update-baseline",
        ]
    )
    assert not project.baselines()


def test_a_command_names_what_is_there(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters of any width, as they stand in the file system."""
    monkeypatch.setenv("CI", "1")
    source = "import pytest\n@pytest.mark.instrcount\ndef test_数(): pass\n"
    project.write(test_解析=source, test_b=source)
    result = project.measure("test_解析.py")
    (command,) = (line for line in result.outlines if line.startswith("  fix: "))
    assert command == "  fix: pytest --instrcount-update-baseline 'test_解析.py::test_数'"


def test_commands_begin_as_the_run_did(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -m pytest`` puts its folder on the path, without which a suite may find nothing."""
    monkeypatch.setattr(sys, "orig_argv", ["bin/python", "-m", "pytest", "--instrcount"])
    project.write(SUITE)
    assert (
        "  accept: bin/python -m pytest --instrcount-update-baseline" in project.measure().outlines
    )
    project.update()
    (kept,) = project.path.rglob("test_a-*.json")
    kept.write_text("{")
    result = project.measure()
    result.stdout.fnmatch_lines(
        ["  fix: rm * && bin/python -m pytest --instrcount-update-baseline *"]
    )


@pytest.mark.parametrize("args", [(), ("--instrcount-missing=auto",)])
def test_new_fails_in_ci(
    project: Project, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    """With CI set a test without a baseline fails, with the command that makes one."""
    monkeypatch.setenv("CI", "1")
    project.write(ONE)
    result = project.measure(*args)
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "test_a: no baseline to compare with (Ir 10,000) [[]baseline-missing]",
            "  fix: pytest --instrcount-update-baseline*",
        ]
    )


@pytest.mark.parametrize("value", ["", "0", "false", "False"])
def test_ci_can_be_unset_by_value(
    project: Project, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """Some shells set CI to say no."""
    monkeypatch.setenv("CI", value)
    project.write(ONE)
    assert project.measure().ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("variables", "ret"),
    [
        ({"BUILD_NUMBER": "7"}, pytest.ExitCode.TESTS_FAILED),  # Jenkins
        ({"TF_BUILD": "True"}, pytest.ExitCode.TESTS_FAILED),  # Azure Pipelines
        ({"BUILD_NUMBER": "7", "CI": "0"}, pytest.ExitCode.OK),
    ],
)
def test_ci_that_sets_no_ci(
    project: Project, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], ret: int
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    project.write(ONE)
    assert project.measure().ret == ret


def test_the_section_begins_below_its_title(project: Project) -> None:
    """No empty line of pytest's progress comes between."""
    project.write(ONE)
    lines = project.measure().stdout.lines
    title = next(
        n for n, line in enumerate(lines) if line.startswith("-") and "- instrcount -" in line
    )
    assert lines[title + 1].startswith("test  ")


def test_one_test_is_one(project: Project) -> None:
    """What is coming is said in English."""
    project.write(ONE)
    project.measure().stdout.fnmatch_lines(["instrcount: measuring 1 test under Valgrind, *"])


def test_new_fails_where_it_is_told_to(project: Project) -> None:
    """``--instrcount-missing=fail`` outside CI."""
    project.write(ONE)
    result = project.measure("--instrcount-missing=fail")
    result.assert_outcomes(passed=1, failed=1)


def test_unchanged(suite: Project) -> None:
    """The same counts: nothing but the totals is shown, every row with -v."""
    result = suite.measure()
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["instrcount: 2 unchanged"])
    assert "baseline " not in result.stdout.str()
    assert "accept:" not in result.stdout.str()
    suite.measure("-v").stdout.fnmatch_lines(
        ["test_it.py::test_a * 10,000 * 10,000 * 0 % * +1 %  >= 0.02 %"]
    )


def test_exactly_at_the_limit_is_unchanged(suite: Project) -> None:
    """1 % more is not more than 1 %; one instruction beyond it is."""
    suite.valgrind.costs["test_a"] = 10_100
    suite.valgrind.costs["test_b"] = 10_101
    assert suite.verdicts() == {"test_a": "unchanged", "test_b": "regressed"}


def test_regressed(suite: Project) -> None:
    """One extra failed report under the test's own id: ``1 failed, 3 passed``, exit 1."""
    suite.valgrind.costs["test_a"] = {"work.c:work": 7_800, "ceval.c:eval": 2_500}
    result = suite.measure()
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "instrcount: measuring 1 test again, and in 3 other layouts",
            "instrcount: measuring 1 test by Python function (trampolines)",
            "I*",
            "*= FAILURES =*",
            "*_ test_a _*",
            "+3 % (limit 1 %): test_a test_it.py:3, its own code",
            "  test_a: Ir 10,000 -> 10,300",
            "  detects growth >= 0.02 %",
            "  by Python function (trampolines), share of the change:",
            "    100 %  test_it.py:3 test_a",
            "      in its own code and the C functions it calls; 1 call",
            "  by C function, share of the change, its own and with what it calls:",
            "    100 %  100 %  1 call  work.c:work",
            "  accept: pytest --instrcount-update-baseline test_it.py::test_a",
            "*- instrcount -*",
            "test_it.py::test_a * 10,000 * 10,300 * +3 % * +1 %",
            "instrcount: 1 unchanged, 1 regressed",
            "REGRESSED test_it.py::test_a*",
            "*= 1 failed, 3 passed in *",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "ceval.c:eval" not in result.stdout.str()


def test_the_limit_of_a_test_is_its_own(project: Project) -> None:
    """Absolute, relative, or either."""
    project.write(
        """
        import pytest

        @pytest.mark.instrcount(max_delta="5%")
        def test_relative(): pass

        @pytest.mark.instrcount(max_delta="100ir")
        def test_absolute(): pass

        @pytest.mark.instrcount(max_delta="5%|100ir")
        def test_both(): pass

        @pytest.mark.instrcount(max_delta=0)
        def test_none(): pass
        """
    )
    project.update()
    project.valgrind.usual = 10_101
    assert project.verdicts() == {
        "test_relative": "unchanged",
        "test_absolute": "regressed",
        "test_both": "regressed",
        "test_none": "regressed",
    }


def test_improved(suite: Project) -> None:
    """A note by default, with the command that stores it; a failure where it is told to."""
    suite.valgrind.costs["test_a"] = 9_000
    result = suite.measure()
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["test_it.py::test_a * -10 % *", "instrcount: 1 unchanged, 1 improved", "  accept: *"]
    )
    result = suite.measure("--instrcount-improved=fail")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        ["-10 % (limit 1 %): * [[]improved]", "  test_a: Ir 10,000 -> 9,000"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_incomparable(suite: Project) -> None:
    """A baseline of another Valgrind is never a regression: said with the facts, fails if told."""
    suite.valgrind.version = "3.24.0"
    suite.valgrind.costs["test_a"] = 20_000
    result = suite.measure()
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["instrcount: 2 incomparable"])
    result = suite.measure("--instrcount-incomparable=fail")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["2 of 2 tests have baselines of another environment*", "  valgrind: 3.19.0 -> 3.24.0"]
    )
    suite.update()
    assert set(suite.verdicts().values()) == {"unchanged"}


def test_let_through_variables_make_incomparable(suite: Project) -> None:
    """Their names are facts of the environment."""
    suite.pytester.makeini("[pytest]\ninstrcount_env = TOKEN\n")
    assert set(suite.verdicts().values()) == {"incomparable"}


def test_new_here_with_baselines_elsewhere(
    suite: Project,
) -> None:
    """A baseline of another Python is in another folder: new here, and the message names it."""
    (folder,) = suite.path.glob("instrcount_baselines/cp*")
    folder.rename(folder.with_name("cp399-linux-x86_64"))
    result = suite.measure("--instrcount-missing=fail")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["  other environments have one: cp399-linux-x86_64"])


def test_packages_explain_a_delta(suite: Project) -> None:
    """Versions are stored and never make a baseline incomparable."""
    suite.valgrind.modules = ["pytest"]
    suite.update("--instrcount-update-policy=all")
    path = suite.baselines()["test_a"]
    stored = read_whole(path)
    assert stored["packages"] == {"pytest": pytest.__version__}
    plant(path, {**stored, "packages": {"pytest": "7"}})
    suite.valgrind.costs["test_a"] = 11_000
    result = suite.measure()
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines([f"*packages changed: pytest 7 -> {pytest.__version__}"])
    suite.valgrind.costs["test_a"] = 5_000
    result = suite.measure()
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines([f"  packages changed: pytest 7 -> {pytest.__version__}"])


# --- the baseline's repetition ------------------------------------------------------------------


def test_repetition_is_stored_and_used_again(suite: Project) -> None:
    """Without a baseline a pilot chooses; with one of this environment, what it was made with."""
    stored = json.loads(suite.baselines()["test_a"].read_text())
    assert (stored["warmup"], stored["calls"], stored["isolation"]) == (20, 3, "fork")
    assert [order.pilot for order in suite.valgrind.orders.values()] == [True, True]
    suite.measure()
    order = suite.valgrind.orders["test_it.py::test_a"]
    assert (order.warmup, order.calls, order.pilot) == (20, 3, False)
    suite.measure("--instrcount-calls=5")
    order = suite.valgrind.orders["test_it.py::test_a"]
    assert (order.warmup, order.calls, order.pilot) == (20, 5, False)
    suite.valgrind.version = "3.24.0"
    suite.measure()
    assert suite.valgrind.orders["test_it.py::test_a"].pilot


def test_counts_are_per_call(suite: Project) -> None:
    """Two calls more change no verdict."""
    assert set(suite.verdicts("--instrcount-calls=5").values()) == {"unchanged"}


def test_pedantic_counts_its_own_rounds(project: Project) -> None:
    """Rounds times iterations are the calls; what the test says wins."""
    project.write(
        "def test_a(instrcount):\n"
        "    instrcount.pedantic(sum, ([1],), warmup_rounds=2, rounds=4, iterations=5)\n"
    )
    project.update()
    stored = json.loads(project.baselines()["test_a"].read_text())
    assert (stored["warmup"], stored["calls"], stored["ir"]) == (2, 20, 10_000)


def test_pedantic_repeats_as_many_calls(project: Project) -> None:
    """Where a test says its iterations alone, what is measured again makes no more of them."""
    project.write("def test_a(instrcount): instrcount.pedantic(sum, ([1],), iterations=10)\n")
    result = project.update()
    result.stdout.no_fnmatch_line("*of the repeated measurements failed*")
    assert json.loads(project.baselines()["test_a"].read_text())["calls"] == 30
    project.measure().stdout.fnmatch_lines(["instrcount: 1 unchanged"])


# --- the rest of pytest -------------------------------------------------------------------------


def test_last_failed_reruns_exactly_the_regressed(suite: Project) -> None:
    """The verdict has the test's own id, so --lf knows it; accepted, it is forgotten."""
    suite.valgrind.costs["test_a"] = 11_000
    suite.measure()
    result = suite.measure("--lf", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_a REGRESSED*"])
    assert list(suite.valgrind.orders) == ["test_it.py::test_a"]
    suite.update("--lf").assert_outcomes(passed=1)
    assert suite.measure().ret == pytest.ExitCode.OK


def junit_of(project: Project, *args: str) -> ElementTree.Element:
    project.measure("--junitxml=../junit.xml", *args)
    (suite,) = ElementTree.parse(project.path.parent / "junit.xml").getroot()
    return suite


def test_junit(suite: Project) -> None:
    """A failure with the text of the verdict, and two properties of each measured test."""
    suite.valgrind.costs["test_a"] = 11_000
    xml = junit_of(suite)
    assert (xml.get("failures"), xml.get("errors")) == ("1", "0")
    failures = [case for case in xml if case.find("failure") is not None]
    assert [case.get("name") for case in failures] == ["test_a"]
    failure = failures[0].find("failure")
    assert failure is not None
    assert "Ir 10,000 -> 11,000" in (failure.text or "")
    first = (failure.text or "").splitlines()[0]
    assert failure.get("message") == first and first.startswith("+10 % (limit 1 %): ")
    found = {
        case.get("name"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in xml
        if case.find("properties") is not None
    }
    assert found == {
        "test_a": {"instrcount.ir": "11000", "instrcount.delta": "0.1"},
        "test_b": {"instrcount.ir": "10000", "instrcount.delta": "0.0"},
    }


def test_junit_keeps_the_tests_own_properties(project: Project) -> None:
    """``record_property`` works in a measured test; without a baseline there is no delta."""
    project.write(
        """
        import pytest
        @pytest.mark.instrcount
        def test_a(record_property): record_property("mine", 1)
        """
    )
    xml = junit_of(project, "-o", "junit_family=xunit1")
    properties = [(p.get("name"), p.get("value")) for p in xml.iter("property")]
    assert properties == [("mine", "1"), ("instrcount.ir", "10000")]


def test_stop_at_the_first_failure_is_no_interruption(suite: Project) -> None:
    """-x: verdicts come when all tests have run, so the gate is whole, and exit is 1."""
    suite.valgrind.usual = 11_000
    result = suite.measure("-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["instrcount: 2 regressed"])
    assert "gate skipped" not in result.stdout.str()


def test_quiet(suite: Project) -> None:
    """-q: the totals alone; the failure is still there, and nothing is said while it works."""
    suite.valgrind.costs["test_a"] = 11_000
    result = suite.measure("-q")
    result.stdout.fnmatch_lines(["instrcount: 1 unchanged, 1 regressed"])
    text = result.stdout.str()
    assert "- instrcount -" not in text
    assert "measuring" not in text
    assert "valgrind 3" not in text
    assert "1 failed, 3 passed" in text
    assert suite.measure("-qq").ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("args", [("--no-summary",), ("-p", "no:terminal"), ("--no-header",)])
def test_output_that_is_off(suite: Project, args: tuple[str, ...]) -> None:
    """The exit code and the baselines do not depend on what is shown."""
    assert suite.measure(*args).ret == pytest.ExitCode.OK
    suite.valgrind.costs["test_a"] = 11_000
    result = suite.measure(*args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    suite.update(*args)
    assert suite.baseline_ir()["test_a"] == 11_000


def test_no_cache(suite: Project) -> None:
    """``-p no:cacheprovider``: all works, with no cache folder."""
    suite.valgrind.costs["test_a"] = 11_000
    suite.measure("-p", "no:cacheprovider").assert_outcomes(passed=3, failed=1)
    suite.update("-p", "no:cacheprovider").assert_outcomes(passed=3)


def test_all_rows_fit_80_columns(project: Project) -> None:
    """Long names are cut from the left."""
    name = "test_" + "long" * 30
    project.write(f"import pytest\n@pytest.mark.instrcount\ndef {name}(): pass\n")
    lines = project.measure("-vv").stdout.lines
    section = lines[next(n for n, line in enumerate(lines) if "- instrcount -" in line) + 1 :]
    rows = [line for line in section if line.startswith("…")]
    assert rows
    assert max(map(len, section[:4])) <= 80


def test_functions_with_vv(suite: Project) -> None:
    """-vv shows below each moved row the functions that moved it."""
    suite.valgrind.costs["test_a"] = {"work.c:work": 7_600, "ceval.c:eval": 2_450}
    result = suite.measure("-vv")
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_a *10,050 *+0.5 %*",
            "      +1 %    +1 %  1 call  work.c:work",
            "    -0.5 %  -0.5 %  1 call  ceval.c:eval",
            "test_it.py::test_b * 0 % *",
        ]
    )


# --- the JSON report ----------------------------------------------------------------------------

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


def check_schema(value: Any, schema: dict[str, Any]) -> None:
    """As much of JSON Schema as docs/reference/schemas uses; what it does not know is an error."""
    known = {"$schema", "title", "description", "type", "additionalProperties", "required"}
    known |= {"properties", "items", "enum", "const", "minimum", "maximum", "minItems", "maxItems"}
    known |= {"maxLength"}
    assert set(schema) <= known
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        assert type(value) in [each for name in names for each in TYPES[name]]
    if "const" in schema:
        assert value == schema["const"]
    if "enum" in schema:
        assert value in schema["enum"]
    if "minimum" in schema and value is not None:
        assert value >= schema["minimum"]
    if "maximum" in schema and value is not None:
        assert value <= schema["maximum"]
    if isinstance(value, str):
        assert len(value) <= schema.get("maxLength", len(value))
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= set(value)
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, each in value.items():
            assert name in properties or more is not False
            check_schema(each, properties.get(name, more))
    if isinstance(value, list):
        assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        for each in value:
            check_schema(each, schema["items"])


def test_report_validates(suite: Project) -> None:
    """The JSON report has the schema of the docs, with one test of each kind."""
    suite.write(SUITE + ONE.replace("test_a", "test_c"))
    suite.valgrind.costs["test_a"] = 11_000
    suite.valgrind.altered["test_b"] = {"counted": None}
    report = suite.report()
    check_schema(report, json.loads(SCHEMA.read_text()))
    assert report["schema"] == 3
    assert report["environment"]["valgrind"] == "3.19.0"
    causes = [
        {
            name: test.pop(name)
            for name in ("functions", "python", "explained", "work", "cause", "remarks")
        }
        for test in report["tests"]
    ]
    assert causes[0]["functions"] == [
        {"name": "work.c:work", "self": 750, "inclusive": 750, "calls": [1, 1]},
        {"name": "ceval.c:eval", "self": 250, "inclusive": 250, "calls": [1, 1]},
    ]
    assert causes[0]["python"] == {
        "how": "trampolines",
        "unit": "Ir",
        "change": [10_000, 11_000],
        "functions": [
            {
                "name": "test_a",
                "file": "test_it.py",
                "line": 3,
                "self_delta": 1000,
                "own": 1000,
                "inclusive": 1000,
                "calls": [1, 1],
            }
        ],
    }
    assert causes[0]["explained"] == {"functions": 1.0, "python": 1.0}
    assert causes[1]["python"] is causes[2]["python"] is None
    assert report["tests"] == [
        {
            "nodeid": "test_it.py::test_a",
            "group": None,
            "extra_info": {},
            "verdict": "regressed",
            "ir": 11_000,
            "baseline_ir": 10_000,
            "denoised_ir": 11_000,
            "delta": 0.1,
            "spread": 0.0,
            "detects": 0.0002,
            "floor": 0.0001,
            "limit": "+1 %",
        },
        {
            "nodeid": "test_it.py::test_b",
            "group": None,
            "extra_info": {},
            "verdict": "failed",
            "ir": None,
            "baseline_ir": None,
            "denoised_ir": None,
            "delta": None,
            "spread": None,
            "detects": None,
            "floor": None,
            "limit": "+1 %",
        },
        {
            "nodeid": "test_it.py::test_c",
            "group": None,
            "extra_info": {},
            "verdict": "new",
            "ir": 10_000,
            "baseline_ir": None,
            "denoised_ir": None,
            "delta": None,
            "spread": None,
            "detects": None,
            "floor": None,
            "limit": "+1 %",
        },
    ]


def test_several_reports(suite: Project) -> None:
    """The option can be given more than once; the path is found from where the user is."""
    suite.measure("--instrcount-report=json:../one.json", "--instrcount-report=json:../two.json")
    one, two = (suite.path.parent / name for name in ("one.json", "two.json"))
    assert one.read_text() == two.read_text()


def test_report_that_cannot_be_written(suite: Project) -> None:
    """Exit 4 with the path and what to type, after the results were shown."""
    folder = suite.outside / "folder"
    # what is in the way before the run is refused at once: see test_reports
    suite.valgrind.while_waiting = lambda name: folder.mkdir(exist_ok=True)
    result = suite.measure(f"--instrcount-report=json:{folder}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["instrcount: 2 unchanged"])
    result.stderr.fnmatch_lines(["ERROR: instrcount: the report */folder cannot be written: *"])
    assert "Traceback" not in result.stderr.str()


# --- what is left -------------------------------------------------------------------------------


def test_nothing_is_written_but_baselines(project: Project, valgrind: FakeValgrind) -> None:
    """A measuring run writes nothing into the tree, an update only the baselines."""
    project.write(SUITE)
    project.run()
    before = project.tree()
    project.measure()
    project.measure("--instrcount-prune")
    assert project.tree() == before
    project.update()
    new = {name for name in project.tree() - before if name.endswith(".json")}
    assert len(new) == 2
    assert all(name.startswith("instrcount_baselines/cp3") for name in new)
    after = project.tree()
    valgrind.usual = 11_000
    project.measure()
    assert project.tree() == after
    assert set(project.baseline_ir().values()) == {10_000}


def test_each_zygote_is_ended_once(suite: Project) -> None:
    """Every run ends what it started, however it ends."""
    suite.measure("-k", "nothing")
    suite.measure("no_such_file.py")
    suite.measure("--maxfail=1")
    assert [zygote.ended for zygote in suite.valgrind.started] == [1] * 4


def test_a_run_without_measured_tests(project: Project) -> None:
    """Said in a line; no folder, exit as ever."""
    project.write("def test_native(): pass")
    result = project.measure()
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    assert not project.valgrind.started[-1].orders
    assert project.measure("-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED


# --- layouts ------------------------------------------------------------------------------------


def test_one_layout_is_enough_for_what_did_not_move(suite: Project) -> None:
    """The rest is asked for again, once in the usual layout and once in each other."""
    suite.valgrind.costs["test_b"] = 10_500
    suite.measure()
    assert suite.valgrind.layouts == {"test_a": [0], "test_b": [0, 0, 1, 2, 3]}


def test_a_suspicion_that_no_other_layout_shares_is_dropped(suite: Project) -> None:
    """One layout says +5 %, another says nothing: nothing is what was proved."""
    suite.valgrind.costs["test_a"] = 10_500
    suite.valgrind.again["test_a"] = [10_500, 10_400, 10_000, 10_300]
    suite.measure().stdout.fnmatch_lines(["instrcount: 2 unchanged"])


def test_layouts_are_measured_for_a_baseline(project: Project) -> None:
    """A baseline says how far they move the count, so does each result that is compared with it."""
    project.write(ONE)
    cost = {"work.c:work": 9_000, "obmalloc.c:PyObject_Malloc": 1_000}
    project.valgrind.costs["test_a"] = cost
    project.valgrind.again["test_a"] = [
        {**cost, "work.c:work": 9_000 + more} for more in (0, 1, -1, 0)
    ]
    project.update()
    assert project.valgrind.layouts == {"test_a": [0, 0, 1, 2, 3]}
    stored = read_whole(project.baselines()["test_a"])["denoised"]
    # a large function that moves by little is counted all the same, with its range
    assert stored["kept"] == [0] * 4
    assert stored["wavering"] == ["work.c:work"]
    assert stored["kinds"] == {"memory": [3_000] * 4, "wavering": [27_000, 27_003, 26_997, 27_000]}
    (test,) = project.report()["tests"]
    assert test["spread"] == pytest.approx(6 / 30_000)
    assert test["detects"] > test["spread"]


@pytest.mark.parametrize(
    ("ir", "later", "verdict", "layouts"),
    [
        pytest.param(10_130, 10_130, "regressed", 4, id="clear"),
        pytest.param(10_040, 10_040, "regressed", 9, id="close, and so in all"),
        pytest.param(10_040, 10_000, "unchanged", 9, id="close, and in another layout nothing"),
    ],
)
def test_more_layouts_are_measured_where_it_is_close(
    project: Project, ir: int, later: int, verdict: str, layouts: int
) -> None:
    """What is just beyond the range of four layouts may be within that of nine."""
    project.write(ONE)
    project.valgrind.again["test_a"] = [10_000, 10_010, 9_990, 10_000]
    project.update()
    assert project.valgrind.layouts == {"test_a": [0, 0, 1, 2, 3]}
    project.valgrind.costs["test_a"] = ir
    project.valgrind.again["test_a"] = [ir, ir + 10, ir - 10, ir, ir, ir, later, ir, ir]
    result = project.measure("-vv", "--instrcount-max-delta=0.1%")
    result.stdout.fnmatch_lines([f"*measured in {layouts} layouts of memory"])
    assert project.verdicts("--instrcount-max-delta=0.1%") == {"test_a": verdict}


def test_an_update_does_not_store_what_differs_between_layouts(project: Project) -> None:
    """Of four layouts all have grown, of nine one has not."""
    project.write(ONE)
    project.valgrind.again["test_a"] = [10_000, 10_010, 9_990, 10_000]
    project.update()
    project.valgrind.costs["test_a"] = 10_600
    project.valgrind.again["test_a"] = [10_600, 10_100, 10_200, 10_300, *[10_000] * 5]
    result = project.update()
    result.stdout.fnmatch_lines(
        ["instrcount: 0 baselines written: what is unchanged keeps its own"]
    )
    assert project.verdicts() == {"test_a": "unchanged"}


def test_noise_that_has_grown_is_said(project: Project) -> None:
    """With -vv, by kind; a kind that stays within the range of the baseline's layouts has not grown."""
    project.write(ONE)
    cost = {"work.c:work": 9_000, "obmalloc.c:PyObject_Malloc": 1_000}
    project.valgrind.costs["test_a"] = cost
    project.update()
    project.valgrind.costs["test_a"] = {**cost, "obmalloc.c:PyObject_Malloc": 1_300}
    result = project.measure("-vv")
    result.stdout.fnmatch_lines(
        [
            "*measured in 4 layouts of memory",
            "*memory: 300 ir a call beyond noise",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


# --- hash seeds ---------------------------------------------------------------------------------

PROBED = "dictobject.c:unicodekeys_lookup_unicode"
LEFT_OUT = "not counted: keys of dicts and sets collide differently, by chance of the hash*"


def probing(ir: int) -> dict[str, int]:
    return {"work.c:work": 9000, PROBED: ir}


@pytest.fixture
def probed(project: Project) -> Project:
    """A test with a baseline, whose look-ups then cost 300 instructions more, of 10,000."""
    project.write(ONE)
    project.valgrind.costs["test_a"] = probing(1000)
    project.update()
    project.valgrind.costs["test_a"] = probing(1300)
    return project


def test_other_collisions_are_left_out(probed: Project) -> None:
    """A verdict that hangs on them is found under other hash seeds, and what was left out is said."""
    probed.valgrind.seeds["test_a"] = [*map(probing, (900, 1000, 1100, 1000, 1050, 1200, 1000))]
    (test,) = probed.report()["tests"]
    assert (test["verdict"], test["delta"]) == ("unchanged", 0)
    assert test["detects"] == pytest.approx(0.08, abs=0.001)
    assert probed.valgrind.layouts == {"test_a": [0, 0, 1, 2, 3, *range(-2, -9, -1)]}
    result = probed.measure()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["instrcount: measuring 1 test under 7 other hash seeds", LEFT_OUT])


def test_growth_under_all_hash_seeds_counts(probed: Project) -> None:
    probed.valgrind.seeds["test_a"] = [*map(probing, (1290, 1300))]
    result = probed.measure()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "+3 % (limit 1 %): *",
            "  mostly probing: dicts or sets are asked as often, keys collide differently;",
            "  hash seeds move it by 0.1 % at most: this is growth",
        ]
    )


def test_a_test_that_fails_under_other_hash_seeds_keeps_its_verdict(probed: Project) -> None:
    probed.valgrind.while_waiting = lambda name: (
        probed.valgrind.altered.__setitem__(name, {"counted": None})
        if probed.valgrind.layouts[name][-1] < 0
        else None
    )
    result = probed.measure()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*test_a: it failed under 7 of 7 other hash seeds*"])


def test_a_start_that_fails_under_another_hash_seed_ends_nothing(probed: Project) -> None:
    """A conftest may depend on the order of a set."""

    def fail(name: str) -> None:
        if probed.valgrind.layouts[name][-1] < 0:
            raise ZygoteFailed("zygote-failed", "pytest ended\nmore", "pytest")

    probed.valgrind.while_waiting = fail
    result = probed.measure("--instrcount-blame=off")
    result.assert_outcomes(passed=1, failed=1)
    told = "no test was measured under other hash seeds: pytest ended"
    result.stdout.fnmatch_lines(["+3 % (limit 1 %): *", told])


def test_an_update_stores_other_collisions_as_they_are(probed: Project) -> None:
    """The next check then needs no other seeds."""
    probed.update().assert_outcomes(passed=1)
    assert min(probed.valgrind.layouts["test_a"]) == 0
    probed.measure().assert_outcomes(passed=1)
    assert probed.valgrind.layouts == {"test_a": [0]}


@pytest.mark.parametrize(("dumps", "calls"), [("131", 3), ("111", 1)])
def test_other_layouts_are_repeated_as_often(project: Project, dumps: str, calls: int) -> None:
    """Code adapts to how often it ran: all have the warm-up of the first, and one call if all were alike."""
    counted = (f"cp31{each}-json.out" for each in dumps)
    project.valgrind.recorded["test_a"] = *counted, "cp311-empty.out"
    project.write(ONE)
    project.update()
    usual, *others = project.valgrind.started[-1].orders[1:]
    assert (usual.layout, usual.warmup, usual.calls, usual.pilot) == (0, 20, 3, False)
    assert {(order.warmup, order.calls, order.pilot) for order in others} == {(20, calls, False)}


def test_layouts_of_other_numbers_of_calls_are_none(project: Project) -> None:
    """Of a test that says how often it is repeated, and says more each time: no layout has a count of 0."""
    project.write(
        """
        from pathlib import Path

        def test_a(instrcount):
            with Path("ran").open("a") as ran:
                ran.write("x")
            instrcount.pedantic(int, rounds=2 + len(Path("ran").read_text()))
        """
    )
    result = project.update()
    result.stdout.fnmatch_lines(["test_it.py::test_a: 4 of the repeated measurements failed"])


def test_what_is_stored_already_is_not_measured_again(suite: Project) -> None:
    """An update of equal counts costs what a check costs, and changes no file."""
    before = {path: path.read_bytes() for path in suite.baselines().values()}
    suite.update().stdout.fnmatch_lines(
        ["instrcount: 0 baselines written: what is unchanged keeps its own"]
    )
    assert suite.valgrind.layouts == {"test_a": [0], "test_b": [0]}
    assert before == {path: path.read_bytes() for path in suite.baselines().values()}


def test_a_limit_below_what_is_detected_is_said(project: Project) -> None:
    """With the first result, not when it fails."""
    project.write(ONE)
    project.valgrind.again["test_a"] = [10_000, 10_010, 9_990, 10_000]
    line = "limit is below the detection limit: test_a (+0.1 %, detects >= 0.27 %)"
    for run, totals in ((project.update, "1 new"), (project.measure, "1 unchanged")):
        result = run("--instrcount-max-delta=0.1%")
        result.stdout.fnmatch_lines([f"instrcount: {totals}", line])
    result = project.measure("--instrcount-max-delta=20ir")
    result.stdout.fnmatch_lines(["limit is below *: test_a (+20 ir, detects >= 0.27 %)"])
    assert "limit is below" not in project.measure("--instrcount-max-delta=1%").stdout.str()


def test_not_deterministic(suite: Project) -> None:
    """Two equal processes that differ by more than the limit prove nothing, so the run fails."""
    cost = {"work.c:work": 7_500, "ceval.c:eval": 2_500}
    suite.valgrind.costs["test_a"] = {**cost, "time.c:clock": 500}
    suite.valgrind.again["test_a"] = [{**cost, "time.c:clock": 900}, *[cost] * 3]
    result = suite.measure()
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_a: measured twice, and the counts differ [[]nondeterministic]",
            "  the same call in two equal processes; most often a clock, threads, I/O or a",
            "  random number without a seed; these functions differ most:",
            "    time.c:clock",
        ]
    )
    before = suite.baselines()["test_a"].read_bytes()
    assert suite.update().ret == pytest.ExitCode.TESTS_FAILED
    assert suite.baselines()["test_a"].read_bytes() == before


def test_what_differs_between_equal_processes_is_no_noise(suite: Project) -> None:
    """Two forks that happen to agree by and large do not hide what the layouts show."""
    cost = {"work.c:work": 7_500, "ceval.c:eval": 2_500}
    suite.valgrind.costs["test_a"] = {**cost, "time.c:clock": 500}
    suite.valgrind.again["test_a"] = [
        {**cost, "time.c:clock": clock} for clock in (501, 2_000, 4_000, 90)
    ]
    assert suite.verdicts()["test_a"] == "nondeterministic"


def test_slightly_unsteady_is_said(project: Project) -> None:
    """Within the limit it is a note, and the test detects less."""
    project.write(ONE)
    project.valgrind.costs["test_a"] = {"work.c:work": 9_000, "time.c:clock": 1_000}
    other = {"work.c:work": 9_000, "time.c:clock": 1_002}
    project.valgrind.again["test_a"] = [other] * 4
    project.update().stdout.fnmatch_lines(
        ["not deterministic, by less than the limit: test_a (time.c:clock)"]
    )


def test_a_call_that_waits_is_measured_once(project: Project) -> None:
    """It is said, with its time."""
    project.write(TWO_TESTS)
    project.valgrind.altered["test_a"] = {"once": 100.2}
    result = project.measure()
    result.stdout.fnmatch_lines(["test_it.py::test_a: measured once: one call takes 100 s"])
    assert "test_b: measured once" not in result.stdout.str()


@pytest.mark.parametrize("option", ["--stepwise", "--sw-skip"])
def test_stepwise_would_leave_out_what_has_regressed(project: Project, option: str) -> None:
    """It goes on behind the last test that failed, and all of ours fail when all have run."""
    project.write(TWO_TESTS)
    project.run(option).assert_outcomes(passed=2)
    result = project.measure(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["--stepwise goes on behind *; fix: pytest --instrcount --last-failed"]
    )


def test_a_file_where_baselines_would_be(project: Project) -> None:
    """Said before anything is measured, once for all tests."""
    project.write(TWO_TESTS)
    (project.path / "instrcount_baselines").touch()
    result = project.update()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["instrcount_baseline_dir: * is no folder; fix: ls -ld /*baselines"]
    )
    project.run().assert_outcomes(passed=2)


@pytest.mark.parametrize("args", [(), ("-q",)])
def test_where_no_baseline_was_found(project: Project, args: tuple[str, ...]) -> None:
    """Said if no test has one, without a header as well; not where one has."""
    project.write(TWO_TESTS)
    project.measure(*args).stdout.fnmatch_lines(
        ["no matching baseline was found in instrcount_baselines/cp3*-linux-x86_64"]
    )
    project.update("test_it.py::test_a", *args).stdout.no_fnmatch_line("no matching*")
    project.measure(*args).stdout.no_fnmatch_line("no matching*")


def test_a_fix_names_the_test_as_it_is_typed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below rootdir, too: the damaged file is deleted before the test is looked for."""
    project.write(SUITE)
    project.update()
    (kept,) = project.path.rglob("test_a-*.json")
    kept.write_text("{")
    (project.path / "below").mkdir()
    monkeypatch.chdir(project.path / "below")
    fix = f"  fix: rm {kept} && pytest --instrcount-update-baseline ../test_it.py::test_a"
    assert fix in project.measure("..").outlines
