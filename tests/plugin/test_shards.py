"""A suite in shards: what they write, merged, is what one run writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_instrcount.cli.main import main
from pytest_instrcount.gate.store.names import CALLS_SUFFIX
from tests.baselines import read_whole
from tests.plugin.conftest import Project

SUITE = """
import pytest

@pytest.mark.instrcount
def test_a1(): pass

@pytest.mark.instrcount
def test_a2(): pass

@pytest.mark.instrcount
def test_b(): pass

@pytest.mark.trace_profile
def test_traced(): pass
"""
# As pytest-split: every so many tests in a group, and the others deselected.
SPLIT = """
def pytest_addoption(parser):
    parser.addoption("--splits", type=int)
    parser.addoption("--group", type=int)

def pytest_collection_modifyitems(config, items):
    if config.option.splits:
        mine = items[config.option.group - 1::config.option.splits]
        config.hook.pytest_deselected(items=[item for item in items if item not in mine])
        items[:] = mine
"""
#: Of these the first moves between layouts, in one test alone; the others call it, too.
MOVES, STEADY = (
    {"frame.c:clear": 50, "work.c:work": 9_950},
    {"frame.c:clear": 40, "work.c:g": 9_960},
)


@pytest.fixture
def suite(project: Project) -> Project:
    """Three measured tests; one of them shows that a function of the others, too, is noise."""
    project.write(SUITE)
    valgrind = project.valgrind
    valgrind.costs |= {"test_a1": MOVES, "test_a2": STEADY, "test_b": STEADY}
    other = {**MOVES, "frame.c:clear": 57}
    valgrind.again["test_a1"] = [MOVES, other, MOVES, other, MOVES]
    for name in ("test_a2", "test_b"):
        valgrind.again[name] = [STEADY] * 5
    return project


def moved(project: Project, name: str) -> Path:
    """The baselines of a run, out of the way."""
    target = project.outside / name
    (project.path / "instrcount_baselines").rename(target)
    return target


def texts(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        if path.name.endswith(CALLS_SUFFIX)
        else json.dumps(read_whole(path))
        for path in sorted(folder.rglob("*.json"))
    }


def make_shards(project: Project, *args: str) -> tuple[Path, Path, Path]:
    """The baselines of one run, and of two that had a part of the tests each."""
    project.update()
    one = moved(project, "one")
    project.update("-k", "a1 or traced", *args).assert_outcomes(passed=2, deselected=2)
    first = moved(project, "first")
    project.update("-k", "not a1 and not traced", *args).assert_outcomes(passed=2, deselected=2)
    return one, first, moved(project, "second")


def test_merged_shards_are_one_run(suite: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Byte for byte, although each shard has seen the noise of its own tests only."""
    one, first, second = make_shards(suite, "--instrcount-shard")
    (name,) = (path for path in texts(second) if "test_b" in path)
    noise, alone = read_whole(one / name)["denoised"], read_whole(second / name)["denoised"]
    assert "frame.c:clear" in noise["noisy"]
    assert alone != noise
    out = suite.outside / "out"
    assert main(["merge", "--into", str(out), str(first), str(second)]) == 0
    assert texts(out) == texts(one)
    assert len(list(out.rglob("*.json"))) == 4
    assert capsys.readouterr().out.splitlines()[-1] == f"4 baselines written to {out}"
    assert not list(suite.outside.glob("*tmp"))


def test_merged_twice_is_merged_once(suite: Project) -> None:
    """What is there already is left, and said."""
    one, first, second = make_shards(suite, "--instrcount-shard")
    out = str(suite.outside / "out")
    for _ in range(2):
        assert main(["merge", "--into", out, str(first), str(second)]) == 0
    assert texts(Path(out)) == texts(one)


def test_shards_that_began_with_the_same_baselines(suite: Project) -> None:
    """Each has old baselines of the other's tests: those of the shard that has measured them win."""
    suite.update()
    old = moved(suite, "old")
    suite.valgrind.costs |= {"test_a1": 20_000, "test_b": 30_000}
    suite.valgrind.again.clear()
    here = suite.path / "instrcount_baselines"
    shards = []
    for name, words in (("first", "a1 or traced"), ("second", "not a1 and not traced")):
        shutil.copytree(old, here)
        suite.update("-k", words, "--instrcount-shard")
        shards.append(str(moved(suite, name)))
    shutil.copytree(old, here)
    suite.update()
    one = moved(suite, "one")
    out = suite.outside / "out"
    assert main(["merge", "--into", str(out), *shards]) == 0
    assert texts(out) == texts(one)


@pytest.mark.parametrize("before", ["a1", "a1 or b"])
def test_the_file_of_an_earlier_shard_is_still_there(suite: Project, before: str) -> None:
    """As in a workspace that nobody cleans: what it says of a test is of another count."""
    suite.update("-k", before, "--instrcount-shard")
    suite.valgrind.costs |= {"test_a1": 20_000, "test_b": 30_000}
    suite.valgrind.again.clear()
    suite.update("--instrcount-shard")
    here = suite.path / "instrcount_baselines"
    assert len(list(here.rglob("*.shard.json.gz"))) == 2
    out = suite.outside / "out"
    assert main(["merge", "--into", str(out), str(here)]) == 0
    assert texts(out) == texts(here)


def test_copied_shards_have_the_same_counts(
    suite: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --instrcount-shard all is the same but what is known of noise; a merge says so."""
    one, first, second = make_shards(suite)
    copied = texts(first) | texts(second)
    assert copied.keys() == texts(one).keys()
    for name, text in texts(one).items():
        alone, whole = json.loads(copied[name]), json.loads(text)
        alone.pop("denoised", None), whole.pop("denoised", None)
        assert alone == whole
    out = suite.outside / "out"
    assert main(["merge", "--into", str(out), str(first), str(second)]) == 0
    assert texts(out) == copied
    assert "2 of 3 baselines do not know all 1 functions" in capsys.readouterr().out


def test_two_that_differ(suite: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Both files are named, and nothing is written."""
    suite.update()
    first = moved(suite, "first")
    suite.valgrind.costs["test_b"] = 12_345
    suite.valgrind.again["test_b"] = [12_345] * 5
    suite.update()
    second = moved(suite, "second")
    out = suite.outside / "out"
    assert main(["merge", "--into", str(out), str(first), str(second)]) == 2
    (name,) = (path for path in texts(first) if "test_b" in path)
    said = capsys.readouterr().err.splitlines()[-2:]
    assert said == [
        f"instrcount: {first / name} and {second / name} differ in test_it.py::test_b "
        "[merge-conflict]",
        f"  fix: rm {second / name}    # or keep this one, or leave that input out",
    ]
    assert not out.exists()
    assert main(["merge", "--into", str(second), str(first)]) == 2
    assert not list(suite.outside.glob("*tmp"))


def test_a_shard_is_an_update(suite: Project) -> None:
    """Nothing is written where nothing is stored."""
    result = suite.measure("--instrcount-shard")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["--instrcount-shard: give it with --instrcount-update-baseline"])


# --- reports ------------------------------------------------------------------------------------


def test_reports(suite: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The union, in the order of the inputs; exit code 1 where a run of all tests would have failed."""
    suite.update()
    suite.valgrind.costs["test_b"] = 20_000
    suite.valgrind.again["test_b"] = [20_000] * 5
    paths = [suite.outside / "r1.json", suite.outside / "r2.json"]
    for path, words in zip(paths, ("a1 or traced", "not a1 and not traced")):
        suite.measure(f"--instrcount-report=json:{path}", "-k", words)
    whole = suite.report()
    out = suite.outside / "all.json"
    capsys.readouterr()
    assert main(["merge", "--into", str(out), *map(str, paths)]) == 1
    assert json.loads(out.read_text()) == whole
    assert capsys.readouterr().out.splitlines() == [
        f"2 reports of 3 tests written to {out}",
        "instrcount: 2 unchanged, 1 regressed",
        "instrcount, calls: 1 unchanged",
        "  regressed test_it.py::test_b",
    ]


@pytest.mark.parametrize(("policy", "code"), [("note", 0), ("fail", 1)])
def test_policies_of_reports(suite: Project, policy: str, code: int) -> None:
    """As those of a run."""
    path, out = suite.outside / "r1.json", suite.outside / "all.json"
    suite.measure(f"--instrcount-report=json:{path}")
    assert main(["merge", "--into", str(out), f"--missing={policy}", str(path)]) == code


def test_a_shard_without_a_report(suite: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """What one of them has found does not count for all; once all are there, they are one run."""
    suite.write(conftest=SPLIT)
    suite.update()
    whole = suite.report()
    assert whole["shards"] == []
    paths = [suite.outside / f"r{number}.json" for number in (1, 2, 3)]
    for number, path in enumerate(paths, 1):
        suite.measure(f"--instrcount-report=json:{path}", "--splits", "3", "--group", str(number))
        assert json.loads(path.read_text())["shards"] == [{"number": number, "of": 3}]
    out = suite.outside / "all.json"
    capsys.readouterr()
    assert main(["merge", "--into", str(out), str(paths[0]), str(paths[2])]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "  shard 2 of 3 has no report here"
    assert main(["merge", "--into", str(out), *map(str, paths)]) == 0
    joined = json.loads(out.read_text())
    for report in (whole, joined):
        report["tests"].sort(key=lambda test: test["nodeid"])
    assert joined == whole


# --- shards in CI that measure nothing ------------------------------------------------------------

FEW = """
import pytest

@pytest.mark.instrcount
def test_a(): pass

def test_native(): pass
"""


@pytest.fixture
def few(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """In CI: one test that is measured, in the first of two shards, and one that is not."""
    project.write(FEW, conftest=SPLIT)
    project.update()
    monkeypatch.setenv("CI", "1")
    return project


def test_a_shard_without_a_measured_test(few: Project) -> None:
    """One run of all would pass, and so does it; its report is merged with the others."""
    paths = [few.outside / f"r{number}.json" for number in (1, 2)]
    first, second = (
        few.measure(f"--instrcount-report=json:{path}", "--splits=2", f"--group={number}")
        for number, path in enumerate(paths, 1)
    )
    for result in (first, second):
        result.assert_outcomes(passed=1, deselected=1)
        assert result.ret == pytest.ExitCode.OK
    second.stdout.fnmatch_lines(["no measured test is in this shard (2 of 2)"])
    first.stdout.no_fnmatch_line("*no measured test*")
    out = few.outside / "all.json"
    assert main(["merge", "--into", str(out), *map(str, paths)]) == 0
    (test,) = json.loads(out.read_text())["tests"]
    assert test["verdict"] == "unchanged"


def test_a_shard_without_any_test(few: Project) -> None:
    """That is pytest's to tell."""
    result = few.measure("--splits=3", "--group=3")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["no measured test is in this shard (3 of 3)"])


@pytest.mark.parametrize(
    "args",
    [
        ("-k", "native"),
        ("-k", "native", "--splits=1", "--group=1"),
        ("--splits=2", "--group=2", "test_other.py"),
        ("--splits=2", "--group=1", "test_skipped.py"),
    ],
    ids=" ".join,
)
def test_a_gate_that_compared_nothing(few: Project, args: tuple[str, ...]) -> None:
    """Where no other shard has a measured test either, or this one has some, it fails as ever."""
    few.write(
        test_other="def test_1(): pass\ndef test_2(): pass\n",
        test_skipped=SUITE.replace("pass", "pytest.skip()"),
    )
    result = few.measure(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*[[]nothing-compared]"])


def test_a_shard_of_an_update_has_nothing_to_say(few: Project) -> None:
    """Nor has one outside of CI: neither would have failed."""
    result = few.update("--splits=2", "--group=2")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*no measured test is in this shard*")
