"""What explains most of a change, in a line."""

from __future__ import annotations

from pytest_instrcount.counts.python.blame import PythonBlame, PythonDelta
from pytest_instrcount.counts.python.source import is_installed, is_packaged
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.report.blame import project_caller, run_by
from pytest_instrcount.report.c_functions import calls_text
from pytest_instrcount.report.called import Called, own_calls, telling
from pytest_instrcount.report.trees import place_of, split_name


def main_cause(result: TestResult, *, exact: bool = True) -> tuple[str, str]:
    """The function that explains most of a change, and its place with what it does otherwise; "" if unknown.

    ``("slugify", "slug.py:12 calls re.sub 20 -> 40 times")``; if not exact "more often", as in other tests.
    """
    grew = result.verdict is not Verdict.improved
    sign = 1 if grew else -1
    if result.python is not None and (causes := result.python.causes(grew=grew)):
        return _python_cause(result, result.python, causes[0], sign, exact=exact)
    for each in result.functions:
        if each.ir * sign > 0:
            path, _, name = each.name.rpartition(":")
            calls = calls_text(each.calls_before, each.calls_after) if exact else ""
            return name, f"{path}, {calls}" if calls else path
    return "", ""


def _python_cause(
    result: TestResult, blame: PythonBlame, cause: PythonDelta, sign: int, *, exact: bool
) -> tuple[str, str]:
    """As `main_cause`."""
    first, line = _of_the_project(blame, cause)
    name, path = split_name(first.name)
    place = f"{path}:{line}" if line else path
    fresh = first.calls_after and not first.calls_before
    caller = _from_the_project(result.nodeid, blame, first) if exact else ""
    most = telling(blame, first, sign)
    if most is not None and not (fresh and caller):  # all that a new function calls is new
        doing = f"{place} {_more_calls(most, first.name, exact=exact)}"
        return name, ", ".join(filter(None, (doing, caller)))
    if fresh or first is not cause:
        calls = own_calls(blame, first) if exact else "new" if fresh else ""
        return name, ", ".join(filter(None, (place, calls, caller)))
    return name, _own_code(blame, first, place, caller)


def _own_code(blame: PythonBlame, delta: PythonDelta, place: str, caller: str) -> str:
    """The place of what changed by itself; of the standard library its caller, who alone can have changed."""
    if caller and not is_packaged(place_of(blame.new, delta.name)[0]):
        return caller
    return f"{place}, {caller or 'its own code'}"


def _from_the_project(nodeid: str, blame: PythonBlame, delta: PythonDelta) -> str:
    """Who of the project calls a function that is installed: what it is given may have grown.

    A package may be what the test is for: that the test calls it says nothing.
    """
    place = place_of(blame.new, delta.name)[0]
    if not is_installed(place):
        return ""
    caller, line, sites = project_caller(blame, delta)
    name, path = split_name(caller)
    if is_packaged(place) and nodeid.partition("::")[0].endswith(path):
        return ""
    at = sites[0] if len(sites) == 1 else line
    return f"called from {name} {path}:{at}".removesuffix(":0") if caller else ""


def _of_the_project(blame: PythonBlame, cause: PythonDelta) -> tuple[PythonDelta, int]:
    """A cause with its line; of an event loop, or a thread, what that runs of the project."""
    place, line = place_of(blame.new, cause.name)
    run = run_by(blame, cause) if place and is_installed(place) else []
    return run[0] if run else (cause, line)


def _more_calls(most: Called, caller: str, *, exact: bool) -> str:
    often = "more often" if most.after > most.before else "less often"
    return f"{most.verb} {most.what(caller)} {most.times() if exact else often}"


def shared_cause(result: TestResult) -> tuple[str, ...]:
    """The verdict, and the function behind most of it as all tests say it that it moved; empty if none is."""
    blame = result.python
    grew = result.verdict is not Verdict.improved
    if blame is None or (blame.change > 0) != grew or blame.explained(1) * 2 < 1:
        return ()
    return result.verdict, *main_cause(result, exact=False)
