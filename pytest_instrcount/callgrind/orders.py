"""The orders: messages from pytest to the supervisor, and from there to processes under Valgrind.

Records of pytest are dataclasses. What is read under Valgrind is a plain dict, typed here: a class
would have to be imported there, where it would be part of every heap. The answers are in ``messages.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict

# From pytest to the supervisor.


@dataclass(frozen=True, slots=True)
class Start:
    """The first message: how zygotes are started."""

    #: pytest's process id
    pid: int
    command: list[str]
    environment: dict[str, str]
    #: the working folder
    folder: str
    #: options for the presentation of failures, by name
    presentation: dict[str, Any]
    #: seconds for a start, and for the import of a file, on a usual machine
    patience: float
    #: where tests run, in words
    place: str
    jobs: int
    #: whether the zygote of other layouts starts at once, too
    layouts: bool
    dont_write_bytecode: bool


@dataclass(frozen=True, slots=True)
class Order:
    """One test to be measured."""

    nodeid: str
    path: str
    isolation: str
    timeout: float
    warmup: int | None
    calls: int | None
    #: Whether the number of repetitions has to be found.
    pilot: bool
    verbose: int
    #: What `case_of` says of it.
    case: str = ""
    #: In which layout of memory: 0 is the usual one, see ``layout.disturb``; -N is the usual one, too,
    #: under the hash seed N.
    layout: int = 0
    #: Fork it although threads are alive: its baseline was made without them.
    forks: bool = False
    #: Count calls by tracing, instead of instructions; asked of a zygote without Valgrind.
    trace: bool = False
    #: By Python function; asked of a zygote that was started for it.
    by_python: bool = False


class Measure(TypedDict):
    """Orders, numbered from ``first`` on, as dicts."""

    kind: Literal["measure"]
    first: int
    tests: list[dict[str, Any]]


class Stop(TypedDict):
    """End everything."""

    kind: Literal["stop"]


FromPytest: TypeAlias = Measure | Stop

# From the supervisor to a process under Valgrind. Sizes are alike for all tests: bools are ints.


class FileOrder(TypedDict):
    """A file to be imported."""

    path: str
    child: str
    layout: int


class TestOrder(TypedDict):
    """A test to be run."""

    nodeid: str
    child: str
    pilot: int
    verbose: int
    trace: int
    by_python: int
