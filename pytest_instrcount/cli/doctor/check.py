"""Findings of the doctor, and how they are printed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.text import escape_unprintable
from pytest_instrcount.report.words import wrapped

State: TypeAlias = Literal["ok", "warn", "fail"]

_NAME_WIDTH = 12
_INDENT = " " * (6 + _NAME_WIDTH + 1)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    #: what was found, in one sentence
    found: str
    #: what to type or to change; "" where nothing is wrong
    fix: str = ""
    #: further lines, as they are
    detail: tuple[str, ...] = ()

    @classmethod
    def failed(cls, name: str, error: InstrcountError) -> Check:
        """The finding for one of our errors."""
        return cls(name, "fail", f"{error.why} [{error.slug}]", error.fix)


def render_checks(checks: Iterable[Check], width: int) -> list[str]:
    """A line for each check, wrapped, and below it what to type, which is not.

    >>> for line in render_checks([Check("valgrind", "warn", "is old", "get another")], 80):
    ...     print(line)
    warn  valgrind     is old
                       fix: get another
    """
    lines: list[str] = []
    for check in checks:
        first = f"{check.state:<5} {check.name:<{_NAME_WIDTH}} "
        room = max(width, 2 * len(_INDENT))
        lines += wrapped(check.found, room, first=first, indent=_INDENT)
        lines += [_INDENT + printable(line) for line in check.detail]
        if check.fix:
            lines.append(f"{_INDENT}fix: {escape_unprintable(check.fix)}")
    return lines


def render_end(checks: Sequence[Check]) -> str:
    """The number of checks with each state.

    >>> render_end([Check("a", "ok", "is there"), Check("b", "fail", "is not")])
    'doctor: 1 ok, 1 fail'
    """
    numbers = {
        state: sum(check.state == state for check in checks) for state in ("ok", "warn", "fail")
    }
    return "doctor: " + ", ".join(
        f"{number} {state}" for state, number in numbers.items() if number
    )


def exit_code(checks: Iterable[Check]) -> int:
    """1 if a check failed; a warning is none."""
    return int(any(check.state == "fail" for check in checks))
