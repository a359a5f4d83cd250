"""Replays reports, warnings and endings of a test process in the user's pytest."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_instrcount.callgrind.channel import PADDING
from pytest_instrcount.callgrind.inside.reports import is_passed, restored
from pytest_instrcount.callgrind.messages import Answer
from pytest_instrcount.config.compat import failure, note_failed_subtest
from pytest_instrcount.config.hooks import alone, is_conftest, module_of
from pytest_instrcount.host.text import escape_controls
from pytest_instrcount.session.renames import body_of

_REPORT = "instrcount_report"
_CAPTURED = ("Captured stdout", "Captured stderr")


@dataclass(frozen=True, slots=True)
class Place:
    """The identity of a test in reports; outlives the test, and can be sent."""

    nodeid: str
    #: file, line counted from 0, and name, as pytest has them
    location: tuple[str, int | None, str]
    keywords: tuple[str, ...]
    #: what it does, as `renames.body_of`
    body: str = ""

    @classmethod
    def of(cls, item: pytest.Item) -> Place:
        """That of a collected test."""
        return cls(item.nodeid, item.location, tuple(item.keywords), body_of(item))


def load_reports(config: pytest.Config, result: Answer) -> list[Any]:
    """The reports of a result, as pytest's own objects."""
    load = config.hook.pytest_report_from_serializable
    return [load(config=config, data=_with_times(data)) for data in result["reports"]]


def _with_times(data: dict[str, Any]) -> dict[str, Any]:
    """The values of a report in their types, and its times in seconds."""
    times = {name: (int(data[name]) - PADDING) / 1e9 for name in data.pop("padded", ())}
    return {name: restored(each) for name, each in data.items()} | times


def log_reports(ihook: Any, reports: list[Any], properties: list[tuple[str, object]]) -> None:
    """Log a test's reports; the properties go to JUnit, which reads the last of them.

    ``ihook``: the hooks of the test, ``item.ihook``.
    """
    for report in reports:
        report.user_properties = [*report.user_properties, *properties]
        ihook.pytest_runtest_logreport(report=report)


def report_of(call: pytest.CallInfo[None]) -> pytest.TestReport | None:
    """The report of a phase that was replayed."""
    return vars(call).get(_REPORT)


def _replayed(report: pytest.TestReport) -> pytest.CallInfo[None]:
    """A phase that ends as a report says."""

    def end() -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            pytest.skip(report.longreprtext)
        if not report.passed:
            raise AssertionError(report.longreprtext)

    call = pytest.CallInfo.from_call(end, report.when or "call")
    vars(call)[_REPORT] = copy.deepcopy(report)
    return call


def tell_makers(item: pytest.Item, reports: list[Any], note: Callable[[str], None]) -> None:
    """Have plugins know how a test ended that keep this in ``pytest_runtest_makereport``.

    As pytest-dependency does, and conftests by pytest's recipe for incremental tests. What they make of
    a report, and warn of, is not taken: they ran inside, too. Each is told alone, for it may want what is
    there inside only, and raise; of a conftest that is noted.
    """
    name, own = "pytest_runtest_makereport", item.config.pluginmanager.get_plugin("instrcount-run")
    hook: Any = getattr(item.ihook, name)
    for each in hook.get_hookimpls():
        if module_of(each).partition(".")[0] in ("_pytest", "pytest_instrcount"):
            continue
        call = alone(item.config, hook, each, own)
        for report in reports:
            error = "" if is_subtest(report) else _tell(call, item, report)
            if error and is_conftest(each):
                note(
                    f"{item.nodeid}: the {name} of a conftest was told how it ended, and raised {error}"
                )


def _tell(hook: Callable[..., object], item: pytest.Item, report: pytest.TestReport) -> str:
    """Returns what the hook has raised, or ""."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            hook(item=item, call=_replayed(report))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def show_output(config: pytest.Config, reports: list[Any], shown: str) -> None:
    """Print what pytest would have shown at once: fixtures under --setup-show, output under -s."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if config.getoption("setupshow", False) and shown and reporter is not None:
        reporter.write(shown)
    if config.getoption("capture", "no") != "no":
        return
    # each report has the sections of those before it
    for title, text in max((report.sections for report in reports), key=len, default=()):
        if title.startswith(_CAPTURED):
            stream = sys.stderr if "stderr" in title else sys.stdout
            stream.write(text)
            stream.flush()
    for report in reports:
        report.sections = [
            section for section in report.sections if not section[0].startswith(_CAPTURED)
        ]


def repeat_warnings(config: pytest.Config, recorded: list[dict[str, Any]]) -> None:
    """Record the warnings of a test child, as if they had been given here."""
    for each in recorded:
        category = getattr(sys.modules.get(each["module"]), each["category"], UserWarning)
        if not (isinstance(category, type) and issubclass(category, Warning)):
            category = UserWarning
        try:
            warning = category(each["text"])
        except Exception:
            category, warning = UserWarning, UserWarning(each["text"])
        message = warnings.WarningMessage(warning, category, each["filename"], each["lineno"])
        config.hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": message,
                "when": each["when"],
                "nodeid": each["nodeid"],
                "location": None,
            }
        )


def error_reports(item: pytest.Item | Place, text: str) -> list[pytest.TestReport]:
    """Reports of a test that could not be run to its end: an error, then an empty teardown."""
    setup = make_report(item, "setup", "failed", text)
    return [setup, make_report(item, "teardown", "passed", None)]


def make_report(
    item: pytest.Item | Place, when: Any, outcome: Any, text: str | None
) -> pytest.TestReport:
    """A report of ours about a test, under the test's own id."""
    path, line, _ = item.location
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome=outcome,
        longrepr=None if text is None else failure(path, (line or 0) + 1, escape_controls(text)),
        when=when,
        duration=0.0,
    )


def add_error(item: pytest.Item, reports: list[Any], text: str) -> list[Any]:
    """The reports with an error in the place of the teardown: the test ran, and was not measured."""
    kept = [report for report in reports if report.when != "teardown"]
    return [*kept, make_report(item, "teardown", "failed", text)]


def passed(reports: list[Any]) -> bool:
    """True if a test passed in all its phases, be it unexpected; an expected failure did not.

    A sub-test that was skipped, or the rest of a teardown, takes nothing away from what was counted.
    """
    return all(is_passed(each) or (each.skipped and is_subtest(each)) for each in reports)


def is_subtest(report: Any) -> bool:
    """Whether it is about a block in a test: pytest's own kind, or pytest-subtests'."""
    return type(report).__name__.lower() == "subtestreport"


def without_blocks(reports: list[Any]) -> list[Any]:
    """Those of its phases."""
    return [each for each in reports if not is_subtest(each)]


def count_failed_blocks(item: pytest.Item, reports: list[Any]) -> None:
    """Have pytest fail a test for its sub-tests, as it does where they ran."""
    for each in reports:
        if each.failed and is_subtest(each):
            note_failed_subtest(item, each)


def end_session_as(result: Answer) -> None:
    """Raise again what ended the session inside: ``pytest.exit`` or Ctrl-C."""
    if result.get("ended") == "exit":
        pytest.exit(result["why"], result["code"])
    if result.get("ended") == "interrupt":
        raise KeyboardInterrupt
