"""Tables of calls as files: how often each function called each other in the body of a traced test.

History of the schema:
1: calls of each function
2: calls and resumes of each edge; an older file is refused, and replaced by an update
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.baseline_json import CONFLICT, OLDER, check_text, damaged
from pytest_instrcount.gate.store.names import CALLS_SUFFIX, printable, remeasure, shown_path
from pytest_instrcount.gate.store.textfile import Put, read_text, write_data
from pytest_instrcount.gate.store.values import (
    Invalid,
    count_of,
    counts_of,
    list_of,
    object_of,
    text_of,
    texts_of,
)
from pytest_instrcount.host.files import files_below, replace_file

#: Caller and callee as ``module:qualname``; the caller is "" where nobody called in the trace.
Edge: TypeAlias = tuple[str, str]
#: Calls, and resumes of a generator or coroutine.
Uses: TypeAlias = tuple[int, int]
Edges: TypeAlias = Mapping[Edge, Uses]

#: The only version that is read and written.
SCHEMA = 2

_KEYS = frozenset(("schema", "nodeid", "environment", "calls", "memory"))


@dataclass(frozen=True, slots=True)
class CallTable:
    """The number of calls of each function in the body of a test, by caller."""

    #: pytest's id of the test
    nodeid: str
    #: without line numbers and paths
    edges: Edges
    #: fact -> value; tables are comparable only where all of them are the same
    environment: Mapping[str, str]
    #: range of the legacy tracer -> most bytes in use within it, where that was recorded
    memory: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All calls."""
        return sum(calls for calls, _ in self.edges.values())

    @property
    def calls(self) -> dict[str, int]:
        """Function -> calls, whoever called it."""
        return self._by_function(0)

    @property
    def resumes(self) -> dict[str, int]:
        """Generator or coroutine -> resumes, whoever resumed it."""
        return self._by_function(1)

    def _by_function(self, kind: int) -> dict[str, int]:
        sums: Counter[str] = Counter()
        for (_, callee), uses in self.edges.items():
            sums[callee] += uses[kind]
        return dict(sums)


@dataclass(frozen=True, slots=True)
class CallStore:
    """The tables of one environment, in the folders of the baselines."""

    store: Store

    def path(self, nodeid: str) -> Path:
        """The path of a test's table, present or not.

        >>> str(CallStore(Store(Path("b"), "cp311")).path("test_x.py::test_a"))
        'b/cp311/test_x/test_a-049986f1.calls.json'
        """
        return self.store.path(nodeid).with_suffix(CALLS_SUFFIX)

    def read(self, nodeid: str, *, updating: bool = False) -> CallTable | None:
        """The table of a test, None if there is none; to an update, none that it is to replace.

        Raises InstrcountError as for baselines.
        """
        path = self.store.keep_inside(self.path(nodeid))
        text = read_text(path, nodeid)
        try:
            return None if text is None else parse_calls(text, path, nodeid)
        except InstrcountError as error:
            if updating and error.slug in (OLDER, CONFLICT):
                return None
            raise

    def list(self) -> Iterator[tuple[Path, str]]:
        """All tables of this environment that can be read: path and nodeid, by path."""
        for path in files_below(self.store.folder, CALLS_SUFFIX):
            try:
                text = read_text(self.store.keep_inside(path))
                nodeid = None if text is None else parse_calls(text, path).nodeid
            except InstrcountError:
                continue  # whoever measures that test says so
            if nodeid is not None and path == self.path(nodeid):
                yield path, nodeid

    def write(self, table: CallTable, put: Put = replace_file) -> bool:
        """Store a table; False if the same was there. Raises InstrcountError as for baselines."""
        path, text = self.path(table.nodeid), render_calls(table)
        if self.read(table.nodeid, updating=True) is not None and read_text(path) == text:
            return False
        write_data(path, text.encode(), put)
        return True


def render_calls(table: CallTable) -> str:
    """The JSON text of a table: a line for each edge, sorted, so that a diff reads well."""
    calls = ["  " + json.dumps(_row(edge, *uses)) for edge, uses in sorted(table.edges.items())]
    lines = [
        '{\n "calls": [' + ("\n" + ",\n".join(calls) + "\n " if calls else "") + "]",
        f' "environment": {json.dumps(dict(sorted(table.environment.items())))}',
        f' "memory": {json.dumps(dict(sorted(table.memory.items())))}',
        f' "nodeid": {json.dumps(table.nodeid)}',
        f' "schema": {SCHEMA}\n}}\n',
    ]
    return ",\n".join(lines)


def _row(edge: Edge, calls: int, resumes: int) -> list[str | int]:
    return [*edge, calls, resumes] if resumes else [*edge, calls]


def parse_calls(text: str, path: Path, nodeid: str | None = None) -> CallTable:
    """Read the JSON text of a table; ``path`` is only named in errors.

    Raises InstrcountError "baseline-conflict", "baseline-older", "baseline-newer", "baseline-damaged",
    or "baseline-mismatch" if it is not the table of the test ``nodeid``.
    """
    test = nodeid or ""
    found = check_text(text, path, SCHEMA, test, oldest=SCHEMA)
    try:
        known = object_of(found, "it", _KEYS)
        owner, facts = (
            text_of(known["nodeid"], "nodeid"),
            texts_of(known["environment"], "environment"),
        )
        edges, memory = _edges(known["calls"]), counts_of(known["memory"], "memory")
    except Invalid as error:
        raise damaged(path, printable(str(error)[:200]), test) from None
    if nodeid is not None and owner != nodeid:
        raise InstrcountError(
            "baseline-mismatch",
            f"{shown_path(path)} is the table of {printable(owner)[:200]}, "
            f"not of {printable(nodeid)[:200]}",
            remeasure(path, test),
        )
    return CallTable(owner, edges, facts, memory)


def _edges(found: object) -> dict[Edge, Uses]:
    edges: dict[Edge, Uses] = {}
    for row in list_of(found, "calls"):
        entries = list_of(row, "calls: an edge", 4)
        if len(entries) < 3:
            raise Invalid("calls: an edge is not caller, function and calls")
        caller, callee, *counts = entries
        edge = text_of(caller, "calls: a caller"), text_of(callee, "calls: a function")
        if edge in edges:
            raise Invalid("calls: an edge is there twice")
        calls, resumes = (count_of(each, "calls: a count") for each in (*counts, 0)[:2])
        edges[edge] = calls, resumes
    return edges
