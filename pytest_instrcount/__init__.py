"""Instruction counts of pytest tests under Valgrind's Callgrind, gated against baselines.

PYTEST_DONT_REWRITE: inside Valgrind this package is imported before pytest can rewrite asserts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_instrcount.callgrind.timer.copied import CopyIfCallgrind, GlobalsBridge
    from pytest_instrcount.callgrind.timer.timer import Language, Timer
    from pytest_instrcount.config.child_spec import ChildSpec
    from pytest_instrcount.counts.function_counts import FunctionCount, FunctionCounts
    from pytest_instrcount.counts.stats import CallgrindStats
    from pytest_instrcount.errors import InstrcountError, InstrcountWarning
    from pytest_instrcount.fixtures.instrcount import InstrCount
    from pytest_instrcount.fixtures.trace.fixture import TraceProfile
    from pytest_instrcount.gate.gate import Verdict
    from pytest_instrcount.gate.limit import Limit
    from pytest_instrcount.gate.records import RunSummary, TestResult
    from pytest_instrcount.trace.columns import Parameter
    from pytest_instrcount.trace.events.event_list import EventList
    from pytest_instrcount.trace.events.function_event import FunctionEvent
    from pytest_instrcount.trace.events.nvprof import load_nvprof
    from pytest_instrcount.trace.events.profile import profile
    from pytest_instrcount.trace.events.record import RecordProfile
    from pytest_instrcount.trace.ranges.emit import emit_itt, emit_nvtx
    from pytest_instrcount.trace.ranges.ranges import record_function
    from pytest_instrcount.trace.ranges.session import mark
    from pytest_instrcount.trace.ranges.steps import StepTracker
    from pytest_instrcount.trace.ranges.unique import EnforceUnique
    from pytest_instrcount.trace.recognize import Recognizer, recognize_class

__version__ = "0.1.0"
__all__ = [
    "CallgrindStats",
    "ChildSpec",
    "CopyIfCallgrind",
    "EnforceUnique",
    "EventList",
    "FunctionCount",
    "FunctionCounts",
    "FunctionEvent",
    "GlobalsBridge",
    "InstrCount",
    "InstrcountError",
    "InstrcountWarning",
    "Language",
    "Limit",
    "Parameter",
    "Recognizer",
    "RecordProfile",
    "RunSummary",
    "StepTracker",
    "TestResult",
    "Timer",
    "TraceProfile",
    "Verdict",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "mark",
    "profile",
    "recognize_class",
    "record_function",
]

# Where the public names are. pytest imports this package at every start, so they are imported when
# they are asked for, and not before.
_HOMES = {
    "CallgrindStats": "counts.stats",
    "ChildSpec": "config.child_spec",
    "CopyIfCallgrind": "callgrind.timer.copied",
    "EnforceUnique": "trace.ranges.unique",
    "EventList": "trace.events.event_list",
    "FunctionCount": "counts.function_counts",
    "FunctionCounts": "counts.function_counts",
    "FunctionEvent": "trace.events.function_event",
    "GlobalsBridge": "callgrind.timer.copied",
    "InstrCount": "fixtures.instrcount",
    "InstrcountError": "errors",
    "InstrcountWarning": "errors",
    "Language": "callgrind.timer.timer",
    "Limit": "gate.limit",
    "Parameter": "trace.columns",
    "Recognizer": "trace.recognize",
    "RecordProfile": "trace.events.record",
    "RunSummary": "gate.records",
    "StepTracker": "trace.ranges.steps",
    "TestResult": "gate.records",
    "Timer": "callgrind.timer.timer",
    "TraceProfile": "fixtures.trace.fixture",
    "Verdict": "gate.gate",
    "emit_itt": "trace.ranges.emit",
    "emit_nvtx": "trace.ranges.emit",
    "load_nvprof": "trace.events.nvprof",
    "mark": "trace.ranges.session",
    "profile": "trace.events.profile",
    "recognize_class": "trace.recognize",
    "record_function": "trace.ranges.ranges",
}


if not TYPE_CHECKING:  # it would make any name a known one

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        # the next time it is found without this function
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
