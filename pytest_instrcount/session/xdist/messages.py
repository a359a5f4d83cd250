"""Messages between worker and controller: plain records, only of the classes named here."""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.gate.budget import Budget, Ratio
from pytest_instrcount.gate.call_rulings import TracedCount
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.scaling import Growth
from pytest_instrcount.gate.store.calls import CallTable
from pytest_instrcount.host.account.timings import PhaseTime
from pytest_instrcount.session.replay import Place
from pytest_instrcount.session.uncompared import Left

#: In ``workerinput``: the channel; then, for a worker beside the controller, ``sys.path`` as the
#: controller was started with; for one elsewhere, as `describe_context`.
CHANNEL = "instrcount_channel"
SYS_PATH = "instrcount_sys_path"
LAUNCH_CONTEXT = "instrcount_launch_context"
#: With which the controller's Python was started: a worker's is not.
OPTIONS_OF_PYTHON = "instrcount_options_of_python"

#: Messages that are methods of `Findings`: what a worker is told by them, the controller is to be told.
HANDED_ON = (
    *("leave", "remark", "attribute", "rule_calls", "fail_calls"),
    *("set_group", "set_extra_info", "note"),
)


@dataclass(frozen=True, slots=True)
class Hello:
    """Facts about a worker, before it collects."""

    #: facts of its environment
    environment: Mapping[str, str]
    #: folder of the baselines of such environments
    key: str


@dataclass(frozen=True, slots=True)
class Planned:
    """The tests that a worker has collected."""

    #: ids of all tests, in their order
    nodeids: tuple[str, ...]
    #: as `Selection.facts`
    selection: Mapping[str, frozenset[str]]
    #: as `Budgets.plans`
    budgets: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """The answer to a worker that asked for a baseline; ``text`` is None if there is none."""

    path: str
    text: str | None
    #: slug, why and fix of what is wrong with it
    error: tuple[str, str, str] | None = None


_CLASSES = {
    f"{each.__module__}.{each.__qualname__}": each
    for each in (
        Budget,
        CallTable,
        CallTree,
        Cause,
        Fraction,
        Growth,
        Hello,
        Left,
        Limit,
        Measurement,
        PhaseTime,
        Place,
        Planned,
        Profile,
        Ratio,
        Row,
        Stored,
        TracedCount,
        frozenset,
        set,
    )
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = _CLASSES.get(f"{module}.{name}")
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a message")
        return found


def pack(*message: object) -> bytes:
    """A message: its kind, and what it says.

    >>> unpack(pack("note", "one worker"))
    ('note', 'one worker')
    """
    return zlib.compress(pickle.dumps(message, protocol=4), 1)


def unpack(data: bytes) -> tuple[Any, ...]:
    """Unpack a message. Raises ValueError for anything else: no other class is made, no code runs."""
    try:
        message = _Unpickler(io.BytesIO(zlib.decompress(data))).load()
    except Exception as error:
        raise ValueError(f"not a message: {error}") from error
    if not isinstance(message, tuple) or not message:
        raise ValueError("not a message")
    return message
