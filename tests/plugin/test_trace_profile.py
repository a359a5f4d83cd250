"""The trace_profile fixture and marker, with and without --instrcount."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind.zygote import Problem
from pytest_instrcount.fixtures.trace import fixture
from pytest_instrcount.trace.export import bounds
from pytest_instrcount.trace.recorder import TraceOptions
from tests.plugin.conftest import Project

BODY = """
    import json
    import pytest

    def helper(n):
        return n + 1

    @pytest.mark.trace_profile
    def test_a():
        for n in range(3):
            helper(n)
    """

#: Of a traced test, as `traced_rows` reads them.
CALLS = {"test_it:test_a": 1, "test_it:test_a -> test_it:helper": 3}

OLDER = Path(__file__).parents[1] / "data/calls1.json"
SCHEMA = Path(__file__).parents[2] / "docs/reference/schemas/report-3.json"


# --- without --instrcount -------------------------------------------------------------------------


def test_fixture(project: Project) -> None:
    """Calls through it and in its with-block are traced; the value comes back."""
    project.write(
        """
        import asyncio, functools

        def helper(n):
            return n + 1

        def test_call(trace_profile):
            helper(0)
            assert trace_profile(helper, 1) == 2
            assert trace_profile.tree.calls("test_it.helper") == 1

        def test_block(trace_profile):
            with trace_profile:
                helper(1)
                helper(2)
            assert trace_profile.tree.calls("*.helper") == 2
            assert [event.name for event in trace_profile.events] == ["test_it.helper"] * 2

        def test_too_early(trace_profile):
            trace_profile.tree

        async def work():
            helper(1)
            return helper(2)

        def test_coroutine(trace_profile):
            assert asyncio.run(trace_profile(functools.partial(work))) == 3
            assert trace_profile.tree.calls("*.helper") == 2

        def generate():
            yield helper(1)

        def test_unconsumed(trace_profile):
            trace_profile(generate)
        """
    )
    result = project.run()
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(
        ["*there is no tree yet*", "*whose work nobody has done when trace_profile ends*"]
    )


def test_a_failing_assert_shows_the_branch(project: Project) -> None:
    """The calls that matched, with their callers."""
    project.write(
        """
        def helper(n):
            return n + 1

        def work():
            return helper(1) + helper(2)

        def test_a(trace_profile):
            trace_profile(work)
            assert trace_profile.tree.calls("*.helper") == 1
        """
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*test_it.work*", "E*test_it.helper*2*"])


def test_marker_traces_the_body(project: Project) -> None:
    """The fixture is then the trace of the body, which is over at tear-down; classes, coroutines."""
    project.write(
        """
        import asyncio, unittest
        import pytest

        def helper(n):
            return n + 1

        @pytest.fixture
        def look(trace_profile):
            yield
            assert trace_profile.tree.calls("*.helper") == 2
            assert trace_profile.tree.calls("_pytest*") == 0

        @pytest.mark.trace_profile
        def test_function(look):
            helper(1) + helper(2)

        @pytest.mark.trace_profile
        class TestClass:
            def test_method(self, look):
                helper(1) + helper(2)

        class TestUnit(unittest.TestCase):
            @pytest.mark.trace_profile(max_calls={"test_it:helper": 1})
            def test_unit(self):
                helper(1) + helper(2)

        class TestAsync(unittest.IsolatedAsyncioTestCase):
            @pytest.mark.trace_profile(max_calls={"test_it:helper": 2})
            async def test_async(self):
                await asyncio.sleep(0)
                helper(1) + helper(2) + helper(3)
        """
    )
    result = project.run()
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "test_it:helper: 2 calls, at most 1 allowed",
            "test_it:helper: 3 calls, at most 2 allowed",
        ]
    )


def test_a_test_case_that_pytest_django_runs(project: Project) -> None:
    """There unittest takes the method from the ``TestCase``, and ``item.obj`` is not asked."""
    project.write(
        """
        import unittest
        import pytest

        def helper(n):
            return n + 1

        class TestUnit(unittest.TestCase):
            @pytest.mark.trace_profile(max_calls={"test_it:helper": 1})
            def test_unit(self):
                helper(1) + helper(2)
        """,
        conftest="""
        import pytest
        from _pytest.unittest import TestCaseFunction

        @pytest.fixture(autouse=True)
        def django(monkeypatch):
            monkeypatch.setattr(TestCaseFunction, "runtest", lambda self: self.instance(result=self))
        """,
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["test_it:helper: 2 calls, at most 1 allowed"])


def test_ceilings(project: Project) -> None:
    """max_calls fails the test itself, and says where the calls come from."""
    project.write(BODY.replace("trace_profile", "trace_profile(max_calls={'test_it:h*': 2})"))
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["test_it:h*: 3 calls, at most 2 allowed", "the calls of the test:", "  test_it.test_a*1"]
    )


@pytest.mark.parametrize(
    ("ceilings", "said"),
    [
        (
            "{'test_it:helpr': 3}",
            ["nothing that was called is named 'test_it:helpr'; near: *helper*"],
        ),
        ("{'test_it:help[x]*': 3}", ["nothing that was called is named 'test_it:help[[]x]*'*"]),
        ("{'no.module:f': 1}", ["nothing that was called is named 'no.module:f'*"]),
        ("{'builtins:len': 1}", ["'builtins:len' is a builtin: only c_calls=True counts it*"]),
        ("{'no.module:f': 0, 'json:loads': 1, 'json.decoder:JSONDecoder.decode': 2}", []),
        ("{'test_it:helper': 3, '*.helper': 9}", []),
        ("{'test_it:helpr': 0}", ["nothing that was called is named 'test_it:helpr'; near: *"]),
        ("{'json:JSONEncoder.encode': 0}", ["calls of 'json:J*' are those of json.encoder:J*"]),
    ],
)
def test_a_ceiling_that_holds_nothing_back_is_said(
    project: Project, ceilings: str, said: list[str]
) -> None:
    """By a warning, or a note under the option; the test passes, and what is right is not spoken of."""
    project.write(BODY.replace("trace_profile", f"trace_profile(max_calls={ceilings})"))
    result = project.run("-Walways")
    result.assert_outcomes(passed=1, warnings=len(said))
    result.stdout.fnmatch_lines(
        [f"*InstrcountWarning: instrcount: max_calls: {one}" for one in said]
    )
    project.valgrind.traced["test_a"] = {"test_it:test_a": 1, "test_it:helper": 3}
    measured = project.measure()
    measured.assert_outcomes(passed=1)
    text = " ".join(measured.stdout.str().split())
    assert text.count("[max-calls]") == len(said)
    for one in said:
        assert fnmatchcase(text, f"*test_it.py::test_a: max_calls: {one}*")


def test_ceilings_of_ranges(project: Project) -> None:
    """The legacy tracer has no calls to show: the ranges are."""
    project.write(
        """
        import pytest
        from pytest_instrcount import record_function

        @pytest.mark.trace_profile(tracer="legacy", max_calls={"load": 1})
        def test_a():
            for _ in range(3):
                with record_function("load"):
                    with record_function("parse"): pass
            with record_function("end"): pass
        """
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "load: 3 calls, at most 1 allowed",
            "the ranges of the test:",
            "  load  3",
            "  parse  3",
            "  end  1",
        ]
    )
    assert "the calls of the test" not in result.stdout.str()


def test_phases(project: Project) -> None:
    """Set-up and tear-down are traced only if asked for."""
    text = """
        import pytest

        def helper(n):
            return n + 1

        @pytest.fixture
        def made():
            helper(1)
            yield
            helper(2)

        @pytest.mark.trace_profile(phases=PHASES, max_calls={"test_it:helper": MOST})
        def test_a(made):
            helper(3)
        """
    for phases, calls in (
        (("call",), 1),
        (("setup", "call"), 2),
        (("setup",), 1),
        (("teardown",), 1),
        (("setup", "call", "teardown"), 3),
    ):
        for most in (calls - 1, calls):
            project.write(text.replace("PHASES", repr(phases)).replace("MOST", str(most)))
            passed, late = most == calls, "teardown" in phases
            outcomes = {"errors": int(not passed)} if late else {"failed": int(not passed)}
            result = project.run()
            result.assert_outcomes(passed=int(passed or late), **outcomes)
            if not passed:
                assert result.stdout.str().count("test_it.helper  1") == calls


def test_ranges(project: Project) -> None:
    """The legacy tracer records what record_function names."""
    project.write(
        """
        import pytest
        from pytest_instrcount import record_function

        @pytest.fixture
        def look(trace_profile):
            yield
            assert trace_profile.call_counts() == {"load": 1, "parse": 2}
            assert [event.name for event in trace_profile.events] == ["load", "parse", "parse"]

        @pytest.mark.trace_profile(tracer="legacy")
        def test_a(look):
            with record_function("load"):
                for _ in range(2):
                    with record_function("parse"):
                        pass
        """
    )
    project.run().assert_outcomes(passed=1)


def test_traces_are_written(project: Project) -> None:
    """--trace-profile=DIR: a file for each traced test, none for the others, and one of the run."""
    project.write(BODY + "\n    def test_other():\n        pass\n")
    folder = project.outside / "traces"
    project.run(f"--trace-profile={folder}").assert_outcomes(passed=2)
    run, path = sorted(folder.rglob("*.json"), key=lambda path: path.name)
    assert run.name == "run.trace.json"
    assert path.name.startswith("test_a-")
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
    assert names.count("test_it.helper") == 3


def test_all_traces_of_a_test_are_in_its_file(project: Project) -> None:
    """Of all phases, and of each block."""
    project.write(
        """
        import pytest

        def helper(n): pass

        @pytest.fixture
        def made():
            helper(1)
            yield

        @pytest.mark.trace_profile(phases=("setup", "call"))
        def test_phases(made): helper(2)

        def test_blocks(trace_profile):
            for n in range(3):
                with trace_profile: helper(n)
        """
    )
    folder = project.outside / "traces"
    project.run(f"--trace-profile={folder}").assert_outcomes(passed=2)
    for name, calls in (("test_phases", 2), ("test_blocks", 3)):
        (path,) = folder.rglob(f"{name}-*.json")
        names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
        assert names.count("test_it.helper") == calls


def test_a_trace_that_cannot_be_drawn_fails_no_test(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with more slices than a viewer shows is without the shortest; one that was folded is not written."""
    monkeypatch.setattr(bounds, "MOST_SLICES", 2)
    project.write(BODY)
    folder = project.outside / "traces"
    result = project.run("-Walways", f"--trace-profile={folder}")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*those below 10 us are left out [[]profile-slices]*"])
    monkeypatch.setattr(fixture, "TraceOptions", partial(TraceOptions, max_events=64))
    (path,) = folder.rglob("test_a-*.json")
    project.write(BODY.replace("range(3)", "range(5_000)"))
    result = project.run("-Walways", f"--trace-profile={folder}")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*no trace is written: *[[]profile-truncated]*"])
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("1", "takes keyword arguments only"),
        ("speed=3", "has no argument 'speed' (it has tracer, "),
        ("tracer='perf'", "choose one of python, legacy"),
        ("c_calls=1", "write True or False"),
        ("phases='teardwon'", "write some of setup, call, teardown"),
        ("max_calls={'f': -1}", 'write {"module:function": 3}'),
        ("max_delta='x'", "is not a limit"),
        ("ignore=3", 'write ["logging.*"]'),
        ("max_memory_delta='1%'", "needs tracer='legacy'"),
    ],
)
def test_wrong_markers(project: Project, arguments: str, why: str) -> None:
    """Named before any test runs."""
    project.write(BODY.replace("trace_profile", f"trace_profile({arguments})"))
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert why in result.stderr.str() + result.stdout.str()


def test_all_wrong_markers_are_named_at_once(project: Project) -> None:
    """Before any test runs, without --instrcount, too."""
    project.write(
        """
        import pytest

        @pytest.mark.trace_profile(speed=1)
        def test_a(): pass

        @pytest.mark.trace_profile(tracer="perf")
        def test_b(): pass
        """
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str() + result.stdout.str()
    assert "test_a: the trace_profile marker has no argument 'speed'" in text
    assert "test_b: the trace_profile marker tracer='perf'" in text
    assert project.run("--trace-profile=").ret == pytest.ExitCode.USAGE_ERROR


def test_wrong_backend(project: Project) -> None:
    """The ini is checked as the option is."""
    project.write(BODY)
    project.pytester.makeini("[pytest]\ninstrcount_trace_backend = fast\n")
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "choose one of auto, monitoring, setprofile" in result.stderr.str()


# --- measured -------------------------------------------------------------------------------------


@pytest.fixture
def traced(project: Project) -> Project:
    """A traced test with a baseline."""
    project.write(BODY)
    project.valgrind.traced["test_a"] = CALLS
    project.update().stdout.fnmatch_lines(
        ["instrcount, calls: 1 new", "instrcount: 1 baseline written to *"]
    )
    return project


def test_stored_and_unchanged(traced: Project) -> None:
    """Call counts lie beside the baselines, a line for each edge; the second update writes nothing."""
    (path,) = traced.path.glob("instrcount_baselines/**/*.calls.json")
    assert path.read_text().splitlines()[1:4] == [
        ' "calls": [',
        '  ["", "test_it:test_a", 1],',
        '  ["test_it:test_a", "test_it:helper", 3]',
    ]
    result = traced.measure("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["test_it.py::test_a *4 *4 *0 % *", "instrcount, calls: 1 unchanged"]
    )
    traced.update().stdout.fnmatch_lines(["instrcount: 0 baselines written"])
    quiet = traced.measure("-q").stdout
    quiet.fnmatch_lines(["instrcount, calls: 1 unchanged"])
    assert "no test measured" not in quiet.str()


def test_one_call_more_regresses(traced: Project) -> None:
    """No growth is allowed unless the marker says so; the failure shows the branches side by side."""
    traced.valgrind.traced["test_a"] = {**CALLS, "test_it:test_a -> test_it:f": 1}
    result = traced.measure()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_a: 4 -> 5 calls (+25 %, limit +0 %)",
            "  +1 calls  0 -> 1  test_it:f",
            "  before                                  now",
            "  test_it:test_a  1                       test_it:test_a  1",
            "                                        >   test_it:f  1",
            "  accept: pytest --instrcount-update-baseline test_it.py::test_a",
            "instrcount, calls: 1 regressed",
        ]
    )
    traced.update().assert_outcomes(passed=1)
    traced.measure().assert_outcomes(passed=1)


def test_time_is_limited_in_this_process_too(project: Project) -> None:
    """A traced test runs here as well; with its own line, and no line of ours."""
    project.write(
        """
        import os, time, pytest
        pytestmark = pytest.mark.trace_profile
        HERE = os.getpid()

        def wait(name, where):
            if name == where and os.getpid() == HERE: time.sleep(60)

        @pytest.fixture(autouse=True)
        def slow(request):
            wait(request.node.name, "test_setup")
            yield
            wait(request.node.name, "test_teardown")

        def test_call():
            try:
                wait("test_call", "test_call")
            except Exception:
                pass
        def test_setup(): pass
        def test_teardown(): pass
        def test_quick(): pass
        """
    )
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    result = project.measure("--instrcount-timeout=0.2")
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == before
    result.assert_outcomes(passed=2, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*HERE: time.sleep(60)",
            "E * instrcount: it did not end within 0.2 s, without Valgrind [[]timeout]",
            "E *   fix: pytest --instrcount --instrcount-timeout=SECONDS",
        ]
    )
    assert "limits.py" not in result.stdout.str()


def test_whoever_has_the_alarm_keeps_it(project: Project) -> None:
    """A test's own use of SIGALRM is not disturbed."""
    project.write(
        """
        import signal, time, pytest

        @pytest.mark.trace_profile
        def test_own_alarm():
            rung = []
            signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            time.sleep(0.4)
            assert rung
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        """
    )
    project.measure("--instrcount-timeout=0.2").assert_outcomes(passed=1)


def test_a_process_that_died_says_where(traced: Project) -> None:
    """Its reason line by line, and what to type."""
    traced.valgrind.problems["test_a"] = Problem(
        "process-died",
        "its process was killed by SIGSEGV",
        'most recent call first:\n  File "t.py"',
    )
    traced.measure().stdout.fnmatch_lines(
        [
            "test_a: its process was killed by SIGSEGV [[]process-died]",
            "  most recent call first:",
            '    File "t.py"',
            "  fix: pytest test_it.py::test_a    # without --instrcount: does it end there, too?",
        ]
    )


def test_fewer_calls_are_improved(traced: Project) -> None:
    """It fails only where improvements are to fail."""
    traced.valgrind.traced["test_a"] = {"test_it:test_a": 1}
    traced.measure().assert_outcomes(passed=1)
    traced.measure("--instrcount-improved=fail").assert_outcomes(passed=1, failed=1)


TEST = "test_it:test_a"


def measured_again(traced: Project, first: dict[str, Any], then: dict[str, Any]) -> Any:
    """The result of a run that calls other things than the one that was stored."""
    head = {TEST: 1}
    traced.valgrind.traced["test_a"] = head | {f"{TEST} -> {name}": n for name, n in first.items()}
    traced.update()
    traced.valgrind.traced["test_a"] = head | {f"{TEST} -> {name}": n for name, n in then.items()}
    return traced.measure()


def test_equal_sums_of_different_parts_regress(traced: Project) -> None:
    """A function that is called more often is not made up for by one that is called less."""
    result = measured_again(
        traced,
        {"db:DB.execute": 1, "test_it:helper": 10},
        {"db:DB.execute": 10, "test_it:helper": 1},
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_a: 12 calls: the sum is the same, its parts are not (limit +0 %)",
            "  +9 calls  1 -> 10  db:DB.execute",
            "  -9 calls  10 -> 1  test_it:helper",
            "  before                                  now",
            "  test_it:test_a  1                       test_it:test_a  1",
            "    db:DB.execute  1                    |   db:DB.execute  10",
            "    test_it:helper  10                  |   test_it:helper  1",
            "  accept: pytest *",
            "test_it.py::test_a * 12 * 12 * 0 %, parts differ * +0 %",
        ]
    )


def test_fewer_calls_in_all_and_one_that_grew(traced: Project) -> None:
    """That one fails the test."""
    result = measured_again(traced, {"db:f": 1, "db:g": 10}, {"db:f": 2, "db:g": 1})
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["test_a: 12 -> 4 calls (-66.7 %, limit +0 %): parts of the sum grew"]
    )


def test_a_call_by_another_caller_regresses(traced: Project) -> None:
    """Each function is called as often as before."""
    traced.valgrind.traced["test_a"] = {"a": 1, "b": 1, "a -> f": 1}
    traced.update()
    traced.valgrind.traced["test_a"] = {"a": 1, "b": 1, "b -> f": 1}
    traced.measure().stdout.fnmatch_lines(
        [
            "test_a: 3 calls: the sum is the same, its parts are not (limit +0 %)",
            "  a  1                                    a  1",
            "    f  1                                <",
            "  b  1                                    b  1",
            "                                        >   f  1",
        ]
    )


def test_more_resumes_regress(traced: Project) -> None:
    """Of a generator that is called as often."""
    result = measured_again(traced, {"m:gen": (1, 3)}, {"m:gen": (1, 453)})
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_a: 2 calls: the sum is the same, its parts are not (limit +0 %)",
            "  +450 resumes  3 -> 453  m:gen",
            "    m:gen  1 (resumed 3)                |   m:gen  1 (resumed 453)",
        ]
    )


def test_a_renamed_function_is_said_and_no_change(traced: Project) -> None:
    """Below the table; an update stores the new name."""
    result = measured_again(traced, {"m:f": 3}, {"m:g": 3})
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_a: renamed: m:f -> m:g", "instrcount, calls: 1 unchanged"])
    traced.update().stdout.fnmatch_lines(["instrcount: 1 baseline written to *"])
    assert "renamed:" not in traced.measure().stdout.str()


@pytest.mark.parametrize(("given", "failed"), [("9%", 1), ("10%", 0), ("1", 0), ("0", 1)])
@pytest.mark.parametrize("where", ["option", "ini", "marker"])
def test_tolerance(traced: Project, where: str, given: str, failed: int) -> None:
    """Of the sum, of each function and of each edge; a marker wins over the option."""
    if where == "ini":
        traced.pytester.makeini(f"[pytest]\ninstrcount_trace_tolerance = {given}\n")
    if where == "marker":
        traced.write(BODY.replace("trace_profile", f"trace_profile(max_delta={given!r})"))
    traced.valgrind.traced["test_a"] = {TEST: 10}
    traced.update()
    traced.valgrind.traced["test_a"] = {TEST: 11}
    option = {"option": given, "marker": "0"}.get(where)
    result = traced.measure(*([f"--instrcount-trace-tolerance={option}"] if option else ()))
    result.assert_outcomes(passed=1, failed=failed)
    if given == "0":
        result.stdout.fnmatch_lines(["test_a: 10 -> 11 calls (+10 %, limit +0 calls)"])


def test_a_wrong_tolerance(traced: Project) -> None:
    result = traced.measure("--instrcount-trace-tolerance=much")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "instrcount_trace_tolerance = 'much': " in result.stderr.str()


def test_other_patterns_to_ignore_are_not_compared(traced: Project) -> None:
    """The numbers are of different things."""
    traced.write(BODY.replace("trace_profile", "trace_profile(ignore=['logging.*'])"))
    result = traced.measure("--instrcount-incomparable=fail")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["  ignore: pools -> pools logging.*"])


def test_tables_of_an_older_format_are_refused_once(traced: Project) -> None:
    """One line for all of them, with the command that makes them anew, before a test runs."""
    traced.write(f"{BODY}\n    test_b = test_a\n")
    for path in traced.path.glob("instrcount_baselines/**/*.calls.json"):
        path.write_bytes(OLDER.read_bytes())
    result = traced.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = f"{result.stdout}\n{result.stderr}"
    assert text.count("[baseline-older]") == 1
    assert "test_it.py ." not in text
    assert "INTERNALERROR" not in text
    lines = text[text.index("instrcount: the baselines in ") :].splitlines()
    assert lines[0].endswith("(schema 1, this release reads 2) [baseline-older]")
    assert lines[1] == "  fix: pytest --instrcount-update-baseline    # measures all of them again"
    traced.update().stdout.fnmatch_lines(
        ["instrcount: 2 baselines written to instrcount_baselines?*"]
    )


def test_memory(project: Project) -> None:
    """What ranges hold is gated by max_memory_delta."""
    project.write(
        BODY.replace("trace_profile", "trace_profile(tracer='legacy', max_memory_delta='1%')")
    )
    project.update().assert_outcomes(passed=1)
    (path,) = project.path.glob("instrcount_baselines/**/*.calls.json")
    text = path.read_text()
    assert json.loads(text)["memory"] == {"load": 2000}
    path.write_text(text.replace("2000", "1900"))
    result = project.measure()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["test_a: load: 1,900 -> 2,000 bytes (+5.3 %, limit +1 %)"])


def test_reports_show_what_fails(traced: Project) -> None:
    """Its text, and in the first line that there are such tests."""
    traced.update()
    traced.valgrind.traced["test_a"] = {"test_it:f": 30}
    reports = {kind: traced.outside / f"report.{kind}" for kind in ("markdown", "html")}
    result = traced.measure(*(f"--instrcount-report={k}:{path}" for k, path in reports.items()))
    result.assert_outcomes(passed=1, failed=1)
    text = reports["markdown"].read_text()
    assert text.startswith("### instrcount; calls: 1 regressed\n")
    for each in (text, reports["html"].read_text()):
        assert "30 calls (" in each


def test_not_deterministic(traced: Project) -> None:
    """Two repetitions that differ are a verdict of their own, with the functions that vary."""
    calls = {"test_it:f": 3, "test_it:g": 3}
    traced.valgrind.traced["test_a"] = calls, dict.fromkeys(calls, 4)
    result = traced.measure()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_a: traced twice, and the calls differ [[]nondeterministic]",
            "  test_it:f varies",
            "  test_it:g varies",
            "  fix: call them equally often, or add to what its marker ignores:",
            '  @pytest.mark.trace_profile(ignore=[[]"test_it:f", "test_it:g"[]])',
        ]
    )


def test_a_passed_ceiling_is_never_stored(project: Project) -> None:
    """An update accepts growth, not what the marker forbids."""
    project.write(BODY.replace("trace_profile", "trace_profile(max_calls={'test_it:f': 2})"))
    result = project.update()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["test_a: test_it:f was called 3 times, at most 2 allowed"])
    assert not list(project.path.glob("instrcount_baselines/**/*.json"))


def test_a_test_that_fails_is_not_compared(traced: Project) -> None:
    """Its failure is enough."""
    traced.write(BODY.replace("helper(n)\n", "assert False\n", 2))
    traced.measure().assert_outcomes(failed=1)


def test_missing_in_ci(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for instruction counts."""
    project.write(BODY)
    monkeypatch.setenv("CI", "1")
    result = project.measure()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["test_a: no baseline to compare with (3 calls) [[]baseline-missing]"]
    )


def test_both_markers(project: Project) -> None:
    """Instructions and calls are measured apart, and each has its verdict."""
    project.write(
        BODY.replace("@pytest.mark.trace", "@pytest.mark.instrcount\n    @pytest.mark.trace")
    )
    project.update().assert_outcomes(passed=1)
    result = project.measure()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["instrcount: 1 unchanged", "instrcount, calls: 1 unchanged"])


def test_calls_explain_instructions(project: Project) -> None:
    """A test with both markers that got dearer says which calls came and went."""
    project.write(
        BODY.replace("@pytest.mark.trace", "@pytest.mark.instrcount\n    @pytest.mark.trace")
    )
    project.update().assert_outcomes(passed=1)
    project.valgrind.costs["test_a"] = 11_000
    project.valgrind.traced["test_a"] = {"test_it:f": 5}
    project.measure().stdout.fnmatch_lines(
        [
            "+10 % (limit 1 %): *",
            "  test_a: Ir 10,000 -> 11,000",
            "  of the calls that its body makes:",
            "    +2 calls  3 -> 5  test_it:f",
        ]
    )


def test_a_trace_within_what_is_counted_is_refused(project: Project) -> None:
    """The tracer would be counted, too."""
    project.write(
        """
        import pytest

        @pytest.mark.instrcount
        def test_a(trace_profile):
            trace_profile(len, "")
        """
    )
    result = project.measure()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*traces calls within what is counted [[]traced-count]"])


def test_report(traced: Project) -> None:
    """The JSON report has them in a list of their own."""
    traced.valgrind.traced["test_a"] = {**CALLS, "test_it:test_a -> test_it:helper": 5}
    (found,) = traced.report()["traces"]
    assert [found] == [
        {
            "nodeid": "test_it.py::test_a",
            "verdict": "regressed",
            "cause": None,
            "calls": 6,
            "baseline_calls": 4,
            "delta": 0.5,
            "limit": "+0 %",
            "changes": {"test_it:helper": [3, 5]},
            "edges": [
                {
                    "caller": "test_it:test_a",
                    "function": "test_it:helper",
                    "calls": [3, 5],
                    "resumes": [0, 0],
                }
            ],
            "renamed": {},
        }
    ]
    item = json.loads(SCHEMA.read_text())["properties"]["traces"]["items"]
    assert item["required"] == list(item["properties"]) == list(found)
    edge = item["properties"]["edges"]["items"]
    assert edge["required"] == list(edge["properties"]) == list(found["edges"][0])


def test_stale_and_pruned(traced: Project) -> None:
    """A table whose test is gone is stale, and pruned with the baselines."""
    traced.write("def test_other():\n    pass\n")
    traced.measure().stdout.fnmatch_lines(["instrcount, calls: 1 stale"])
    traced.measure("--instrcount-prune")
    assert not list(traced.path.glob("instrcount_baselines/**/*.json"))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring is not taken away so")
@pytest.mark.parametrize("core", ["python", "c"])
@pytest.mark.parametrize("used", ["marker", "fixture"])
@pytest.mark.parametrize(
    "code",
    [
        "try: deeper()\n    except RecursionError: pass",
        "import cProfile; cProfile.run('1')",
        "import sys; sys.setprofile(None)",
    ],
)
def test_a_trace_that_was_ended_by_its_body_is_an_error(
    project: Project, used: str, code: str, core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the calls is missing: no gate passes on that. The hook in C is ended by profilers only."""
    if core == "c" and not importlib.util.find_spec("pytest_instrcount.trace._core"):
        pytest.skip("the core in C is not built")
    monkeypatch.setenv("PYTEST_INSTRCOUNT_CORE", core)
    head = {
        "marker": "@pytest.mark.trace_profile(max_calls={'*.costly': 0})\ndef test_it(): body()",
        "fixture": "def test_it(trace_profile):\n    with trace_profile: body()",
    }[used]
    project.write(
        "import pytest\ndef deeper(): deeper()\ndef costly(): pass\n"
        f"def body():\n    {code}\n    costly()\n{head}\n"
    )
    result = project.measure()
    if core == "c" and "cProfile" not in code:
        result.stdout.fnmatch_lines(["*tracer setprofile, core c*"])
        assert result.ret == (1 if used == "marker" else 0)
        assert ("*.costly" in result.stdout.str()) == (used == "marker")
        return
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*has ended this trace before its end: calls are missing*"])
    assert "1 passed" not in result.stdout.str()
