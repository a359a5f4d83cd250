"""The ranges of a whole run of tests as one Chrome trace: a process row for each worker and child."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pytest_instrcount.trace.ranges.event import EventKind, ThreadEvents
from pytest_instrcount.trace.ranges.record import document, event_rows, name_rows, place, to_us
from pytest_instrcount.trace.ranges.remote import node_of_worker, pack_events, unpack_events
from pytest_instrcount.trace.timeline import printable

#: What a process without a worker's name is called.
_ALONE = "pytest"


class Sent(NamedTuple):
    """The events of one test as values that any channel can carry."""

    #: "gw0"; empty if the tests run in the one process that there is
    worker: str
    #: when the test began, ``time.perf_counter_ns()``
    begin_ns: int
    #: the rest, as JSON in ASCII: it is read when it is written out, and not before
    text: str


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

    def send(self, worker: str) -> Sent:
        """As plain values.

        >>> test = TestEvents("test_a.py::test_a", 7, "MainThread", 1, 2)
        >>> TestEvents.receive(test.send("gw0")) == test
        True
        """
        traces = [pack_events(trace) for trace in self.traces]
        head = (self.nodeid, self.ident, self.thread, self.begin_ns, self.end_ns)
        return Sent(worker, self.begin_ns, json.dumps([*head, traces]))

    @classmethod
    def receive(cls, sent: Sent) -> TestEvents:
        """Restore what was sent. Raises InstrcountError (slug "event-plain") for events of another version."""
        nodeid, ident, thread, begin_ns, end_ns, traces = json.loads(sent.text)
        unpacked = tuple(map(unpack_events, traces))
        return cls(nodeid, ident, thread, begin_ns, end_ns, unpacked)


def run_chunks(tests: Sequence[Sent]) -> Iterator[str]:
    """The trace in pieces: each test a slice of its worker's row, its ranges within.

    Of several workers gw0 is the first row. A child that a test had events from is a row of its own.

    >>> one = TestEvents("test_a.py::test_a", 7, "MainThread", 1, 2).send("gw0")
    >>> names = [row["args"]["name"] for row in json.loads("".join(run_chunks([one])))["traceEvents"][:2]]
    >>> names
    ['gw0', 'MainThread']
    """
    yield from document(_rows(sorted(tests, key=lambda sent: sent.begin_ns)))


def _rows(tests: Sequence[Sent]) -> Iterator[dict[str, object]]:
    processes = _Processes({sent.worker for sent in tests})
    origin = min((sent.begin_ns for sent in tests), default=0)
    for sent in tests:
        test = TestEvents.receive(sent)
        worker = processes.of_worker[sent.worker]
        at, named = worker.thread(test.ident, test.thread)
        yield from named
        yield {
            "ph": "X", "cat": "test", "name": printable(test.nodeid), **place(worker.node_id, at),
            "ts": to_us(test.begin_ns - origin), "dur": to_us(test.end_ns - test.begin_ns),
        }  # fmt: skip
        children = 0
        for trace in test.traces:
            # a child has its number from its trace, and another trace may have another of that number
            of_node = {0: worker}
            for one in trace:
                if one.node_id not in of_node:
                    children += 1
                    name = f"{worker.name}, process {children} of {test.nodeid}"
                    of_node[one.node_id] = processes.new(name)
            for moved, named in _moved(trace, of_node):
                yield from named
                yield from event_rows(moved, origin, test.end_ns)


@dataclass(slots=True)
class _Process:
    """A row of the viewer, and its threads: two with one ident were not alive at a time."""

    node_id: int
    name: str
    threads: dict[tuple[int, str], int] = field(default_factory=dict)

    def thread(self, ident: int, name: str) -> tuple[int, Iterable[dict[str, object]]]:
        """Its number here; and the rows that name it, if it is new."""
        number = self.threads.get((ident, name))
        if number is not None:
            return number, ()
        number = self.threads[ident, name] = len(self.threads)
        return number, name_rows(self.node_id, self.name, {number: name})


class _Processes:
    """The processes of the run: no two have one number."""

    def __init__(self, workers: set[str]) -> None:
        #: worker -> its process, by the number in its name
        self.of_worker: dict[str, _Process] = {}
        others = []
        self._highest = -1
        for worker in sorted(workers):
            number = node_of_worker(worker)
            if number or not worker:
                self.of_worker[worker] = _Process(number, worker or _ALONE)
                self._highest = max(self._highest, number)
            else:  # --tx id=NAME
                others.append(worker)
        for worker in others:
            self.of_worker[worker] = self.new(worker)

    def new(self, name: str) -> _Process:
        """One more, after all others."""
        self._highest += 1
        return _Process(self._highest, name)


def _moved(
    trace: tuple[ThreadEvents, ...], of_node: dict[int, _Process]
) -> Iterator[tuple[ThreadEvents, Iterable[dict[str, object]]]]:
    """The threads under the numbers that they have in the run; ends without a begin are left out."""
    numbers: dict[tuple[int, int], int] = {}
    names = []
    for one in trace:
        number, named = of_node[one.node_id].thread(one.ident, one.name)
        numbers.setdefault((one.node_id, one.number), number)
        names.append((number, named))
    for one, (number, named) in zip(trace, names):
        node = of_node[one.node_id].node_id
        begun = {event.handle for event in one.events if event.kind is EventKind.PUSH}
        events = tuple(
            event._replace(
                node_id=node, thread=numbers.get((one.node_id, event.thread), event.thread)
            )
            for event in one.events
            # of what a test took out itself, by stop(cleanup=False), the end may be left
            if event.kind in (EventKind.MARK, EventKind.PUSH) or event.handle in begun
        )
        yield replace(one, number=number, node_id=node, events=events), named
