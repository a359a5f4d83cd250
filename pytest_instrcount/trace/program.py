"""A script or a module run as ``__main__`` under the tracer, as ``python`` would run it."""

from __future__ import annotations

import atexit
import builtins
import importlib.util
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType, ModuleType

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.own import is_own, transparent
from pytest_instrcount.trace.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Program:
    """What becomes ``__main__``, and what its ``sys.argv[0]`` is."""

    code: CodeType
    module: ModuleType
    path: str


def load_script(path: str) -> Program:
    """The script of a file, whose folder becomes the first that modules are found in.

    Raises InstrcountError ``trace-program`` if it cannot be read or compiled.
    """
    file = os.path.abspath(path)
    loader = SourceFileLoader("__main__", file)
    try:
        code = loader.source_to_code(loader.get_data(file), file)
    except (OSError, SyntaxError, ValueError) as error:
        raise _cannot_run(path, error, "give the path of a Python script, or -m MODULE") from error
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    names = {"__file__": file, "__loader__": loader, "__spec__": None, "__package__": None}
    return Program(code, _main_module(names), path)


def load_module(name: str) -> Program:
    """A module, or the ``__main__`` of a package; packages around it are imported.

    Raises InstrcountError ``trace-program`` if there is none, or it is not written in Python.
    """
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
        loader = None if spec is None else spec.loader
        code = loader.get_code(spec.name) if hasattr(loader, "get_code") else None  # type: ignore[union-attr]
    except (ImportError, SyntaxError, ValueError) as error:
        raise _cannot_run(name, error, f"python -m {name}") from error
    if spec is None or code is None:
        raise _cannot_run(name, "there is no such module", f"python -m {name}")
    names = {"__file__": spec.origin, "__loader__": loader, "__spec__": spec}
    path = spec.origin or name
    return Program(code, _main_module(names | {"__package__": spec.parent}), path)


def _main_module(names: Mapping[str, object]) -> ModuleType:
    module = ModuleType("__main__")
    vars(module).update(names, __builtins__=builtins)
    return module


def _cannot_run(what: str, why: object, fix: str) -> InstrcountError:
    return InstrcountError("trace-program", f"{what} cannot be run: {why}", fix)


@transparent
def run_program(
    program: Program, arguments: Sequence[str], tracer: Tracer, *, to_the_end: bool = False
) -> int:
    """Run it, and the threads that Python waits for, under the tracer; returns its exit code.

    ``to_the_end``: with the functions of ``atexit``; one of them ends what multiprocessing started.
    """
    sys.modules["__main__"] = program.module
    sys.argv = [program.path, *arguments]
    # not exec(): with builtins traced, what our frames call of them is ours
    body = FunctionType(program.code, vars(program.module))
    code = 0
    at_end = (_run_exit_functions,) if to_the_end else ()
    with tracer, TaskFinder(tracer):
        for part in (body, _wait_for_threads, *at_end):
            try:
                part()
            except BaseException as error:
                code = _exit_code(error)
    return code


class TaskFinder:
    """Finds no module; it looks, at each import, whether asyncio is there by now."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def find_spec(self, *_: object) -> None:
        if self._tracer.watch_tasks():
            self.__exit__()

    def __enter__(self) -> None:
        """Begin to look."""
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _exit_code(error: BaseException) -> int:
    """The exit code of a program that ends with this; what Python says then is said."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    trace = error.__traceback__
    while trace is not None and is_own(trace.tb_frame.f_code):
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _run_exit_functions() -> None:
    atexit._run_exitfuncs()


def _wait_for_threads() -> None:
    # as at the end of Python, which does nothing then: executors end their threads, and others are joined
    threading._shutdown()  # type: ignore[attr-defined]
