"""What several tests of ranges share: sessions that end with their test, and their events as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pytest_instrcount.trace.ranges.event import Event, EventKind, ThreadEvents
from pytest_instrcount.trace.ranges.session import Session, start


@contextmanager
def recorded(*, profile_memory: bool = False, record_shapes: bool = False) -> Iterator[Recorded]:
    """A session around a block; its events are there after the block."""
    session = start(profile_memory=profile_memory, record_shapes=record_shapes)
    found = Recorded(session)
    try:
        yield found
    finally:
        found.threads = session.stop()


class Recorded:
    """A session and, after its end, its events."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.threads: tuple[ThreadEvents, ...] = ()

    @property
    def events(self) -> list[Event]:
        return [event for one in self.threads for event in one.events]

    @property
    def story(self) -> list[str]:
        return story(self.threads)

    def push(self, name: str) -> Event:
        (found,) = (e for e in self.events if e.kind is EventKind.PUSH and e.name == name)
        return found

    def pop(self, name: str) -> Event:
        (found,) = (e for e in self.events if e.kind is EventKind.POP and e.name == name)
        return found

    def memory(self, name: str) -> Event:
        (found,) = (e for e in self.events if e.kind is EventKind.MEMORY and e.name == name)
        return found


def story(threads: Iterable[ThreadEvents]) -> list[str]:
    """Events as "+name" and "-name", marks as names; without a session's own marks."""
    signs = {EventKind.PUSH: "+", EventKind.POP: "-", EventKind.MARK: "", EventKind.MEMORY: "#"}
    return [
        signs[event.kind] + event.name
        for one in threads
        for event in one.events
        if not event.name.startswith("__")
    ]
