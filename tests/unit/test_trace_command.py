"""``python -m pytest_instrcount trace``: a program runs as it does by itself, and its tree is printed."""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import pstats
import re
import subprocess
import sys
import time
import zipapp
from pathlib import Path

import pytest

from pytest_instrcount.cli.main import main
from pytest_instrcount.cli.traced import tree_lines
from pytest_instrcount.trace.core import VARIABLE
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import trace_call
from tests.schemas import complaints

SPEEDSCOPE = json.loads(
    (Path(__file__).parents[1] / "data/trace/speedscope-schema.json").read_text()
)


def run(folder: Path, *arguments: str, code: int = 0, core: str = "") -> tuple[str, str]:
    """Standard output and error; without a bound of time, since the machine may be busy."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_instrcount", "trace", "--least=0ms", *arguments],
        cwd=folder,
        env={**os.environ, VARIABLE: core},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def lines(said: str) -> list[str]:
    """Those of the tree, with indent and calls, without times."""
    found = (re.match(r" *[\d,.]+ ms +[\d.]+ %  (.*)", line) for line in said.splitlines())
    return [each[1] for each in found if each]


def write(folder: Path, text: str, name: str = "script.py") -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


SCRIPT = """
import json, sys

def work(n):
    for each in range(n):
        leaf(each)

def leaf(n):
    return n

class Encoder(json.JSONEncoder):
    def default(self, one):
        return leaf(1)

if __name__ == "__main__":
    work(3)
    json.dumps(object(), cls=Encoder, indent=1)
    print(sys.argv, sys.path[0], __file__, __spec__, sys.modules["__main__"].work is work)
"""


@pytest.mark.parametrize("core", ["python", "c"])
def test_a_script_sees_what_python_shows_it(core: str, tmp_path: Path) -> None:
    """Its arguments, folder, file and module; its calls are in the tree, libraries folded."""
    if core == "c" and not importlib.util.find_spec("pytest_instrcount.trace._core"):
        pytest.skip("the core in C is not built")
    write(tmp_path, SCRIPT)
    said, error = run(tmp_path, "script.py", "--all", "-m", core=core)
    assert error == ""
    seen = [["script.py", "--all", "-m"], tmp_path, tmp_path / "script.py", None, True]
    assert said.splitlines()[0] == "{!r} {} {} {} {}".format(*seen)
    assert f"core: {core})" in said.splitlines()[1]
    tree = lines(said)
    assert tree[0] == "__main__.<module>  1"
    assert [line for line in tree if "__main__" in line or "json.dumps" in line][2:] == [
        "  __main__.work  1",
        "    __main__.leaf  3",
        "  json.dumps  1",
        "    __main__.Encoder.default  1",
        "      __main__.leaf  1",
    ]
    assert all(len(line) <= 80 for line in said.splitlines()[2:])
    everything, _ = run(tmp_path, "--all", "script.py", core=core)
    assert "    json.encoder.JSONEncoder.encode  1" in lines(everything)


def test_a_module(tmp_path: Path) -> None:
    """A package is run by its __main__, whose imports are relative to it; its own import is traced."""
    write(tmp_path, "import sys\ndef f(): return sys.argv\nX = f()[:]", "pkg/__init__.py")
    text = "from . import X\nimport sys\nprint(X, sys.argv, __spec__.name)"
    write(tmp_path, text, "pkg/__main__.py")
    said, _ = run(tmp_path, "-m", "pkg", "-m")
    argv = [str(tmp_path / "pkg/__main__.py"), "-m"]
    assert said.splitlines()[0] == f"['-m', '-m'] {argv} pkg.__main__"
    ours = [line.strip() for line in lines(said) if "importlib" not in line]
    assert ours == ["pkg.<module>  1", "pkg.f  1", "__main__.<module>  1"]
    write(tmp_path, "1 / 0", "pkg/__init__.py")
    _, error = run(tmp_path, "-m", "pkg", code=1)
    assert error.count("File") == 1
    assert "ZeroDivisionError" in error


def test_a_folder_and_an_archive(tmp_path: Path) -> None:
    """Both are run by their __main__, as by python."""
    text = "import other, sys\nprint(__name__, sys.argv, other.X)"
    write(tmp_path, text, "app/__main__.py")
    write(tmp_path, "X = 5", "app/other.py")
    zipapp.create_archive(tmp_path / "app")
    for name in ("app", "app.pyz"):
        said, _ = run(tmp_path, name, "a")
        assert said.splitlines()[0] == f"__main__ {[name, 'a']} 5"


@pytest.mark.parametrize(
    ("text", "code", "error"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('so')", 1, "so\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt\n"),
    ],
)
def test_however_it_ends(text: str, code: int, error: str, tmp_path: Path) -> None:
    """The tree is printed and the file written; exit code and traceback are those of the program."""
    write(tmp_path, f"def f():\n    {text}\nf()\n")
    said, errors = run(tmp_path, "--export=chrome:x.json", "script.py", code=code)
    assert lines(said) == ["__main__.<module>  1", "  __main__.f  1"]
    assert errors.endswith(error)
    assert "pytest_instrcount" not in errors
    names = [
        event["name"] for event in json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    ]
    assert "__main__.f" in names


def test_a_script_that_closes_stdout(tmp_path: Path) -> None:
    """The tree goes to stderr then, and nowhere if that is closed, too."""
    write(tmp_path, "import sys\nsys.stdout.close()")
    assert lines(run(tmp_path, "script.py")[1]) == ["__main__.<module>  1"]
    write(tmp_path, "import sys\nsys.stdout.close(); sys.stderr.close()")
    assert run(tmp_path, "script.py") == ("", "")


@pytest.mark.parametrize(
    "other",
    [
        "None",
        "io.StringIO()",
        "open('log', 'w')",
        "Tee()",
        "codecs.getwriter('utf-8')(open('log', 'wb'))",
    ],
)
def test_a_script_that_prints_elsewhere(other: str, tmp_path: Path) -> None:
    """What it puts in the place of stdout is its own: the tree goes where it went before."""
    tee = "class Tee:\n    write = flush = lambda *_: None"
    write(tmp_path, f"import codecs, io, sys\n{tee}\nsys.stdout = {other}\nprint('its own')")
    said, error = run(tmp_path, "script.py")
    assert (lines(said)[0], error) == ("__main__.<module>  1", "")
    assert "its own" not in said
    if "log" in other:
        assert (tmp_path / "log").read_text() == "its own\n"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("os._exit(5)", 5, ""),
        ("os.execv(sys.executable, [sys.executable, '-c', 'print(9)'])", 0, ""),
        ("os.execvp('true', ['true'])", 0, ""),
        ("sys.excepthook = lambda *_: sys.exit(7)\n1 / 0", 7, ""),
        ("sys.excepthook = lambda *_: [][1]\n1 / 0", 1, "Original exception was:"),
        ("sys.exit(type('X', (), {'__str__': lambda self: [][1]})())", 1, ""),
        ("sys.stderr = None\nsys.exit('message')", 1, "message"),
    ],
)
def test_however_it_leaves(text: str, code: int, words: str, tmp_path: Path) -> None:
    """The tree is printed, and files are written, once; what python says is on stderr."""
    write(tmp_path, f"import os, sys\ndef f(): pass\nf()\n{text}")
    said, error = run(tmp_path, "--export=json:trace.json", "script.py", code=code)
    assert lines(said)[:2] == ["__main__.<module>  1", "  __main__.f  1"]
    assert said.count("core: ") == said.count("wrote ") == 1
    assert words in error
    assert "pytest_instrcount" not in error
    assert (tmp_path / "trace.json").exists()


def test_code_without_a_file_is_the_users(tmp_path: Path) -> None:
    """As of exec(); what a named tuple makes so is the standard library's."""
    names = "from collections import namedtuple\nP = namedtuple('P', 'x')"
    write(tmp_path, f"{names}\nexec('def f(): g()\\ndef g(): P(1)\\nf()')")
    found = lines(run(tmp_path, "script.py")[0])
    assert [line.strip() for line in found if "<string>" in line] == [
        "<string>.<module>  1",
        "<string>.f  1",
        "<string>.g  1",
        "<string>.<lambda>  1",
    ]


def test_greenlets_that_are_imported_by_the_program(tmp_path: Path) -> None:
    """Each has a stack of its own."""
    pytest.importorskip("greenlet")
    text = """
from greenlet import greenlet
def one(): two_.switch(); leaf()
def two(): leaf(); one_.switch()
def leaf(): pass
one_, two_ = greenlet(one), greenlet(two)
one_.switch()
"""
    write(tmp_path, text)
    found = lines(run(tmp_path, "--include=__main__:*", "script.py")[0])
    leaf = "  __main__.leaf  1"
    assert found[-4:] == ["__main__.one  1", leaf, "__main__.two  1", leaf]


THREADS = """
import threading, time
from concurrent.futures import ThreadPoolExecutor

def job(n):
    return n

def late():
    time.sleep(0.05)
    job(1)

pool = ThreadPoolExecutor(1)  # never shut down
pool.submit(job, 1)
threading.Thread(target=late).start()
"""


def test_threads_that_outlive_the_script(tmp_path: Path) -> None:
    """Those that Python waits for are waited for; executors end theirs."""
    write(tmp_path, THREADS)
    said, _ = run(tmp_path, "script.py")
    tree = lines(said[said.index("in other threads") :])
    assert "  __main__.late  1" in tree
    assert sum(int(line.split()[1]) for line in tree if "__main__.job" in line) == 2


PROCESSES = """
import multiprocessing as mp, os, sys

class Thing:
    pass

def work(thing):
    return type(thing).__module__

if __name__ == "__main__":
    for method in ("spawn", "fork"):
        with mp.get_context(method).Pool(1) as pool:
            print(pool.map(work, [Thing()]), flush=True)
    if pid := os.fork():
        print(os.waitpid(pid, 0)[1])
"""


def test_child_processes(tmp_path: Path) -> None:
    """They work as ever, find the script's classes, and print no tree of their own."""
    write(tmp_path, PROCESSES)
    said, error = run(tmp_path, "script.py")
    assert error == ""
    assert said.splitlines()[:3] == ["['__mp_main__']", "['__main__']", "0"]
    assert said.count("core: ") == 1


CALLS = """
import os
from pytest_instrcount import record_function

def outer():
    with record_function("part"):
        middle()

def middle():
    inner()

def inner():
    pass

outer()
print(os.getpid())
"""


def test_exports(tmp_path: Path) -> None:
    """In all formats, with ranges; compressed on request."""
    write(tmp_path, CALLS)
    formats = ["chrome:a.json.gz", "speedscope:b.json", "collapsed:c", "pstats:d", "json:e"]
    said, _ = run(tmp_path, *(f"--export={each}" for each in formats), "script.py")
    assert said.splitlines()[-5:] == [
        f"wrote {tmp_path / each.partition(':')[2]}" for each in formats
    ]
    chrome = json.loads(gzip.decompress((tmp_path / "a.json.gz").read_bytes()))
    ran = {event["name"]: event for event in chrome["traceEvents"]}["__main__.inner"]
    assert abs(chrome["baseTimeNanoseconds"] + 1e3 * ran["ts"] - time.time_ns()) < 100e9
    assert (str(ran["pid"]), said.count("core")) == (said.split()[0], 1)
    assert {"part", "__main__.inner"} <= {event["name"] for event in chrome["traceEvents"]}
    assert pstats.Stats(str(tmp_path / "d")).total_calls >= 4  # type: ignore[attr-defined]
    assert "__main__.outer;part;__main__.middle" in (tmp_path / "c").read_text()


TASKS = """
import asyncio

async def one(n):
    await asyncio.sleep(0)

async def main():
    await asyncio.gather(*map(one, range(3)))

asyncio.run(main())
"""


@pytest.mark.parametrize("core", ["python", "c"])
def test_asyncio(core: str, tmp_path: Path) -> None:
    """A few lines, though the loop makes dozens of calls; in a file each task has a track."""
    if core == "c" and not importlib.util.find_spec("pytest_instrcount.trace._core"):
        pytest.skip("the core in C is not built")
    write(tmp_path, TASKS)
    exports = "--export=chrome:a", "--export=speedscope:b"
    said, _ = run(tmp_path, "--ignore=importlib._bootstrap:*", *exports, "script.py", core=core)
    tree = lines(said)
    assert len(tree) < 20
    assert "    __main__.one  3 (resumed 3)" in tree
    events = json.loads((tmp_path / "a").read_text())["traceEvents"]
    names = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    on = [names[event["tid"]] for event in events if event["name"] == "__main__.one"]
    assert len(on) == 6
    assert len(set(on)) == 3
    assert all(name.endswith(" (one)") for name in on)
    document = json.loads((tmp_path / "b").read_text())
    assert complaints(document, SPEEDSCOPE) == []
    assert set(on) <= {profile["name"] for profile in document["profiles"]}


def test_arguments(tmp_path: Path) -> None:
    """By the core in Python, which the first line says."""
    write(tmp_path, SCRIPT)
    asked = "--arguments", "--returns", "--export=chrome:a"
    said, _ = run(tmp_path, *asked, "script.py")
    assert "core: python)" in said
    found = [
        (event["name"], event.get("args", {}).get("args"))
        for event in json.loads((tmp_path / "a").read_text())["traceEvents"]
    ]
    assert ("__main__.leaf", "n=2 -> 2") in found


def test_filters(tmp_path: Path) -> None:
    """What is left out is left out of files, too; its calls are its caller's."""
    write(tmp_path, CALLS)
    said, _ = run(tmp_path, "--ignore=__main__:middle", "--export=collapsed:c", "script.py")
    assert "    __main__.inner  1" in lines(said)
    assert "middle" not in said + (tmp_path / "c").read_text()
    write(tmp_path, "len('')", "other.py")
    said, error = run(tmp_path, "--include=nothing", "--export=json:d", "other.py", code=2)
    assert "# without --include, --ignore, --least and --depth" in said + error
    said, _ = run(tmp_path, "--include=*.inner", "--include=*.middle", "script.py")
    assert lines(said) == ["__main__.middle  1", "  __main__.inner  1"]
    said, _ = run(tmp_path, "--depth=2", "--include=__main__:*", "script.py")
    assert lines(said) == ["__main__.<module>  1", "  __main__.outer  1"]
    assert said.splitlines()[-1].endswith(": 2")
    said, _ = run(tmp_path, "--least=10s", "script.py")
    assert lines(said) == []
    for pattern in ("*/script.py", "script.py", "./", str(tmp_path)):
        said, _ = run(tmp_path, f"--include={pattern}", "--max-depth=2", "script.py")
        assert lines(said) == ["__main__.<module>  1", "  __main__.outer  1"]
    said, _ = run(tmp_path, "--min-duration=10s", "script.py")
    assert lines(said) == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nope.py"], "[trace-program]\n  fix: "),
        (["-m", "nope"], "[trace-program]\n  fix: "),
        (["-m", "nope.nope"], "[trace-program]\n  fix: "),
        (["bad.py"], "[trace-program]\n  fix: "),
        (["--least=1", "script.py"], "is no time"),
        (["--depth=0", "script.py"], "is no number of levels"),
        (["--max-depth=x", "script.py"], "is no number of levels"),
        (["--min-duration=1", "script.py"], "is no time"),
        (["--export=png:x", "script.py"], "is not like"),
        (["--export=chrome:", "script.py"], "is not like"),
        ([], "required: PROGRAM"),
    ],
)
def test_what_cannot_be_run(arguments: list[str], error: str, tmp_path: Path) -> None:
    """Exit code 2, and the program has not run."""
    write(tmp_path, "print('ran')")
    write(tmp_path, "def", "bad.py")
    said, errors = run(tmp_path, *arguments, code=2)
    assert (said, error in errors) == ("", True), errors


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """All else is there."""
    write(tmp_path, CALLS)
    said, _ = run(tmp_path, "--export=chrome:script.py/x", "--export=pstats:d", "script.py", code=2)
    assert "__main__.<module>  1" in lines(said)
    assert "[profile-write]" in said
    assert (tmp_path / "d").exists()


def test_what_is_imported_at_the_end(tmp_path: Path) -> None:
    """Asyncio may come when the trace is over."""
    text = "import atexit\natexit.register(lambda: print(__import__('asyncio').__name__))"
    write(tmp_path, text)
    said, error = run(tmp_path, "script.py", core="python")
    assert (said.splitlines()[-1], error) == ("asyncio", "")


def test_little_is_imported_before(tmp_path: Path) -> None:
    """What a program imports takes its time in the trace."""
    write(
        tmp_path,
        "import sys\nprint(sorted({'pytest', 'json', 'logging', 'asyncio'} & {*sys.modules}))",
    )
    said, _ = run(tmp_path, "script.py")
    assert said.splitlines()[0] == "[]"


def test_help_of_all_commands_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "trace     run a script or a module" in capsys.readouterr().out


def test_of_too_many_calls_the_sums_are_shown() -> None:
    """What folding took is in no line, nor in the whole."""

    def leaf() -> None:
        pass

    def body() -> None:
        for _ in range(2_000):
            leaf()

    options = TraceOptions(mode="tree", max_events=64, start_frames=0)
    _, columns = trace_call(options, body)
    assert columns.stats.truncated
    chosen = argparse.Namespace(
        all=True, module=False, depth=None, least=0, with_arguments=False, returns=False
    )
    first, second, *_ = tree_lines(columns, chosen)
    assert first.startswith("2,001 calls in ")
    assert first.split()[3] == second.split()[0]
    assert "  100.0 %" in second


def test_names_stay_in_their_line(tmp_path: Path) -> None:
    """A name is what a program makes it."""
    name = "a\\n   99.999 ms  100.0 %  forged  1\\nb"
    write(tmp_path, f"exec(compile('def f(): pass\\nf()', '{name}', 'exec'), {{}})")
    said, _ = run(tmp_path, "--all", "script.py")
    assert "forged" in said
    assert not any(line.strip().startswith("99.999") for line in said.splitlines())
