"""Facts about a project from pytest: its settings, its plugins, the tests of a file. Nothing is run."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_instrcount.config.settings import Settings, load_settings
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.text import escape_unprintable


@dataclass(frozen=True, slots=True)
class Project:
    """A project as pytest sees it from where the doctor was called."""

    root: Path
    #: the working folder
    folder: Path
    settings: Settings
    #: distributions with plugins -> their version
    plugins: dict[str, str]
    #: with which a run would start
    config: pytest.Config


@dataclass(frozen=True, slots=True)
class Collected:
    """A test of a file, in the order of the file."""

    nodeid: str
    measured: bool


class _Settings:
    """Takes the configuration and ends pytest before it does anything."""

    config: pytest.Config | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        self.config = config
        return 0


class _Collector:
    """Takes what was collected."""

    def __init__(self) -> None:
        self.tests: list[Collected] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.tests = [
            Collected(item.nodeid, item.get_closest_marker("instrcount") is not None)
            for item in session.items
        ]


def read_project() -> Project:
    """Ask pytest about the folder we are in.

    Raises InstrcountError "doctor-project" where pytest or the plugin refuses its settings.
    """
    taker = _Settings()
    said = _run_pytest([], taker)
    if taker.config is None:
        raise _refused(said)
    config = taker.config
    if not hasattr(config.option, "instrcount"):
        raise InstrcountError(
            "doctor-project",
            "pytest does not load the plugin here: by PYTEST_DISABLE_PLUGIN_AUTOLOAD, or -p no:instrcount",
            "export PYTEST_ADDOPTS='-p pytest_instrcount.plugin'    # or in the ini file: addopts",
        )
    try:
        settings = load_settings(config)
    except pytest.UsageError as error:
        raise _refused(str(error)) from None
    plugins = {
        distribution.project_name: distribution.version
        for _, distribution in config.pluginmanager.list_plugin_distinfo()
    }
    return Project(config.rootpath, config.invocation_params.dir, settings, plugins, config)


def collect_file(test: str) -> list[Collected]:
    """The tests of the file that a test is in. Raises InstrcountError "doctor-test" if there are none."""
    taker = _Collector()
    file = test.partition("::")[0]
    said = _run_pytest(["--collect-only", "-q", "-o", "instrcount=false", file], taker)
    if not taker.tests:
        raise InstrcountError(
            "doctor-test",
            f"pytest collects no test from {file}\n{_last_lines(said)}".rstrip(),
            f"pytest --collect-only {file}",
        )
    return taker.tests


def find_test(tests: list[Collected], wanted: str) -> str:
    """The id of the test that is meant; its parameters may be left out where it has one set.

    Raises InstrcountError "doctor-test" for one that is not there, is not measured or is several.

    >>> find_test([Collected("test_a.py::test_b[1]", True)], "test_a.py::test_b")
    'test_a.py::test_b[1]'
    """
    names = {each.nodeid: each.measured for each in tests}
    found = _matching(names, wanted)
    if len(found) != 1:
        measured = next((name for name in found or names if names[name]), next(iter(names)))
        what = f"{wanted} is {len(found)} tests" if found else f"there is no test {wanted}"
        raise InstrcountError(
            "doctor-test",
            f"{what}; the doctor looks at one",
            f"python -m pytest_instrcount doctor {shlex.quote(escape_unprintable(measured))}",
        )
    if not names[found[0]]:
        raise InstrcountError(
            "doctor-test",
            f"{found[0]} has no instrcount marker and no fixture, so nothing of it is counted",
            "put @pytest.mark.instrcount above it",
        )
    return found[0]


def _matching(names: Mapping[str, bool], wanted: str) -> list[str]:
    if wanted in names:
        return [wanted]
    found = [name for name in names if name.startswith(f"{wanted}[")]
    # else typed where pytest was started, below rootdir
    return found or [
        name for name in names if name.endswith(f"/{wanted}") or name.partition("[")[0] == wanted
    ]


def _run_pytest(args: list[str], plugin: object) -> str:
    """Run pytest here, for what a plugin sees; returns what it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            pytest.main(args, plugins=[plugin])
        except SystemExit as error:  # a conftest may
            print(f"SystemExit: {error}")
    return said.getvalue()


def _refused(said: str) -> InstrcountError:
    return InstrcountError(
        "doctor-project",
        f"pytest does not start in this folder\n{_last_lines(said)}".rstrip(),
        "pytest --collect-only    # says more",
    )


def _last_lines(said: str) -> str:
    return "\n".join(said.strip().splitlines()[-5:])
