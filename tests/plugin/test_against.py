"""A run against another commit, as it is told; what that commit costs is said by the test."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.gate.store.schema import to_baseline
from pytest_instrcount.session.against.head import Head
from pytest_instrcount.session.against.request import Answer
from tests.plugin.conftest import CALLS, WARMUP, Project

SUITE = """
import pytest

@pytest.mark.instrcount
def test_a(): pass

@pytest.mark.instrcount(max_delta="5%")
def test_b(): pass

def test_native(): pass
"""


@dataclass
class Other:
    """In the place of the pytest that measures the other commit."""

    project: Project
    #: name of a test that is there -> what a call costs
    costs: dict[str, int] = field(default_factory=lambda: {"test_a": 10_000, "test_b": 10_000})
    #: name of a test that does not pass there -> why
    outcomes: dict[str, str] = field(default_factory=dict)
    #: the names that were asked for, and whether it was the first look
    asked: list[tuple[list[str], bool]] = field(default_factory=list)
    #: files of the commit as they lay there
    seen: set[str] = field(default_factory=set)
    worktree: str = ""
    arguments: list[str] = field(default_factory=list)

    def run(
        self, head: Head, words: Sequence[str], nodeids: Sequence[str], *, first_look: bool
    ) -> Answer:
        worktree = head._worktree.tree
        self.worktree, self.arguments = str(worktree), [*words, *head._arguments()]
        self.seen = {
            str(path.relative_to(worktree))
            for path in worktree.rglob("*")
            if ".git" not in path.parts
        }
        answer = Answer()
        names = {nodeid.rpartition("::")[2]: nodeid for nodeid in nodeids}
        self.asked.append((sorted(names), first_look))
        for name, nodeid in names.items():
            if name in self.costs or name in self.outcomes:
                answer.collected.append(nodeid)
            if name in self.outcomes:
                answer.outcomes[nodeid] = self.outcomes[name]
            elif name in self.costs:
                self._store(head, nodeid, self.costs[name], layouts=not first_look)
        return answer

    def _store(self, head: Head, nodeid: str, ir: int, *, layouts: bool) -> None:
        rows = {
            "work.c:work": Row((ir - ir // 4) * CALLS, CALLS),
            "ceval.c:eval": Row(ir // 4 * CALLS, CALLS),
        }
        callers = {name: {"main.c:main": row} for name, row in rows.items()}
        measured = Measurement(nodeid, ir * CALLS, CALLS, WARMUP, "fork", rows, {}, callers)
        if layouts:
            measured = Measurement(
                nodeid,
                ir * CALLS,
                CALLS,
                WARMUP,
                "fork",
                rows,
                {},
                callers,
                (measured.profile,) * 4,
            )
        head._rulings.store.write(to_baseline(measured, head._rulings.environment))


@pytest.fixture
def other(project: Project, monkeypatch: pytest.MonkeyPatch) -> Other:
    """A repository with one commit, which costs what this object says."""
    project.write(SUITE)
    git(project, "init", "--quiet")
    commit(project)
    made = Other(project)

    def run(
        head: Head, words: Sequence[str], nodeids: Sequence[str], *, first_look: bool
    ) -> Answer:
        return made.run(head, words, nodeids, first_look=first_look)

    monkeypatch.setattr(Head, "_run", run)
    return made


def git(project: Project, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", *who, *words]
    done = subprocess.run(command, cwd=project.path, check=True, capture_output=True, text=True)
    return done.stdout


def commit(project: Project) -> None:
    (project.path / ".gitignore").write_text("__pycache__\n.pytest_cache\n*_version.py\n*.so\n")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "one")


def against(project: Project, *args: str) -> pytest.RunResult:
    return project.run("--instrcount-against=HEAD", *args)


def text(result: pytest.RunResult) -> str:
    return f"{result.stdout}\n{result.stderr}"


def test_regression(other: Other, project: Project) -> None:
    """It is measured again on both sides, fails the run, and nothing is stored."""
    project.valgrind.costs = {"test_a": 12_000}
    before, status = project.tree(), git(project, "status", "--porcelain")
    short = git(project, "rev-parse", "HEAD")[:7]
    result = against(project)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            f"instrcount: valgrind 3.19.0, CPython *, tracer *, core *, against HEAD ({short})",
            f"instrcount: measuring 2 tests at HEAD ({short})",
            "instrcount: measuring 2 tests under Valgrind, * at a time",
            f"instrcount: measuring 1 test at HEAD ({short}) again, and in other layouts",
            "instrcount: measuring 1 test again, and in 3 other layouts",
            "+20 % (limit 1 %): *",
            "  test_a: * 10,000 -> 12,000",
            "  accept: merge it, or allow more by max_delta= in its marker; "
            "--instrcount-against stores nothing",
            "instrcount: 1 unchanged, 1 regressed",
            f"compared with HEAD ({short})",
        ]
    )
    assert other.asked == [(["test_a", "test_b"], True), (["test_a"], False)]
    assert "--instrcount-update-baseline" not in result.stdout.str()
    assert project.tree() == before
    assert git(project, "status", "--porcelain") == status
    assert len(other.worktree) == len(str(project.path))
    assert len(Path(other.worktree).parts) == len(project.path.parts)
    assert not Path(other.worktree).exists()


def test_nothing_moved(other: Other, project: Project) -> None:
    """Both sides are counted once; nothing more is measured."""
    result = against(project)
    assert result.ret == pytest.ExitCode.OK
    assert other.asked == [(["test_a", "test_b"], True)]
    assert project.valgrind.layouts == {"test_a": [0], "test_b": [0]}
    assert not project.valgrind.blaming


def test_the_commit_that_is_checked_out(other: Other, project: Project) -> None:
    """As on a push to the branch that is named: the gate cannot fail, and says so."""
    note = "*HEAD (*) is what is checked out here, unchanged: no test can differ*"
    against(project).stdout.fnmatch_lines([note])
    project.write(SUITE + "\n# changed\n")
    against(project).stdout.no_fnmatch_line(note)
    commit(project)
    project.run("--instrcount-against=HEAD~1").stdout.no_fnmatch_line("*no test can differ*")


def test_moved_within_its_limit(other: Other, project: Project) -> None:
    """The limit of each test says what is looked at again."""
    project.valgrind.costs = {"test_a": 10_040, "test_b": 10_400}
    assert against(project).ret == pytest.ExitCode.OK
    assert other.asked == [(["test_a", "test_b"], True)]
    assert against(project, "--instrcount-max-delta=0.1%").ret == pytest.ExitCode.TESTS_FAILED
    assert other.asked[1:] == [(["test_a", "test_b"], True), (["test_a"], False)]


def test_second_look_settles(other: Other, project: Project) -> None:
    """What other layouts take back is not told."""
    project.valgrind.costs = {"test_a": 10_200}
    project.valgrind.again = {"test_a": [10_200, 10_000, 10_000, 9_900]}
    result = against(project)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["instrcount: 2 unchanged"])
    assert len(other.asked) == 2


def test_report(other: Other, project: Project) -> None:
    path = project.outside / "report.json"
    against(project, f"--instrcount-report=json:{path}", f"--instrcount-report=html:{path}.html")
    report = json.loads(path.read_text())
    assert report["against"] == {"ref": "HEAD", "commit": git(project, "rev-parse", "HEAD").strip()}
    assert {test["delta"] for test in report["tests"]} == {0.0}
    assert {test["detects"] for test in report["tests"]} == {None}
    assert "compared with HEAD (" in Path(f"{path}.html").read_text()


def test_baselines_are_neither_read_nor_written(other: Other, project: Project) -> None:
    project.update()
    for path in project.baselines().values():
        path.write_text("damaged")
    before = {
        path: path.read_text() for path in project.path.glob("instrcount_baselines/**/*.json")
    }
    result = against(project, "-v")
    assert result.ret == pytest.ExitCode.OK
    assert "stale" not in result.stdout.str()
    assert before and before == {path: path.read_text() for path in before}


def test_test_that_is_not_there(
    other: Other, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is new, in CI as well: what a change adds has nothing to be held against."""
    monkeypatch.setenv("CI", "1")
    del other.costs["test_a"]
    result = against(project)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["instrcount: 1 unchanged, 1 new", "compared with HEAD (*); 1 test is not there"]
    )


def test_nothing_is_there(other: Other, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    other.costs = {}
    result = against(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "[nothing-compared]" in text(result)
    assert "fix: pytest --instrcount-against=REF with a commit that has these tests" in text(result)


def test_test_that_does_not_pass_there(other: Other, project: Project) -> None:
    """It is told, and never taken for one that has not moved."""
    other.costs.pop("test_a")
    other.outcomes["test_a"] = "fails: assert 1 == 2"
    result = against(project)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_a * 10,000 * incomparable *",
            "instrcount: 1 unchanged, 1 incomparable",
            "compared with HEAD (*)",
            "test_it.py::test_a: compared with nothing, since it fails: assert 1 == 2 at HEAD",
            "  (*) [[]against-failing]",
        ]
    )
    result = against(project, "--instrcount-incomparable=fail")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_a: it fails: assert 1 == 2 at HEAD (*) [[]against-failing]"])


def test_calls_of_traced_tests(other: Other, project: Project) -> None:
    """They are asked for with the others."""
    project.write(SUITE + "\n@pytest.mark.trace_profile\ndef test_traced(): pass\n")
    against(project)
    assert other.asked[0] == (["test_a", "test_b", "test_traced"], True)


def test_no_measured_test(other: Other, project: Project) -> None:
    project.write("def test_native(): pass")
    assert against(project).ret == pytest.ExitCode.OK
    assert not other.asked


def test_arguments(other: Other, project: Project) -> None:
    """What selects, stops and shows stays here; what may matter goes with it."""
    ini = project.path / "tox.ini"
    against(project, "-x", "-k", "a", "-W", "ignore", "--tb=short", "test_it.py")
    assert other.arguments == [
        *("--instrcount-against=HEAD", "-W", "ignore", f"{other.worktree}/test_it.py"),
        "--instrcount-update-baseline",
        "--maxfail=0",
        f"--rootdir={other.worktree}",
        *("-c", f"{other.worktree}/{ini.name}"),
    ]


@pytest.mark.parametrize("option", ["--instrcount-update-baseline", "--instrcount-prune"])
def test_nothing_can_be_written(other: Other, project: Project, option: str) -> None:
    result = against(project, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "[settings]\n  fix: pytest --instrcount-against=HEAD" in text(result)


def test_unknown_commit(other: Other, project: Project) -> None:
    result = project.run("--instrcount-against=nosuch")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "instrcount: git knows no commit 'nosuch' here [against-ref]\n  fix: " in text(result)
    assert not project.valgrind.looked_for


def test_debugger(other: Other, project: Project) -> None:
    """Nothing is measured then, there as here."""
    result = against(project, "--trace", "-k", "nosuch")
    assert "nothing is measured under --pdb, --trace" in text(result)
    assert not other.asked


def test_files_that_git_ignores(other: Other, project: Project) -> None:
    """A version that was written by a build is taken from here; what is not committed is not."""
    (project.path / "my_version.py").write_text("version = 1")
    (project.path / "new.py").write_text("")
    result = against(project)
    assert "my_version.py" in other.seen and "new.py" not in other.seen
    result.stdout.fnmatch_lines(["git ignores my_version.py: HEAD (*) was measured with yours"])


@pytest.fixture
def compiled(other: Other, project: Project) -> str:
    """A module that was built in place."""
    name = f"fast{EXTENSION_SUFFIXES[0]}"
    (project.path / name).write_bytes(b"")
    return name


def test_compiled_module(other: Other, project: Project, compiled: str) -> None:
    result = against(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"instrcount: {compiled} is built, and not so for HEAD (" in text(result)
    assert "[against-compiled]\n  fix: pytest --instrcount-against=REF -o " in text(result)
    assert not other.asked


def test_build(other: Other, project: Project, compiled: str) -> None:
    """It is run in the folder of the commit, with this Python first on PATH."""
    build = f'python -c \'import pytest; open("{compiled}", "w")\''
    result = against(project, "-o", f"instrcount_against_build={build}")
    assert result.ret == pytest.ExitCode.OK
    assert compiled in other.seen
    result.stdout.fnmatch_lines(["instrcount: building HEAD (*): python -c *"])


def test_build_that_fails(other: Other, project: Project) -> None:
    result = against(project, "-o", "instrcount_against_build=echo one; echo two >&2; exit 3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = text(result)
    assert (
        "ended with exit code 3: echo one; echo two >&2; exit 3\none\ntwo [against-build]" in said
    )


def test_room_is_gone_after_an_error(other: Other, project: Project) -> None:
    """Of a run that cannot even start."""
    project.valgrind.version = RuntimeError("broken")
    result = against(project)
    assert result.ret not in (0, 1)
