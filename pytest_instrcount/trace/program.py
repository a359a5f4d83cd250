"""A script or a module run as ``__main__`` under the tracer, as ``python`` would run it."""

from __future__ import annotations

import atexit
import builtins
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from traceback import format_exception_only
from types import CodeType, FunctionType, ModuleType
from zipimport import ZipImportError, zipimporter

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.own import is_own, transparent
from pytest_instrcount.trace.tracer import Tracer

_UNLOADABLE = ImportError, SyntaxError, ValueError


@dataclass(frozen=True, slots=True)
class Program:
    """What becomes ``__main__``, and what its ``sys.argv[0]`` is."""

    code: CodeType
    module: ModuleType
    path: str


def load_script(path: str) -> Program:
    """The script of a file, whose folder becomes the first that modules are found in; or of an archive.

    Raises InstrcountError ``trace-program`` if it cannot be read or compiled.
    """
    if os.path.isdir(path) or _is_archive(path):
        # as python does, also where the working folder is not looked into
        sys.path[:] = [path, *sys.path[not sys.flags.safe_path :]]
        try:
            return _program_of("__main__", "there is no __main__.py in it", path)
        except _UNLOADABLE as error:
            raise _cannot_run(path, error, f"python {path}") from error
    file = os.path.abspath(path)
    loader = SourceFileLoader("__main__", file)
    try:
        code = loader.source_to_code(loader.get_data(file), file)
    except (OSError, SyntaxError, ValueError) as error:
        raise _cannot_run(path, error, "give the path of a Python script, or -m MODULE") from error
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    names = {"__file__": file, "__loader__": loader, "__spec__": None, "__package__": None}
    return Program(code, _main_module(names | {"__cached__": None}), path)


def _is_archive(path: str) -> bool:
    try:
        zipimporter(path)
    except ZipImportError:
        return False
    return True


@transparent
def load_module(name: str) -> Program:
    """A module, or the ``__main__`` of a package; packages around it are imported.

    Raises InstrcountError ``trace-program`` if there is none, or it is not written in Python.
    """
    package, main = name.rpartition(".")[0], f"{name}.__main__"
    try:
        if package:
            __import__(package)
        if not _is_package(name):
            return _program_of(name, f"there is no such module as {name}")
        __import__(name)
        return _program_of(main, f"{name} is a package that has no module {main}")
    except _UNLOADABLE as error:
        raise _cannot_run(name, error, f"python -m {name}") from error


def _is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def _program_of(name: str, why_not: str, folder: str = "") -> Program:
    # of a folder or archive: our own __main__ is not meant
    spec = PathFinder.find_spec(name, [folder]) if folder else importlib.util.find_spec(name)
    loader = None if spec is None else spec.loader
    code = loader.get_code(name) if hasattr(loader, "get_code") else None  # type: ignore[union-attr]
    if spec is None or code is None:
        raise ImportError(why_not)
    names = {"__file__": spec.origin, "__loader__": loader, "__spec__": spec}
    names |= {"__cached__": spec.cached, "__package__": spec.parent}
    return Program(code, _main_module(names), folder or spec.origin or name)


def _main_module(names: Mapping[str, object]) -> ModuleType:
    module = ModuleType("__main__")
    if sys.version_info < (3, 14):
        names = {**names, "__annotations__": {}}
    vars(module).update(names, __builtins__=builtins)
    return module


def _cannot_run(what: str, why: object, fix: str) -> InstrcountError:
    if isinstance(why, SyntaxError):  # with its line
        why = "".join(format_exception_only(why)).rstrip()
    return InstrcountError("trace-program", f"{what} cannot be run: {why}", fix)


@transparent
def run_program(
    load: Callable[[], Program], argv: Sequence[str], tracer: Tracer, *, to_the_end: bool = False
) -> int:
    """Run it, and the threads that Python waits for, under the tracer; returns its exit code.

    ``load`` imports the packages around a module, which is a part of the program: ``argv`` begins with
    ``-m`` then. ``to_the_end``: with the functions of ``atexit``; one of them ends what multiprocessing
    started. Raises InstrcountError ``trace-program`` as ``load`` does.
    """
    sys.argv = [*argv]

    @transparent
    def body() -> None:
        program = load()
        sys.modules["__main__"] = program.module
        sys.argv[:1] = [program.path]
        # not exec(): with builtins traced, what our frames call of them is ours
        FunctionType(program.code, vars(program.module))()

    code = 0
    at_end = (_run_exit_functions,) if to_the_end else ()
    with tracer, TaskFinder(tracer):
        for part in (body, _wait_for_threads, *at_end):
            try:
                part()
            except BaseException as error:
                if isinstance(error, InstrcountError) and error.slug == "trace-program":
                    raise
                code = _exit_code(error)
    return code


class TaskFinder:
    """Looks, at each import, whether asyncio is there by now, and has greenlet found by the others."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._watches_tasks = False

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        self._watches_tasks = self._watches_tasks or self._tracer.watch_tasks()
        if name != "greenlet":
            return None
        self.__exit__()
        spec = importlib.util.find_spec(name)
        self.__enter__()
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            @transparent
            def execute_and_watch(module: ModuleType) -> None:
                execute(module)
                self._tracer.watch_greenlets()

            vars(spec.loader)["exec_module"] = execute_and_watch
        return spec

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
        _say(error.code)
        return 1
    trace = error.__traceback__
    while trace is not None and is_own(trace.tb_frame.f_code):
        trace = trace.tb_next
    try:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except SystemExit as ended:
        return _exit_code(ended)
    except BaseException as failed:
        behind_us = failed.__traceback__.tb_next if failed.__traceback__ else None
        _say("Error in sys.excepthook:")
        sys.__excepthook__(type(failed), failed.with_traceback(behind_us), behind_us)
        _say("\nOriginal exception was:")
        sys.__excepthook__(type(error), error, trace)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _say(what: object) -> None:
    stream = sys.stderr or sys.__stderr__
    if stream is not None:
        with suppress(Exception):  # its own __str__ may fail
            print(what, file=stream)


def _run_exit_functions() -> None:
    atexit._run_exitfuncs()


def _wait_for_threads() -> None:
    # as at the end of Python, which does nothing then: executors end their threads, and others are joined
    threading._shutdown()  # type: ignore[attr-defined]
