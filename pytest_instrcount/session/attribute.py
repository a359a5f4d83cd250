"""Trees by Python function: asked of a zygote of its own, after all counts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_instrcount.callgrind.inside.trampolines import why_none
from pytest_instrcount.callgrind.messages import Answer
from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.zygote import Problem, Zygote
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.contexts import (
    VALGRIND_OPTIONS,
    Function,
    parse_names,
    tree_from,
)
from pytest_instrcount.counts.python.tree import TRACER, TRAMPOLINES, CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.account.current import count, timed
from pytest_instrcount.host.text import several
from pytest_instrcount.trace.keys import path_prefixes, trim_path

#: What calls a test is this package's, in files below this folder.
_OURS = str(Path(__file__).parents[1] / "callgrind") + "/"


@dataclass(frozen=True, slots=True)
class Namer:
    """Names for Python functions: the path without what differs from machine to machine."""

    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, rootdir: Path) -> Namer:
        """Names are relative to ``rootdir``, or to the folder that a package is imported from."""
        return cls((str(rootdir), *path_prefixes()))

    def __call__(self, function: Function) -> str | None:
        """``shop/orders.py:Order.total``; None for what stands above a test."""
        if function.filename.startswith(_OURS):
            return None
        # the same functions are in many trees
        return sys.intern(f"{trim_path(function.filename, self.prefixes)}:{function.qualname}")

    def find(self, name: str) -> str:
        """The path that a trimmed one came from, if there is such a file; else as it is."""
        for prefix in self.prefixes:
            path = Path(prefix, name)
            if path.is_file():
                return str(path)
        return name


Poll = Callable[[], None]


@dataclass(slots=True)
class Blaming:
    """Measures by Python function, in a zygote that lives no longer than that takes."""

    start: Callable[[str, Sequence[str]], Zygote]
    how: str
    valgrind: str
    rootdir: Path
    #: what is to be said below the table
    notes: list[str] = field(default_factory=list)
    #: nodeid -> instructions of the first call
    first_irs: dict[str, int] = field(default_factory=dict)

    def measure(
        self,
        orders: Sequence[tuple[Order, str | None]],
        say: Callable[[str], None],
        poll_of: Callable[[str], Poll],
    ) -> Generator[tuple[str, CallTree], None, None]:
        """Nodeid and tree of each. With an order: how the tree was made that it is compared with.

        What trampolines cannot do is done by the tracer, unless the user chose one of them. Raises
        ZygoteFailed.
        """
        reason = why_none() if self.how != TRACER else "the tracer was chosen"
        if reason and self.how == TRAMPOLINES:
            self.notes.append(f"no Python function is named: {reason}")
            return
        number = len(orders)
        tests = several(number, "test")
        how = TRACER if reason else TRAMPOLINES
        say(f"instrcount: measuring {tests} by Python function ({how})")
        others, by_tracer = _apart(orders, all_traced=bool(reason))
        hows = {order.nodeid: how for order, how in orders}
        for order, answer in self._ask(others, TRAMPOLINES, poll_of):
            if isinstance(answer, CallTree):
                yield order.nodeid, answer
            elif TRAMPOLINES in (self.how, hows[order.nodeid]):
                # against a tree of trampolines, one of the tracer is of no use
                self._note(order, answer)
            else:
                by_tracer.append(order)
        for order, answer in self._ask(by_tracer, TRACER, poll_of):
            if isinstance(answer, CallTree):
                yield order.nodeid, answer
            else:
                self._note(order, answer)

    def _note(self, order: Order, why: str) -> None:
        self.notes.append(f"{order.nodeid}: no Python function is named: {why} [no-trampolines]")

    def _ask(
        self, orders: Sequence[Order], how: str, poll_of: Callable[[str], Poll]
    ) -> Generator[tuple[Order, CallTree | str], None, None]:
        """One at a time: a tree that was not folded yet is large."""
        if not orders:
            return
        tools = (self.valgrind, VALGRIND_OPTIONS) if how == TRAMPOLINES else ("", ())
        namer, zygote = Namer.of(self.rootdir), self.start(*tools)
        count("asked", "by Python function", len(orders))
        try:
            first = zygote.ask(
                [
                    replace(order, pilot=False, by_python=True, trace=how == TRACER)
                    for order in orders
                ]
            )
            for number, order in enumerate(orders, first):
                found = zygote.wait(number, poll_of(order.nodeid))
                if how == TRAMPOLINES and not isinstance(found, Problem):
                    self.first_irs[order.nodeid] = found["first_ir"]
                yield order, _answer(found, namer)
        finally:
            zygote.end()


def _apart(
    orders: Sequence[tuple[Order, str | None]], *, all_traced: bool
) -> tuple[list[Order], list[Order]]:
    """Those for trampolines, and those for the tracer."""
    apart: tuple[list[Order], list[Order]] = [], []
    for order, how in orders:
        apart[all_traced or how == TRACER].append(order)
    return apart


def _answer(answer: Answer | Problem, namer: Namer) -> CallTree | str:
    """The tree, or why there is none."""
    if isinstance(answer, Problem):
        return answer.why.partition("\n")[0]
    try:
        return _tree_in(answer, namer)
    except InstrcountError as error:
        return error.why.partition("\n")[0]
    except OSError as error:
        return str(error)


@timed("parse")
def _tree_in(answer: Answer, namer: Namer) -> CallTree:
    if answer["traced"] is not None and "rows" in answer["traced"]:
        return _traced_tree(answer["traced"]["rows"], namer)
    dumps, maps = ([Path(path) for path in paths] for paths in (answer["dumps"], answer["names"]))
    try:
        if answer["problem"] or not answer["counted"] or len(dumps) < 2:
            raise InstrcountError("no-trampolines", answer["problem"] or "nothing was counted", "")
        functions: dict[int, Function] = {}
        for path in maps:
            with path.open(encoding="utf-8", errors="replace") as lines:
                functions |= parse_names(lines)
        return tree_from(
            # the last is that of the switch alone
            [parse_profile(dump) for dump in dumps[:-1]],
            functions,
            answer["counted"][1],
            namer,
        )
    finally:
        for path in (*dumps, *maps):
            path.unlink(missing_ok=True)


def _traced_tree(rows: Sequence[tuple[int, str, int, str, int]], namer: Namer) -> CallTree:
    """The tree of a traced test, from rows of depth, file, line, qualified name and calls."""
    nodes: dict[tuple[str, ...], Row] = {}
    places = {}
    path: tuple[str, ...] = ()
    for depth, filename, line, qualname, calls in rows:
        name = f"{filename}:{qualname}"
        places[name] = namer.find(filename), line
        path = (*path[:depth], name)
        known = nodes.get(path, Row(0, 0))
        nodes[path] = Row(known.ir + calls, known.calls + calls)
    return CallTree(TRACER, 1, nodes, places)
