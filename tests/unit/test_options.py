"""The declared options: names, defaults, choices, and a twin for each."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, cast

import pytest

from pytest_instrcount.config import options
from pytest_instrcount.config.options import MARKER_LINE, add_options
from pytest_instrcount.config.settings import _MARKER_ARGUMENTS
from pytest_instrcount.host.ci import OF_CI


class Recorder:
    """Stands for pytest's parser and its group, and keeps what is declared."""

    def __init__(self) -> None:
        self.options: dict[str, dict[str, Any]] = {}
        self.ini: dict[str, tuple[str, dict[str, Any]]] = {}
        self.group = ""

    def getgroup(self, name: str, description: str) -> Recorder:
        self.group = name
        return self

    def addoption(self, name: str, **kwargs: Any) -> None:
        self.options[name] = kwargs

    def addini(self, name: str, help: str, **kwargs: Any) -> None:
        self.ini[name] = help, kwargs


@pytest.fixture
def declared() -> Recorder:
    """What add_options declares."""
    recorder = Recorder()
    add_options(cast(pytest.Parser, recorder))
    return recorder


def test_one_prefix(declared: Recorder) -> None:
    """Group, options and ini settings all begin with the tool's name."""
    assert declared.group == "instrcount"
    assert all(
        name.startswith("--instrcount") for name in declared.options if name != "--trace-profile"
    )
    assert all("instrcount" in name for name in declared.ini)


def test_twins(declared: Recorder) -> None:
    """Each option but the deeds (update, prune, a selection, what is written) can be set in the ini."""
    twins = {name[2:].replace("-", "_") for name in declared.options}
    deeds = {
        "instrcount_update_baseline",
        "instrcount_update_inline",
        "instrcount_init",
        "instrcount_prune",
        "instrcount_shard",
        "instrcount_reason",
        "instrcount_against",
        "instrcount_only",
        "instrcount_skip",
        "instrcount_report",
        "instrcount_keep",
        "instrcount_bundle",
        "instrcount_timings",
        "instrcount_timings_csv",
        "instrcount_debug",
        "trace_profile",
    }
    only_ini = {
        "instrcount_adopt_benchmarks",
        "instrcount_allow",
        "instrcount_against_build",
        "instrcount_env",
        "instrcount_recognizers",
        "verbosity_instrcount",
    }
    assert set(declared.ini) == twins - deeds | only_ini


def test_an_option_that_is_not_given_hides_no_ini(declared: Recorder) -> None:
    """Its default is None, so that the ini is asked; no option has an optional value."""
    for name, kwargs in declared.options.items():
        twin = name[2:].replace("-", "_")
        without_twin = name in ("--instrcount-report", "--trace-profile") or name.endswith(
            ("-keep", "-bundle", "-against", "-reason", "-timings-csv", "-debug")
        )
        assert kwargs["default"] is (None if twin in declared.ini or without_twin else False)
        assert "nargs" not in kwargs


def test_choices(declared: Recorder) -> None:
    """The first choice is the default, and the help says so."""
    for name, choices in {
        "update-policy": options.POLICIES,
        "missing": options.MISSING,
        "incomparable": options.INCOMPARABLE,
        "improved": options.IMPROVED,
        "isolation": options.ISOLATIONS,
    }.items():
        kwargs = declared.options[f"--instrcount-{name}"]
        assert kwargs["choices"] == choices
        assert f"(default: {choices[0]})" in kwargs["help"]


def test_help_style(declared: Recorder) -> None:
    """A capital or the name of a choice first, no full stop; only options are %-formatted."""
    for name, kwargs in declared.options.items():
        assert not kwargs["help"].endswith("."), name
        kwargs["help"] % {}
    for name, (help_, _) in declared.ini.items():
        assert help_ and "\n" not in help_ and "%%" not in help_, name


def test_marker_line_has_the_arguments() -> None:
    """What --markers shows is what is checked."""
    signature = MARKER_LINE.partition("(")[2].partition(")")[0]
    assert [each.partition("=")[0] for each in signature.split(", ")] == list(_MARKER_ARGUMENTS)


@pytest.mark.parametrize(
    ("outside", "inside", "found"),
    [
        ({"CI": "1"}, {"TOX_ENV_NAME": "py"}, "CI"),
        ({"CI": "1"}, {"TOX_ENV_NAME": "py", "CI": ""}, ""),
        ({}, {"TOX_ENV_NAME": "py"}, ""),
        ({"CI": "1"}, {}, ""),
    ],
)
def test_ci_is_seen_from_within_tox(
    outside: dict[str, str], inside: dict[str, str], found: str
) -> None:
    """Which hands on few variables, here to what starts pytest: a gate that did not know where it is passed."""
    kept = {name: text for name, text in os.environ.items() if name not in OF_CI}
    asks = "import os; from pytest_instrcount.host.ci import ci_variable; "
    asks += "print(ci_variable(os.environ))"
    command = [sys.executable, "-c", asks]
    command = [sys.executable, "-c", f"import subprocess; subprocess.run({command}, check=True)"]
    starts = f"import subprocess; subprocess.run({command}, env={kept | inside}, check=True)"
    done = subprocess.run(
        [sys.executable, "-c", starts], env=kept | outside, stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.decode().strip() == found
