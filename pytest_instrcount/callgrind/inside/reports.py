"""Reports of phases: which let a test count, and what is sent of them: JSON of long texts is slow here."""

from __future__ import annotations

from typing import Any

from pytest_instrcount.callgrind.channel import PADDING
from pytest_instrcount.host.foreign import DEEPEST

#: To make JSON of 100 MB, which a test has printed or raised, takes minutes here.
LONGEST_TEXT = 1_000_000


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


def with_padded_times(report: dict[str, Any]) -> dict[str, Any]:
    """The report with its times as text: nanoseconds, and `PADDING`, so in 20 digits.

    A float's text has one length or another, as the clock has it, and where the result is made
    before the count, so would be the heap. No text in between may be shorter, either: to fill up
    with zeros would begin with one that is.
    """
    times = {
        name: str(PADDING + int(value * 1_000_000_000))
        for name, value in report.items()
        if type(value) is float
    }
    return report | times | {"padded": list(times)}


def shortened(value: Any, above: tuple[int, ...] = ()) -> Any:
    """A report without the middle of texts that nobody reads: what a test printed 100 MB of.

    One that has none is handed back as it is, after so many steps as it has parts. ``above``: what holds it.
    """
    if type(value) is str:
        return without_middle(value)
    if len(above) == DEEPEST or id(value) in above:
        return value
    within = (*above, id(value))
    if type(value) is dict:
        for key, each in value.items():
            value[key] = shortened(each, within)
    elif type(value) is list:
        value[:] = [shortened(each, within) for each in value]
    elif type(value) is tuple:
        return tuple(shortened(each, within) for each in value)
    return value
