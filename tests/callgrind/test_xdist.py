"""Under pytest-xdist: the same integers, the same files, and no test that is lost in silence."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

execnet = pytest.importorskip("execnet")
pytest.importorskip("xdist")
pytestmark = pytest.mark.valgrind

#: Ten measured tests of the kinds there are; a suite has three such files.
FILE = """
    import json, re, unittest
    import pytest

    DOCUMENT = json.dumps({str(n): [n] * 3 for n in range(40)})

    @pytest.mark.instrcount
    @pytest.mark.parametrize("size", range(1, 6))
    def test_sizes(size):
        assert sum(range(size * 10)) >= 0

    @pytest.mark.instrcount
    @pytest.mark.xdist_group("files")
    def test_in_a_group(tmp_path):
        (tmp_path / "file").write_text("text")
        assert json.loads(DOCUMENT)

    def test_fixture(instrcount):
        assert instrcount(re.sub, "a", "b", "abc" * 50)

    def test_benchmark(benchmark):
        benchmark.group, benchmark.extra_info["sizes"] = "documents", (len(DOCUMENT), None)
        assert benchmark(json.loads, DOCUMENT)

    class TestCase(unittest.TestCase):
        def setUp(self):
            self.document = json.loads(DOCUMENT)

        @pytest.mark.instrcount
        def test_method(self):
            self.assertTrue(json.dumps(self.document))

    @pytest.mark.instrcount(max_ratio=("test_in_a_group", 0.9))
    def test_ratio():
        assert DOCUMENT

    @pytest.mark.trace_profile
    def test_traced():
        json.loads(DOCUMENT)

    def test_plain(): pass
"""
MODES = ("load", "each", "loadfile", "loadscope", "loadgroup", "worksteal")

Run = Callable[..., tuple[pytest.RunResult, dict[str, Any]]]


def report_of(folder: Path, *args: str) -> dict[str, Any]:
    """What a run of the plugin in a folder reports; it must pass."""
    path = folder.parent / "report.json"
    command = [sys.executable, "-m", "pytest", f"--instrcount-report=json:{path}", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.long
def test_a_suite_counts_the_same_in_every_mode(project: pytest.Pytester) -> None:
    """Thirty tests: what is reported is equal with and without pytest-xdist, to the last digit."""
    project.makepyfile(test_0=FILE, test_1=FILE, test_2=FILE)
    alone = report_of(project.path, "--instrcount")
    assert len(alone["tests"]) == 30
    for mode in MODES:
        dealt = report_of(project.path, "--instrcount", "-n2", f"--dist={mode}")
        assert dealt == alone, mode


@pytest.mark.long
def test_an_update_writes_the_same_files(project: pytest.Pytester) -> None:
    """Baselines, trees and tables of calls, and the same report; a check of them finds nothing."""
    project.makepyfile(test_0=FILE)
    folders = [project.path.parent / name for name in ("alone", "dealt")]
    reports = []
    for folder, args in zip(folders, ([], ["-n2", "--dist=worksteal"]), strict=True):
        update = f"--instrcount-baseline-dir={folder}", "--instrcount-update-baseline"
        reports.append(report_of(project.path, *update, *args))
    assert reports[0] == reports[1]
    benchmarks = [test for test in reports[0]["tests"] if test["group"] == "documents"]
    assert len(benchmarks) == 1
    assert isinstance(benchmarks[0]["extra_info"]["sizes"][0], int)
    alone, dealt = (
        {path.relative_to(folder): path.read_text() for path in folder.rglob("*.json")}
        for folder in folders
    )
    assert len(alone) == 11
    assert dealt == alone
    checked = report_of(
        project.path, f"--instrcount-baseline-dir={folders[0]}", "--instrcount", "-n1"
    )
    assert {test["verdict"] for test in checked["tests"]} == {"unchanged"}
    assert {test["delta"] for test in checked["tests"]} == {0}


def test_a_renamed_test_keeps_its_baseline(
    project: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker compares it with the old one, and the update of a dealt run carries that over."""
    module = """
        import pytest

        @pytest.mark.instrcount
        def test_{name}():
            sum(range({size}))

        @pytest.mark.instrcount
        def test_other():
            max(range(2000))
    """
    said = "renamed: test_it.py::test_old -> test_it.py::test_new"
    project.makepyfile(test_it=module.format(name="old", size=1000))
    run("--instrcount-update-baseline", "--instrcount-blame=off")
    monkeypatch.setenv("CI", "1")
    project.makepyfile(test_it=module.format(name="new", size=1000))
    result, tests = run("-n2")
    assert result.ret == pytest.ExitCode.OK
    assert result.outlines.count(said) == 1
    assert {nodeid: test["delta"] for nodeid, test in tests.items()} == {
        "test_it.py::test_new": 0,
        "test_it.py::test_other": 0,
    }
    result, tests = run("-n2", "--instrcount-update-baseline", "--instrcount-blame=off")
    assert said in result.outlines
    summaries = [json.loads(path.read_text()) for path in project.path.rglob("cp*/**/*.json")]
    assert sorted(each["nodeid"] for each in summaries) == list(tests)


@pytest.mark.long
def test_a_lost_worker_passes_nothing(project: pytest.Pytester, run: Run) -> None:
    """Killed before a suspicion was settled: that test fails, others are measured as ever."""
    module = """
        import os, signal
        import pytest

        @pytest.mark.instrcount
        def test_slower():
            sum(range({size}))

        @pytest.mark.instrcount
        def test_same():
            sum(range(2000))

        def test_killer():
            if {kill}:
                os.kill(os.getpid(), signal.SIGKILL)

        @pytest.mark.instrcount
        def test_later():
            sum(range(3000))
    """
    project.makepyfile(test_it=module.format(size=1000, kill=False))
    run("--instrcount-update-baseline", "--instrcount-blame=off")
    project.makepyfile(test_it=module.format(size=1100, kill=True))
    result, tests = run("-n1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    verdicts = {nodeid.rpartition("::")[2]: test["verdict"] for nodeid, test in tests.items()}
    assert verdicts == {
        "test_slower": "failed",
        "test_same": "unchanged",
        "test_later": "unchanged",
    }
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_slower*",
            "instrcount: worker gw0 was lost before its count was settled [[]worker-lost[]]",
            "  fix: *-m pytest --instrcount test_it.py::test_slower*",
            "*worker 'gw0' crashed while running 'test_it.py::test_killer'*",
        ]
    )


@contextlib.contextmanager
def socket_server(folder: Path) -> Iterator[int]:
    """A server of execnet on loopback; its port."""
    script = Path(execnet.__file__).parent / "script" / "socketserver.py"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    server = subprocess.Popen(
        [
            sys.executable,
            "-P",
            script,
            f"127.0.0.1:{port}",
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port
    finally:
        server.kill()
        server.wait()


@pytest.mark.long
def test_remote_gateways_count_as_one_run_does(project: pytest.Pytester, tmp_path: Path) -> None:
    """Two machines with the project at one path: each has a copy of it, and no baselines."""
    project.makepyfile(test_0=FILE)
    there = tmp_path / "there"
    there.mkdir()
    baselines = f"--instrcount-baseline-dir={tmp_path / 'remote'}"
    with socket_server(there) as first, socket_server(there) as second:
        report_of(
            project.path,
            "--instrcount-update-baseline",
            "--instrcount-blame=off",
            baselines,
            "--dist=load",
            *(f"--tx=socket=127.0.0.1:{port}//chdir={there}" for port in (first, second)),
            f"--rsyncdir={project.path}",
            str(project.path),
        )
    copy = there / project.path.name
    assert not list(copy.rglob("*.json"))
    alone = f"--instrcount-baseline-dir={tmp_path / 'alone'}"
    report_of(copy, "--instrcount-update-baseline", "--instrcount-blame=off", alone)
    stored, known = (
        {
            path.relative_to(tmp_path / name): path.read_text()
            for path in (tmp_path / name).rglob("*.json")
        }
        for name in ("remote", "alone")
    )
    assert len(known) == 11
    assert stored == known


def test_workers_that_differ_are_told(project: pytest.Pytester, run: Run, tmp_path: Path) -> None:
    """Another Valgrind in one of them: no count is held against a baseline of the other."""
    real = shutil.which("valgrind")
    other = tmp_path / "valgrind"
    other.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo valgrind-3.99.0 && exit\nexec {real} "$@"\n'
    )
    other.chmod(0o755)
    project.makepyfile(test_0=FILE)
    path = f"{tmp_path}:{os.environ['PATH']}"
    result, _ = run("--dist=load", "--tx=popen", f"--tx=popen//env:PATH={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: instrcount: the workers differ*[[]workers-differ[]]"])
    assert re.search(r"^valgrind: .*3.99.0", str(result.stderr), re.MULTILINE)
