"""What ran before a test, imports and pytest itself, leaves traces that would move its count.

CPython specialises byte code for what runs it: a site that meets many types again and again, each
time after more executions, so that it depends on how often it ever ran whether that happens in the
counted calls. And the library keeps tables for the whole process: a look-up in one that is fuller,
or filled in another order, probes more slots.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

_monitoring: Any = getattr(sys, "monitoring", None)
#: What 3.12 combines out of two instructions, in new code alone, would stay apart.
CAN_FORGET = sys.version_info >= (3, 13)


def empty_tables(*, once: bool = False) -> None:
    """Have the tables of the library that are looked into by strings hold what a test puts there.

    ``once``: a call that is not repeated finds what there is, and does not count the filling.
    """
    if once:
        return
    re.purge()
    clear: Any = struct
    clear._clearcache()


@contextmanager
def specialized_anew() -> Iterator[None]:
    """Whatever function begins meanwhile has the byte code of one that was never called."""
    if not CAN_FORGET or _monitoring.get_tool(_monitoring.OPTIMIZER_ID) is not None:
        yield
        return
    tool, events = _monitoring.OPTIMIZER_ID, _monitoring.events

    def forget(code: CodeType, _: int) -> object:
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
