"""Instruction counts of pytest tests under Valgrind's Callgrind, gated against baselines.

PYTEST_DONT_REWRITE: inside Valgrind this package is imported before pytest can rewrite asserts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_instrcount.counts.function_counts import FunctionCount, FunctionCounts
    from pytest_instrcount.counts.stats import CallgrindStats
    from pytest_instrcount.counts.timer import CopyIfCallgrind, Timer

__version__ = "0.1.0"
__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts", "Timer"]

# Where the public names are. pytest imports this package at every start, so they are imported when
# they are asked for, and not before.
_HOMES = {
    "CallgrindStats": "stats",
    "CopyIfCallgrind": "timer",
    "FunctionCount": "function_counts",
    "FunctionCounts": "function_counts",
    "Timer": "timer",
}


if not TYPE_CHECKING:  # it would make any name a known one

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.counts.{_HOMES[name]}"), name)
        # the next time it is found without this function
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
