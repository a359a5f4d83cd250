"""Events from other processes: as plain values over a pipe, and into the session here."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_instrcount.trace.event import PLAIN_VERSION, Event, ThreadEvents, not_plain


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
    return tuple(
        one
        if one.node_id
        else ThreadEvents(
            one.number,
            one.name,
            one.ident,
            node_id,
            tuple(event._replace(node_id=node_id) for event in one.events),
        )
        for one in threads
    )


def node_of_worker(worker_id: str) -> int:
    """The node id of an xdist worker: 0 is the controller, so "gw0" is 1.

    >>> node_of_worker("gw0"), node_of_worker("gw11"), node_of_worker("master")
    (1, 12, 0)
    """
    match = re.fullmatch(r"gw([0-9]+)", worker_id)
    return int(match[1]) + 1 if match else 0
