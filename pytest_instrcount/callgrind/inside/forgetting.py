"""What ran before a test, imports and pytest itself, leaves traces that would move its count.

CPython specialises byte code for what runs it: a site that meets many types again and again, each
time after more executions, so that it depends on how often it ever ran whether that happens in the
counted calls. What imports did is forgotten once for all tests of a file, what set-up and pytest did
in each. And the library keeps tables for the whole process: a look-up in one that is fuller, or
filled in another order, probes more slots.
"""

from __future__ import annotations

import functools
import gc
import re
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import getweakrefcount

_monitoring: Any = getattr(sys, "monitoring", None)
#: What 3.12 combines out of two instructions, in new code alone, would stay apart.
CAN_FORGET = sys.version_info >= (3, 13)
_CACHE = type(functools.cache(len))

#: Of what is immortal; nothing else has as many references.
_IMMORTAL = 1 << 29

#: What empties the tables of the library, one each.
_tables: list[Callable[[], object]] = []


def immortalize_names() -> None:
    """Make the names of modules immortal, as ``import NAME`` in any module makes one.

    From 3.12 on references to what is immortal are not counted: a function that is made, and ends, is a few
    instructions cheaper once some module has imported its own by the full name.
    """
    if sys.version_info < (3, 12):
        return
    names = []
    for module in [*sys.modules.values()]:
        # not by the module's own way, which may load it
        values = (
            object.__getattribute__(module, "__dict__") if isinstance(module, ModuleType) else {}
        )
        name = values.get("__name__")
        if type(name) is str and sys.getrefcount(name) < _IMMORTAL:
            values["__name__"] = sys.intern(name)
            names.append(name)
    immortalize_names.__code__.replace(co_names=tuple(names))


def find_tables() -> None:
    """Know the tables of the library that have been imported, so that no test has to look for them."""
    structs: Any = struct
    _tables[:] = [re.purge, structs._clearcache]
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in sys.stdlib_module_names and type(module) is ModuleType:
            caches = (each for each in vars(module).values() if type(each) is _CACHE)
            _tables.extend(each.cache_clear for each in caches)


def empty_tables(*, once: bool = False) -> None:
    """Have those tables hold what a test puts there.

    ``once``: a call that is not repeated finds what there is, and does not count the filling.
    """
    for clear in () if once else _tables:
        clear()


@contextmanager
def specialized_anew() -> Iterator[None]:
    """Whatever function begins meanwhile has the byte code of one that was never called."""
    if not CAN_FORGET or _monitoring.get_tool(_monitoring.OPTIMIZER_ID) is not None:
        yield
        return
    tool, events = _monitoring.OPTIMIZER_ID, _monitoring.events

    def forget(code: CodeType, _: int) -> object:
        others = filter(_monitoring.get_tool, {*range(6)} - {tool})
        if any(_monitoring.get_local_events(each, code) for each in others):  # which it would lose
            return _monitoring.DISABLE
        # each instruction is put back as it was compiled, and its counters begin anew
        _monitoring.set_local_events(tool, code, events.INSTRUCTION)
        _monitoring.set_local_events(tool, code, events.NO_EVENTS)
        return _monitoring.DISABLE

    _monitoring.use_tool_id(tool, "pytest-instrcount")
    _monitoring.register_callback(tool, events.PY_START, forget)
    _monitoring.set_events(tool, events.PY_START)
    try:
        yield
    finally:
        _monitoring.set_events(tool, events.NO_EVENTS)
        _monitoring.register_callback(tool, events.PY_START, None)
        _monitoring.free_tool_id(tool)


def functions_alive() -> list[FunctionType]:
    """The Python functions that the collector knows and has not frozen."""
    return [each for each in gc.get_objects() if type(each) is FunctionType]


def forget_adaptation(functions: list[FunctionType]) -> None:
    """Give functions code that has not adapted to anything yet; code that somebody looks up by has to stay."""
    made: dict[int, tuple[CodeType, CodeType]] = {}

    def fresh(code: CodeType) -> CodeType:
        if getweakrefcount(code):  # as in trio's table of what no Ctrl-C may interrupt
            return code
        if id(code) not in made:
            consts = tuple(fresh(c) if type(c) is CodeType else c for c in code.co_consts)
            made[id(code)] = code, code.replace(co_consts=consts)
        return made[id(code)][1]

    for each in functions:
        each.__code__ = fresh(each.__code__)
