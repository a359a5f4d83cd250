"""Real runs of pytest that meet a fault, and what each must leave: nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TWO_LAYOUTS

#: A run that lasts longer hangs; one that works takes a fifth on a machine with nothing to spare.
LIMIT_SECONDS = 600

#: An update without trees, where they are no matter.
UPDATE = ("--instrcount-update-baseline", "--instrcount-blame=off")


@dataclass(frozen=True)
class Fault:
    """A test with a fault, and what must come of it."""

    body: str
    #: in the JSON report; "" for a test that fails by itself, and so has none
    verdict: str = "new"
    #: in the text of its failure or error
    said: str = ""
    args: str = ""
    marker: str = ""

    def source(self, name: str) -> str:
        """The test function."""
        body = textwrap.indent(textwrap.dedent(self.body).strip(), "    ")
        return f"{self.marker}\ndef test_{name}({self.args}):\n{body}\n"


HEAD = """
import asyncio, builtins, ctypes, gc, json, multiprocessing, os, resource, shutil, signal, socket
import subprocess, sys, tempfile, threading, time, warnings, pytest
pytestmark = pytest.mark.instrcount
CALLS = []
"""


def faulty_file(faults: Mapping[str, Fault], head: str = "") -> str:
    """A test file with all the faults, and a good test behind every third of them."""
    parts = [HEAD, head]
    for number, (name, fault) in enumerate(faults.items()):
        parts.append(fault.source(name))
        if number % 3 == 0:
            parts.append(f"def test_good_{number}(): assert sum(range({100 + number}))\n")
    return "\n".join(parts)


@dataclass
class Done:
    """A run that has ended."""

    code: int
    output: str
    #: by name of the test, what the JSON report says
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: by name of the test, the text of its failures and errors
    texts: dict[str, str] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """The integers of all that was measured."""
        return {name: test["ir"] for name, test in self.tests.items() if test["ir"] is not None}

    def verdict(self, name: str) -> str:
        """What became of a test; "" if it has none, which a test must have failed for."""
        return str(self.tests[name]["verdict"]) if name in self.tests else ""


class Place:
    """A project of a user with temporary files of its own, so that nothing can hide."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "project"
        # with a name short enough for the sockets of multiprocessing; unlike pytest's folders
        self.temporary = Path(tempfile.mkdtemp(prefix="ic-", dir="/tmp"))
        self.report = folder / "report.json"
        self.junit = folder / "junit.xml"
        #: whether texts are wanted; XML cannot hold all ids
        self.has_junit = True
        self.path.mkdir()
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> None:
        """Write a file of the project; the faults have a folder for what they must tell."""
        self.path.joinpath(name).write_text(textwrap.dedent(text), encoding="utf-8")

    def environment(self, **more: str) -> dict[str, str]:
        """A shell's, without CI; no byte code, so that no file comes and no zygote starts twice."""
        kept = {key: value for key, value in os.environ.items() if key != "CI"}
        ours = {"TMPDIR": str(self.temporary), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**kept, **ours, **TWO_LAYOUTS, **more}

    def command(self, *args: str) -> list[str]:
        """pytest, with reports outside of the project."""
        reports = [f"--instrcount-report=json:{self.report}"]
        reports += [f"--junitxml={self.junit}"] if self.has_junit else []
        words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--instrcount", "-v"]
        return [*words, *reports, *args]

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        """Start a run and go on."""
        return subprocess.Popen(
            self.command(*args),
            cwd=self.path,
            env=self.environment(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def end(self, run: subprocess.Popen[str], limit: float = LIMIT_SECONDS) -> Done:
        """Wait for the end of a run, and read its reports."""
        try:
            output, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            run.kill()
            output, _ = run.communicate()
            raise AssertionError(f"it hangs:\n{output}") from None
        return self.read(run.returncode, output)

    def read(self, code: int, output: str) -> Done:
        """What the reports of a run say."""
        done = Done(code, output)
        if self.report.exists():
            for test in json.loads(self.report.read_text())["tests"]:
                done.tests[test["nodeid"].partition("::")[2]] = test
            self.report.unlink()
        if self.junit.exists():
            for case in ElementTree.parse(self.junit).iter("testcase"):
                bad = [part for part in case if part.tag in ("failure", "error")]
                words = [f"{part.get('message')}\n{part.text}" for part in bad]
                done.texts[str(case.get("name"))] = "\n".join(words)
            self.junit.unlink()
        return done

    def run(self, *args: str, **env: str) -> Done:
        """A run from its start to its end."""
        return self.end(self.start(*args, **env))

    def tree(self) -> set[str]:
        """The names of all that is in the project."""
        return {str(path.relative_to(self.path)) for path in self.path.rglob("*")}

    def processes(self) -> list[str]:
        """The command lines of all that runs in the project or for it."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                inside = entry.joinpath("cwd").readlink().is_relative_to(self.path)
                environ = entry.joinpath("environ").read_bytes()
                stat = entry.joinpath("stat").read_text(errors="replace")
                words = entry.joinpath("cmdline").read_bytes()
            except OSError:
                continue
            zombie = stat.rpartition(")")[2].split()[0] == "Z"
            if not zombie and (inside or os.fsencode(self.temporary) in environ):
                found.append(f"{entry.name} {words.replace(bytes(1), b' ').decode()[:200]}")
        return found

    def assert_nothing_left(self, tree: set[str]) -> None:
        """No process, no temporary file, and in the project what was there before."""
        wait_for(lambda: not self.processes(), self.processes)
        wait_for(lambda: not self.leftovers(), self.leftovers)
        assert self.tree() == tree

    def leftovers(self) -> list[Path]:
        """Temporary files; pytest's own folder of a native test is not ours."""
        found = [path for path in self.temporary.iterdir() if "pytest-of" not in path.name]
        maps = Path("/tmp").glob("perf-*.map")  # CPython's, whatever TMPDIR says
        return [*found, *(path for path in maps if str(self.path).encode() in path.read_bytes())]


def wait_for(
    condition: Callable[[], Any], show: Callable[[], object] = str, seconds: float = 60.0
) -> Any:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"it did not come to pass: {show()}")


@dataclass
class Compared:
    """A run with faults beside one of the good tests alone."""

    good: Done
    faulty: Done
    place: Place
    tree: set[str]

    def assert_fault(self, name: str, fault: Fault) -> None:
        """The test with the fault got its verdict, and its words."""
        done = self.faulty
        text = done.texts.get(f"test_{name}", "")
        assert done.verdict(f"test_{name}") == fault.verdict, text + done.output
        assert fault.said in text, text
        assert text if fault.verdict != "new" else not text, text

    def assert_others_equal(self) -> None:
        """Every good test has the integer that it has without the others."""
        counts = self.faulty.counts()
        assert self.good.counts(), self.good.output
        assert {name: counts.get(name) for name in self.good.counts()} == self.good.counts()


def compare(place: Place, args: Iterable[str] = (), **env: str) -> Compared:
    """Measure the good tests of a project alone, then all."""
    tree = place.tree()
    good = place.run("-k", "good", *args, **env)
    return Compared(good, place.run(*args, **env), place, tree)


@pytest.fixture(scope="module")
def module_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("faults"))
    yield place
    shutil.rmtree(place.temporary, ignore_errors=True)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    shutil.rmtree(place.temporary, ignore_errors=True)
