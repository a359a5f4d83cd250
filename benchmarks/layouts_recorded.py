"""Pytest with --instrcount, and each test counted in many more layouts of memory.

    python benchmarks/layouts_recorded.py RECORD FIRST LAST KEPT ARGS...

Runs pytest with the arguments. Before Valgrind ends, each test that was counted is counted again in
the layouts FIRST to LAST of ``layout.disturb``, repeated as often as by the run itself; what the run
has counted of these is not counted again. RECORD is a pickle: nodeid -> ``calls``, ``warmup``,
``totals`` (layout -> raw instructions over all calls) and ``profiles`` (layout -> `Profile` under
standard names, of the layouts up to KEPT). Only the pytest that runs natively is patched.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind.messages import Answer
from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.zygote import Problem, Zygote
from pytest_instrcount.counts.profile import sum_profiles
from pytest_instrcount.session import zygote as session_zygote
from pytest_instrcount.session.answers import read_profile

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

    def wait(self, index: int, poll: Callable[[], None]) -> Answer | Problem:
        """As the zygote does; notes how often the test was repeated, and what it cost."""
        answer = super().wait(index, poll)
        order: Order = self.__dict__["orders"][index]
        if order.by_python or order.trace or isinstance(answer, Problem) or not answer["counted"]:
            return answer
        warmup, calls = answer["counted"]
        again = replace(order, warmup=warmup, calls=calls, pilot=False)
        # the first: other layouts may count one call that stands for all
        self.__dict__.setdefault("counted", {}).setdefault(order.nodeid, again)
        if order == again:
            copies = [shutil.copy(path, f"{path}.copy") for path in answer["dumps"]]
            self._note(again, {**answer, "dumps": copies})
        return answer

    def _note(self, order: Order, answer: Answer | Problem) -> None:
        """Keep what an order counted; who reads the record sees where that failed."""
        entry = self._known().setdefault(
            order.nodeid,
            {"calls": order.calls, "warmup": order.warmup, "totals": {}, "profiles": {}},
        )
        if isinstance(answer, Problem) or len(answer["dumps"]) < 2:
            return
        counted, _ = read_profile(answer)
        profile = sum_profiles([counted] * (entry["calls"] // order.calls))
        if order.layout in self.layouts:
            entry["totals"][order.layout] = profile.total
            if order.layout <= self.kept:
                entry["profiles"][order.layout] = profile

    def _known(self) -> dict[str, Message]:
        found: dict[str, Message] = self.__dict__.setdefault("found", {})
        return found

    def end(self) -> None:
        """Count all tests again in all layouts, then end."""
        counted = self.__dict__.pop("counted", {})
        try:
            if counted:
                self._count_in_layouts(sorted(counted.values(), key=lambda order: order.path))
        finally:
            super().end()

    def _count_in_layouts(self, orders: list[Order]) -> None:
        for layout in self.layouts:
            asked = [
                replace(order, layout=layout)
                for order in orders
                if layout not in self._known().get(order.nodeid, {"totals": ()})["totals"]
            ]
            for number, order in enumerate(asked, super().ask(asked)):
                self._note(order, super().wait(number, lambda: None))
            print(f"layout {layout} of {self.layouts[-1]}", file=sys.stderr, flush=True)
        partial = self.record.with_suffix(".partial")
        partial.write_bytes(pickle.dumps(self._known(), pickle.HIGHEST_PROTOCOL))
        partial.replace(self.record)


def main() -> None:
    """Run pytest as ``python -m pytest`` does."""
    record, first, last, kept, *args = sys.argv[1:]
    sys.path[0] = os.getcwd()
    Recording.record = Path(record)
    Recording.layouts, Recording.kept = range(int(first), int(last) + 1), int(kept)
    vars(session_zygote)["Zygote"] = Recording
    sys.exit(pytest.main(args))


if __name__ == "__main__":
    main()
