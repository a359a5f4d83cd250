"""Options and their ini twins: each works alone, the command line wins, mistakes come all at once."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.config.settings import Settings, load_settings
from pytest_instrcount.config.stash import CI
from pytest_instrcount.gate.limit import Limit
from tests.plugin.conftest import Project

MARKED = "import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n"

#: Name with underscores, text of a value, attribute of Settings, value there, default.
TWINS: list[tuple[str, str, str, Any, Any]] = [
    ("instrcount_update_policy", "failing", "policy", "failing", "changed"),
    (
        "instrcount_max_delta",
        "5000ir",
        "max_delta",
        Limit(None, 5000),
        Limit(Fraction(1, 100), None),
    ),
    ("instrcount_reason_above", "5%", "reason_above", Fraction(1, 20), None),
    ("instrcount_missing", "fail", "missing", "fail", "auto"),
    ("instrcount_incomparable", "fail", "incomparable", "fail", "auto"),
    ("instrcount_improved", "fail", "improved", "fail", "note"),
    ("instrcount_backend", "bytecode", "backend", "bytecode", "callgrind"),
    ("instrcount_valgrind", "/opt/valgrind", "valgrind", "/opt/valgrind", "valgrind"),
    ("instrcount_timeout", "2.5", "timeout", 2.5, 600.0),
    ("instrcount_warmup", "0", "warmup", 0, None),
    ("instrcount_calls", "7", "calls", 7, None),
    ("instrcount_isolation", "process", "isolation", "process", "fork"),
]


def settings_of(project: Project, *args: str, ini: str = "") -> Settings:
    project.pytester.makeini(f"[pytest]\n{ini}\n")
    return load_settings(project.pytester.parseconfig(*args))


@pytest.mark.parametrize(("name", "text", "attribute", "value", "default"), TWINS)
def test_each_option_has_an_ini_twin(
    project: Project, name: str, text: str, attribute: str, value: Any, default: Any
) -> None:
    """The default; the ini alone; the option alone; and of both, the option."""
    option = f"--{name.replace('_', '-')}={text}"
    assert getattr(settings_of(project), attribute) == default
    assert getattr(settings_of(project, ini=f"{name} = {text}"), attribute) == value
    assert getattr(settings_of(project, option), attribute) == value
    other = {"fail": "note", "failing": "missing", "process": "fork", "bytecode": "auto"}.get(
        text, "3"
    )
    if attribute == "incomparable":
        other = "warn"
    elif attribute == "max_delta":
        other = "3%"
    both = settings_of(project, option, ini=f"{name} = {other}")
    assert getattr(both, attribute) == value


def test_folders_are_found_from_rootdir_and_reports_from_here(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A baseline folder belongs to the project; a report goes where the user stands."""
    below = project.path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    args = "--instrcount-baseline-dir=b", "--instrcount-report=json:r.json"
    settings = settings_of(project, f"--rootdir={project.path}", *args)
    assert settings.baseline_dir == project.path / "b"
    assert settings.reports == (("json", below / "r.json"),)
    settings = settings_of(project, ini="instrcount_baseline_dir = from_ini")
    assert settings.baseline_dir == project.path / "from_ini"
    settings = settings_of(project, "--instrcount-baseline-dir=/elsewhere")
    assert settings.baseline_dir == Path("/elsewhere")


def test_the_ini_alone_measures(project: Project) -> None:
    """``instrcount = true`` is --instrcount on every run."""
    project.write(MARKED)
    project.pytester.makeini("[pytest]\ninstrcount = true\n")
    project.run().stdout.fnmatch_lines(["instrcount: valgrind 3.19.0, *", "instrcount: 1 new"])


def test_variables_to_let_through(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """``instrcount_env`` adds names to those that a test may see; their values are no facts."""
    monkeypatch.setenv("TOKEN", "secret")
    monkeypatch.setenv("OTHER", "x")
    project.pytester.makeini("[pytest]\ninstrcount_env = TOKEN ABSENT\n")
    project.write(MARKED)
    environment = project.report()["environment"]
    made = project.valgrind.started[-1].setup.environment
    assert made["TOKEN"] == "secret"
    assert "OTHER" not in made
    assert "ABSENT" not in made
    assert environment["let_through"] == "ABSENT TOKEN"
    assert "secret" not in str(environment)


@pytest.mark.parametrize(
    ("args", "ini", "verbosity"),
    [
        ((), "", 0),
        (("-v",), "", 1),
        (("-q",), "", -1),
        (("-q",), "verbosity_instrcount = 2", 2),
        (("-vv",), "verbosity_instrcount = auto", 2),
    ],
)
def test_verbosity_of_its_own(
    project: Project, args: tuple[str, ...], ini: str, verbosity: int
) -> None:
    """The section follows -v and -q unless the ini says otherwise."""
    assert settings_of(project, *args, ini=ini).verbosity == verbosity


def test_wrong_values_are_told_at_once(project: Project) -> None:
    """One message with every mistake, exit 4, no traceback, and Valgrind is not looked for."""
    project.write(MARKED)
    project.pytester.makeini(
        """
        [pytest]
        instrcount_update_policy = some
        instrcount_missing = maybe
        instrcount_incomparable = no
        instrcount_improved = yes
        instrcount_isolation = thread
        verbosity_instrcount = loud
        """
    )
    result = project.measure(
        "--instrcount-max-delta=1",
        "--instrcount-timeout=soon",
        "--instrcount-warmup=-1",
        "--instrcount-calls=0",
        "--instrcount-report=xml:r",
        "--instrcount-report=json:",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: instrcount: wrong settings [[]settings]"])
    for line in (
        "instrcount_update_policy = 'some': choose one of changed, all, missing, failing",
        "instrcount_missing = 'maybe': choose one of auto, fail, note",
        "instrcount_incomparable = 'no': choose one of auto, warn, fail",
        "instrcount_improved = 'yes': choose one of note, fail",
        "instrcount_isolation = 'thread': choose one of fork, process",
        "verbosity_instrcount = 'loud': *",
        "instrcount_max_delta = '1': * is ambiguous: percent or instructions[?]; write \"1%\" *",
        "instrcount_timeout = 'soon': write seconds, like 60",
        "instrcount_warmup = '-1': write a whole number, 0 or more",
        "instrcount_calls = '0': write a whole number, 1 or more",
        "--instrcount-report=xml:r: write TYPE:PATH, like json:PATH; the types are json, html,*",
        "--instrcount-report=json:: write TYPE:PATH, *",
    ):
        result.stderr.fnmatch_lines([line])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
    assert not project.valgrind.looked_for


@pytest.mark.parametrize("flag", ["--instrcount", "-q"])
def test_a_switch_that_says_neither_yes_nor_no(project: Project, flag: str) -> None:
    """Told at once, with the name of the setting, whether it would have been looked at or not."""
    project.write(MARKED)
    result = project.run(flag, "-o", "instrcount=maybe")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: instrcount: wrong settings [[]settings]",
            "instrcount: invalid truth value 'maybe': write true or false, like",
            "  fix: pytest -o instrcount=true",
        ]
    )
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
    assert not project.valgrind.started


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("A 'B", "No closing quotation"),
        ("A B=1", "'B=1' is no name"),
        ("A ''", "'' is no name"),
        ("A,B", "'A,B' is no name"),
        ("A_*", "'A_[*]' is no name"),
    ],
)
def test_variables_that_are_none(project: Project, line: str, why: str) -> None:
    """With the other mistakes, and how to write it."""
    project.write(MARKED)
    project.pytester.makeini(f"[pytest]\ninstrcount_env = {line}\ninstrcount_missing = maybe\n")
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines_random(
        [
            "ERROR: instrcount: wrong settings [[]settings]",
            "instrcount_missing = 'maybe': *",
            f"instrcount_env: {why}: write names of variables, without values, "
            "like instrcount_env = DATABASE_URL TOKEN",
        ]
    )


@pytest.mark.parametrize("option", ["update-policy", "missing", "incomparable", "improved"])
def test_wrong_choice_on_the_command_line(project: Project, option: str) -> None:
    """The option parser refuses it and names the choices."""
    result = project.run(f"--instrcount-{option}=x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--instrcount-{option}: invalid choice: 'x'*"])


def test_no_option_swallows_a_path(project: Project) -> None:
    """Flags take no value: a path may follow each of them."""
    project.write(MARKED)
    for flag in ("--instrcount", "--instrcount-update-baseline", "--instrcount-prune"):
        project.run(flag, "test_it.py").assert_outcomes(passed=1)


def test_help_has_every_option_in_one_group(project: Project) -> None:
    """The group names the tool, and every option says its default or what it implies."""
    result = project.run("--help")
    text = result.stdout.str()
    group = text[text.index("instruction counts under Valgrind's Callgrind") :]
    for name, *_ in TWINS:
        assert f"--{name.replace('_', '-')}" in group
        assert f"\n  {name} (" in group
    for name in ("--instrcount-prune", "--instrcount-baseline-dir", "--instrcount-report"):
        assert name in group
    assert "instrcount_env (args)" in group
    assert "%%" not in group


@pytest.mark.parametrize("ci", [True, False])
def test_ci_is_known_where_a_conftest_loads_the_plugin(
    project: Project, monkeypatch: pytest.MonkeyPatch, ci: bool
) -> None:
    """Pytest then calls no hook of it before conftests are read."""
    monkeypatch.setenv("CI", str(ci).lower())
    config = project.pytester.parseconfig()
    del config.stash[CI]
    assert load_settings(config).ci == ("CI" if ci else "")
