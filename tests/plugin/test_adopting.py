"""Suites that were written for pytest-benchmark and pytest-codspeed, as they are.

The plugins are not installed for the tests at the top; those at the bottom have stand-ins, or the
real ones, where they are installed.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.plugin.conftest import Project

SUITE = """
import pytest

def work(n=3, *, start=0):
    return start + sum(range(n))

def test_call(benchmark):
    assert benchmark(work, 4, start=1) == 7

def test_decorator(benchmark):
    @benchmark
    def value():
        return work()
    assert value == 3

def test_pedantic(benchmark):
    log = []
    result = benchmark.pedantic(
        lambda items: items.append(1) or len(items),
        setup=lambda: (([1, 2],), {}),
        teardown=log.append,
        rounds=10_000,
        warmup_rounds=10_000,
    )
    assert result == 3 and log == [[1, 2, 1]]

def test_iterations(benchmark):
    assert benchmark.pedantic(work, args=[2], kwargs={"start": 1}, iterations=5000) == 2

def test_set_up_without_arguments(benchmark):
    assert benchmark.pedantic(work, setup=lambda: 0) == 3

def test_facts(benchmark):
    benchmark.group = "facts"
    benchmark.extra_info["size"] = 3
    assert benchmark.stats is None
    benchmark(work)
    assert benchmark.stats.stats.mean < 0.001
    assert benchmark.stats["max"] * 1000 < 5 and benchmark.stats.stats.rounds == 1
    assert 3 / benchmark.stats.get("median") > 1e9
    assert f"{benchmark.stats.stats.min:.3f}" == "nan"
    assert benchmark.stats.extra_info == {"size": 3} and benchmark.stats.get("no") is None
    assert benchmark.stats.as_dict()["stats"]["ops"] > 1e9
    assert benchmark.name == "test_facts" and benchmark.fullname.endswith("::test_facts")
    assert benchmark.enabled and not benchmark.disabled

@pytest.mark.benchmark(group="marked", min_rounds=5, disable_gc=True, warmup=False)
@pytest.mark.parametrize("n", [3, 5])
def test_marked(benchmark, n):
    assert benchmark.group == "marked" and benchmark.params == {"n": n}
    benchmark(work, n)

@pytest.mark.benchmark
def test_whole():
    work()

@pytest.mark.codspeed_benchmark
def test_whole_too():
    work()

def test_their_name(codspeed_benchmark):
    codspeed_benchmark(work)

def test_weave(benchmark):
    benchmark.weave(work)
    assert work(2) == 1

def test_weave_by_name(benchmark_weave):
    benchmark_weave("json.decoder.JSONDecoder.decode")
    import json
    assert json.loads("[1]") == [1]

def test_other():
    assert work() == 3
"""
MEASURED = 13
#: Where nobody declares their markers, and no test before has.
UNKNOWN = "-Wignore::pytest.PytestUnknownMarkWarning"


@pytest.fixture
def suite(project: Project) -> Project:
    project.write(SUITE)
    return project


def test_a_suite_is_measured_as_it_is(suite: Project) -> None:
    """Every way to use the fixture or a marker; the rest runs natively."""
    verdicts = suite.verdicts()
    assert len(verdicts) == MEASURED
    assert set(verdicts.values()) == {"new"}
    assert "test_other" not in verdicts
    suite.measure().assert_outcomes(passed=MEASURED + 1)
    assert suite.valgrind.orders["test_it.py::test_pedantic"].warmup is None


def test_the_gate_holds_them(suite: Project) -> None:
    """An adopted benchmark that grows fails like any other test."""
    suite.update().assert_outcomes(passed=MEASURED + 1)
    assert set(suite.verdicts().values()) == {"unchanged"}
    suite.valgrind.costs["test_call"] = 20_000
    result = suite.measure()
    result.assert_outcomes(passed=MEASURED + 1, failed=1)
    result.stdout.fnmatch_lines(["REGRESSED test_it.py::test_call*"])


def test_one_line_says_it(suite: Project) -> None:
    """How many, where there are some."""
    line = (
        f"instrcount: adopted {MEASURED} benchmarks of pytest-benchmark or pytest-codspeed "
        "(instrcount_adopt_benchmarks)"
    )
    lines = suite.measure().stdout.lines
    assert lines.count(line) == 1
    assert lines[lines.index(line) - 1].startswith("collected ")
    suite.write("def test_a(instrcount): instrcount(len, '')")
    suite.measure().stdout.no_fnmatch_line("*adopted*")


def test_without_instrcount_nothing_changes(suite: Project) -> None:
    """The fixture is missing, as ever."""
    result = suite.run(UNKNOWN)
    result.assert_outcomes(passed=3, errors=MEASURED + 1 - 3)
    result.stdout.fnmatch_lines(["*fixture 'benchmark' not found"])
    suite.pytester.makeini("[pytest]\naddopts = --benchmark-disable\n")
    suite.run().stderr.fnmatch_lines(["*unrecognized arguments: --benchmark-disable*"])


def test_switched_off(suite: Project) -> None:
    """With the ini setting off, theirs are left to their plugins."""
    off = "-oinstrcount_adopt_benchmarks=false"
    result = suite.measure(off, UNKNOWN)
    result.assert_outcomes(passed=3, errors=MEASURED + 1 - 3)
    assert suite.verdicts(off, UNKNOWN) == {}
    result = suite.measure("-oinstrcount_adopt_benchmarks=perhaps")
    result.stderr.fnmatch_lines(
        [
            "ERROR: instrcount: wrong settings [[]settings[]]",
            "*instrcount_adopt_benchmarks: *perhaps*: write true or false, like",
            "  fix: pytest --instrcount -o instrcount_adopt_benchmarks=false",
        ]
    )


def test_strict_markers(suite: Project) -> None:
    """Their markers are known."""
    suite.measure("--strict-markers").assert_outcomes(passed=MEASURED + 1)
    suite.measure("--strict-markers", "--collect-only").assert_outcomes()


def test_options_left_in_addopts(suite: Project) -> None:
    """Options of a plugin that is not there are taken and do nothing."""
    suite.pytester.makeini(
        """
        [pytest]
        addopts = --benchmark-skip --benchmark-min-rounds=3 --benchmark-group-by func
            --benchmark-columns=min,max --benchmark-autosave --benchmark-compare --codspeed
        """
    )
    suite.measure().assert_outcomes(passed=MEASURED + 1)
    suite.run("-oinstrcount=true").assert_outcomes(passed=MEASURED + 1)
    suite.measure("--benchmark-unheard").stderr.fnmatch_lines(["*unrecognized*unheard*"])


def test_their_only_is_ours(suite: Project) -> None:
    """``--benchmark-only`` leaves the other tests out."""
    suite.measure("--benchmark-only").assert_outcomes(passed=MEASURED, deselected=1)


def test_their_hooks_in_a_conftest(suite: Project) -> None:
    """Pytest refuses hooks that no plugin declares; nobody calls these."""
    suite.pytester.makeconftest(
        """
        def pytest_benchmark_update_json(config, benchmarks, output_json): raise OSError
        def pytest_benchmark_update_machine_info(config, machine_info): raise OSError
        """
    )
    suite.measure().assert_outcomes(passed=MEASURED + 1)


def test_a_fixture_that_takes_over_is_named(suite: Project) -> None:
    """Where a conftest gets a fixture of that name, nothing is measured: the cause is said."""
    suite.update()
    suite.pytester.makeconftest(
        """
        import pytest

        @pytest.fixture
        def benchmark():
            return lambda function, *args, **kwargs: function(*args, **kwargs)
        """
    )
    result = suite.measure("-k", "test_call or test_decorator")
    result.stdout.fnmatch_lines(
        [
            "instrcount: not measured: 2 tests with the fixture benchmark (conftest.py:3), which takes "
            "the place of the adopted one; *"
        ]
    )
    assert "adopted 2" not in result.stdout.str()


def test_a_fixture_of_the_projects_own(project: Project) -> None:
    """It is the project's: a test that takes it is measured only if a marker says so."""
    project.pytester.makeconftest(
        """
        import pytest
        @pytest.fixture
        def benchmark():
            return lambda function: function() + 1
        """
    )
    project.write(
        """
        import pytest
        def test_own(benchmark): assert benchmark(lambda: 1) == 2
        @pytest.mark.benchmark
        def test_marked(benchmark): assert benchmark(lambda: 1) == 2
        def test_theirs(codspeed_benchmark): assert codspeed_benchmark(lambda: 1) == 1
        """
    )
    assert set(project.verdicts()) == {"test_marked", "test_theirs"}


def test_a_fixture_that_adds_to_theirs(project: Project) -> None:
    """A conftest's fixture that takes the plugin's by the same name: it is ours below it."""
    project.pytester.makeconftest(
        """
        import pytest
        @pytest.fixture
        def benchmark(benchmark):
            benchmark.group = "all"
            return benchmark
        @pytest.fixture
        def timed(benchmark):
            return lambda function: benchmark(function)
        """
    )
    project.write(
        """
        def test_own(benchmark): assert benchmark(lambda: 1) == 1
        def test_through(timed): assert timed(lambda: 1) == 1
        """
    )
    assert set(project.verdicts()) == {"test_own", "test_through"}
    project.measure("-v").stdout.fnmatch_lines(["all:", "test_it.py::test_own *"])


def test_test_cases(project: Project) -> None:
    """Of unittest: a method with the marker, and one that has the fixture on its instance."""
    project.write(
        """
        import unittest, pytest
        class TestIt(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def _benchmark(self, benchmark): self.benchmark = benchmark
            def test_a(self): assert self.benchmark(len, "abc") == 3
            def test_unused(self): pass
        """
    )
    result = project.measure()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["test_it.py::TestIt::test_unused: never calls benchmark, so nothing was measured"]
    )
    assert set(project.verdicts()) == {"test_a"}


def test_times_that_are_compared_are_said(project: Project) -> None:
    """What is asserted of them passes, whatever they are; of a test that compares none, nothing is said."""
    project.write(
        """
        def test_slow(benchmark): benchmark(len, ""); assert benchmark.stats["mean"] < 1
        def test_plain(benchmark): benchmark(len, "")
        """
    )
    said = "compares times, which are not measured: what it asserts of them passes:"
    lines = project.measure().outlines
    assert lines[lines.index(said) + 1] == "  test_it.py::test_slow"
    assert "  test_it.py::test_plain" not in lines


def test_two_uses(project: Project) -> None:
    """The second is refused, as by the plugins; so is one through the other fixture."""
    project.write(
        """
        def test_a(benchmark): benchmark(len, ""); benchmark(len, "")
        def test_b(benchmark, instrcount): benchmark(len, ""); instrcount(len, "")
        """
    )
    result = project.measure()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*test_a used it first for len at test_it.py:1, and there again*"])


@pytest.mark.parametrize(
    "call",
    ["rounds=0", "iterations=0", "warmup_rounds=-1", "setup=list, iterations=2", "rounds='many'"],
)
def test_wrong_numbers(project: Project, call: str) -> None:
    """What pytest-benchmark refuses is refused."""
    project.write(f"def test_a(benchmark): benchmark.pedantic(len, args=('',), {call})")
    result = project.measure()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *ValueError: benchmark.pedantic: *"])


def test_what_fails_or_skips_has_no_verdict(project: Project) -> None:
    """As for any measured test."""
    project.write(
        """
        import pytest
        def test_fails(benchmark): benchmark(lambda: 1 / 0)
        def test_skips(benchmark): pytest.skip("not here")
        """
    )
    project.measure().assert_outcomes(failed=1, skipped=1)
    assert project.verdicts() == {}


def test_weaving_what_is_no_function(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without aspectlib, an error that says what would do it."""
    monkeypatch.setitem(sys.modules, "aspectlib", None)
    project.write("def test_a(benchmark): benchmark.weave('json.nothing')")
    project.measure().stdout.fnmatch_lines(
        ["E *ImportError: json.nothing is no function*aspectlib"]
    )


def test_groups_in_the_table(project: Project) -> None:
    """Below a line with their name, after what is in none; not where no group is set."""
    project.write(
        """
        import pytest
        @pytest.mark.benchmark(group="zip")
        def test_1(benchmark): benchmark(len, "")
        @pytest.mark.benchmark(group="array")
        def test_2(): pass
        @pytest.mark.instrcount
        def test_3(): pass
        def test_4(benchmark): benchmark.group = "zip"; benchmark(len, "")
        """
    )
    project.measure("-v").stdout.fnmatch_lines(
        [
            "test *",
            "----*",
            "test_it.py::test_3 *",
            "array:",
            "test_it.py::test_2 *",
            "zip:",
            "test_it.py::test_1 *",
            "test_it.py::test_4 *",
            "instrcount: 4 new",
        ],
        consecutive=True,
    )


def test_groups_and_extra_info_in_the_report(project: Project) -> None:
    """What a benchmark says of itself, in JSON's terms; nothing of a test that is none."""
    project.write(
        """
        import pytest
        @pytest.mark.benchmark(group="zip")
        def test_1(benchmark):
            benchmark.extra_info.update({"size": 3, "kind": {"a": (1, {2})}})
            benchmark(len, "")
            benchmark.extra_info["mean"] = benchmark.stats["mean"]
        @pytest.mark.instrcount
        def test_2(): pass
        """
    )
    project.measure("--instrcount-report=json:r.json")
    report = json.loads((project.path / "r.json").read_text())
    assert [(test["group"], test["extra_info"]) for test in report["tests"]] == [
        ("zip", {"size": 3, "kind": {"a": [1, "{2}"]}, "mean": None}),
        (None, {}),
    ]


MIXED = """
import pytest
def test_benchmark(benchmark): benchmark(len, "")
def test_fixture(instrcount): instrcount(len, "")
@pytest.mark.instrcount
def test_marker(): pass
def test_traced(trace_profile): trace_profile(len, "")
def test_other(): pass
"""


def test_only(project: Project) -> None:
    """Measured tests alone; it implies --instrcount."""
    project.write(MIXED)
    result = project.run("--instrcount-only", "-v")
    result.assert_outcomes(passed=4, deselected=1)
    assert set(project.verdicts("--instrcount-only")) == {
        "test_benchmark",
        "test_fixture",
        "test_marker",
    }
    project.run("--instrcount-only", "--collect-only", "-q").stdout.fnmatch_lines(
        ["test_it.py::test_benchmark", "test_it.py::test_fixture", "test_it.py::test_marker"]
    )


@pytest.mark.parametrize("switch", [[], ["--instrcount"], ["-oinstrcount=true"]])
def test_skip(project: Project, monkeypatch: pytest.MonkeyPatch, switch: list[str]) -> None:
    """The others alone, natively, with no look at Valgrind; in CI as well."""
    monkeypatch.setenv("CI", "1")
    project.write(MIXED)
    project.run("--instrcount-skip", *switch).assert_outcomes(passed=1, deselected=4)
    assert project.valgrind.looked_for == 0


@pytest.mark.parametrize(
    "other", ["--instrcount-only", "--instrcount-update-baseline", "--instrcount-prune"]
)
def test_skip_and_something_to_measure(project: Project, other: str) -> None:
    """Nothing can be meant by both."""
    project.write(MIXED)
    result = project.run("--instrcount-skip", other)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--instrcount-skip nothing is measured*", "  fix: *"])


def test_a_deselected_benchmark_is_not_stale(suite: Project) -> None:
    """Its baseline stays, like those of all tests that were left out."""
    suite.update()
    assert len(suite.baselines()) == MEASURED
    result = suite.measure("--instrcount-only", "-k", "call")
    result.stdout.fnmatch_lines(["instrcount: 1 unchanged"])


# With the plugins, where they are installed.


def with_plugins(project: Project, *names: str) -> list[str]:
    for name in names:
        pytest.importorskip(name)
    return [f"-p{name}.plugin" for name in names]


@pytest.mark.parametrize(
    "names",
    [["pytest_benchmark"], ["pytest_codspeed"], ["pytest_benchmark", "pytest_codspeed"]],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--benchmark-skip", "--benchmark-json=timed.json", "--benchmark-autosave"],
        ["--benchmark-disable", "--benchmark-compare"],
        ["--benchmark-enable", "--codspeed"],
    ],
    ids=" ".join,
)
def test_with_the_plugins(suite: Project, names: list[str], options: list[str]) -> None:
    """They step aside: the same is measured, and they write and say nothing."""
    plugins = with_plugins(suite, *names)
    result = suite.measure(*plugins, *options)
    result.assert_outcomes(passed=MEASURED + 1)
    result.stdout.no_fnmatch_line("benchmark: *")
    result.stdout.no_fnmatch_line("codspeed: *")
    assert len(suite.verdicts(*plugins, *options)) == MEASURED
    assert not (suite.path / "timed.json").exists()
    assert not (suite.path / ".benchmarks").exists()


def test_without_instrcount_the_plugin_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ever, with its own object and its own table."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    plugins = with_plugins(project, "pytest_benchmark")
    project.write(
        """
        def test_a(benchmark):
            assert type(benchmark).__module__ == "pytest_benchmark.fixture"
            benchmark(len, "")
        """
    )
    result = project.run(*plugins, "--benchmark-max-time=0.001")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*benchmark: 1 tests*"])


def test_isinstance(project: Project) -> None:
    """The object passes for pytest-benchmark's."""
    plugins = with_plugins(project, "pytest_benchmark")
    project.write(
        """
        from pytest_benchmark.fixture import BenchmarkFixture
        def test_a(benchmark: BenchmarkFixture):
            assert isinstance(benchmark, BenchmarkFixture)
            benchmark(len, "")
        """
    )
    assert project.verdicts(*plugins) == {"test_a": "new"}


def test_their_plugin_is_not_loaded_inside(project: Project) -> None:
    """It runs git to declare its options; where benchmarks are left to it, it is loaded."""
    project.write("def test_a(instrcount): instrcount(len, '')")
    project.measure("-p", "no:pytest_benchmark")
    assert project.valgrind.started[-1].setup.args[-3:-1] == ["-p", "no:benchmark"]
    project.measure("-oinstrcount_adopt_benchmarks=false")
    assert "no:benchmark" not in project.valgrind.started[-1].setup.args


def test_a_conftest_asks_for_their_option(suite: Project) -> None:
    """It is there, with what the user gave."""
    suite.pytester.makeconftest(
        """
        def pytest_collection_modifyitems(config):
            assert config.getoption("--benchmark-min-rounds") == "3"
            assert config.getoption("benchmark_skip") is False
        """
    )
    suite.measure("--benchmark-min-rounds=3").assert_outcomes(passed=MEASURED + 1)
