"""CallgrindStats: all counts of a statement, from profiles to a text."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

import pytest_instrcount
from pytest_instrcount.counts.function_counts import FunctionCount, FunctionCounts
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.rules import rule_of
from pytest_instrcount.counts.standardize import (
    source_file,
    standardize_in_folder,
    standardize_profile,
)
from pytest_instrcount.counts.stats import CallgrindStats
from pytest_instrcount.counts.task import TaskSpec

DATA = Path(__file__).parent.parent / "data" / "callgrind"
SAMPLES = sorted(DATA.glob("*.out"))
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])
TASK = TaskSpec("json.loads(text)", "import json")


_RULE = rule_of("obmalloc.c:PyObject_Malloc")
assert _RULE is not None
#: Of a profile whose f costs 500 and allocates twice.
DENOISED = 500 + 2 * _RULE.price


def stats_of(
    statement: Profile, baseline: Profile | None = None, *, debug: bool = True
) -> CallgrindStats:
    return CallgrindStats.from_profiles(
        TASK, 20, statement, baseline, built_with_debug_symbols=debug, callgrind_out="events: Ir\n"
    )


def small(malloc: int = 210, folder: str = "/a") -> Profile:
    return Profile(
        500 + malloc,
        {f"{folder}/x.c:f": Row(500, 1), "obmalloc.c:PyObject_Malloc": Row(malloc, 3)},
        {
            "obmalloc.c:PyObject_Malloc": {
                f"{folder}/x.c:f": Row(140, 2),
                "obmalloc.c:PyObject_Calloc": Row(70, 1),
            }
        },
        {f"{folder}/x.c:f": 500 + malloc, "obmalloc.c:PyObject_Malloc": malloc},
    )


def test_from_profiles() -> None:
    """Rows have the calls of the profile, and a price for those that are from no noise."""
    stats = stats_of(small())
    assert stats.stats() == FunctionCounts(
        (
            FunctionCount(500, "/a/x.c:f", 1),
            FunctionCount(210, "obmalloc.c:PyObject_Malloc", 3, DENOISED - 500),
        ),
        inclusive=False,
    )
    assert [(row.count, row.function) for row in stats.stats(inclusive=True)] == [
        (710, "/a/x.c:f"),
        (210, "obmalloc.c:PyObject_Malloc"),
    ]
    assert stats.stats(inclusive=True).inclusive
    assert (stats.counts(), stats.counts(denoise=True)) == (710, DENOISED)
    assert (stats.task_spec, stats.number_per_run) == (TASK, 20)
    assert stats.stmt_callgrind_out == "events: Ir\n"


def test_without_a_baseline_there_are_no_rows_of_it() -> None:
    """It was not measured; a baseline that was is kept beside the statement, not taken from it."""
    assert len(stats_of(small()).baseline_exclusive_stats) == 0
    assert stats_of(small()).baseline_inclusive_stats.inclusive
    stats = stats_of(small(), small(70))
    assert stats.baseline_exclusive_stats.sum() == 570
    assert stats.counts() == 710


def test_delta() -> None:
    """What the first cost more, by function; equal functions cancel, of either kind."""
    delta = stats_of(small(300)).delta(stats_of(small()))
    assert tuple(delta) == (FunctionCount(90, "obmalloc.c:PyObject_Malloc"),)
    assert len(stats_of(small()).delta(stats_of(small()), inclusive=True)) == 0
    assert delta.denoise().sum() == 0


def test_as_standardized() -> None:
    """Two builds cancel by standard names, which are no names of the file."""
    first, second = stats_of(small(folder="/a")), stats_of(small(folder="/b"))
    assert len(first.delta(second)) == 2
    for inclusive in (False, True):
        delta = first.as_standardized().delta(second.as_standardized(), inclusive=inclusive)
        assert len(delta) == 0
    assert first.as_standardized().stmt_callgrind_out is None
    assert first.as_standardized().as_standardized() == first.as_standardized()


def test_standardized_inclusive_counts_are_of_the_rows_that_are_there() -> None:
    """Where somebody put other counts in, these are renamed."""
    other = FunctionCounts((FunctionCount(3, "/z/y.c:g"),), inclusive=True)
    changed = replace(stats_of(small()), stmt_inclusive_stats=other).as_standardized()
    assert tuple(changed.stats(inclusive=True)) == (FunctionCount(3, "y.c:g"),)


def test_folders_of_cpython_are_kept() -> None:
    """So that a filter can tell the interpreter from other code, of either kind of counts."""
    stats = stats_of(parse_profile(DATA / "cp312-json.out", source_file)).as_standardized()
    for inclusive in (False, True):
        names = {row.function for row in stats.stats(inclusive)}
        assert {
            "Objects/unicodeobject.c:PyUnicode_New",
            "Python/pystrtod.c:PyOS_string_to_double",
        } <= names
    assert stats.counts(denoise=True) == stats_of(parse_profile(DATA / "cp312-json.out")).counts(
        denoise=True
    )


def test_calls_that_come_from_elsewhere_are_a_difference() -> None:
    """As often called and as dear, but not by the allocator any more: that is a call to price."""
    rows = {"a.c:f": Row(500, 1), "obmalloc.c:PyObject_Malloc": Row(70, 1)}
    by_f = Profile(570, rows, {"obmalloc.c:PyObject_Malloc": {"a.c:f": Row(70, 1)}})
    within = Profile(570, rows, {"obmalloc.c:PyObject_Malloc": {"obmalloc.c:x": Row(70, 1)}})
    price = (DENOISED - 500) // 2
    assert stats_of(by_f - within).counts(denoise=True) == price


@every_sample
def test_real_profiles(sample: Path) -> None:
    """Sums are those of the profile, before and after standard names, with and without noise."""
    profile = parse_profile(sample)
    stats = stats_of(profile)
    standard = stats.as_standardized()
    expected = stats_of(standardize_profile(profile)).counts(denoise=True)
    assert stats.counts() == standard.counts() == profile.total
    assert stats.counts(denoise=True) == standard.counts(denoise=True) == expected
    for each in (stats, standard):
        largest = max((row.count for row in each.stats(inclusive=True)), default=0)
        assert largest <= profile.total
    assert pickle.loads(pickle.dumps(stats)) == stats
    assert hash(pickle.loads(pickle.dumps(stats))) == hash(stats)


def test_two_real_profiles_subtract_linearly() -> None:
    """Denoise and standard names of a difference are the difference of each."""
    one = stats_of(parse_profile(DATA / "cp311-json.out")).as_standardized()
    other = stats_of(parse_profile(DATA / "cp312-json.out")).as_standardized()
    for inclusive in (False, True):
        delta = one.delta(other, inclusive=inclusive)
        assert delta.denoise() == one.stats(inclusive).denoise() - other.stats(inclusive).denoise()


def test_nothing_can_be_changed() -> None:
    """Stats are values."""
    with pytest.raises(FrozenInstanceError):
        stats_of(small()).number_per_run = 1  # type: ignore[misc]


def test_repr() -> None:
    """What was measured, and both totals of it and of the baseline."""
    assert repr(stats_of(small(), small(70))).splitlines() == [
        "CallgrindStats",
        "json.loads(text)",
        "setup: import json",
        "                             all        denoised",
        f"  instructions               710{DENOISED:>16}",
        f"  baseline                   570{DENOISED:>16}",
        "20 runs, 1 thread",
    ]
    assert repr(stats_of(small(), debug=False)).endswith(
        "\nwithout debug symbols: static functions have an address for a name"
    )


@pytest.mark.parametrize(
    ("task", "title", "summary"),
    [
        (TaskSpec("f()", ""), "f()", "f()"),
        (TaskSpec("f()", "g()"), "f()", "f()\nsetup: g()"),
        (TaskSpec("f()", "pass"), "f()", "f()"),
        (TaskSpec("f()", "g()", label="fast"), "fast", "fast\nsetup: g()"),
        (TaskSpec("f()", "", sub_label="n=1"), "f(): n=1", "f(): n=1"),
        (TaskSpec("f()", "", label="fast", sub_label="n=1"), "fast: n=1", "fast: n=1"),
        (TaskSpec("f()", "", description="new"), "f()", "f()\nnew"),
        (TaskSpec("f()\ng()", ""), "stmt:\n  f()\n  g()", "stmt:\n  f()\n  g()"),
        (TaskSpec("a\nb\n", "", sub_label="n"), "stmt (n):\n  a\n  b", "stmt (n):\n  a\n  b"),
        (TaskSpec("f()", "g()", "import x"), "f()", "f()\nsetup:\n  import x\n  g()"),
    ],
)
def test_task(task: TaskSpec, title: str, summary: str) -> None:
    """A task is called by its label, or by its statement; more lines are a block."""
    assert (task.title, task.summarize()) == (title, summary)
    assert summary.partition("\nsetup:")[2] == task.setup_str().removeprefix("setup:")
    assert len({task, pickle.loads(pickle.dumps(task))}) == 1


def test_public_names_are_imported_when_asked_for() -> None:
    """Importing the package imports nothing of it: pytest does that at every start."""
    code = """if True:
        import sys
        import pytest_instrcount as package
        loaded = {name for name in sys.modules if name.startswith("pytest_instrcount")}
        assert loaded == {"pytest_instrcount"}, loaded
        assert set(package.__all__) <= set(dir(package))
        assert not hasattr(package, "nothing")
        loaded = {name for name in sys.modules if name.startswith("pytest_instrcount")}
        assert loaded == {"pytest_instrcount"}, loaded
        from pytest_instrcount import CallgrindStats, FunctionCount, FunctionCounts
        assert CallgrindStats.__module__ == "pytest_instrcount.counts.stats"
        assert "pytest_instrcount.callgrind.timer.timer" not in sys.modules
        assert "pytest" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_public_names_are_ours() -> None:
    """A name that is not public is an error like that of any module."""
    assert pytest_instrcount.FunctionCount is FunctionCount
    assert pytest_instrcount.CallgrindStats is CallgrindStats
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        pytest_instrcount.Nothing  # type: ignore[attr-defined] # noqa: B018


def test_the_error_can_be_caught() -> None:
    """By its public name, and told from others by its word; torch raises a RuntimeError here."""
    assert issubclass(pytest_instrcount.InstrcountError, RuntimeError)
    with pytest.raises(pytest_instrcount.InstrcountError) as caught:
        pytest_instrcount.profile().table()
    assert caught.value.slug == "profile-unfinished"
    assert caught.value.why in str(caught.value)
    assert caught.value.fix in str(caught.value)


def test_the_names_of_the_docs_are_standard_names() -> None:
    """Each line of the table of names is what standardize does."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "counts.md"
    table = page.read_text().partition("| what | before | after |")[2]
    rows = [re.findall("`([^`]*)`", row) for row in table.splitlines()[2:]]
    assert len(rows) == 9
    for *before, after in rows:
        assert {standardize_in_folder(name) for name in before} == {after}
