"""How this Python was started, for the one under Valgrind to be started alike."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence

from pytest_instrcount.errors import InstrcountError

#: The newest CPython that ``tests/newest`` has run on.
NEWEST_TRIED = 3, 15

#: Values of ``-X`` that change what code runs or where it lies, and the variable that does the same.
_VARIABLES = {
    "context_aware_warnings": "PYTHON_CONTEXT_AWARE_WARNINGS",
    "dev": "PYTHONDEVMODE",
    "frozen_modules": "PYTHON_FROZEN_MODULES",
    "int_max_str_digits": "PYTHONINTMAXSTRDIGITS",
    "lazy_imports": "PYTHON_LAZY_IMPORTS",
    "no_debug_ranges": "PYTHONNODEBUGRANGES",
    "thread_inherit_context": "PYTHON_THREAD_INHERIT_CONTEXT",
    "warn_default_encoding": "PYTHONWARNDEFAULTENCODING",
}
#: Those that are the same in every measurement, or reach it in another way.
_SETTLED = frozenset(("cpu_count", "pycache_prefix", "utf8"))
#: Switches: any value of the variable is the bare option.
_SWITCHES = frozenset(("dev", "no_debug_ranges", "warn_default_encoding"))


def own_options() -> list[str]:
    """The options of Python under Valgrind, for code to run there as it does here; most often none."""
    variables = {} if sys.flags.ignore_environment else os.environ
    return options_for(sys.flags.optimize, sys.flags.bytes_warning, sys._xoptions, variables)


def options_for(
    optimize: int, bytes_warning: int, given: Mapping[str, str | bool], variables: Mapping[str, str]
) -> list[str]:
    """The same, from what was given.

    >>> options_for(1, 0, {"importtime": True, "dev": True}, {"PYTHON_LAZY_IMPORTS": "all"})
    ['-O', '-Xdev', '-Xlazy_imports=all']
    """
    options = ["-O"] * optimize + ["-b"] * bytes_warning
    for name, variable in _VARIABLES.items():
        value = given.get(name, variables.get(variable) or None)
        if value is not None:
            bare = value is True or name in _SWITCHES
            options.append(f"-X{name}" if bare else f"-X{name}={value}")
    return options


def dropped_options() -> list[str]:
    """The ``-X`` options that do not reach Python under Valgrind."""
    return [f"-X {name}" for name in sys._xoptions if name not in {*_VARIABLES, *_SETTLED}]


def build_facts(options: Sequence[str]) -> dict[str, str]:
    """What two comparable measurements share beside versions; without what is as usual."""
    jit = getattr(sys, "_jit", None)
    told = [*options, *(["jit"] if jit is not None and jit.is_enabled() else [])]
    return {"options": " ".join(told)} if told else {}


def untried_version() -> str:
    """That this CPython is newer than any that was tried; most often nothing."""
    if sys.version_info[:2] <= NEWEST_TRIED:
        return ""
    return "{}.{} is newer than {}.{}, the newest CPython that was tried".format(
        *sys.version_info[:2], *NEWEST_TRIED
    )


def check_build() -> None:
    """Raise InstrcountError ``python-build`` for a Python whose counts nobody has tried."""
    if sys.implementation.name != "cpython":
        what = f"this is {sys.implementation.name}, and what is counted are CPython's instructions"
    elif sysconfig.get_config_var("Py_GIL_DISABLED"):
        what = "this is a free-threaded build of CPython, whose counts are untried"
    else:
        return
    raise InstrcountError("python-build", what, "measure with the usual build of CPython")
