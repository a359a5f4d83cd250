"""What is told of the start of a zygote."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.callgrind.supervisor import starting


@pytest.mark.parametrize(
    ("compiled", "writes", "phase"),
    [
        (150, False, "zygote start, compiling"),
        # of the project alone
        (3, False, "zygote start"),
        # the next one reads what this one has written
        (150, True, "zygote start"),
    ],
)
def test_a_start_that_compiles_each_time_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, compiled: int, writes: bool, phase: str
) -> None:
    told: list[Any] = []
    state: Any = SimpleNamespace(
        ignore=lambda channel: None,
        writes_byte_code=writes,
        tell_spent=lambda test, spans: told.extend(spans),
    )
    message = {"kind": "ready", "started": [], "threads": 1, "compiled": compiled}
    monkeypatch.setattr(starting, "next_message", lambda channel: message)
    valgrind = SimpleNamespace(parent=SimpleNamespace(channel=None))
    start: Any = SimpleNamespace(valgrind=valgrind, number=0, began=0.0, only="a test")
    zygotes = starting.Zygotes(state, lambda test, valgrind: None, lambda valgrind: None)
    zygotes.starting.append(start)
    zygotes._take(start)
    assert [name for name, *_ in told] == [phase]


def test_a_folder_whose_name_valgrind_would_expand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is told as Valgrind reads it, the plan as Python does."""
    given: list[str] = []

    def refuse(command: list[str], *_: object) -> None:
        given.extend(command)
        raise OSError

    monkeypatch.setattr(starting, "start_valgrind", refuse)
    words = ["--log-file={log}", "{plan}"]
    state: Any = SimpleNamespace(
        folder=Path("/t%p"),
        setup=SimpleNamespace(command=words, environment={}, folder="", patience=1),
        restore_scratch=lambda: None,
        sweeper=SimpleNamespace(empty=lambda number: None),
        fatal=lambda why: None,
    )
    starting.Zygotes(state, lambda test, valgrind: None, lambda valgrind: None).start(0)
    assert given[:2] == ["--log-file=/t%%p/valgrind0001.log", "/t%p/fork.json"]
