"""The command that accepts: what it keeps of the command line, and which tests it names."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pytest

from pytest_instrcount.config.command_line import CommandLine, accept_run, accept_tests
from pytest_instrcount.gate.gate import Verdict

UPDATE = "pytest --instrcount-update-baseline"
MANY = [f"t.py::test_{number}" for number in range(6)]


def typed(line: str, *names: str, **further: object) -> CommandLine:
    return CommandLine(tuple(shlex.split(line)), frozenset(names), **further)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("", ""),
        ("-x -q --tb=short -rA -vv --lf --maxfail 3 --color=yes --durations=5", ""),
        ("-xq -r fE -svx", ""),
        ("--instrcount --instrcount-report=json:r.json --instrcount-missing=fail", ""),
        ("--instrcount-update-baseline --instrcount-update-policy failing", ""),
        ("-p mine -c other.ini -o a=b --rootdir=. -n0 -W error", None),
        ("-p t.py --rootdir t.py", None),
        ("-qpmine -xp mine -n 0", "-pmine -p mine -n 0"),
        ("--runslow --size=3 --instrcount-baseline-dir b --instrcount-calls=5", None),
        ("--instrcount-valgrind /opt/v --strict-markers", None),
        ("-k 'a or b' -m slow --deselect t.py::test_9 --ignore=x t.py @list.txt", ""),
        ("-x -- t.py", ""),
        # a shard, and a project's own option of the same name
        ("--splits 3 --group=2", ""),
        ("--group large --splits=few", None),
        ("-r", ""),
        # options that take what is behind them for their value
        ("--cov --instrcount t.py", "--cov"),
        ("--debug --debug=log t.py", ""),
    ],
)
def test_what_is_kept(line: str, needed: str | None) -> None:
    """What says which project, plugins and tests these are stays; how the run is shown does not."""
    wanted = shlex.split(line if needed is None else needed)
    command = shlex.split(accept_tests(typed(line, "t.py"), ["t.py::test_a[1 2]"]))
    assert command == ["pytest", "--instrcount-update-baseline", "t.py::test_a[1 2]", *wanted]


def test_a_selection_that_replaces_the_inis_stays() -> None:
    """``-m slow`` beside ``addopts = -m 'not slow'``: without it the test would be deselected."""
    line = typed("-m slow t.py", "t.py", selects_always=True)
    assert accept_tests(line, ["t.py::test_a"]) == f"{UPDATE} t.py::test_a -m slow"


@pytest.mark.parametrize(
    ("line", "verdicts", "command"),
    [
        # nothing selected, nothing to be left alone: the plain command
        (typed("-x"), {}, UPDATE),
        (typed("-x"), dict.fromkeys(MANY, (Verdict.new,)), UPDATE),
        (typed(""), {"a": [Verdict.new], "b": [Verdict.failed]}, UPDATE),
        # a few: by name
        (typed(""), {"a": [Verdict.regressed], "b": [Verdict.unchanged]}, f"{UPDATE} a"),
        (typed("-k x", ""), {"a": [Verdict.new]}, f"{UPDATE} a"),
        (
            typed("", ""),
            {"a": [Verdict.unchanged, Verdict.new], "b": [Verdict.unchanged]},
            f"{UPDATE} a",
        ),
        # many: the user's selection, if it has no others
        (typed("t.py", "t.py"), dict.fromkeys(MANY, (Verdict.improved,)), f"{UPDATE} t.py"),
        (
            typed("--cov -q t.py", "t.py"),
            dict.fromkeys(MANY, (Verdict.improved,)),
            f"{UPDATE} t.py --cov",
        ),
        # others are left alone by an update
        (
            typed("-q -k test", ""),
            dict.fromkeys(MANY, (Verdict.new,)) | {"b": [Verdict.unchanged]},
            f"{UPDATE} -k test",
        ),
        # the files, where --lf has left tests out
        (
            typed("--lf", by_history=True),
            dict.fromkeys(MANY, (Verdict.regressed,)),
            f"{UPDATE} t.py",
        ),
        (
            typed("all", "all"),
            {f"{n}.py::t": [Verdict.improved] for n in range(6)} | {"b": [Verdict.unchanged]},
            f"{UPDATE} all",
        ),
        # the ini's policy may leave out too much
        (
            typed("", policy="missing"),
            {"a": [Verdict.new], "b": [Verdict.new]},
            f"{UPDATE} --instrcount-update-policy=changed",
        ),
    ],
)
def test_which_tests_are_named(
    line: CommandLine, verdicts: dict[str, Sequence[Verdict]], command: str
) -> None:
    """A few by name; of many as little as accepts them and no others."""
    assert accept_run(line, verdicts) == command
