"""``compare``, ``show`` and ``history``: what they print of what runs have stored, and how they exit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.cli.main import main
from tests.plugin.conftest import Project
from tests.plugin.test_reports import blocks, written

SUITE = """
import pytest

@pytest.mark.instrcount
def test_a(): pass

@pytest.mark.instrcount
def test_b(): pass

@pytest.mark.instrcount
def test_other(): pass

@pytest.mark.trace_profile
def test_traced(): pass
"""
OLD = {"test_it.py:test_a": (9_000, 1), "test_it.py:test_a;shop.py:f": (1_000, 1)}
NEW = {"test_it.py:test_a": (9_000, 1), "test_it.py:test_a;shop.py:f": (2_000, 2)}

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Tests with baselines; one costs 10 % more now, one 20 % more, one 1 % less."""
    project.write(SUITE)
    project.valgrind.python["test_a"] = OLD
    project.update().assert_outcomes(passed=4)
    project.valgrind.python["test_a"] = NEW
    project.valgrind.costs |= {"test_a": 11_000, "test_b": 12_000, "test_other": 9_900}
    monkeypatch.setenv("COLUMNS", "80")
    return project


def aside(project: Project, name: str) -> str:
    """The baselines of a run, out of the way."""
    target = project.outside / name
    (project.path / "instrcount_baselines").rename(target)
    return str(target)


def said(capsys: Captured, *args: str, code: int = 0) -> list[str]:
    capsys.readouterr()
    assert main(args) == code
    return "".join(capsys.readouterr()).splitlines()


@pytest.mark.parametrize("command", ["show x", "history x", "compare a b", "trace x", "doctor"])
def test_a_folder_that_is_gone(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert said(capsys, *command.split(), code=2)[0].endswith("[folder-gone]")


def slug_of(lines: list[str]) -> str:
    assert len(lines) == 2 and lines[1].startswith("  fix: ")
    found = re.search(r"\[([a-z-]+)\]$", lines[0])
    assert found is not None
    return found[1]


# --- compare ------------------------------------------------------------------------------------


def table_in(text: str | list[str]) -> list[str]:
    """The rows and the totals of a table."""
    lines = text.splitlines() if isinstance(text, str) else text
    start = next(n for n, line in enumerate(lines) if line.startswith("test  "))
    return lines[start : next(n for n, line in enumerate(lines) if "unchanged," in line) + 1]


def test_two_folders(suite: Project, capsys: Captured) -> None:
    """The words and the numbers of a run, the worst first, with the function that caused it; exit code 1."""
    run = suite.measure()
    text = run.stdout.str()
    old = Path(suite.path / "instrcount_baselines")
    copy = suite.outside / "old"
    subprocess.run(["cp", "-r", old, copy], check=True)
    suite.update()
    lines = said(capsys, "compare", str(copy), str(old), code=1)
    assert sorted(table_in(lines)) == sorted(table_in(text))
    assert [line.split()[0] for line in table_in(lines)[2:-1]] == [
        "test_it.py::test_b",
        "test_it.py::test_a",
    ]
    start = text.splitlines().index(
        next(x for x in text.splitlines() if x.startswith("  test_a: "))
    )
    failure = text.splitlines()[start : start + 7]
    assert "    100 %  test_it.py test_a" in lines
    assert "      calls f 1 -> 2 times" in lines
    assert failure[0] in lines
    assert "accept:" not in "\n".join(lines)


def test_equal_folders(suite: Project, capsys: Captured) -> None:
    """Exit code 0; -q shows the totals, -v all rows."""
    folder = aside(suite, "old")
    assert said(capsys, "compare", folder, folder, "-q") == [
        "instrcount: 3 unchanged",
        "instrcount, calls: 1 unchanged",
    ]
    lines = said(capsys, "compare", folder, folder, "-v")
    assert sum(" 0 % " in line for line in lines) == 4


def test_the_limit(suite: Project, capsys: Captured) -> None:
    """As that of a run, for all tests."""
    old = aside(suite, "old")
    suite.update()
    new = aside(suite, "new")
    assert said(capsys, "compare", old, new, "--max-delta=15%", code=1)[-2].startswith(
        "instrcount: 2 unchanged, 1 regressed"
    )
    said(capsys, "compare", old, new, "--max-delta=20%")
    assert slug_of(said(capsys, "compare", old, new, "--max-delta=20", code=2)) == "limit"


def test_what_cannot_be_compared(suite: Project, capsys: Captured) -> None:
    """Another environment is said, and no regression; a test that one side lacks is new or stale."""
    old = aside(suite, "old")
    suite.valgrind.version = "3.20.0"
    suite.write(SUITE.replace("test_other", "test_another"))
    suite.update()
    lines = said(capsys, "compare", old, aside(suite, "new"), code=2)
    assert "instrcount: 1 new, 2 incomparable, 1 stale" in lines
    assert "valgrind 3.19.0 -> 3.20.0 [baseline-incomparable]" in " ".join(map(str.strip, lines))


def test_calls(suite: Project, capsys: Captured) -> None:
    """Traced tests may not call more."""
    old = aside(suite, "old")
    suite.valgrind.costs.clear()
    suite.valgrind.traced["test_traced"] = {"test_it:f": 5}
    suite.update()
    lines = said(capsys, "compare", old, aside(suite, "new"), code=1)
    assert "test_traced: 3 -> 5 calls (+66.7 %, limit +0 %)" in lines


def test_two_reports(suite: Project, capsys: Captured) -> None:
    """Of runs against any baselines; counts are compared, not verdicts."""
    paths = [str(suite.outside / name) for name in ("r1.json", "r2.json")]
    suite.measure(f"--instrcount-report=json:{paths[0]}")
    suite.valgrind.costs["test_a"] = 13_000
    suite.measure(f"--instrcount-report=json:{paths[1]}")
    lines = said(capsys, "compare", *paths, code=1)
    assert lines[0] == "+18.2 % (limit 1 %): Ir 11,000 -> 13,000"
    assert "instrcount: 2 unchanged, 1 regressed" in lines
    said(capsys, "compare", paths[0], paths[0])
    other = json.loads(Path(paths[1]).read_text())
    other["environment"]["valgrind"] = "3.20.0"
    Path(paths[1]).write_text(json.dumps(other))
    assert "instrcount: 3 incomparable" in said(capsys, "compare", *paths, code=2)


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        ({"tests": {"verdict": "failed", "ir": None}}, 2, "2 unchanged, 1 failed"),
        (
            {"tests": {"verdict": "uncounted", "cause": "uncounted", "ir": None}},
            2,
            "2 unchanged, 1 uncounted",
        ),
        ({"tests": {"verdict": "nondeterministic"}}, 2, "2 unchanged, 1 nondeterministic"),
        ({"traces": {"verdict": "failed", "calls": None}}, 2, "instrcount, calls: 1 failed"),
        ({"traces": None}, 0, "instrcount, calls: 1 stale"),
        ({"budgets": {"kept": False}}, 1, "max_ir not kept: test_it.py::test_a"),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_what_a_report_says_is_not_passed_over(
    change: dict[str, Any], code: int, line: str, suite: Project, capsys: Captured
) -> None:
    """What failed, or was not the same twice, cannot be compared: that is no success."""
    paths = [suite.outside / name for name in ("r1.json", "r2.json")]
    suite.measure(f"--instrcount-report=json:{paths[0]}")
    report = json.loads(paths[0].read_text())
    [trace] = report["traces"]
    assert trace["calls"]
    budget = {"nodeid": "test_it.py::test_a", "budget": "max_ir", "kept": True}
    report["budgets"] = [
        {**budget, "now": 1, "allowed": 2, "other": None, "counts": {}, "reason": ""}
    ]
    paths[0].write_text(json.dumps(report))
    [(kind, values)] = change.items()
    if values is None:
        report[kind] = []
    else:
        report[kind][0] |= values
    paths[1].write_text(json.dumps(report))
    lines = said(capsys, "compare", *map(str, paths), code=code)
    assert any(line in each for each in lines), lines


def test_nothing_to_compare(suite: Project, capsys: Captured) -> None:
    """A comparison of nothing is no success."""
    folder = aside(suite, "old")
    empty = suite.outside / "empty"
    empty.mkdir()
    file = suite.outside / "r.json"
    file.write_text("{}")
    assert slug_of(said(capsys, "compare", folder, str(empty), code=2)) == "compare-nothing"
    assert slug_of(said(capsys, "compare", folder, str(file), code=2)) == "compare-mixed"
    assert slug_of(said(capsys, "compare", str(file), str(file), code=2)) == "report-damaged"
    assert slug_of(said(capsys, "compare", "no", "no", code=2)) == "report-unreadable"
    lines = said(capsys, "compare", folder, "no", code=2)
    assert lines[0] == "instrcount: no does not exist [compare-nothing]"


# --- show ---------------------------------------------------------------------------------------


def test_a_baseline(suite: Project, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, functions, tree, why, environment; found from a folder below, too."""
    suite.update("--instrcount-reason=more work")
    below = suite.path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    lines = said(capsys, "show", "test_a")
    assert lines[1] == "test_it.py::test_a"
    assert "  Ir 11,000 a call" in lines
    assert any(re.search(r" 75 % .* work\.c:work$", line) for line in lines)
    assert any(re.search(r"2,000 +2,000 +2 +  shop\.py:f$", line) for line in lines)
    assert "  10,000 -> 11,000  more work" in lines
    assert "  valgrind: 3.19.0" in lines


def test_a_traced_test(suite: Project, capsys: Captured) -> None:
    """Its calls."""
    lines = said(capsys, "show", "test_traced")
    assert lines[1:] == ["test_it.py::test_traced", "  3 calls", "          3  test_it:f"]


@pytest.mark.parametrize(
    ("args", "slug"),
    [
        (("show", "test_"), "test-ambiguous"),
        (("show", "nobody"), "test-unknown"),
        (("show", "test_a", "--baseline-dir", "no"), "no-baselines"),
        (("show", "no.json.gz"), "bundle-unreadable"),
        (("history", "test_"), "test-ambiguous"),
        (("history", "test_a"), "no-history"),
    ],
)
def test_what_cannot_be_shown(
    suite: Project, args: tuple[str, ...], slug: str, capsys: Captured
) -> None:
    """Told with what to type."""
    assert slug_of(said(capsys, *args, code=2)) == slug


def test_nothing_can_be_printed(suite: Project) -> None:
    """A full disk is no regression; a reader that has seen enough is no error."""
    command = [sys.executable, "-m", "pytest_instrcount", "show", "test_a"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, cwd=suite.path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert slug_of(done.stderr.splitlines()) == "output-lost"
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            command, cwd=suite.path, stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_damaged_baseline_of_the_test_that_was_asked_for(
    suite: Project, capsys: Captured
) -> None:
    """Its error is said, not that of a copy, whose own says to delete it."""
    (wanted,) = suite.path.rglob("test_b-*.json")
    (copied,) = suite.path.rglob("test_a-*.json")
    wanted.write_text("{")
    copied.with_name("test_0-12345678.json").write_bytes(copied.read_bytes())
    why, fix = said(capsys, "show", "test_b", code=2)
    assert "[baseline-damaged]" in why and str(wanted) in why
    wanted.unlink()
    why, fix = said(capsys, "show", "test_b", code=2)
    copy = copied.with_name("test_0-12345678.json")
    assert "[baseline-mismatch]" in why
    assert fix == f"  fix: rm {copy}    # then measure its test again"


def test_two_exports_of_one_path(suite: Project, capsys: Captured) -> None:
    suite.path.joinpath("p.py").write_text("pass")
    exports = ("--export", "json:o.json", "--export", "chrome:./o.json")
    assert slug_of(said(capsys, "trace", *exports, "p.py", code=2)) == "profile-write"
    assert not suite.path.joinpath("o.json").exists()


def test_an_empty_folder_has_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """None is named, and what fills it is what to type."""
    (tmp_path / "instrcount_baselines").mkdir()
    monkeypatch.chdir(tmp_path)
    why, fix = said(capsys, "show", "test_a", code=2)
    assert why.endswith("instrcount_baselines has no baseline [test-unknown]")
    assert fix == "  fix: pytest --instrcount-update-baseline"


def test_a_whole_id_wins(suite: Project, capsys: Captured) -> None:
    """Over ids that it is a part of."""
    suite.write(SUITE + "\n@pytest.mark.instrcount\ndef test_a2(): pass\n")
    suite.update()
    assert said(capsys, "show", "test_it.py::test_a")[1] == "test_it.py::test_a"
    assert slug_of(said(capsys, "show", "test_a", code=2)) == "test-ambiguous"


def test_reasons_outlive_a_conflict(suite: Project, capsys: Captured) -> None:
    """Each branch has its own in a profile of its own: both are beside the summary with the markers."""
    suite.update("--instrcount-reason=more work")
    path = suite.baselines()["test_a"]
    ours, profiles = (
        path.read_text(),
        {each: each.read_bytes() for each in path.parent.glob("test_a-*.gz")},
    )
    suite.valgrind.costs["test_a"] = 14_000
    suite.update("--instrcount-reason=yet more")
    theirs = path.read_text()
    for each, content in profiles.items():
        each.write_bytes(content)
    path.write_text(f"<<<<<<< ours\n{ours}=======\n{theirs}>>>>>>> theirs\n")
    suite.valgrind.costs["test_a"] = 15_000
    suite.update("--instrcount-reason=settled")
    lines = " ".join(said(capsys, "show", "test_a"))
    assert all(reason in lines for reason in ("more work", "yet more", "settled"))


# --- history ------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    config = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *config, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(project: Project, minute: int) -> None:
    git(project.path, "add", ".")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_COMMITTER_DATE", f"2026-03-01T10:0{minute}:00+01:00")
        git(project.path, "commit", "-q", "-m", "x")


@pytest.fixture
def committed(suite: Project) -> Project:
    """Two commits, the second with a reason, and a third count that is in none."""
    git(suite.path, "init", "-q")
    git(suite.path, "add", ".")
    git(suite.path, "commit", "-q", "-m", "the first\n\nmore")
    suite.update("--instrcount-reason=more work")
    git(suite.path, "commit", "-q", "-a", "-m", "the second")
    return suite


def test_history(committed: Project, capsys: Captured) -> None:
    """The newest first: why, else what the commit says; and what is not committed."""
    committed.valgrind.costs["test_a"] = 5_500
    committed.update("--instrcount-reason=half")
    second, first = git(committed.path, "log", "--format=%h", "--abbrev=12").split()
    day = git(committed.path, "log", "-1", "--format=%cs")
    rows = [re.split(r"\s{2,}", line.strip()) for line in said(capsys, "history", "test_a")[2:]]
    assert rows == [
        ["commit", "date", "mean Ir a call", "delta", "reason"],
        ["(not committed)", "5,500", "-50 %", "half"],
        [second, day, "11,000", "+10 %", "more work"],
        [first, day, "10,000", "(the first)"],
    ]


def test_history_of_a_traced_test(project: Project, capsys: Captured) -> None:
    """The sum of its calls."""
    project.write("import pytest\n@pytest.mark.trace_profile\ndef test_a(): pass\n")
    project.valgrind.traced["test_a"] = {"test_it:f": 3}
    project.update()
    git(project.path, "init", "-q")
    git(project.path, "add", ".")
    git(project.path, "commit", "-q", "-m", "the first")
    project.valgrind.traced["test_a"] = {"test_it:f": 6}
    project.update()
    rows = [re.split(r"\s{2,}", line.strip()) for line in said(capsys, "history", "test_a")[2:]]
    assert rows[0] == ["commit", "date", "calls", "delta", "reason"]
    assert rows[1][0] == "(not committed)"
    assert rows[1][2] == "+100 %"
    assert rows[2][-1] == "(the first)"


def test_history_of_a_renamed_test(project: Project, capsys: Captured) -> None:
    """Under all its names, in ``history`` and on the page; without what others counted under them since."""
    source = "import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n"
    git(project.path, "init", "-q")
    for minute, (name, ir) in enumerate((("a", 1_000), ("b", 1_100), ("c", 1_200), ("c", 1_300))):
        project.write(source.replace("test_a", f"test_{name}"))
        project.valgrind.costs[f"test_{name}"] = ir
        project.update()
        commit(project, minute)
    other = source.partition("\n")[2].replace("pass", "max(1, 2)")
    (project.path / "test_it.py").write_text(source.replace("test_a", "test_c") + other)
    project.update()
    commit(project, 9)
    rows = [line.split() for line in said(capsys, "history", "test_c")[1:]]
    names = "test_it.py::test_c, formerly test_it.py::test_b, formerly test_it.py::test_a"
    assert rows[0] == names.split()
    assert [row[2] for row in rows[2:]] == ["1,300", "1,200", "1,100", "1,000"]
    project.write(source.replace("test_a", "test_d") + other)
    points = blocks(written(project, "html"))["test-0"]["history"]
    assert [ir for _, ir in points] == [1_000, 1_100, 1_200, 1_300, 10_000]


def test_history_that_git_does_not_tell(
    committed: Project, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it was committed helps nobody."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # where all may be trusted
    lines = said(capsys, "history", "test_a", code=2)
    assert slug_of(lines) == "no-history"
    assert lines[-1] == f"  fix: git config --global --add safe.directory {committed.path}"


def test_history_of_a_shallow_clone(
    committed: Project, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there, and a word on what is not."""
    clone = committed.outside / "clone"
    git(committed.outside, "clone", "-q", "--depth=1", f"file://{committed.path}", str(clone))
    monkeypatch.chdir(clone)
    lines = said(capsys, "history", "test_a")
    assert len(lines) == 5
    assert lines[3].endswith("11,000            more work")
    assert lines[4].startswith("this clone is shallow: ") and "git fetch --unshallow" in lines[4]


@pytest.mark.parametrize(
    "command",
    [
        "show --kee x",
        "history --baseline x",
        "compare --max 1",
    ],
)
def test_no_option_is_abbreviated(command: str, capsys: Captured) -> None:
    """One that is added must not break a script."""
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "one", "two"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --" in capsys.readouterr().err


@pytest.mark.parametrize("harm", ["<<<<<<< ours\n", "", "link"])
@pytest.mark.parametrize("command", ["show", "history"])
def test_a_healthy_test_among_damaged_ones(
    committed: Project, command: str, harm: str, capsys: Captured
) -> None:
    """Another test's merge markers are not its business; its own, in any environment, are."""
    files = committed.baselines()

    def harm_it(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        if harm == "link":
            path.symlink_to("nowhere")
        else:
            path.write_text(harm)

    harm_it(files["test_other"])
    assert "test_it.py::test_a" in said(capsys, command, "test_it.py::test_a")
    slug = {
        "<<<<<<< ours\n": "baseline-conflict",
        "": "baseline-damaged",
        "link": "baseline-unreadable",
    }
    assert slug_of(said(capsys, command, "test_other", code=2)) == slug[harm]
    own = files["test_a"].relative_to(committed.path / "instrcount_baselines")
    harm_it(committed.path.joinpath("instrcount_baselines", "cp399-linux-x86_64", *own.parts[1:]))
    assert slug_of(said(capsys, command, "test_it.py::test_a", code=2)) == slug[harm]
