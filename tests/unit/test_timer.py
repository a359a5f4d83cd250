"""Timer without Valgrind: what it takes, what it refuses, and the code it would run."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import pytest_instrcount
from pytest_instrcount import CopyIfCallgrind, Timer
from pytest_instrcount.callgrind import requests
from pytest_instrcount.callgrind.timer import statements
from pytest_instrcount.callgrind.timer.compiled import (
    compile_program,
    find_compiler,
    program_source,
)
from pytest_instrcount.callgrind.timer.copied import check_globals, send_globals
from pytest_instrcount.callgrind.timer.launch import Launch
from pytest_instrcount.callgrind.timer.loop import BLOCK, statement_code, written_out
from pytest_instrcount.callgrind.timer.statement import DUMPS
from pytest_instrcount.callgrind.timer.timer import has_debug_symbols
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.task import TaskSpec
from pytest_instrcount.errors import InstrcountError


class Derived(int):
    """A class that another process imports."""


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Something like torch, loaded."""
    fake: Any = ModuleType("torch")
    fake.nn = SimpleNamespace(Module=type("Module", (), {}))
    script = type("ScriptModule", (fake.nn.Module,), {})
    fake.saved = []
    fake.save = lambda value, path: fake.saved.append(("save", value, path))
    fake.jit = SimpleNamespace(
        ScriptModule=script,
        ScriptFunction=type("ScriptFunction", (), {}),
        save=lambda value, path: fake.saved.append(("jit.save", value, path)),
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


@pytest.fixture
def no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is started would be a mistake."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"stmt": len}, TypeError, "stmt is a str, not builtin_function_or_method"),
        ({"setup": 3}, TypeError, "setup is a str"),
        ({"stmt": ""}, ValueError, "stmt is empty"),
        ({"stmt": "# nothing"}, ValueError, "stmt is empty"),
        ({"stmt": "1 +"}, SyntaxError, "<stmt>"),
        ({"stmt": "return 1"}, SyntaxError, "return"),
        ({"stmt": "break"}, SyntaxError, "break"),
        ({"setup": "def f(:"}, SyntaxError, "<setup>"),
        ({"global_setup": "#include <map>"}, ValueError, "for C and C"),
        ({"language": "rust"}, ValueError, "'rust'"),
        ({"num_threads": 0}, ValueError, "num_threads is 1 or more"),
        ({"num_threads": True}, ValueError, "num_threads is 1 or more"),
    ],
)
def test_wrong_timers(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    """What cannot be counted is refused when it is written down."""
    with pytest.raises(error) as caught:
        Timer(**arguments)
    assert said in str(caught.value)


@pytest.mark.usefixtures("no_start")
@pytest.mark.parametrize(
    ("timer", "arguments", "said"),
    [
        (Timer(), {"number": 0}, "number is 1 or more, not 0"),
        (Timer(), {"number": 2.0}, "number is 1 or more, not 2.0"),
        (Timer(), {"repeats": 0}, "repeats is 1 or more"),
        (Timer("n", globals={"n": 3}), {}, "global 'n' is not wrapped"),
        (Timer("n", language="c", globals={"n": CopyIfCallgrind(3)}), {}, "globals are for Python"),
        (Timer(globals={"torch": os}), {}, "global 'torch' is not torch"),
    ],
)
def test_wrong_counts(timer: Timer, arguments: dict[str, Any], said: str) -> None:
    """A ValueError before anything is started."""
    with pytest.raises(ValueError, match=re.escape(said)):
        timer.collect_callgrind(**arguments)


def test_code_is_undented() -> None:
    """Code may be written in a string over several lines, as deep as its surroundings."""
    timer = Timer(
        """
        for i in range(3):
            x = '''a
              b'''
        """
    )
    assert timer._task_spec.stmt == "for i in range(3):\n    x = '''a\n      b'''"


@pytest.mark.parametrize(
    "language",
    [
        "python",
        "py",
        "c",
        "c++",
        "cpp",
        "CPP",
        SimpleNamespace(name="CPP"),
        *pytest_instrcount.Language,
    ],
)
def test_languages(language: object) -> None:
    """By the names that torch has for them, its enum included."""
    Timer("x", language=language)


def test_arguments_stand_where_torch_has_them() -> None:
    """With a clock that is not used."""
    given: dict[str, Any] = {"n": CopyIfCallgrind(3)}
    timer = Timer("n", "pass", "", time.perf_counter, given, "a", "b", "c", "d", 2, "python")
    assert timer._task_spec == TaskSpec("n", "pass", "", "a", "b", "c", "d", 2)


@pytest.mark.parametrize(
    "method", ["timeit", "repeat", "autorange", "blocked_autorange", "adaptive_autorange"]
)
def test_clocks(method: str) -> None:
    """What measures time is refused, with the reason."""
    with pytest.raises(NotImplementedError, match=f"Timer.{method} measures time.*reads no clock"):
        getattr(Timer(), method)(number=3)


@pytest.mark.parametrize("value", ["a", b"a", True, 3, 2.5, 1j])
def test_plain_values(value: object) -> None:
    """They are sent as they are."""
    copied = CopyIfCallgrind(value, setup="import os")
    assert (copied.value, copied.setup, copied.serialization) == (value, "import os", "plain")


@pytest.mark.parametrize("value", [None, [1], (1,), {}, len, object()])
def test_other_values(value: object) -> None:
    """The error names the type, and lists those that can be copied."""
    with pytest.raises(ValueError, match=f"type {type(value).__name__} cannot") as caught:
        CopyIfCallgrind(value)
    assert "str, bytes, bool, int, float, complex" in str(caught.value)
    assert "torch.nn.Module" in str(caught.value)


def test_torch_values(torch: Any, tmp_path: Path) -> None:
    """Modules and scripted functions go through a file of torch's, and have torch imported there."""
    values = (torch.nn.Module(), torch.jit.ScriptModule(), torch.jit.ScriptFunction())
    given = check_globals(
        {"torch": torch, "__builtins__": {}}
        | {f"v{i}": CopyIfCallgrind(v, setup="  import net") for i, v in enumerate(values)}
    )
    sent = send_globals(given, tmp_path)
    paths = [repr(path) for _, _, path in torch.saved]
    assert sent == (
        ("v0", "import net", f"__import__('torch').load({paths[0]}, weights_only=False)"),
        ("v1", "import net", f"__import__('torch').jit.load({paths[1]})"),
        ("v2", "import net", f"__import__('torch').jit.load({paths[2]})"),
    )
    assert [how for how, _, _ in torch.saved] == ["save", "jit.save", "jit.save"]


@pytest.mark.parametrize("value", ["a\n'", b"a", True, 3, math.inf, 1j, 10**30, Derived(3)])
def test_a_bridge(value: object, tmp_path: Path) -> None:
    """Its code makes the values, of the same class, and runs each set-up before."""
    given = {"n": CopyIfCallgrind(value, setup="  m = 1\n  k = 2"), "o": CopyIfCallgrind(5)}
    names: dict[str, Any] = {}
    exec(pytest_instrcount.GlobalsBridge(given, str(tmp_path / "new")).construct(), names)
    assert (names["n"], names["m"], names["k"], names["o"]) == (value, 1, 2, 5)
    assert type(names["n"]) is type(value)
    with pytest.raises(ValueError, match="global 'n' is not wrapped"):
        pytest_instrcount.GlobalsBridge({"n": value}, str(tmp_path))


def test_what_is_pickled_is_nobody_elses(monkeypatch: pytest.MonkeyPatch, torch: Any) -> None:
    """The files of torch are in a folder that only this user enters, and that ends with the count."""
    folders: list[Path] = []

    def count(around: Any, order: Any, seconds: float) -> list[str]:
        folder = Path(order.globals[0][2].split("'")[3]).parent
        folders.append(folder)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.stat().st_uid == os.getuid()
        assert [path.name for path in folder.iterdir()] == ["0.pt"]
        return ["events: Ir\nfn=(1) f\n1 7\ntotals: 7\n"] * 2

    torch.save = lambda value, path: Path(path).write_bytes(b"pickled")
    monkeypatch.setattr("pytest_instrcount.callgrind.timer.timer.count_statement", count)
    monkeypatch.setattr(
        "pytest_instrcount.callgrind.timer.timer.find_valgrind", lambda name: (name, "3")
    )
    given = {"net": CopyIfCallgrind(torch.nn.Module())}
    Timer("net", globals=given).collect_callgrind()
    assert len(folders) == 1
    assert not folders[0].exists()


def test_torch_is_not_imported() -> None:
    """The import of Timer, and a global that is none of torch's, leave torch alone."""
    code = (
        "import sys; from pytest_instrcount import Timer, CopyIfCallgrind\n"
        "Timer('torch.ones(n)', globals={'n': CopyIfCallgrind(1)})\n"
        "assert 'torch' not in sys.modules and 'pytest' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize(
    ("stmt", "setup", "wants"),
    [("1", "pass", False), ("torch.ones(1)", "pass", True), ("x", "x = torch.ones(1)", True)],
)
def test_who_needs_torch(
    monkeypatch: pytest.MonkeyPatch, torch: Any, stmt: str, setup: str, wants: bool
) -> None:
    """Where torch is loaded, code that names it finds it without an import; other code waits for nothing."""
    seen: list[Any] = []

    def count(around: Any, order: Any, seconds: float) -> list[str]:
        seen.extend((around, order))
        return ["events: Ir\nfn=(1) f\n1 7\ntotals: 7\n"] * 2

    monkeypatch.setattr("pytest_instrcount.callgrind.timer.timer.count_statement", count)
    monkeypatch.setattr(
        "pytest_instrcount.callgrind.timer.timer.find_valgrind", lambda name: (name, "3")
    )
    stats = Timer(stmt, setup, num_threads=4).collect_callgrind()
    assert (seen[0].imports, seen[1].torch) == ((["torch"], True) if wants else ([], False))
    assert seen[0].environment["OMP_NUM_THREADS"] == "4"
    assert seen[0].executable == sys.executable
    assert stats.counts() == 7
    assert stats.baseline_exclusive_stats.sum() == 7


def test_no_valgrind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InstrcountError, match=r"\[valgrind-missing\]\n  fix: .*install"):
        Timer().collect_callgrind()


@pytest.mark.parametrize(
    ("number", "warm_up"), [(1, 0), (1, 1), (3, 2), (199, 10), (200, 10), (257, 10), (1000, 0)]
)
def test_the_code_runs_as_often(number: int, warm_up: int) -> None:
    """Warm-up, ready, opened, so many times the statement, closed."""
    order: list[object] = []
    calls: dict[str, Any] = {
        name: lambda name=name: order.append(name) for name in ("ready", "opened", "closed")
    }
    code = statement_code(
        "if True:\n  n += 1\norder.append(n)  # so\n",
        number,
        warm_up,
        ready="ready",
        opened="opened",
        closed="closed",
    )
    # the statement's own names are its own
    exec(code, {"order": order, "n": 0, "range": None, "_": None, **calls})
    numbers = list(range(1, warm_up + number + 1))
    assert order == [*numbers[:warm_up], "ready", "opened", *numbers[warm_up:], "closed"]


def test_long_code_is_a_loop() -> None:
    """However large the number, a block is written out once, and the rest behind it."""
    assert written_out("f()", 10**9 + 7).count("f()") == BLOCK + 7 + 1


def test_strings_over_lines_stay() -> None:
    """No line of the statement is indented, so no string in it changes."""
    seen: list[str] = []
    names = {"seen": seen, "call": lambda: None}
    code = statement_code(
        "seen.append('''a\n b''')", 300, 1, ready="call", opened="call", closed="call"
    )
    exec(code, names)
    assert set(seen) == {"a\n b"}
    assert len(seen) == 301


def test_requests_in_c() -> None:
    """The compiled program makes the same requests as ``requests``."""
    source = program_source("x;", "int x;", "#include <x.h>")
    for name in ("_TOGGLE_COLLECT", "_DUMP_STATS_AT", "_START_INSTRUMENTATION"):
        assert f"({getattr(requests, name):#x}, " in source
    assert source.startswith('#line 1 "<global_setup>"\n#include <x.h>\n')


def test_no_compiler(tmp_path: Path) -> None:
    """The error says what was looked for, and what to install."""
    with pytest.raises(
        InstrcountError, match=r"looked for c\+\+, g\+\+, clang\+\+ and \$CXX.*\n  fix: "
    ):
        find_compiler("c++", {"PATH": str(tmp_path)})
    with pytest.raises(InstrcountError, match=r"looked for 'mycc' \(\$CC\) \[compiler-missing\]"):
        find_compiler("c", {"PATH": os.defpath, "CC": "mycc -O3"})


def test_compiler_with_options(tmp_path: Path) -> None:
    """$CC may hold options; $CFLAGS and $LDFLAGS come before and behind the source."""
    compiler = tmp_path / "mycc"
    compiler.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    compiler.chmod(0o700)
    variables = {
        "PATH": f"{tmp_path}:{os.defpath}",
        "CC": "mycc -a",
        "CFLAGS": "-b 'c d'",
        "LDFLAGS": "-le",
    }
    (tmp_path / "tmp").mkdir()
    with pytest.raises(InstrcountError) as caught:
        compile_program("c", "", tmp_path, variables, 60)
    assert caught.value.slug == "compiler-failed"
    assert "-a -O2 -g -w -b c d statement.c -o statement -le" in caught.value.why


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where scratch folders are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def made(scratch: Path) -> Any:
    """A launch that starts nothing."""
    made = Launch("/bin/false")
    yield made
    made.end()
    assert not list(scratch.iterdir())


def test_dumps_in_pairs(made: Launch) -> None:
    """Of two dumps the second counts; those of a process are taken in the order of their numbers."""
    for name in ("out.7", "out.7.9", "out.7.10", "out.7.11", "out.7.12", "out.30.1", "out.30.2"):
        (made.path / "dumps" / name).write_text(name)
    (made.path / DUMPS).write_text("30\n7\n7\n")
    assert made.read_dumps(3) == ["out.30.2", "out.7.10", "out.7.12"]


@pytest.mark.parametrize("pids", ["", "7\n", "8\n7\n"])
def test_missing_dumps(made: Launch, pids: str) -> None:
    """An error, never fewer counts."""
    (made.path / "dumps" / "out.7.1").write_text("one alone")
    (made.path / DUMPS).write_text(pids)
    with pytest.raises(
        InstrcountError, match=r"left 0 counts of the statement, not 2\s.*\[no-dump\]"
    ):
        made.read_dumps(2)


Answer = Callable[..., dict[str, Any]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> Any:
    """Servers that start nothing and tell what they are given to tell."""
    told: list[Any] = []
    started: list[Any] = []

    def start(self: Launch, command: Any, environment: Any, folder: str, stdin: int = 0) -> None:
        started.append(self)

    def ask(self: Any, order: Any, seconds: float, *, may_compile: bool) -> Any:
        answer = told.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(Launch, "start", start)
    monkeypatch.setattr(Launch, "alive", True)
    monkeypatch.setattr(Launch, "wait_status", lambda self: 9)
    monkeypatch.setattr(Launch, "read_dumps", lambda self, number: ["text"] * number)
    monkeypatch.setattr(statements.Server, "ask", ask)
    yield SimpleNamespace(told=told, started=started)
    statements.end_kept()
    assert not list(scratch.iterdir())


def around(*imports: str) -> statements.LaunchContext:
    return statements.LaunchContext("v", "python", {}, "/", [], list(imports), False)


ORDER = statements.Order("1", "pass", (), 100, 2, True, False)
COUNTED = {"kind": "counted"}


def test_a_process_is_ended(server: Any) -> None:
    """One for each statement, unless its start was dear."""
    server.told += [COUNTED, COUNTED]
    assert statements.count_statement(around(), ORDER, 1) == ["text"] * 3
    assert statements.count_statement(around(), ORDER, 1) == ["text"] * 3
    assert len(server.started) == 2


def test_a_dear_process_is_kept(server: Any) -> None:
    """It serves the next statement that wants the same, even after one that raised."""
    raised = {"kind": "raised", "traceback": "ZeroDivisionError", "loading": ""}
    server.told += [COUNTED, raised, COUNTED, COUNTED]
    statements.count_statement(around("torch"), ORDER, 1)
    with pytest.raises(InstrcountError, match=r"ZeroDivisionError \[statement\]"):
        statements.count_statement(around("torch"), ORDER, 1)
    statements.count_statement(around("torch"), ORDER, 1)
    assert len(server.started) == 1
    statements.count_statement(around("torch", "more"), ORDER, 1)
    assert len(server.started) == 2


def test_a_kept_process_that_is_gone(server: Any) -> None:
    """Another is started; only where that one goes as well it is an error."""
    server.told += [
        COUNTED,
        statements._Closed(),
        COUNTED,
        statements._Closed(),
        statements._Closed(),
    ]
    statements.count_statement(around("torch"), ORDER, 1)
    statements.count_statement(around("torch"), ORDER, 1)
    assert len(server.started) == 2
    with pytest.raises(
        InstrcountError, match=r"was killed by SIGKILL under Valgrind.*\[process-died\]"
    ):
        statements.count_statement(around("torch"), ORDER, 1)


def test_compiled_modules_are_imported_again(server: Any) -> None:
    """A process that wrote byte code counts nothing; a new one that only reads it does."""
    server.told += [{"kind": "compiled"}, COUNTED]
    statements.count_statement(around("torch"), ORDER, 1)
    assert len(server.started) == 2


def test_interrupt(server: Any) -> None:
    """Ctrl-C ends the process."""
    server.told += [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        statements.count_statement(around("torch"), ORDER, 1)


def test_what_cannot_be_loaded(server: Any) -> None:
    """The advice names the global."""
    server.told += [{"kind": "raised", "traceback": "AttributeError: Net", "loading": "m"}]
    with pytest.raises(InstrcountError, match=r"fix: m=CopyIfCallgrind\(\.\.\., setup="):
        statements.count_statement(around(), ORDER, 1)


@pytest.mark.parametrize(
    ("known", "unknown", "has"), [(0, 0, True), (5, 5, True), (4, 5, False), (0, 1, False)]
)
def test_debug_symbols(known: int, unknown: int, has: bool) -> None:
    """They are there if the source of most of what was counted is known."""
    rows = {"a.c:f": Row(known, 1), "???:0x51f6f0 [python3.11]": Row(unknown, 1)}
    assert has_debug_symbols(Profile(known + unknown, rows)) is has


def test_public_names() -> None:
    """They are what ``from pytest_instrcount import`` gives."""
    assert {"Timer", "CopyIfCallgrind", "GlobalsBridge", "Language"} <= set(
        pytest_instrcount.__all__
    )


@pytest.mark.parametrize("name", ["label", "sub_label", "description", "env"])
def test_labels_are_text(name: str) -> None:
    """Said at once, not when the result is shown."""
    arguments: dict[str, Any] = {name: 3}
    with pytest.raises(TypeError, match=f"{name} is a str or None, not int"):
        Timer("pass", **arguments)


@pytest.mark.parametrize("name", ["a b", "for", "", 3])
def test_globals_are_names(name: Any) -> None:
    """What no statement could use is a mistake."""
    with pytest.raises(ValueError, match="is no name that a statement could use"):
        Timer("pass", globals={name: CopyIfCallgrind(3)})
