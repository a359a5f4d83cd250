"""``trace --children``: a tree of each process that a program starts, which behaves as without us."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.schemas import complaints
from tests.unit.test_trace_command import SPEEDSCOPE, lines, run, write


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files are; nothing may stay there. The path of a socket must be short."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def trees(said: str) -> dict[str, list[str]]:
    """Command -> lines of its tree; those of the program are ""."""
    parts = re.split(r"\nprocess \d+, (.*):\n", said)
    return {"": lines(parts[0])} | {
        command: lines(part) for command, part in zip(parts[1::2], parts[2::2])
    }


POOL = """
import multiprocessing, sys

def work(barrier):
    barrier.wait()
    leaf()

def leaf():
    pass

def start(barrier):
    global shared
    shared = barrier

def job(n):
    work(shared)
    return n

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2, start, (context.Barrier(2),)) as pool:
        print(pool.map(job, [1, 2], chunksize=1), flush=True)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("core", ["", "python"])
def test_a_pool(method: str, core: str, tmp_path: Path, scratch: Path) -> None:
    """Though its workers are terminated, and helpers of multiprocessing have no tree."""
    write(tmp_path, POOL)
    said, error = run(tmp_path, "--children", "script.py", method, core=core)
    assert (said.splitlines()[0], error) == ("[1, 2]", "")
    found = trees(said)
    names = [each for each in found if "PoolWorker-" in each]
    assert len(names) == len(found) - 1 == 2
    module = "__main__" if method == "fork" else "__mp_main__"
    for name in names:
        tree = [line.strip() for line in found[name]]
        at = tree.index(f"{module}.job  1")
        assert tree[at : at + 2] == [f"{module}.job  1", f"{module}.work  1"]
        assert f"{module}.leaf  1" in tree
    assert "no trace" not in said
    assert list(scratch.iterdir()) == []


EXECUTOR = """
from concurrent.futures import ProcessPoolExecutor
import multiprocessing, sys

def job(n):
    return n

def body():
    with ProcessPoolExecutor(1, multiprocessing.get_context(sys.argv[1])) as pool:
        print(list(pool.map(job, [1, 2])), flush=True)
    process = multiprocessing.get_context(sys.argv[1]).Process(target=job, args=(1,), name="late")
    process.start()  # Python waits for it at its end

if __name__ == "__main__":
    body()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_executor(method: str, tmp_path: Path, scratch: Path) -> None:
    write(tmp_path, EXECUTOR)
    said, error = run(tmp_path, "--children", "script.py", method)
    assert (said.splitlines()[0], error) == ("[1, 2]", "")
    jobs = [
        line.split()[1] for tree in trees(said).values() for line in tree if "main__.job  " in line
    ]
    assert sorted(jobs) == ["1", "2"]
    assert "late" in trees(said)
    assert list(scratch.iterdir()) == []


SHOW = """
import os, signal, sys
def show():
    print(sys.argv[1:], sys.path, sorted(os.environ.items()), __name__, sorted(sys.modules)[:0],
          "sitecustomize" in sys.modules, sys.flags, flush=True)
show()
if sys.argv[1:] == ["once"]:
    import subprocess
    sys.exit(subprocess.run([sys.executable, sys.argv[0], "again"]).returncode + 1)
if sys.argv[1:] == ["fork"]:
    if not os.fork():
        show()
        os._exit(5)
    sys.exit(os.wait()[1] >> 8)
if sys.argv[1:] == ["killed"]:
    os.kill(os.getpid(), signal.SIGTERM)
if sys.argv[1:] == ["vanished"]:
    os.kill(os.getpid(), signal.SIGKILL)
"""

STARTS = """
import os, subprocess, sys

def start(*arguments, **options):
    print(subprocess.run([sys.executable, *arguments], **options).returncode, flush=True)

start("show.py")
start("show.py", "once")
start("show.py", "fork")
start("show.py", "killed")
start("-m", "show", "m", env={**os.environ, "A": "1"})
start("-c", "import show", "-m", env={"PYTHONPATH": "x:" + os.getcwd()})
start("show.py", "empty", env={})
start("show.py", close_fds=False)
print(os.system(f"exec {sys.executable} show.py system"), flush=True)
print(sorted(os.environ.items()), sys.path, flush=True)
"""


def test_started_processes(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they print, and how they end, is as without us; also what they start and fork has a tree."""
    monkeypatch.setenv("PYTEST_INSTRCOUNT_CORE", "")
    write(tmp_path, SHOW, "show.py")
    write(tmp_path, STARTS)
    command = [sys.executable, "script.py"]
    env = dict(os.environ)  # without what readline adds behind its back
    wanted = subprocess.check_output(command, cwd=tmp_path, env=env, text=True)
    said, error = run(tmp_path, "--children", "script.py")
    assert error == ""
    assert said[: len(wanted)] == wanted
    found = re.findall(r"\nprocess \d+, (.*):\n", said)
    assert [re.sub(r"^python\S*|\d{2,}", "P", each) for each in found if "fork" not in each] == [
        "P show.py",
        "P show.py once",
        "P show.py again",
        "P show.py killed",
        "P -m show m",
        "P -c 'import show' -m",
        "P show.py empty",
        "P show.py",
        "P show.py system",
    ]
    assert len(found) == 11
    assert said.count("main__.show  1") + said.count("  show.show  1") == 11
    assert "_ModuleLockManager" not in said  # Python's end of the import of our sitecustomize
    assert list(scratch.iterdir()) == []


OTHERS = """
import subprocess, sys
for each in (["-I", "-c", "pass"], ["-S", "-c", "pass"], ["show.py", "vanished"]):
    subprocess.run([sys.executable, *each])
subprocess.run(["true", "x"])
"""


def test_other_processes_are_named(tmp_path: Path, scratch: Path) -> None:
    write(tmp_path, SHOW, "show.py")
    write(tmp_path, OTHERS)
    said, _ = run(tmp_path, "--children", "script.py")
    last = said.splitlines()[-1]
    assert last.startswith("no trace of 4 other processes: python")
    for each in ("-I -c pass; ", " -S -c pass; ", " show.py vanished", "true x"):
        assert each in last
    assert list(scratch.iterdir()) == []


HANDLES = """
import signal, subprocess, sys, time
started = subprocess.Popen([sys.executable, "child.py"], stdout=subprocess.PIPE)
started.stdout.readline()
started.terminate()
print(started.stdout.read(), started.wait(), flush=True)
"""

HANDLER = """
import os, signal, sys, time
def end(*_):
    time.sleep(0.1)
    os.write(1, b"ended\\n")  # not print(): what is waiting for the other one may be inside of it still
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
os.write(1, b"ready\\n")
while True:
    time.sleep(9)
"""


def test_a_child_that_handles_its_end(tmp_path: Path) -> None:
    """Once: what wakes a terminated child is no second signal to it."""
    write(tmp_path, HANDLES)
    write(tmp_path, HANDLER, "child.py")
    said, error = run(tmp_path, "--children", "script.py")
    assert (said.splitlines()[0], error) == (r"b'ended\n' 7", "")
    assert said.count("core: ") == 2


def test_a_child_that_outlives_the_program(tmp_path: Path, scratch: Path) -> None:
    """It ends by itself, and leaves nothing."""
    child = "import time\nprint('ready', flush=True)\ntime.sleep(0.5)"
    text = f"import subprocess, sys\nchild = {child!r}\n"
    text += "one = subprocess.Popen([sys.executable, '-c', child], stdout=subprocess.PIPE)\n"
    write(tmp_path, text + "one.stdout.readline()")
    said, error = run(tmp_path, "--children", "script.py")
    assert error == ""
    assert "\nno trace of 1 other processes: python" in said
    assert r" -c 'import time\nprint(" in said
    assert list(scratch.iterdir()) == []


def test_the_users_own_sitecustomize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is imported, as if ours was not there."""
    site = tmp_path / "site"
    write(tmp_path, "import sys; sys.mine = __file__", "site/sitecustomize.py")
    write(tmp_path, "import subprocess, sys; subprocess.run([sys.executable, 'two.py'])")
    values = "sys.mine", "sys.modules['sitecustomize'].__file__", "sys.path[1]"
    text = f"import sys, os; print({', '.join(values)}, os.environ['PYTHONPATH'])"
    write(tmp_path, text, "two.py")
    monkeypatch.setenv("PYTHONPATH", str(site))
    said, error = run(tmp_path, "--children", "script.py")
    file = site / "sitecustomize.py"
    assert (said.splitlines()[0], error) == (f"{file} {file} {site} {site}", "")
    assert said.count("core: ") == 2


def test_files_have_all_processes(tmp_path: Path) -> None:
    """With their numbers, on one clock, and with their ranges."""
    write(
        tmp_path,
        """
import os, subprocess, sys
from pytest_instrcount import record_function

def work(name):
    with record_function(name):
        pass

work("in main")
pid = os.fork()
if not pid:
    work("in fork")
    os._exit(0)
os.waitpid(pid, 0)
if not sys.argv[1:]:
    started = subprocess.Popen([sys.executable, __file__, "child"])
    started.wait()
    print(os.getpid(), pid, started.pid)
""",
    )
    exports = [f"--export={each}" for each in ("chrome:a", "speedscope:b", "collapsed:c", "json:d")]
    said, _ = run(tmp_path, "--children", *exports, "script.py")
    main, forked, started = map(int, said.splitlines()[0].split())
    events = json.loads((tmp_path / "a").read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names[main] == "python"
    assert names[forked] == f"fork of {main}"
    assert names[started].endswith("script.py child")
    assert len(names) == 4
    at = [(e["ts"], e["pid"]) for e in events if e["name"] == "__main__.work"]
    assert [pid for _, pid in sorted(at)][:3] == [main, forked, started]
    for name in ("in main", "in fork"):
        assert len([e for e in events if e["name"] == name]) == 2
    document = json.loads((tmp_path / "b").read_text())
    assert complaints(document, SPEEDSCOPE) == []
    assert f"MainThread, process {started}" in {one["name"] for one in document["profiles"]}
    assert "__main__.work;in fork" in (tmp_path / "c").read_text()
    tracks = json.loads((tmp_path / "d").read_text())["tracks"]
    assert {0, forked, started} <= {node for _, _, node in tracks}


def test_without_it_nothing_is_changed(tmp_path: Path) -> None:
    write(tmp_path, "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'])")
    said, _ = run(tmp_path, "script.py")
    assert said.count("core: ") == 1
    assert "process" not in said.replace("subprocess", "")


@pytest.mark.parametrize(
    "ending",
    ["os._exit(3)", "os.execvp('true', ['true'])", "os.kill(os.getpid(), signal.SIGTERM)"],
)
def test_a_program_that_ends_itself_leaves_nothing(
    ending: str, tmp_path: Path, scratch: Path
) -> None:
    """Of one that is not killed the tree is printed before."""
    write(tmp_path, f"import os, signal\n{ending}")
    code = -signal.SIGTERM if "kill" in ending else 3 if "_exit" in ending else 0
    said, error = run(tmp_path, "--children", "script.py", code=code)
    assert (said.count("core: "), error) == (code != -signal.SIGTERM, "")
    assert list(scratch.iterdir()) == []


def test_filters_hold_for_children(tmp_path: Path) -> None:
    """Files are named from the folder of the program on, wherever a child runs."""
    write(tmp_path, "", "folder/x")
    write(tmp_path, "def f(): pass\nf()\n", "two.py")
    text = "import subprocess, sys; subprocess.run([sys.executable, '../two.py'], cwd='folder')"
    write(tmp_path, text)
    said, _ = run(tmp_path, "--children", "--include=two.py", "script.py")
    assert list(trees(said).values()) == [[], ["__main__.<module>  1", "  __main__.f  1"]]


def test_own_work_is_no_call_of_a_fork(tmp_path: Path) -> None:
    """It leaves through our frames."""
    write(
        tmp_path,
        "import os, sys\ndef f(): pass\nif not os.fork():\n    f()\n    sys.exit()\nos.wait()\n",
    )
    said, _ = run(tmp_path, "--children", "--all", "script.py")
    found = [tree for command, tree in trees(said).items() if command]
    assert found == [["__main__.f  1"]]
