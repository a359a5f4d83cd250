"""What belongs to a run is its own: no network, no line that others reach, no file that others read."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import sealed

pytestmark = pytest.mark.valgrind


def run_sealed(
    project: pytest.Pytester, *args: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run pytest where nobody may open a socket of a network."""
    command = [sys.executable, sealed.__file__, sys.executable, "-m", "pytest", *args]
    return subprocess.run(
        command, cwd=cwd or project.path, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_no_network(project: pytest.Pytester) -> None:
    """Measuring, storing, failing, naming the cause and reporting: no process opens a socket to others."""
    test_file = project.makepyfile(
        """
        import pytest
        def work(): return sum(range(200))
        @pytest.mark.instrcount
        def test_a(): work()
        """
    )
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=project.path, check=True)
    done = run_sealed(project, "--instrcount-update-baseline")
    assert done.returncode == 0, done.stdout + done.stderr
    test_file.write_text(
        test_file.read_text().replace("test_a(): work()", "test_a(): work(); work()")
    )
    folder = project.path.parent / "reports"
    done = run_sealed(
        project,
        *(
            "--instrcount",
            f"--instrcount-keep={folder}",
            f"--instrcount-bundle={folder / 'b.json'}",
        ),
        *(f"--instrcount-report={kind}:{folder / kind}" for kind in ("json", "html", "collapsed")),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "calls work 1 -> 2 times" in done.stdout
    bundle = json.loads((folder / "b.json").read_text())
    assert len(bundle["commit"]) == 41
    assert (folder / "html").stat().st_size > 10_000


@pytest.mark.parametrize("mark", ["", "@pytest.mark.instrcount"], ids=["native", "measured"])
def test_the_seal_holds(project: pytest.Pytester, mark: str) -> None:
    """The test above can fail: whoever opens such a socket, where it may be, is killed."""
    project.makepyfile(
        f"""
        import socket, pytest
        {mark}
        def test_opens_a_socket(): socket.socket()
        """
    )
    done = run_sealed(project, "--instrcount")
    if mark:
        assert "was killed by SIGSYS" in done.stdout
        assert done.returncode == 1
    else:
        assert done.returncode == -signal.SIGSYS


def test_what_a_measured_test_is_given(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """Its folder is nobody else's, its line is handed to no program that it starts, and has no name."""
    told = project.path.parent / "told"
    project.makepyfile(
        f"""
        import os, tempfile, pytest
        from pathlib import Path

        @pytest.mark.instrcount(warmup=0, calls=1)
        def test_looks_around():
            told = Path({str(told)!r})
            told.mkdir(exist_ok=True)
            os.system("ls -l /proc/self/fd > %s/descriptors" % told)
            os.system("cat /proc/net/unix > %s/sockets" % told)
            scratch = Path(tempfile.gettempdir())
            while not scratch.name.startswith("instrcount-"):
                scratch = scratch.parent
            found = [scratch, *scratch.iterdir()]
            lines = ["%o %s %d" % (p.stat().st_mode, p.name, p.stat().st_uid) for p in found]
            (told / "scratch").write_text("\\n".join(lines))
        """
    )
    listening = {line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()}
    result, tests = run()
    [verdict] = [test["verdict"] for test in tests.values()]
    assert verdict == "new", result.stdout.str()
    descriptors = (told / "descriptors").read_text()
    assert "socket:" not in descriptors, descriptors
    # a socket that can be connected to has a path, or a name that begins with "@"
    now = {line.split()[-1] for line in (told / "sockets").read_text().splitlines()}
    assert not {name for name in now - listening if "instrcount" in name}
    scratch, *entries = (told / "scratch").read_text().splitlines()
    assert stat.S_IMODE(int(scratch.split()[0], 8)) == 0o700
    assert {int(each.split()[2]) for each in (scratch, *entries)} == {os.getuid()}
    assert any("fork.json" in each for each in entries)


def test_files_of_the_project_are_no_library(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """The processes of a run import what Python has, not what lies in the folder it is started in."""
    (project.path / "tests").mkdir()
    (project.path / "tests" / "test_a.py").write_text(
        "import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n"
    )
    for name in ("selectors", "socket", "json", "shutil", "signal"):
        (project.path / f"{name}.py").write_text("raise SystemExit('a file of the project')\n")
    pytest_itself = str(Path(sys.executable).with_name("pytest"))
    done = subprocess.run(
        [pytest_itself, "--instrcount"],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 new" in done.stdout
