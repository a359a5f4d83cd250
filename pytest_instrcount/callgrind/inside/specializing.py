"""For what CPython specialises byte code: the calls of one test, and nothing that ran before them.

A site that meets many types is specialised again and again, or fails to be, each time after more
executions. How many of these attempts fall into the counted calls depends on how often it ever ran.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

_monitoring: Any = getattr(sys, "monitoring", None)
#: What 3.12 combines out of two instructions, in new code alone, would stay apart.
CAN_FORGET = sys.version_info >= (3, 13)


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
