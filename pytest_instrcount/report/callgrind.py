"""Baselines, measurements and trees -> files that KCachegrind and callgrind_annotate open. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.outfile import Call, Function, header_lines, write_costs
from pytest_instrcount.counts.profile import Row, add_row
from pytest_instrcount.counts.python.source import call_sites, first_line
from pytest_instrcount.counts.python.tree import CallTree, Path, Place
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.text import several

#: What a file of profiles ends in: what was counted, the baseline, and each by Python function.
SUFFIXES = COUNTED, BASELINE, PYTHON, PYTHON_BASELINE = (
    ".callgrind.out",
    ".baseline.callgrind.out",
    ".python.callgrind.out",
    ".baseline.python.callgrind.out",
)
#: What stands in a baseline for who calls a function, and for what it calls: that is not stored.
CALLERS = Function("(baseline)", "(any caller)")
CALLED = Function("(baseline)", "(all that it calls)")


def counted_calls(calls: int) -> str:
    """The line that says what the numbers are sums of."""
    return f"Counted: {several(calls, 'call')} of the test, all costs are their sum"


def baseline_header(baseline: Baseline) -> list[str]:
    """The first lines of a baseline's file."""
    facts = (f"{name}: {value}" for name, value in sorted(baseline.environment.items()))
    told = ["Side: the baseline", counted_calls(baseline.calls), *facts]
    return header_lines(printable(baseline.nodeid), map(printable, told))


def baseline_profile(baseline: Baseline) -> bytes:
    """C functions in a baseline: own costs, calls, and inclusive costs.

    It does not know who called whom. So that inclusive costs are seen all the same, one function
    stands for all callers and one for all that is called. What is negative counts as 0: the format
    knows nothing below it.
    """
    own: dict[Function, int] = {}
    calls = []
    for name, row in baseline.rows.items():
        function = _c_function(name)
        own[function] = max(0, row.ir)
        whole = max(own[function], baseline.inclusive.get(name, 0))
        if row.calls > 0:
            calls.append(Call(CALLERS, function, row.calls, whole))
        if whole > own[function]:
            calls.append(Call(function, CALLED, 1, whole - own[function]))
    return write_costs(baseline_header(baseline), "Ir", own, calls)


def measured_profile(measurement: Measurement) -> bytes:
    """C functions in a measurement, under standard names and without the switch."""
    own = {_c_function(name): max(0, row.ir) for name, row in measurement.rows.items()}
    calls = [
        Call(_c_function(caller), _c_function(called), edge.calls, max(0, edge.ir))
        for called, callers in measurement.callers.items()
        for caller, edge in callers.items()
        if edge.calls > 0 and caller != called
    ]
    told = ["Side: now", counted_calls(measurement.calls)]
    return write_costs(header_lines(printable(measurement.nodeid), told), "Ir", own, calls)


def profiles_of(
    nodeid: str, measurement: Measurement | None, old: Baseline | None, tree: CallTree | None
) -> dict[str, str]:
    """Both sides of a test as texts, by what a file of each ends in."""
    made: dict[str, bytes] = {}
    if measurement is not None:
        made[COUNTED] = measured_profile(measurement)
    if old is not None:
        made[BASELINE] = baseline_profile(old)
    if tree is not None:
        made[PYTHON] = python_profile(tree, nodeid, "now")
    if old is not None and old.python is not None:
        made[PYTHON_BASELINE] = python_profile(old.python, nodeid, "the baseline")
    return {suffix: data.decode() for suffix, data in made.items()}


def _c_function(name: str) -> Function:
    """From ``file:function``, or ``???:function [object]``."""
    file, colon, function = name.partition(":")
    if not colon:
        return Function("???", name)
    plain, bracket, obj = function.rpartition(" [")
    if file == "???" and bracket and obj.endswith("]"):
        return Function(file, plain, obj[:-1])
    return Function(file, function)


def python_profile(
    tree: CallTree, nodeid: str, side: str, places: Mapping[str, Place] | None = None
) -> bytes:
    """A tree of Python functions; deeper levels of a recursion are functions of their own (``f'2``).

    ``places`` are those of the other side, if this one has none: a viewer is to take both for the
    same functions. Where in them the calls were is not known then.
    """
    functions = _PythonFunctions(tree.places or places or {}, sites=bool(tree.places))
    own: dict[Function, int] = {}
    edges: dict[tuple[Function, Function], Row] = {}
    for path, whole in sorted(tree.inclusive.items()):
        function, row = functions.of(path), tree.nodes.get(path, Row(0, 0))
        own[function] = own.get(function, 0) + max(0, row.ir)
        if len(path) > 1:
            edge = functions.of(path[:-1]), function
            add_row(edges, edge, Row(max(0, whole), max(0, row.calls)))
    calls = [  # readers take the cost of no calls at all for the caller's own
        Call(caller, called, edge.calls or 1, edge.ir, functions.site(caller, called))
        for (caller, called), edge in edges.items()
    ]
    how = f"Python functions, by {tree.how}; {tree.unit}"
    header = header_lines(printable(nodeid), [f"Side: {side}", how, counted_calls(tree.counted)])
    return write_costs(header, "Ir" if tree.unit == "Ir" else "Calls", own, calls)


class _PythonFunctions:
    """Functions of a tree as the format has them."""

    def __init__(self, places: Mapping[str, Place], *, sites: bool) -> None:
        self._places = places
        self._sites = sites

    def of(self, path: Path) -> Function:
        """The function at the end of a path from the test."""
        name = path[-1]
        shown, _, qualname = name.rpartition(":")
        file, line = shown or "???", 0
        if name in self._places:  # else there is no telling what is in a file of that name
            file, line = self._places[name]
            line = first_line(file, qualname, line)
        level = "'2" if name in path[:-1] else ""
        return Function(file, qualname + level, line=line)

    def site(self, caller: Function, called: Function) -> int:
        """The line of the first call, else the caller's own."""
        if not (self._sites and caller.line):
            return caller.line
        sites = call_sites(
            caller.file,
            caller.name.removesuffix("'2"),
            caller.line,
            called.name.removesuffix("'2"),
        )
        return sites[0].line if sites else caller.line
