"""Timer under real Valgrind: equal counts, what Callgrind's own tool says, and statements that fail."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pytest

from pytest_instrcount import CopyIfCallgrind, Timer
from pytest_instrcount.callgrind.timer import statements
from pytest_instrcount.errors import InstrcountError
from tests.callgrind.conftest import valgrind_processes
from tests.callgrind.test_annotate import annotated, function_of

pytestmark = pytest.mark.valgrind

SORT = Timer(
    "sorted(words, key=len)",
    "import random; words = ['w' * random.randrange(9) for _ in range(n)]",
    globals={"n": CopyIfCallgrind(50)},
    label="sort",
)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files are made in a folder that is empty in the end, by processes that are gone."""
    folder = tmp_path / "work"
    (folder / "scratch").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "scratch"))
    monkeypatch.chdir(folder)
    return folder


def left(folder: Path) -> tuple[list[Path], set[int]]:
    return list((folder / "scratch").iterdir()), valgrind_processes(folder)


def test_equal(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats are equal, and so is a second run with other variables and a file more beside it."""
    first = SORT.collect_callgrind(number=20, repeats=3)
    assert len(first) == 3
    (scratch / "README").write_text("new")
    monkeypatch.setenv("MORE", "x" * 1000)
    again = SORT.collect_callgrind(number=20, retain_out_file=True)
    assert again.stmt_callgrind_out is not None
    assert {each.stmt_exclusive_stats for each in first} == {again.stmt_exclusive_stats}
    assert {each.baseline_exclusive_stats for each in first} == {again.baseline_exclusive_stats}
    assert again.counts() > 20 * 500
    assert 0 < again.baseline_exclusive_stats.sum() < 5000
    assert left(scratch) == ([], set())


def test_callgrind_annotate(scratch: Path) -> None:
    """Total and functions are those that Callgrind's own tool reads from the file that is kept."""
    stats = SORT.collect_callgrind(number=20, collect_baseline=False, retain_out_file=True)
    assert stats.stmt_callgrind_out is not None
    assert len(stats.baseline_exclusive_stats) == 0
    assert stats.as_standardized().stmt_callgrind_out is None
    assert repr(stats).startswith("CallgrindStats\nsort\nsetup: import random")
    out = scratch / "callgrind.out"
    out.write_text(stats.stmt_callgrind_out)
    theirs: dict[str, int] = defaultdict(int)
    for function, files in annotated(out, inclusive=False).items():
        theirs[re.sub(r"'\d+$", "", function)] += sum(count for count, _ in files.values())
    ours: dict[str, int] = defaultdict(int)
    for row in stats.stats():
        ours[function_of(row.function)] += row.count
    assert ours == {function: count for function, count in theirs.items() if count}
    assert stats.counts() == sum(theirs.values())


def test_numbers_add_up() -> None:
    """From 200 on it is a loop, and each run costs the same."""
    counts = [
        Timer("x + 1", "x = 1000").collect_callgrind(number, collect_baseline=False).counts()
        for number in (300, 400, 500)
    ]
    assert abs((counts[2] - counts[1]) - (counts[1] - counts[0])) < 500


def test_statement_that_raises(scratch: Path) -> None:
    """Its traceback is shown, with the lines of statement and set-up and none of this package."""
    timer = Timer("f(0)", "def f(x):\n    return 1 / x")
    with pytest.raises(InstrcountError) as caught:
        timer.collect_callgrind()
    assert caught.value.slug == "statement"
    lines = [line.strip(" ^~") for line in caught.value.why.splitlines()]
    assert [line for line in lines if line] == [
        "the statement raised under Valgrind",
        "Traceback (most recent call last):",
        'File "<stmt>", line 1, in <module>',
        "f(0)",
        'File "<setup>", line 2, in f',
        "return 1 / x",
        "ZeroDivisionError: division by zero",
    ]
    assert left(scratch) == ([], set())


@pytest.mark.parametrize(
    ("stmt", "slug", "said"),
    [
        ("import os; os._exit(3)", "process-died", "exited with status 3"),
        ("n += 1\nif n > 15: os._exit(4)", "process-died", "exited with status 4"),
        ("import ctypes; ctypes.string_at(0)", "process-died", "was killed by SIGSEGV"),
        ("while True: pass", "timeout", "did not end within 5 s"),
        ("n += 1\nif n > 15: raise KeyError('late')", "statement", "KeyError: 'late'"),
    ],
)
def test_statements_that_fail(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, stmt: str, slug: str, said: str
) -> None:
    """In the warm-up or later: an error that says how, and nothing is left."""
    monkeypatch.setattr(Timer, "timeout_seconds", 5.0 if slug == "timeout" else 120.0)
    with pytest.raises(InstrcountError) as caught:
        Timer(stmt, "import os; n = 0").collect_callgrind()
    assert caught.value.slug == slug
    assert said in caught.value.why
    # the forks of a process that was killed take a moment longer
    _wait_until(lambda: left(scratch) == ([], set()))


def test_threads() -> None:
    """Where threads are alive there is no fork, and repeats follow one another."""
    stats = Timer(
        "len('x')",
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
    ).collect_callgrind(repeats=2)
    assert all(0 < each.counts() < 100_000 for each in stats)
    assert stats[0].baseline_exclusive_stats.sum() > 0


@pytest.mark.parametrize(
    ("language", "first", "stmt"),
    [
        ("c++", "#include <vector>\n#include <numeric>", "sink += std::accumulate(v, v + 100, 0);"),
        ("c", "", "for (int i = 0; i < 100; ++i) sink += v[i];"),
    ],
)
def test_compiled(scratch: Path, language: str, first: str, stmt: str) -> None:
    """C and C++: equal twice, in proportion to the number, without a baseline."""
    if shutil.which("c++") is None:
        pytest.skip("no compiler")
    timer = Timer(
        stmt, "volatile int sink = 0; int v[100] = {1, 2};", global_setup=first, language=language
    )
    one, two = timer.collect_callgrind(number=1000, repeats=2)
    assert one == two
    assert one.built_with_debug_symbols
    assert any("main" in row.function for row in one.stats())
    assert len(one.baseline_exclusive_stats) == 0
    more = timer.collect_callgrind(number=3000)
    assert 2.9 < more.counts() / one.counts() < 3.1
    with pytest.raises(InstrcountError, match=r"<stmt>:1:.*error: .*nowhere"):
        Timer("nowhere = 1;", language=language).collect_callgrind()
    with pytest.raises(InstrcountError, match=r"killed by SIGABRT"):
        Timer("abort();", language=language).collect_callgrind()
    assert left(scratch) == ([], set())


def test_a_script_that_is_interrupted(scratch: Path) -> None:
    """Without pytest, and Ctrl-C in the midst of it: no process and no folder is left."""
    script = scratch / "script.py"
    script.write_text(
        "import sys, tempfile\n"
        f"tempfile.tempdir = {str(scratch / 'scratch')!r}\n"
        "from pytest_instrcount import Timer\n"
        "assert 'pytest' not in sys.modules\n"
        "Timer('while True: pass').collect_callgrind()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, str(script)], cwd=scratch, env=environment)
    _wait_until(lambda: len(valgrind_processes(scratch)) > 1)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == -signal.SIGINT
    assert left(scratch) == ([], set())


def test_a_kept_process_ends_with_its_user(scratch: Path) -> None:
    """A process that waits for the next statement is gone once the interpreter has exited or died."""
    (scratch / "torch.py").write_text("nn = jit = None\nimport colorsys\n")
    script = scratch / "script.py"
    script.write_text(
        "import os, signal, sys, tempfile, torch, types\n"
        f"tempfile.tempdir = {str(scratch / 'scratch')!r}\n"
        "from pytest_instrcount import Timer\n"
        "from pytest_instrcount.callgrind.timer import statements\n"
        "counts = {Timer('torch.colorsys').collect_callgrind().counts() for _ in range(2)}\n"
        "assert len(counts) == len(statements._kept) == 1, counts\n"
        "if sys.argv[1:]: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, str(script)], cwd=scratch, env=environment, check=True)
    assert left(scratch) == ([], set())
    done = subprocess.run(
        [sys.executable, str(script), "die"], cwd=scratch, env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL
    _wait_until(lambda: not valgrind_processes(scratch))


def _wait_until(true: object) -> None:
    assert callable(true)
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_nothing_is_kept_here() -> None:
    """None of these statements imported something dear."""
    assert not statements._kept
