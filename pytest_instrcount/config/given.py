"""Options, ini and markers as they were given: each value checked, every mistake in one message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from pytest_instrcount.config.options import ISOLATIONS
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.fixtures.rounds import MOST_CALLS
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.foreign import class_name, is_any, mro_of, names_of
from pytest_instrcount.host.text import cut

#: Columns of a wrong value in a message.
_MOST_SHOWN = 200


class Given:
    """Values from the command line or else the ini file, and the errors in them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.mistakes: list[str] = []

    def value(self, name: str, *, ini: bool = True) -> Any:
        """None where neither says anything."""
        given = self._config.getoption(name)
        if given is None and ini:
            given = self._config.getini(name) or None
        return given

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of the choices: the first, unless said otherwise."""
        given = self.value(name)
        if given is not None and given not in choices:
            self.mistakes.append(f"{name} = {given!r}: choose one of {', '.join(choices)}")
        return given if given in choices else choices[0]

    def checked(self, name: str, check: Any, default: Any, *, ini: bool = True) -> Any:
        """The value as converted by ``check``; ``ini``: whether an ini setting of the same name exists."""
        given = self.value(name, ini=ini)
        if given is None:
            return default
        try:
            return check(given)
        except (ValueError, InstrcountError) as error:
            self.mistakes.append(f"{name} = {given!r}: {_in_one_line(error)}")
            return default

    def need_update(self, *names: str) -> None:
        """Options that mean nothing without an update."""
        if self._config.getoption("instrcount_update_baseline"):
            return
        for name in names:
            if self._config.getoption(f"instrcount_{name}") not in (None, False):
                self.mistakes.append(
                    f"--instrcount-{name}: give it with --instrcount-update-baseline"
                )

    def raise_mistakes(self) -> None:
        """Raise pytest.UsageError with every mistake in one message, if there is one."""
        if self.mistakes:
            lines = ["instrcount: wrong settings [settings]", *self.mistakes]
            raise pytest.UsageError("\n".join(lines))


def read_markers(
    item: pytest.Item, marker: str, arguments: Mapping[str, Any], example: str
) -> tuple[dict[str, Any], list[str]]:
    """Arguments of the markers of that name, each converted by its check, and the errors in them.

    The nearest marker wins, argument by argument: see `markers_of`.
    """
    mistakes: list[str] = []
    chosen: dict[str, Any] = {}
    for mark in markers_of(item, marker):
        if mark.args:
            mistakes.append(f"takes keyword arguments only, like {example}")
        for name, given in mark.kwargs.items():
            check = arguments.get(name)
            if check is None:
                mistakes.append(f"has no argument {name!r} (it has {', '.join(arguments)})")
                continue
            if given is None:
                continue
            try:
                chosen.setdefault(name, check(given))
            except Exception as error:  # a value can be of a class whose own code raises
                mistakes.append(f"{name}={_shown(given)}: {_in_one_line(error)}")
    return chosen, mistakes


def _shown(given: object) -> str:
    try:
        shown = repr(given)
    except Exception:
        shown = f"a {class_name(given)}"
    return cut(printable(shown), _MOST_SHOWN)


def markers_of(item: pytest.Item, name: str) -> Iterator[pytest.Mark]:
    """The markers of that name, the nearest first: of a parameter, the function, its class, a base class ...

    Pytest has those of a base class before the class's own, and a parameter's behind the function's.
    """
    for node in reversed(item.listchain()):
        marks = [mark for mark in node.own_markers if mark.name == name]
        yield from sorted(marks, key=partial(_distance, node))


def _distance(node: Any, mark: pytest.Mark) -> int:
    """How many classes, or a function, stand between a node and what a marker was put on."""
    if isinstance(node, pytest.Class):
        marks = [*map(_own_marks, mro_of(node.obj))]
        # what a plugin has put on the class itself is in none of them
        return next((n for n, own in enumerate(marks) if is_any(mark, own)), 0)
    callspec = getattr(node, "callspec", None)
    return int(callspec is None or not is_any(mark, callspec.marks))


def _own_marks(kind: type) -> list[Any]:
    """What a class has itself as ``pytestmark``: markers, as pytest keeps them."""
    own = names_of(kind).get("pytestmark", ())
    every = own if isinstance(own, (list, tuple)) else (own,)
    return [getattr(each, "mark", each) for each in every]


def _in_one_line(error: Exception) -> str:
    """The error message for a value: what is wrong, and what to write."""
    return f"{error.why}; {error.fix}" if isinstance(error, InstrcountError) else str(error)


def parse_share(given: object) -> Fraction:
    """A share of a count.

    >>> parse_share("5%")
    Fraction(1, 20)
    """
    limit = parse_limit(given)
    if limit.relative is None or limit.absolute is not None:
        raise ValueError("write a share of the count, like 5%")
    return limit.relative


def parse_seconds(given: object) -> float:
    """A time limit in seconds, more than 0.

    >>> parse_seconds("2.5")
    2.5
    """
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        raise ValueError("write seconds, like 60")
    try:
        seconds = float(given)
    except (ValueError, OverflowError):
        raise ValueError("write seconds, like 60") from None
    if not 0 < seconds < 1e9:
        raise ValueError("write seconds, more than 0")
    return seconds


def parse_warmup(given: object) -> int:
    """A number of warm-up calls, 0 or more."""
    return _parse_count(given, 0)


def parse_calls(given: object) -> int:
    """A number of counted calls, 1 or more."""
    return _parse_count(given, 1)


def _parse_count(given: object, least: int) -> int:
    if isinstance(given, str) and given.strip().isdecimal():
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ValueError(f"write a whole number, {least} or more")
    if given > MOST_CALLS:
        raise ValueError(f"write a whole number, at most {MOST_CALLS:,}")
    return given


def parse_isolation(given: object) -> str:
    """A way to keep a test apart from the others."""
    if not isinstance(given, str) or given not in ISOLATIONS:
        raise ValueError(f"choose one of {', '.join(ISOLATIONS)}")
    return given
