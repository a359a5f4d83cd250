"""The blocks of code in README.md and docs/, as a reader finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Other ways to write one: they say not what they are, and MkDocs shows no fence in a list.
_OTHER = re.compile(r"^[ >]*(?:```|~~~)|^\n(?: {4}|\t)", re.MULTILINE)

#: Language -> what is found in a block's text, and what kind of example that makes it; the first holds.
#: What is of no kind has no test that tries it.
_RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "python": (
        (r"^def slugify|^from slug|\A +for letter", "tutorial"),
        (r"^def pytest_instrcount_", "hook"),
        (r"^ *(?:async )?def test_", "tests"),
        (r"^@pytest\.fixture", "fixture"),
        (r"\.collect_callgrind\(", "counted"),
        (r"\Afrom pytest_instrcount", "script"),
        (r"\A(?:@pytest\.mark\.)?[\w.]+\(", "signature"),
    ),
    "pycon": ((r"\A>>> ", "session"),),
    "ini": ((r"\A\[pytest\]\n", "ini"),),
    "toml": ((r"", "excerpt"),),
    "dockerfile": ((r"", "excerpt"),),
    "diff": ((r"", "diff"),),
    "console": ((r"\A\$ ", "commands"),),
    "bash": ((r"", "commands"),),
    "yaml": ((r"^jobs:|^stages:|\A +- run: ", "workflow"),),
    "json": ((r"\A\{\n  \"schema\"", "report"), (r"\A\{\n \"nodeid\"", "summary")),
    "text": (
        (r"\A(?:pytest, as you started it|\(count at the third|  plugin\.py)", "drawing"),
        (r"\A(?:instrcount_baselines|DIR)/", "paths"),
        (r"", "output"),
    ),
}


@dataclass(frozen=True)
class Block:
    """Some lines of code or output."""

    #: its path, below docs/ if it is there
    page: str
    #: of the page, from 1, where its text begins
    line: int
    #: what the fence says
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def kind(self) -> str:
        """How it is to be tried; empty where nobody has said that."""
        rules = _RULES.get(self.language, ())
        found = (kind for sign, kind in rules if re.search(sign, self.text, re.MULTILINE))
        return next(found, "")

    @property
    def typed(self) -> list[str]:
        """The commands in it, line by line."""
        lines = self.text.splitlines()
        if self.language == "bash":
            return lines
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]

    @property
    def shown(self) -> list[str]:
        """The lines that are printed."""
        if self.language == "bash":
            return []
        return [line for line in self.text.splitlines() if not line.startswith("$ ")]


def _blocks_of(path: Path) -> Iterator[Block]:
    page = path.relative_to(ROOT).as_posix().removeprefix("docs/")
    text = path.read_text()
    end = 0
    for match in [*_FENCED.finditer(text), None]:
        other = _OTHER.search(text, end, match.start() if match else len(text))
        assert not other, f"{page}:{_line(text, other.end())}: write ``` and a language"
        if match:
            yield Block(page, _line(text, match.start(2)), match[1], match[2])
            end = match.end()


def _line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1


BLOCKS = tuple(block for path in PAGES for block in _blocks_of(path))


def blocks(*kinds: str) -> tuple[Block, ...]:
    """All of these kinds, in the order of the pages."""
    return tuple(block for block in BLOCKS if block.kind in kinds)
