"""Facts of the environment: what decides whether counts may be compared, and what explains one."""

from __future__ import annotations

import importlib.metadata
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind import facts
from pytest_instrcount.callgrind.facts import (
    Packages,
    core_count,
    environment_facts,
    find_valgrind,
    simd_class,
)
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.procfs import state_of


@pytest.fixture
def script(tmp_path: Path) -> Any:
    """A valgrind that says these lines."""

    def make(lines: str) -> str:
        path = tmp_path / "valgrind"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("valgrind-3.19.0", "3.19.0"),
        ("valgrind-3.15.0", "3.15.0"),
        ("valgrind-3.25.0.GIT-lbmacos", "3.25.0.GIT-lbmacos"),
        ("valgrind-4.0", "4.0"),
    ],
)
def test_versions(script: Any, said: str, version: str) -> None:
    """Path and version as Valgrind spells it; 3.15 is old enough, 4.0 is newer than 3.15."""
    path = script(f"echo {said}")
    assert find_valgrind(path) == (path, version)


@pytest.mark.parametrize(
    ("lines", "slug", "words"),
    [
        ("echo valgrind-3.14.0", "valgrind-old", "3.14.0; 3.15 or later"),
        ("echo valgrind-2.99.9", "valgrind-old", "2.99.9"),
        ("exit 3", "valgrind-broken", "said 'nothing'"),
        ("echo valgrind-x", "valgrind-broken", "said 'valgrind-x'"),
        ("echo oh; echo no >&2", "valgrind-broken", "said 'no'"),
    ],
)
def test_valgrinds_that_will_not_do(script: Any, lines: str, slug: str, words: str) -> None:
    """One line of why, and the command that installs one."""
    with pytest.raises(InstrcountError) as caught:
        find_valgrind(script(lines))
    assert caught.value.slug == slug
    assert words in caught.value.why
    assert "install valgrind" in caught.value.fix


def test_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of that name on PATH; the name is said."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InstrcountError, match=r"no 'valgrind' to run \[valgrind-missing\]"):
        find_valgrind("valgrind")


def test_a_valgrind_that_hangs(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is not waited for without end, and what it has started ends with it."""
    monkeypatch.setattr(facts, "_VERSION_SECONDS", 2.0)
    began = time.monotonic()
    with pytest.raises(InstrcountError) as caught:
        find_valgrind(script(f"sleep 300 & echo $! > {tmp_path}/child; wait"))
    assert caught.value.slug == "valgrind-broken"
    assert time.monotonic() - began < 100
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 30
    while state_of(child) not in ("", "Z") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert state_of(child) in ("", "Z")


def test_not_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before anything is looked for."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InstrcountError, match=r"Linux only, and this is win32 \[not-linux\]"):
        find_valgrind("valgrind")


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("flags\t\t: fpu sse2 sse4_2 avx avx2 avx512f\n", "avx2"),
        ("flags : sse2 avx\n", "avx"),
        ("flags : sse2 sse4_2\n", "sse4_2"),
        ("flags : sse2 sse4_1\n", "sse2"),
        ("flags : sse2\nflags : avx2\n", "sse2"),
        ("Features\t: fp asimd\n", "other"),
        ("model name : made for avx2\nflags : sse2\n", "sse2"),
        ("", "other"),
    ],
)
def test_simd(cpuinfo: str, name: str) -> None:
    """The best set of the first processor; none is "other"."""
    assert simd_class(cpuinfo) == name


def test_environment_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of variables are facts, sorted and once; their values are not."""
    monkeypatch.setenv("TOKEN", "secret")
    found = environment_facts("3.19.0", ["TOKEN", "B", "TOKEN"], ["-O"])
    assert found["valgrind"] == "3.19.0"
    assert found["let_through"] == "B TOKEN"
    assert found["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert "\n" not in "".join(found.values())
    assert all(found.values())
    assert "secret" not in str(found)
    assert environment_facts("3.19.0", [], [])["let_through"] == "-"


def test_facts_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does not show its processor has a fact all the same."""

    def read_text(self: Path, **kwargs: Any) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", read_text)
    assert environment_facts("3.19.0", [], [])["simd"] == "other"


def test_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distributions of modules; what belongs to none is left out, and each is looked up once."""
    asked: list[str] = []

    def version(name: str) -> str:
        asked.append(name)
        return "1.0"

    owners = {"yaml": ["PyYAML"], "google": ["a", "b"]}
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: owners)
    monkeypatch.setattr(importlib.metadata, "version", version)
    packages = Packages()
    assert packages.imported(["yaml", "mine"]) == {"PyYAML": "1.0"}
    assert packages.imported(["yaml", "google"]) == {"PyYAML": "1.0", "a": "1.0", "b": "1.0"}
    assert packages.imported([]) == {}
    assert asked == ["PyYAML", "a", "b"]


def test_cores() -> None:
    """At least the one this runs on."""
    assert core_count() >= 1
