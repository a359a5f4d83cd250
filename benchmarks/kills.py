"""Updates of one folder that are killed, and many at once: whether anything is lost, or left behind.

    python benchmarks/kills.py [--kills N] [--at-once N] [--seed N]

A project of four files stores baselines of one code, then of another. After that one update at a time
begins, of the code whose baselines are not there, and one process of it is killed (SIGKILL) at a random
moment: pytest, the supervisor, the zygote, a process of a file or of a test; every fifth time pytest,
between two files that it puts into their places. Then the folder must hold, byte for byte, the
baselines of one code or of the other once pytest has looked at it, and no process may be left, nor a
file beside them. At last so many updates run at once. Exits 1 at the first that is not so.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from outside_ci import outside_ci
from processes import KINDS, adopt_orphans, children

FILES = 4
TEST = """
import pytest
from size import SIZE
pytestmark = pytest.mark.instrcount
def test_sum(): assert sum(range(SIZE * {number})) >= 0
def test_sort(): assert sorted(str(number) for number in range(SIZE))
"""
#: Ends pytest when it is about to put one more file into its place.
KILLER = """
import os, signal
left, replace = int(os.environ["KILL_AT"]), os.replace
def counted(source, target, **how):
    global left
    if "instrcount_baselines" in str(target):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target, **how)
os.replace = counted
"""
SIZES = (100, 150)
#: What a run may take to end after one of its processes was killed, and its processes after that.
ENDING_SECONDS, LEAVING_SECONDS = 300.0, 10.0
UPDATE = "--instrcount-update-baseline"
#: Every so often an update is killed between two files.
BETWEEN = 5


class Project:
    """Tests, their baselines, and a folder for temporary files of their own."""

    def __init__(self, scratch: Path) -> None:
        self.folder, self.temporary = scratch / "project", scratch / "tmp"
        self.baselines = self.folder / "instrcount_baselines"
        for folder in (self.folder, self.temporary):
            folder.mkdir()
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        (self.folder / "killer.py").write_text(KILLER)
        for number in range(FILES):
            (self.folder / f"test_{number}.py").write_text(TEST.format(number=number + 1))

    def start(self, *args: str, kill_at: int = 0) -> subprocess.Popen[str]:
        """A run of pytest; it is killed at the n-th file that it puts into its place."""
        more = ["-p", "killer"] if kill_at else []
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more, *args],
            cwd=self.folder,
            env=outside_ci("PYTHONDONTWRITEBYTECODE")
            | {"TMPDIR": str(self.temporary), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            | {"PYTEST_PLUGINS": "pytest_instrcount.plugin", "KILL_AT": str(kill_at)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *args: str) -> str:
        """A run to its end."""
        running = self.start(*args)
        said, _ = running.communicate()
        if running.returncode:
            sys.exit(said)
        return said

    def use(self, size: int) -> None:
        """Let the tests have another cost."""
        (self.folder / "size.py").write_text(f"SIZE = {size}\n")

    def stored(self) -> dict[str, bytes]:
        """What is in the folder of baselines, but for the file that is locked."""
        paths = [path for path in self.baselines.rglob("*") if path.is_file()]
        names = {str(path.relative_to(self.baselines)): path for path in paths}
        return {
            name: path.read_bytes()
            for name, path in names.items()
            if path.stat().st_size or path.suffix == ".json"
        }


def processes() -> Iterator[tuple[int, str]]:
    """All processes of a run with their kinds; this process adopts what loses its parent."""
    below = children()
    level = below.get(os.getpid(), [])
    for kind in (*KINDS[1:], *[KINDS[-1]] * 5):
        yield from ((pid, kind) for pid in level)
        level = [each for pid in level for each in below.get(pid, ())]


def let_go(running: subprocess.Popen[str]) -> None:
    """Collect what has ended and lost its parent."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == running.pid:
            return
        os.waitpid(ended.si_pid, 0)


def kill_one(running: subprocess.Popen[str], pick: random.Random, delay: float) -> str:
    """Kill one process of a run after so many seconds; returns of which kind it was."""
    end = time.monotonic() + delay
    while time.monotonic() < end and running.poll() is None:
        time.sleep(0.01)
    kinds = collections.defaultdict(list)
    kinds["pytest"].append(running.pid)
    for pid, kind in processes():
        if pid != running.pid:
            kinds[kind].append(pid)
    kind = pick.choice(sorted(kinds))
    try:
        os.kill(pick.choice(kinds[kind]), signal.SIGKILL)
    except ProcessLookupError:
        return f"{kind} (ended)"
    return kind


def wait_for_end(running: subprocess.Popen[str]) -> str:
    """Wait until a run and all its processes have ended; returns what went wrong."""
    try:
        running.communicate(timeout=ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return f"pytest did not end within {ENDING_SECONDS:g} s"
    end = time.monotonic() + LEAVING_SECONDS
    while left := [f"{kind} {pid}" for pid, kind in processes()]:
        let_go(running)
        if time.monotonic() > end:
            return f"left after {LEAVING_SECONDS:g} s: {', '.join(left)}"
        time.sleep(0.05)
    return ""


def main() -> None:
    """Kill, look, and say what was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, metavar="N")
    parser.add_argument("--at-once", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    options = parser.parse_args()
    adopt_orphans()
    scratch = Path(tempfile.mkdtemp())
    project = Project(scratch)
    states = []
    for size in SIZES:
        project.use(size)
        began = time.monotonic()
        project.run(UPDATE)
        seconds = time.monotonic() - began
        states.append(project.stored())
    pick, killed, won = random.Random(options.seed), collections.Counter[str](), 0
    for number in range(options.kills):
        there = states.index(project.stored())
        project.use(SIZES[1 - there])
        if number % BETWEEN:
            running = project.start(UPDATE)
            victim = kill_one(running, pick, pick.uniform(0, 1.1 * seconds))
        else:
            running = project.start(UPDATE, kill_at=pick.randrange(1, 4 * FILES + 1))
            victim = "between two files"
        killed[victim] += 1
        wrong = wait_for_end(running)
        project.run("--instrcount", "--collect-only")
        stored = project.stored()
        if stored not in states:
            wrong = wrong or f"baselines of neither code: {sorted(stored)}"
        elif stored != states[there]:
            won += 1
        if wrong:
            sys.exit(f"after {number + 1} kills, {victim}: {wrong}\nsee {scratch}")
    print(f"{options.kills} kills: {', '.join(f'{n} {kind}' for kind, n in killed.items())}")
    print(f"the folder held one code or the other each time; {won} updates landed all the same")
    project.use(SIZES[0])
    together = [project.start(UPDATE) for _ in range(options.at_once)]
    said = [each.communicate()[0] for each in together]
    failed = [text for each, text in zip(together, said) if each.returncode]
    if failed or project.stored() != states[0]:
        sys.exit(
            f"{len(failed)} of {options.at_once} updates failed\n{''.join(failed)}\nsee {scratch}"
        )
    project.run("--instrcount")
    left = [str(path) for path in project.temporary.rglob("*")]
    beside = {path.name for path in project.folder.iterdir()}
    print(
        f"{options.at_once} updates at once: all passed, the folder as after one; left: {left or 'nothing'}"
    )
    print(f"in the project: {', '.join(sorted(beside))}")
    shutil.rmtree(scratch)
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
