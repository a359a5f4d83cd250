"""The command line and the environment under Valgrind: made, not inherited."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from pytest_instrcount.callgrind.command import (
    CHILD_VARIABLE,
    FIXED,
    LET_THROUGH,
    child_environment,
    library_path,
    python_command,
    valgrind_command,
)

SCRATCH = Path("/tmp/scratch")


def made(inherited: dict[str, str], let_through: tuple[str, ...] = ()) -> dict[str, str]:
    return child_environment(inherited, let_through, "/opt/py/bin/python", SCRATCH)


def test_nothing_else_comes_in() -> None:
    """From an empty shell and from a full one: the same."""
    full = {"EDITOR": "vi", "LANG": "de_DE", "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "8"}
    assert made(full) == made({})
    assert set(made({})) <= {*FIXED, "PATH", "TMPDIR", CHILD_VARIABLE, "LD_LIBRARY_PATH"}


@pytest.mark.parametrize("name", LET_THROUGH)
def test_what_says_who_and_where(name: str) -> None:
    """Allow-listed variables come through as they are."""
    assert made({name: "/x"})[name] == "/x"
    assert name not in made({})


def test_the_user_may_let_more_through() -> None:
    """Added names win over fixed values; a name that is not set is not made up."""
    found = made({"TOKEN": "t", "TZ": "Asia/Tokyo"}, ("TOKEN", "TZ", "ABSENT"))
    assert (found["TOKEN"], found["TZ"]) == ("t", "Asia/Tokyo")
    assert "ABSENT" not in found


def test_values_that_keep_counts_equal() -> None:
    """One thread, one arena, no string instructions that count by the byte, a seed that is not 0."""
    found = made({})
    assert found["PYTHONHASHSEED"] not in ("", "0", "random")
    assert "-ERMS" in found["GLIBC_TUNABLES"]
    assert "-FSRM" in found["GLIBC_TUNABLES"]
    assert "arena_max=1" in found["GLIBC_TUNABLES"]
    assert {found[name] for name in found if name.endswith("_NUM_THREADS")} == {"1"}


def test_folders() -> None:
    """PATH begins with the interpreter's folder; temporary files belong to the run."""
    found = made({"PATH": "/home/me/bin", "TMPDIR": "/mine"})
    assert found["PATH"] == "/opt/py/bin:/usr/local/bin:/usr/bin:/bin"
    assert found["TMPDIR"].rstrip("/-") == "/tmp/scratch/tmp"
    assert len(found["TMPDIR"]) == 48


@pytest.mark.parametrize(
    ("shared", "inherited", "path"),
    [
        (0, None, ""),
        (0, "", ""),
        (0, "/a:/b:/a::", "/a:/b"),
        (1, None, "/lib/py"),
        (1, "/a:/lib/py", "/a:/lib/py"),
        (1, "/a", "/a:/lib/py"),
    ],
)
def test_library_path(
    monkeypatch: pytest.MonkeyPatch, shared: int, inherited: str | None, path: str
) -> None:
    """What was set, then the folder of a shared libpython; no folder twice, none that is empty."""
    values = {"Py_ENABLE_SHARED": shared, "LIBDIR": "/lib/py"}
    monkeypatch.setattr(sysconfig, "get_config_var", values.__getitem__)
    assert library_path({} if inherited is None else {"LD_LIBRARY_PATH": inherited}) == path
    assert (
        "LD_LIBRARY_PATH" in made({} if inherited is None else {"LD_LIBRARY_PATH": inherited})
    ) is bool(path)


def test_valgrind_command() -> None:
    """Counting is off at first, no project's settings, no pipes, dumps away from the tests."""
    words = valgrind_command("/opt/valgrind", SCRATCH, Path("/tmp/log"))
    assert words[:2] == ["/opt/valgrind", "--tool=callgrind"]
    for option in (
        "--command-line-only=yes",
        "--vgdb=no",
        "--instr-atstart=no",
        "--collect-atstart=yes",
        "--log-file=/tmp/log",
        "--callgrind-out-file=/tmp/scratch/dumps/out.%p",
    ):
        assert option in words
    assert not any("cache-sim" in word or "branch-sim" in word for word in words)


def test_what_valgrind_would_expand() -> None:
    """A ``%`` in the path of the scratch folder is doubled; that of the dumps' names is not."""
    words = valgrind_command("valgrind", Path("/t%p"), Path("/t%q{HOME}/log"))
    assert "--log-file=/t%%q{HOME}/log" in words
    assert "--callgrind-out-file=/t%%p/dumps/out.%p" in words


def test_python_command() -> None:
    """``site`` is left to the bootstrap, which is a script of the package."""
    words = python_command("/opt/py/bin/python", Path("/site/pytest_instrcount"), Path("/tmp/plan"))
    assert words == [
        "/opt/py/bin/python",
        "-S",
        "/site/pytest_instrcount/callgrind/inside/bootstrap.py",
        "/tmp/plan",
    ]
