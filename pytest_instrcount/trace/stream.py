"""The stream of a backend: for each thread, entries, exits and clock readings in one list.

The grammar of ``Stream.objs``, one record after the other:

    record := mark* function text? | Switch
    function := code object | CFunction
    mark   := START_FRAME RESUME THROW CLOSE      (behind it: an enter)
            | LEAVE YIELD UNWIND VOID             (behind it: an exit)
            | RecognizedObject                    (behind it: an enter)
    text   := str: the arguments of an enter, or the value of an exit

``Stream.times`` has one reading for each function, none for marks: ``t`` for an enter, ``-t`` for an
exit. Without a clock it is empty, and each exit has its mark. An exit names what is left, so that
one that was missed shows. Nothing that the garbage collector tracks is allocated for an event: else
collections, and finalizers with them, would come at other moments than without a trace.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_instrcount.trace.columns import Flag

#: Bits of marks beside those of ``Flag``: what follows is an exit; it was none of a real call.
LEAVING: Final = 1 << 12
VOIDED: Final = 1 << 13


class Mark:
    """Says something about the function behind it."""

    __slots__ = ("bits", "name")

    def __init__(self, name: str, bits: int) -> None:
        self.name, self.bits = name, int(bits)

    def __repr__(self) -> str:
        return self.name


START_FRAME: Final = Mark("START_FRAME", Flag.START_FRAME)
RESUME: Final = Mark("RESUME", Flag.RESUME)
THROW: Final = Mark("THROW", Flag.THROW)
CLOSE: Final = Mark("CLOSE", Flag.CLOSE)
LEAVE: Final = Mark("LEAVE", LEAVING)
YIELD: Final = Mark("YIELD", LEAVING | Flag.YIELD)
UNWIND: Final = Mark("UNWIND", LEAVING | Flag.ERROR)
#: A generator was deleted that never ran: up to 3.11 that looks like a call of it.
VOID: Final = Mark("VOID", LEAVING | VOIDED)


class CFunction:
    """A builtin function or method, made once per trace: its name, not the object."""

    __slots__ = ("module", "qualname")

    def __init__(self, module: str, qualname: str) -> None:
        self.module, self.qualname = module, qualname

    def __repr__(self) -> str:
        return f"{self.module}.{self.qualname}"


class Switch:
    """From here on the thread runs another greenlet; 0 is the main one."""

    __slots__ = ("greenlet",)

    def __init__(self, greenlet: int) -> None:
        self.greenlet = greenlet


@dataclass(slots=True, eq=False)
class Stream:
    """The events of one thread, in their order."""

    ident: int
    name: str
    objs: list[object] = field(default_factory=list)
    times: array[int] = field(default_factory=lambda: array("q"))
    #: with the core in C its events are there, and not in the lists
    lane: Any = None
    #: are there arguments and values? The core in C knows nothing of these
    has_text: bool = False

    @property
    def append(self) -> Callable[[object], None]:
        """What takes a mark, or a switch."""
        return self.objs.append if self.lane is None else self.lane.append

    @property
    def size(self) -> int:
        """Bytes that ``tracemalloc`` sees: without those of a lane, or of what is referred to."""
        return self.objs.__sizeof__() + self.times.__sizeof__()


@dataclass(frozen=True, slots=True)
class Recording:
    """All that a backend hands over at the end."""

    #: "monitoring" or "setprofile"
    backend: str
    #: are there times?
    clock: bool
    streams: tuple[Stream, ...]
    #: ``time.perf_counter_ns``
    started_ns: int = 0
    stopped_ns: int = 0
