"""Docstrings as the reference shows them: examples in fences, and attributes with their ``#:`` comments."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
_COMMENT = re.compile(r" *#: ?(.*)")


def with_fences(text: str) -> str:
    """Examples as blocks of code: else each ``>`` of a prompt begins a quotation."""
    text = re.sub("  # doctest: .*", "", text)
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


class Docstrings(griffe.Extension):
    """Named in mkdocs.yml."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Whatever has a docstring."""
        if obj.docstring:
            obj.docstring.value = with_fences(obj.docstring.value)

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """The lines above it."""
        if attr.lineno is None:  # of the module in C, which has no lines
            return
        lines: list[str] = []
        above = reversed(attr.module.lines_collection[attr.filepath][: attr.lineno - 1])
        for line in above:
            found = _COMMENT.fullmatch(line)
            if not found:
                break
            lines.insert(0, found[1])
        if lines and not attr.docstring:
            attr.docstring = griffe.Docstring("\n".join(lines), parent=attr)
