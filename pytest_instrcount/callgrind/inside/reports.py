"""Reports of phases: which let a test count, and how they are sent: JSON of long texts is slow here."""

from __future__ import annotations

from typing import Any

from pytest_instrcount.callgrind.channel import PADDING
from pytest_instrcount.host.foreign import DEEPEST, is_any

#: To make JSON of 100 MB, which a test has printed or raised, takes minutes here.
LONGEST_TEXT = 1_000_000
_HOLDING = (dict, list, tuple, set, frozenset)
_NAMED: dict[str, Any] = {each.__name__: each for each in _HOLDING}


def is_passed(report: Any) -> bool:
    """Whether a phase lets its test count: it has passed, or a teardown was skipped after that."""
    return bool(report.passed or (report.skipped and report.when == "teardown"))


def without_middle(text: str) -> str:
    """The text, or the ends of one that is so long that nobody reads it."""
    if len(text) <= LONGEST_TEXT:
        return text
    kept = LONGEST_TEXT // 2
    left_out = f"[... {len(text) - 2 * kept:,} characters left out by pytest-instrcount ...]"
    return "\n".join((text[:kept], left_out, text[-kept:]))


def sendable(report: dict[str, Any]) -> dict[str, Any]:
    """The report `shortened`, with its times as text: nanoseconds, and `PADDING`, so in 20 digits.

    A float's text has one length or another, as the clock has it, and where the result is made
    before the count, so would be the heap. No text in between may be shorter, either: to fill up
    with zeros would begin with one that is.
    """
    times = {
        name: str(PADDING + int(value * 1_000_000_000))
        for name, value in report.items()
        if type(value) is float and abs(value) < 1e10
    }
    sent = {name: shortened(value) for name, value in report.items()}
    return sent | times | {"padded": list(times)}


def shortened(value: Any, above: tuple[int, ...] = ()) -> Any:
    """A value of a report as `restored` takes it, without the middle of texts: what a test printed 100 MB of.

    What JSON would make another type of is behind its type's name, alone in a dict. ``above``: what holds it.
    """
    kind = type(value)
    if kind is str:
        return without_middle(value)
    if kind is bytes:
        return {"bytes": value.hex()}
    if not is_any(kind, _HOLDING) or len(above) == DEEPEST or id(value) in above:
        return value
    within = (*above, id(value))
    if kind is dict and _is_json(value):
        return {key: shortened(each, within) for key, each in value.items()}
    held = [shortened(each, within) for each in (value.items() if kind is dict else value)]
    return held if kind is list else {kind.__name__: held}


def _is_json(value: dict[Any, Any]) -> bool:
    """Whether its keys are texts, and more or fewer than one: that would be taken for a type's name."""
    return len(value) != 1 and all(type(key) is str for key in value)


def restored(value: Any) -> Any:
    """What `shortened` was given; what it has not made stays as it is, and raises nothing."""
    try:
        if type(value) is list:
            return [restored(each) for each in value]
        if type(value) is not dict:
            return value
        if len(value) != 1:
            return {key: restored(each) for key, each in value.items()}
        ((name, held),) = value.items()
        return bytes.fromhex(held) if name == "bytes" else _NAMED[name](restored(held))
    except (KeyError, TypeError, ValueError, RecursionError):
        return value
