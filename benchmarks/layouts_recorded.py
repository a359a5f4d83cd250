"""Pytest with --instrcount, and each test counted in many more layouts of memory.

    python benchmarks/layouts_recorded.py RECORD FIRST LAST KEPT ARGS...

Runs pytest with the arguments. Before Valgrind ends, each test that was counted is counted again in
the layouts FIRST to LAST of ``layout.disturb``, repeated as often as by the run itself. RECORD is a
pickle: nodeid -> ``calls``, ``warmup``, ``totals`` (layout -> raw instructions over all calls) and
``profiles`` (layout -> `Profile` under standard names, of the layouts up to KEPT). It grows by one
layout at a time: a run that was ended early leaves what it had. Only the native pytest is patched.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pytest_instrcount.starting
from pytest_instrcount.callgrind.zygote import Order, Problem, Zygote
from pytest_instrcount.measuring import read_profile

Message = dict[str, Any]


class Recording(Zygote):
    """The zygote, which asks for more before it ends."""

    record: Path
    layouts: range
    kept: int

    def ask(self, orders: Sequence[Order]) -> int:
        """As the zygote does."""
        first = super().ask(orders)
        known = self.__dict__.setdefault("orders", {})
        known |= {first + offset: order for offset, order in enumerate(orders)}
        return first

    def wait(self, index: int, glance: Callable[[], None]) -> Message | Problem:
        """As the zygote does; notes how often the test was repeated."""
        answer = super().wait(index, glance)
        order: Order = self.__dict__["orders"][index]
        usual = order.layout == 0 and not order.by_python and not order.trace
        if usual and isinstance(answer, dict) and answer["counted"]:
            warmup, calls = answer["counted"]
            again = replace(order, warmup=warmup, calls=calls, pilot=False)
            self.__dict__.setdefault("counted", {})[order.nodeid] = again
        return answer

    def end(self) -> None:
        """Count all tests again in all layouts, then end."""
        counted = self.__dict__.pop("counted", {})
        try:
            if counted:
                self._count_in_layouts(list(counted.values()))
        finally:
            super().end()

    def _count_in_layouts(self, orders: list[Order]) -> None:
        orders.sort(key=lambda order: order.path)
        found: dict[str, Message] = {
            each.nodeid: {"calls": each.calls, "warmup": each.warmup, "totals": {}, "profiles": {}}
            for each in orders
        }
        index = super().ask([replace(o, layout=layout) for layout in self.layouts for o in orders])
        for layout in self.layouts:
            for order in orders:
                answer = super().wait(index, lambda: None)
                index += 1
                if isinstance(answer, Problem) or len(answer["dumps"]) < 2:
                    continue  # who reads the record sees the gap
                profile = read_profile(answer)
                found[order.nodeid]["totals"][layout] = profile.total
                if layout <= self.kept:
                    found[order.nodeid]["profiles"][layout] = profile
            partial = self.record.with_suffix(".partial")
            partial.write_bytes(pickle.dumps(found, pickle.HIGHEST_PROTOCOL))
            partial.replace(self.record)
            print(f"layout {layout} of {self.layouts[-1]}", file=sys.stderr, flush=True)


def main() -> None:
    """Run pytest as ``python -m pytest`` does."""
    record, first, last, kept, *args = sys.argv[1:]
    sys.path[0] = os.getcwd()
    Recording.record = Path(record)
    Recording.layouts, Recording.kept = range(int(first), int(last) + 1), int(kept)
    pytest_instrcount.starting.Zygote = Recording  # type: ignore[misc]
    sys.exit(pytest.main(args))


if __name__ == "__main__":
    main()
