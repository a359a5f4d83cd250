"""Request and answer of the pytest of the other commit: files, since it is a new process."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_instrcount.session.against.moved import Move, Tables


@dataclass(frozen=True, slots=True)
class Request:
    """Settings for measuring the tests of the other commit."""

    #: arguments of pytest
    args: Sequence[str]
    #: ``sys.path`` as the interpreter is to have started with
    sys_path: Sequence[str]
    #: tables of the finders of editable installs
    editable: Tables
    #: see `ZygoteSetup.own_package`
    own_package: str
    #: ids of the tests to measure; None: those that ``args`` select
    wanted: Sequence[str] | None
    #: whether one layout is to do
    first_look: bool
    #: the user's settings, packed
    packed: str
    move: Move
    #: top of the user's work tree
    repository: str
    #: what the commit installs
    packages: Sequence[str]
    #: where the answer is to be written
    answer: str

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> Request:
        """From JSON."""
        move = Move(
            tuple(found["move"]["old"]), found["move"]["new"], tuple(found["move"]["stays"])
        )
        return cls(**{**found, "move": move})

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


@dataclass(slots=True)
class Answer:
    """The outcomes of the tests there."""

    #: ids of the wanted tests that exist
    collected: list[str] = field(default_factory=list)
    #: id of a test that did not pass -> why
    outcomes: dict[str, str] = field(default_factory=dict)
    #: slug, sentence and remedy of an InstrcountError
    problem: list[str] = field(default_factory=list)

    def write(self, path: str) -> None:
        """As JSON."""
        Path(path).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Answer:
        """Empty if there is none: pytest ended before it began."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()


def pack(value: object) -> str:
    """Any record as text."""
    return base64.b64encode(pickle.dumps(value)).decode("ascii")


def unpack(text: str) -> Any:
    """The record again."""
    return pickle.loads(base64.b64decode(text))
