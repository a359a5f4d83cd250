"""Text from outside as a terminal, and a CI that reads the terminal's log, may have it; numbers of things."""

from __future__ import annotations

import re
from collections.abc import Collection

# What a runner of GitHub takes for a command at the beginning of a line, after blanks ...
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
# ... and what it, Azure and TeamCity do anywhere in it.
_MARKED = re.compile(r"#(?=#(?:vso|teamcity)?\[)")
# Beside what Python holds for printable, which controls (C0 and C1), what turns the direction of text,
# halves of characters and other ends of lines are not.
_HARMLESS = frozenset("\n\t\xa0\u3000")


def escape_controls(text: str) -> str:
    r"""The text with all that is obeyed, not shown, written out; lines stay lines.

    >>> print(escape_controls("a\x1b[31m\u202e\n::error::b"))
    a\x1b[31m\u202e
    \x3a:error::b
    """
    shown = escape_unprintable(text, _HARMLESS)
    return _MARKED.sub(r"\\x23", _COMMAND.sub(r"\1\\x3a", shown))


def escape_unprintable(text: str, kept: Collection[str] = ()) -> str:
    r"""The text in one line that a terminal obeys nowhere. Letters of any width stay: a command needs them.

    >>> print(escape_unprintable("pytest 'test_中.py'\x1b\n"))
    pytest 'test_中.py'\x1b\n
    """
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char in kept
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def several(number: int, thing: str) -> str:
    """A number of things, whose plural ends in s.

    >>> several(1, "test"), several(0, "test")
    ('1 test', '0 tests')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def cut(text: str, width: int) -> str:
    """The beginning of a text that is too long.

    >>> cut("a long name", 8), cut("short", 8)
    ('a lon...', 'short')
    """
    return text if len(text) <= width else text[: width - 3] + "..."


def duration(seconds: float) -> str:
    """About how long something takes, after a comma; nothing if it is short.

    >>> duration(9.4), duration(47), duration(171)
    ('', ', about 50 seconds', ', about 3 minutes')
    """
    if seconds < 10:
        return ""
    tens, minutes = round(seconds, -1), round(seconds / 60)
    return f", about {tens:.0f} seconds" if seconds < 95 else f", about {minutes} minutes"
