"""``Timer``: the instructions of a statement, in a script or a notebook, without pytest."""

from __future__ import annotations

import ast
import enum
import keyword
import math
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, overload

from pytest_instrcount.callgrind.command import child_environment
from pytest_instrcount.callgrind.facts import find_valgrind
from pytest_instrcount.callgrind.timer.compiled import compile_program, program_source
from pytest_instrcount.callgrind.timer.copied import (
    PLAIN,
    CopyIfCallgrind,
    check_globals,
    loaded_torch,
    send_globals,
)
from pytest_instrcount.callgrind.timer.launch import Launch, count_program
from pytest_instrcount.callgrind.timer.loop import STATEMENT, statement_code
from pytest_instrcount.callgrind.timer.statement import DUMPS, WARM_UP
from pytest_instrcount.callgrind.timer.statements import LaunchContext, Order, count_statement
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile
from pytest_instrcount.counts.standardize import source_file
from pytest_instrcount.counts.stats import CallgrindStats
from pytest_instrcount.counts.task import TaskSpec


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1
    C = 2


_LANGUAGES = {"python": "python", "py": "python", "c": "c", "c++": "c++", "cpp": "c++"}
#: Variables by which numerical libraries learn how many threads to use.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def _refusing(method: str) -> Callable[..., NoReturn]:
    """A method of torch's Timer that this one does not have."""

    def refuse(self: Timer, *_: Any, **__: Any) -> NoReturn:
        """Raise NotImplementedError: this Timer reads no clock."""
        raise NotImplementedError(
            f"Timer.{method} measures time, and this Timer reads no clock: what it counts does not "
            "depend on the load of the machine. Use collect_callgrind(); for wall time, "
            "timeit.Timer or torch.utils.benchmark.Timer"
        )

    refuse.__name__, refuse.__qualname__ = method, f"Timer.{method}"
    return refuse


class Timer:
    """Counts the instructions of a statement under Valgrind's Callgrind.

    The arguments are those of ``torch.utils.benchmark.Timer``. The statement runs in a process of
    its own, by ``sys.executable``, at the top level of a module: the names that ``setup`` and
    ``globals`` make are globals.

    >>> from pytest_instrcount import CopyIfCallgrind, Timer
    >>> timer = Timer("sorted(data)", "data = list(range(n))", globals={"n": CopyIfCallgrind(100)})
    >>> stats = timer.collect_callgrind(number=10)  # doctest: +SKIP
    """

    #: After so long under Valgrind a statement is given up. May be set on the class or an object.
    timeout_seconds: float = 600.0

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: object = None,
        globals: Mapping[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = Language.PYTHON,
    ) -> None:
        """Say what is to be counted; nothing is run yet.

        ``language`` is a `Language`, "python", "c" or "c++"; ``global_setup`` is what stands at the
        top of a file in C or C++; ``timer``, a clock, is not used. ``label``, ``sub_label``,
        ``description`` and ``env`` are shown with the counts. Raises TypeError, ValueError, and
        SyntaxError for a statement that is no Python.
        """
        _check_texts({"stmt": stmt, "setup": setup, "global_setup": global_setup})
        labels = {"label": label, "sub_label": sub_label, "description": description, "env": env}
        _check_texts({name: text for name, text in labels.items() if text is not None}, " or None")
        _check_names(globals or {})
        # by the name of an enum, torch's as well
        wanted = str(getattr(language, "name", language)).lower()
        if wanted not in _LANGUAGES:
            raise ValueError(f'language is "python", "c" or "c++", not {language!r}')
        _check_numbers(num_threads=num_threads)
        self._language = _LANGUAGES[wanted]
        self._globals = dict(globals or {})
        stmt, setup = _undented(stmt), _undented(setup)
        if self._language == "python":
            if global_setup:
                raise ValueError("global_setup is for C and C++: put it into setup")
            _check_python(stmt, setup)
        elif setup == "pass":
            setup = ""
        self._task_spec = TaskSpec(
            stmt, setup, _undented(global_setup), label, sub_label, description, env, num_threads
        )

    def __repr__(self) -> str:
        return f"Timer({self._task_spec.title!r})"

    @overload
    def collect_callgrind(
        self,
        number: int = ...,
        *,
        repeats: None = ...,
        collect_baseline: bool = ...,
        retain_out_file: bool = ...,
    ) -> CallgrindStats: ...

    @overload
    def collect_callgrind(
        self,
        number: int = ...,
        *,
        repeats: int,
        collect_baseline: bool = ...,
        retain_out_file: bool = ...,
    ) -> tuple[CallgrindStats, ...]: ...

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> CallgrindStats | tuple[CallgrindStats, ...]:
        """Run the statement ``number`` times under Callgrind; the counts are over all of them.

        With ``repeats`` that is done so often, each time from the same state, and a tuple comes
        back. The baseline is an empty loop of the same length; there is none for C and C++.
        ``retain_out_file`` keeps what Callgrind wrote, as text, in ``stmt_callgrind_out``.

        Raises ValueError for wrong arguments and for globals that are not wrapped in
        ``CopyIfCallgrind``, and InstrcountError where nothing can be counted: without Valgrind or a
        compiler, or where the statement raises (with its traceback), crashes, or does not end.
        """
        _check_numbers(number=number, repeats=1 if repeats is None else repeats)
        python = self._language == "python"
        baseline = python and collect_baseline
        given = check_globals(self._globals)
        seconds, times = _checked_seconds(float(self.timeout_seconds)), repeats or 1
        if given and not python:
            raise ValueError("globals are for Python: put them into setup or global_setup")
        valgrind, _ = find_valgrind("valgrind")
        if python:
            texts = self._count_python(valgrind, given, number, times, baseline, seconds)
        else:
            texts = self._count_compiled(valgrind, number, times, seconds)
        profiles = [parse_profile(text.splitlines(), source_file) for text in texts]
        empty = profiles.pop() if baseline else None
        stats = tuple(
            CallgrindStats.from_profiles(
                self._task_spec,
                number,
                profile,
                empty,
                built_with_debug_symbols=has_debug_symbols(profile),
                callgrind_out=text if retain_out_file else None,
            )
            for profile, text in zip(profiles, texts)
        )
        return stats[0] if repeats is None else stats

    def _environment(self) -> dict[str, str]:
        made = child_environment(os.environ, (), sys.executable, Path())
        return made | dict.fromkeys(_THREADS, str(self._task_spec.num_threads))

    def _count_python(
        self,
        valgrind: str,
        given: Mapping[str, CopyIfCallgrind],
        number: int,
        repeats: int,
        baseline: bool,
        seconds: float,
    ) -> list[str]:
        task = self._task_spec
        codes = [task.stmt, task.setup, *(_undented(each.setup or "") for each in given.values())]
        torch = loaded_torch() is not None and (
            any(each.serialization != PLAIN for each in given.values())
            or any("torch" in _names(code) for code in codes)
        )
        context = LaunchContext(
            valgrind,
            sys.executable,
            self._environment(),
            os.getcwd(),
            [each or os.getcwd() for each in sys.path if isinstance(each, str)],
            ["torch"] if torch else [],
            sys.dont_write_bytecode,
        )
        with tempfile.TemporaryDirectory(prefix="instrcount") as folder:
            sent = send_globals(given, Path(folder))
            order = Order(task.stmt, task.setup, sent, number, repeats, baseline, torch)
            return count_statement(context, order, seconds)

    def _count_compiled(
        self, valgrind: str, number: int, repeats: int, seconds: float
    ) -> list[str]:
        task = self._task_spec
        source = program_source(task.stmt, task.setup, task.global_setup)
        launch = Launch(valgrind)
        try:
            program = compile_program(self._language, source, launch.path, os.environ, seconds)
            # threads that set-up started would not be in a fork
            forks = task.num_threads == 1
            words = (number, min(number, WARM_UP), repeats, int(forks), launch.path / DUMPS)
            command = [str(program), *map(str, words), str(os.getpid())]
            return count_program(
                launch, command, self._environment(), os.getcwd(), repeats, seconds
            )
        finally:
            launch.end()

    timeit = _refusing("timeit")
    repeat = _refusing("repeat")
    autorange = _refusing("autorange")
    blocked_autorange = _refusing("blocked_autorange")
    adaptive_autorange = _refusing("adaptive_autorange")


def has_debug_symbols(profile: Profile) -> bool:
    """True if the source files of most of what was counted are known.

    >>> from pytest_instrcount.counts.profile import Row
    >>> has_debug_symbols(Profile(9, {"a.c:f": Row(6, 1), "???:0x51f6f0 [python3]": Row(3, 1)}))
    True
    """
    unknown = sum(row.ir for name, row in profile.rows.items() if name.startswith("???:"))
    return 2 * unknown <= profile.total


def _undented(code: str) -> str:
    """Code as it would stand at the top level, without the lines that quotes begin and end with."""
    return textwrap.dedent(code).lstrip("\n").rstrip()


def _check_texts(given: Mapping[str, object], more: str = "") -> None:
    for name, text in given.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} is a str{more}, not {type(text).__name__}")


def _check_names(keys: Iterable[object]) -> None:
    for key in keys:
        if not isinstance(key, str) or not key.isidentifier() or keyword.iskeyword(key):
            raise ValueError(f"globals: {key!r} is no name that a statement could use")


def _check_numbers(**given: object) -> None:
    for name, value in given.items():
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} is 1 or more, not {value!r}")


def _checked_seconds(seconds: float) -> float:
    if not (0 < seconds < math.inf):
        raise ValueError(f"timeout_seconds is a number above 0, not {seconds!r}")
    return seconds


def _check_python(stmt: str, setup: str) -> None:
    """Have the compiler see it here, where its SyntaxError is one of the user's own process."""
    if not ast.parse(stmt, STATEMENT).body:
        raise ValueError("stmt is empty")
    statement_code(stmt, 2, 1, ready="r", opened="o", closed="c")
    compile(setup, "<setup>", "exec", dont_inherit=True)


def _names(code: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
