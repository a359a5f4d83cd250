"""Bundles: what is in them, what bad ones get, and the command that shows them."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.cli.main import main
from pytest_instrcount.cli.show import find_tests, render_shown
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.python.tree import TRAMPOLINES, CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.schema import to_baseline
from pytest_instrcount.report.bundle import (
    Bundle,
    BundledTest,
    load_bundle,
    numbers_of,
    render_bundle,
)
from pytest_instrcount.report.callgrind import profiles_of
from pytest_instrcount.session.bundle import git_commit
from tests.schemas import complaints

SCHEMA = Path(__file__).parents[2] / "docs/reference/schemas/bundle-2.json"
SAMPLE = Path(__file__).parents[1] / "data/bundles/schema2.json"
FACTS = {"valgrind": "3.19.0"}


def measured(ir: int) -> Measurement:
    """A test that counts so much, in the usual layout and in two others."""

    def profile(more: int) -> Profile:
        rows = {"a.c:f": Row(ir + more, 4), "???:0x10 [libx]": Row(50, 4)}
        callers = {"???:0x10 [libx]": {"a.c:f": Row(50, 4)}}
        return Profile(ir + more + 50, rows, callers, {"a.c:f": ir + more + 50})

    first, *others = map(profile, (0, 0, 3))
    return Measurement(
        "tests/test_x.py::test_é[1]",
        first.total,
        4,
        20,
        "fork",
        first.rows,
        {"attrs": "23.1.0"},
        first.callers,
        tuple(others),
        (),
        first.inclusive,
    )


OLD, NEW = to_baseline(measured(1000), FACTS), measured(1500)
TREE = CallTree(TRAMPOLINES, 4, {("t.py:test",): Row(6, 4), ("t.py:test", "s.py:f"): Row(1, 8)})
TESTS = (
    BundledTest(
        NEW.nodeid,
        "regressed",
        ("test_é[1]: Ir 1,050 -> 1,550", "  calls f 1 -> 2 times (line 3)", "    f(); f()"),
        {"ir": 388, "delta": "10/21", "denoised_ir": None},
        profiles_of(NEW.nodeid, NEW, replace(OLD, python=TREE), TREE),
    ),
    BundledTest("tests/test_x.py::test_b", "failed", ("test_b: it was killed",), {}),
)
BUNDLE = Bundle("pytest --instrcount", "a" * 40 + "+", {"pytest": "9.2.0"}, FACTS, TESTS)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The bundle in a file."""
    path = tmp_path / "b.json.gz"
    path.write_bytes(render_bundle(BUNDLE, packed=True))
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_written_is_read(tmp_path: Path, packed: bool) -> None:
    """Packed or not; the file is the same each time, and fits its schema."""
    data = render_bundle(BUNDLE, packed=packed)
    assert data == render_bundle(BUNDLE, packed=packed)
    (tmp_path / "b").write_bytes(data)
    assert load_bundle(tmp_path / "b") == BUNDLE
    values = json.loads(gzip.decompress(data) if packed else data)
    assert complaints(values, json.loads(SCHEMA.read_text())) == []


def test_sample_of_schema_2() -> None:
    """What the first release has written stays readable."""
    assert load_bundle(SAMPLE) == BUNDLE


def test_an_older_one_is_refused() -> None:
    """It held no profiles; no release has written one."""
    with pytest.raises(InstrcountError, match="schema 1 is no longer read") as caught:
        load_bundle(SAMPLE.with_name("schema1.json"))
    assert caught.value.slug == "bundle-damaged"


def test_numbers_are_exact() -> None:
    """Fractions are no floats; what is not known is null."""
    limit = parse_limit("1%")
    result = TestResult("t", Verdict.regressed, 4, 3, Fraction(1, 3), limit, denoised_ir=5)
    assert numbers_of(result) == {
        "ir": 4,
        "baseline_ir": 3,
        "denoised_ir": 5,
        "denoised_baseline_ir": None,
        "delta": "1/3",
        "spread": None,
        "detects": None,
        "limit": "+1 %",
    }


def change(what: Callable[[Any], object]) -> bytes:
    values = json.loads(render_bundle(BUNDLE, packed=False))
    what(values)
    return json.dumps(values).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x1f\x8b",
        render_bundle(BUNDLE, packed=True)[:-20],
        render_bundle(BUNDLE, packed=True)[:20] + bytes(400),
        render_bundle(BUNDLE, packed=False)[:-20],
        b"\xff\xfe",
        b"[]",
        b'{"schema": 1, "nodeid": "of a baseline"}',
        b"[" * 100_000,
        change(lambda found: found.update(schema="1")),
        change(lambda found: found.update(tests=[1])),
        change(lambda found: found.update(tests={"a": 1})),
        change(lambda found: found.update(command=None)),
        change(lambda found: found.update(versions=["9.2.0"])),
        change(lambda found: found.pop("environment")),
        change(lambda found: found["tests"][0].update(text=[1])),
        change(lambda found: found["tests"][0].update(verdict="worse")),
        change(lambda found: found["tests"][0].update(more={})),
        change(lambda found: found["tests"][0].update(numbers=[])),
        change(lambda found: found["tests"][0]["numbers"].update(ir=0.5)),
        change(lambda found: found["tests"][0]["numbers"].update(ir=True)),
        change(lambda found: found["tests"][0]["numbers"].update(ir=[1])),
        change(lambda found: found["tests"][0].pop("profiles")),
        change(lambda found: found["tests"][0].update(profiles=[])),
        change(lambda found: found["tests"][0]["profiles"].update({".callgrind.out": None})),
        change(lambda found: found["tests"][0]["profiles"].update({"/../../.profile": ""})),
    ],
)
def test_damage_is_said(tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it is: never a traceback, and a command at the end."""
    path = tmp_path / "b.json.gz"
    path.write_bytes(data)
    with pytest.raises(InstrcountError, match="bundle-damaged") as caught:
        load_bundle(path)
    assert caught.value.fix.startswith(f"pytest --instrcount --instrcount-bundle={path}")
    assert main(["show", str(path)]) == 2
    assert capsys.readouterr().err == f"{caught.value}\n"


def test_a_newer_one_is_refused(tmp_path: Path) -> None:
    """Even if all else in it is of another shape."""
    path = tmp_path / "b.json"
    path.write_bytes(change(lambda found: found.update(schema=3, tests=None)))
    with pytest.raises(InstrcountError, match="has schema 3, this release reads up to 2") as caught:
        load_bundle(path)
    assert (caught.value.slug, caught.value.fix) == (
        "bundle-newer",
        "python -m pip install --upgrade pytest-instrcount",
    )


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No file, or a folder."""
    folder = tmp_path / "folder.json"
    folder.mkdir()
    for path in (tmp_path / "none.json", folder):
        assert main(["show", str(path)]) == 2
        out, err = capsys.readouterr()
        assert not out
        assert err.startswith(f"instrcount: {path} cannot be read: ")
        assert err.endswith(f"[bundle-unreadable]\n  fix: ls -ld {path}\n")


def test_tests_are_found_by_name(stored: Path) -> None:
    """The one of that id, else all that have the text in it."""
    longer = replace(TESTS[1], nodeid=TESTS[1].nodeid + "[2]")
    bundle = replace(BUNDLE, tests=(*TESTS, longer))

    def found(wanted: str) -> list[str]:
        return [test.nodeid[17:] for test in find_tests(bundle, wanted, stored)]

    assert found("") == found("test_x.py") == ["test_é[1]", "test_b", "test_b[2]"]
    assert found("test_b") == ["test_b", "test_b[2]"]
    assert found("tests/test_x.py::test_b") == ["test_b"]
    with pytest.raises(InstrcountError, match="holds no test test_c, but tests/test_x") as caught:
        find_tests(BUNDLE, "test_c", stored)
    assert caught.value.slug == "bundle-test"
    assert caught.value.fix == f"python -m pytest_instrcount show {stored}"


def test_show(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run, then the texts as they were."""
    assert main(["show", str(stored), "test_é"]) == 0
    out, err = capsys.readouterr()
    assert not err
    assert out.splitlines()[:5] == [
        "2 failed tests of",
        "  pytest --instrcount",
        f"  at commit {'a' * 40}, and changes to it",
        "  pytest 9.2.0",
        "",
    ]
    assert out.splitlines()[5].strip("_") == " tests/test_x.py::test_é[1] "
    assert out.splitlines()[6:] == list(TESTS[0].text)
    assert main(["show", str(stored), "test_c"]) == 2
    assert "[bundle-test]" in capsys.readouterr().err


def test_a_terminal_does_not_obey_a_bundle() -> None:
    """It may come from anybody."""
    evil = replace(BUNDLE, command="\x1b[2J", tests=(replace(TESTS[1], text=("\x1b]0;x\x07",)),))
    lines = render_shown(evil, evil.tests)
    assert lines[1] == "  \\x1b[2J"
    assert lines[-1] == "\\x1b]0;x\\x07"


def test_show_keeps_profiles(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both sides, in C and in Python, of what was counted."""
    folder = stored.parent / "kept"
    assert main(["show", str(stored), "--keep", str(folder)]) == 0
    paths = [Path(line[9:]) for line in capsys.readouterr().out.splitlines() if "profile: " in line]
    assert [path.name.partition(".")[2] for path in paths] == [
        "callgrind.out",
        "baseline.callgrind.out",
        "python.callgrind.out",
        "baseline.python.callgrind.out",
    ]
    now, before, python, python_before = map(parse_profile, paths)
    assert (now.total, now.callers) == (NEW.total_ir, NEW.callers)
    assert now.inclusive["a.c:f"] == 1550
    assert (before.total, before.inclusive["a.c:f"]) == (OLD.total_ir, 1050)
    assert python == python_before
    assert python.inclusive == {"t.py:test": 7, "s.py:f": 1}
    (stored.parent / "file").write_text("")
    assert main(["show", str(stored), "--keep", str(stored.parent / "file")]) == 2
    assert "[keep-write]" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Commands and arguments are told; wrong ones are exit code 2."""
    for words, text in ((["--help"], "the failures in a bundle again"), (["show", "-h"], "TEST")):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        assert text in capsys.readouterr().out
    for words in ([], ["show"], ["look"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        assert "usage: python -m pytest_instrcount" in capsys.readouterr().err


def test_the_commit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a mark if it is not what was run; nothing outside of a repository."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))
    assert git_commit(tmp_path) == ""
    monkeypatch.delenv("GIT_DIR")
    file = tmp_path / "file"
    file.write_text("a")

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    assert git_commit(tmp_path) == ""
    git("add", ".")
    git("commit", "-m", "a")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))
    commit = git_commit(tmp_path)
    assert len(commit) == 40
    (tmp_path / "new").write_text("not known to git")
    assert git_commit(tmp_path) == commit
    file.write_text("b")
    assert git_commit(tmp_path) == f"{commit}+"
