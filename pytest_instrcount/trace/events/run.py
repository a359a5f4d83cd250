"""The ranges of a whole run of tests as one Chrome trace: a process row for each worker and child."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_instrcount.trace.events.record import of_ranges
from pytest_instrcount.trace.export.bounds import ALL
from pytest_instrcount.trace.export.chrome import chrome_chunks
from pytest_instrcount.trace.ranges.event import ThreadEvents
from pytest_instrcount.trace.ranges.remote import node_of_worker, pack_events, unpack_events
from pytest_instrcount.trace.timeline import Label, Timeline, Track, printable
from pytest_instrcount.trace.weave import Span, join_all, weave


@dataclass(frozen=True, slots=True)
class TestEvents:
    """The events of one test in the process that ran it; times are those of its clock."""

    __test__ = False

    nodeid: str
    #: thread that it ran on: ``threading.get_ident()`` and name
    ident: int
    thread: str
    begin_ns: int
    end_ns: int
    #: per trace what `Session.stop` gave
    traces: tuple[tuple[ThreadEvents, ...], ...] = ()

    def send(self) -> str:
        """As JSON in ASCII, which any channel can carry.

        >>> test = TestEvents("test_a.py::test_a", 7, "MainThread", 1, 2)
        >>> TestEvents.receive(test.send()) == test
        True
        """
        traces = [pack_events(trace) for trace in self.traces]
        return json.dumps(
            [self.nodeid, self.ident, self.thread, self.begin_ns, self.end_ns, traces]
        )

    @classmethod
    def receive(cls, sent: str) -> TestEvents:
        """Restore what was sent. Raises InstrcountError (slug "event-plain") for events of another version."""
        nodeid, ident, thread, begin_ns, end_ns, traces = json.loads(sent)
        unpacked = tuple(map(unpack_events, traces))
        return cls(nodeid, ident, thread, begin_ns, end_ns, unpacked)


def run_chunks(tests: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The trace in pieces, of tests as (worker or "", sent): each a slice of its worker's row.

    Of several workers gw0 is the first row. A child that a test had events from is a row of its own.

    >>> one = TestEvents("test_a.py::test_a", 7, "MainThread", 1, 2).send()
    >>> rows = json.loads("".join(run_chunks([("gw0", one)])))["traceEvents"]
    >>> [row["args"]["name"] for row in rows if row["name"] == "process_name"][0]
    'gw0'
    """
    workers = {worker for worker, _ in tests}
    nodes = {one: node_of_worker(one) + 1 for one in workers if not one or node_of_worker(one)}
    for named in sorted(workers - nodes.keys()):  # --tx id=NAME
        nodes[named] = max(nodes.values(), default=0) + 1
    names = {node: worker or "pytest" for worker, node in nodes.items()}
    parts = (
        part
        for worker, text in tests
        for part in _timelines(TestEvents.receive(text), nodes[worker], names)
    )
    joined = join_all(parts)  # first: it finds the children
    return chrome_chunks(replace(joined, commands=tuple(names.items())), ALL)


def _timelines(test: TestEvents, node: int, names: dict[int, str]) -> Iterator[Timeline]:
    """The slice of the test, and its traces; children get numbers above those in ``names``."""
    track = Track(printable(test.thread), test.ident, node)
    label = Label(printable(test.nodeid), "test")
    yield weave(Timeline(tracks=(track,)), [Span(label, 0, test.begin_ns, test.end_ns)])
    children = 0
    for trace in test.traces:
        # a child has its number from its trace, and another trace may have another of that number
        moved = {0: node}
        for one in trace:
            if one.node_id not in moved:
                children += 1
                child = moved[one.node_id] = max(names) + 1
                names[child] = f"{names[node]}, process {children} of {test.nodeid}"
        threads = [replace(one, node_id=moved[one.node_id]) for one in trace]
        yield of_ranges(threads, test.begin_ns, test.end_ns)
