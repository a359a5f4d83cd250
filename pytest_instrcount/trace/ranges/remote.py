"""Events from other processes: as plain values over a pipe, and into the session here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.ranges.event import (
    PLAIN_VERSION,
    Event,
    EventKind,
    ThreadEvents,
    fits,
    not_plain,
)


def pack_events(threads: Iterable[ThreadEvents]) -> list[object]:
    """The events of a session as int, str, bool and lists: for JSON, pickle or execnet.

    Names are as they were given; execnet refuses lone surrogates, JSON and pickle do not.

    >>> pack_events([ThreadEvents(0, "MainThread", 7, 0, ())])
    [1, [0, 'MainThread', 7, 0, []]]
    """
    return [
        PLAIN_VERSION,
        *(
            [
                one.number,
                one.name,
                one.ident,
                one.node_id,
                [event.to_plain() for event in one.events],
            ]
            for one in threads
        ),
    ]


def unpack_events(plain: object) -> tuple[ThreadEvents, ...]:
    """The events that `pack_events` packed, in another process or in this one.

    Raises InstrcountError (slug "event-plain") if it is anything else.

    >>> unpack_events(pack_events([ThreadEvents(0, "MainThread", 7, 0, ())]))[0].name
    'MainThread'
    """
    if not isinstance(plain, (list, tuple)) or not plain:
        raise not_plain("not what pack_events() gives")
    version, *threads = plain
    if type(version) is not int or version != PLAIN_VERSION:
        raise not_plain(f"version {ascii(version)[:20]}, not {PLAIN_VERSION}")
    return tuple(map(_unpacked, threads))


def _unpacked(plain: object) -> ThreadEvents:
    if not isinstance(plain, (list, tuple)) or len(plain) < len(_PARTS):
        raise not_plain("a thread has too few parts")
    for value, (name, kind) in zip(plain, _PARTS):
        if type(value) is not kind and not (kind is list and type(value) is tuple):
            raise not_plain(f"{name} of a thread is {type(value).__name__}, not {kind.__name__}")
        if kind is int and not fits(value):
            raise not_plain(f"{name} of a thread is beyond 64 bits")
    number, name, ident, node_id, events = plain[: len(_PARTS)]
    return ThreadEvents(number, name, ident, node_id, tuple(map(Event.from_plain, events)))


_PARTS: tuple[tuple[str, type], ...] = (
    ("number", int), ("name", str), ("ident", int), ("node_id", int), ("events", list),
)  # fmt: skip


def of_node(threads: Iterable[ThreadEvents], node_id: int) -> tuple[ThreadEvents, ...]:
    """The same events, as those of process ``node_id``; what had a node of its own keeps it.

    >>> [one.node_id for one in of_node([ThreadEvents(0, "MainThread", 7, 0, ())], 3)]
    [3]
    """
    return tuple(one if one.node_id else _moved(one, node_id) for one in threads)


def _moved(one: ThreadEvents, node_id: int) -> ThreadEvents:
    events = tuple(event._replace(node_id=node_id) for event in one.events)
    return ThreadEvents(one.number, one.name, one.ident, node_id, events)


def add_nodes(
    present: Iterable[ThreadEvents], threads: Iterable[ThreadEvents], node_id: int | None
) -> tuple[ThreadEvents, ...]:
    """The present events of other processes, and those that one more has handed over as its own.

    That one is ``node_id``, or the next free number if None. A node may hand over several parts. What
    it had from others keeps its nodes, or gets free ones where another process has them. Raises
    InstrcountError (slug "node-taken") if ``node_id`` is this process, or another one's.

    >>> child = [ThreadEvents(0, "MainThread", 7, 0, ()), ThreadEvents(0, "MainThread", 8, 1, ())]
    >>> other = [ThreadEvents(0, "MainThread", 7, 0, ()), ThreadEvents(0, "MainThread", 9, 1, ())]
    >>> [one.node_id for one in add_nodes(add_nodes([], child, None), other, None)]
    [2, 1, 3, 4]
    """
    found = {(one.node_id, one.number): one for one in present}
    parts = _by_node(threads)
    highest = max((0, *parts, *_by_node(found.values())))
    chosen = highest + 1 if node_id is None else node_id
    if chosen < 1:
        raise node_taken(f"node {chosen} is this process")
    highest = max(highest, chosen)
    for node, part in parts.items():
        there = _by_node(found.values()).get(node or chosen, [])
        if not node:
            if _differ(there, part):
                raise node_taken(f"node {chosen} is another process, whose events are here")
            node = chosen
        elif node == chosen or _differ(there, part):
            highest += 1
            node = highest
        for one in part:
            _join(found, _moved(one, node))
    return tuple(found.values())


def _by_node(threads: Iterable[ThreadEvents]) -> dict[int, list[ThreadEvents]]:
    nodes: dict[int, list[ThreadEvents]] = {}
    for one in threads:
        nodes.setdefault(one.node_id, []).append(one)
    return nodes


def _differ(first: list[ThreadEvents], second: list[ThreadEvents]) -> bool:
    """True if these are of two processes: of one, a number is one thread, and a handle one range."""
    idents = {one.number: one.ident for one in first}
    return any(idents.get(one.number, one.ident) != one.ident for one in second) or not (
        _handles(first).isdisjoint(_handles(second))
    )


def _handles(threads: list[ThreadEvents]) -> set[int]:
    return {e.handle for one in threads for e in one.events if e.kind is EventKind.PUSH}


def _join(found: dict[tuple[int, int], ThreadEvents], one: ThreadEvents) -> None:
    key = one.node_id, one.number
    before = found.get(key)
    found[key] = one if before is None else replace(one, events=before.events + one.events)


def node_taken(why: str) -> InstrcountError:
    """The error for a number that is not free."""
    return InstrcountError(
        "node-taken", why, "add_events(threads) without a number takes the next free one"
    )


def node_of_worker(worker_id: str) -> int:
    """The node id of an xdist worker: 0 is the controller, so "gw0" is 1.

    >>> node_of_worker("gw0"), node_of_worker("gw11"), node_of_worker("master")
    (1, 12, 0)
    """
    match = re.fullmatch(r"gw([0-9]+)", worker_id)
    return int(match[1]) + 1 if match else 0
