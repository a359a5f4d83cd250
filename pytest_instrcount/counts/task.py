"""The subject of a count: a statement, its set-up, and its labels."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A statement to be measured, as its author wrote it."""

    #: the code that is counted
    stmt: str
    #: runs before it and is not counted
    setup: str
    #: runs once, before ``setup``
    global_setup: str = ""
    #: what people call it; None: the statement itself
    label: str | None = None
    #: tells tasks of one label apart: "len 1000"
    sub_label: str | None = None
    #: tells measurements of one task apart: "with the patch"
    description: str | None = None
    #: where it ran: "python 3.12"
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement where there is none.

        >>> TaskSpec("x.sort()", "x = [2, 1]", sub_label="two").title
        'x.sort(): two'
        """
        name = self.stmt.strip("\n") if self.label is None else self.label
        if "\n" in name:
            head = f"stmt ({self.sub_label}):" if self.sub_label else "stmt:"
            return f"{head}\n{_indented(name)}"
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def setup_str(self) -> str:
        """The setup as `summarize` has it; empty where there is none."""
        given = [part for part in (self.global_setup, self.setup) if part not in ("", "pass")]
        code = "\n".join(part.strip("\n") for part in given)
        return f"setup:\n{_indented(code)}" if "\n" in code else f"setup: {code}" if code else ""

    def summarize(self) -> str:
        """Title, description and setup, in lines.

        >>> print(TaskSpec("x.sort()", "x = [2, 1]", label="sort").summarize())
        sort
        setup: x = [2, 1]
        """
        return "\n".join(part for part in (self.title, self.description, self.setup_str()) if part)


def _indented(code: str) -> str:
    return textwrap.indent(textwrap.dedent(code), "  ")
