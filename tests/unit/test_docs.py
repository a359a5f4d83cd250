"""The reference against the code: each message, option, ini setting, marker argument and schema."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from pytest_instrcount.options import MARKER_LINE, TRACE_MARKER_LINE, add_options
from tests.unit.test_options import Recorder

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = ROOT / "pytest_instrcount"

#: What raises or holds a message, whose first argument is its slug.
_HOLDERS = re.compile(r"\w*(?:Error|Failed|Problem|_problem)")
#: Of a message that is written as text: a slug in brackets behind a space, at its end or a line's.
_WRITTEN = re.compile(r"(?:^|(?<=[\s)])) ?\[([a-z][a-z-]+[a-z])\](?=\n|$)")


def slugs_in(path: Path) -> Iterator[str]:
    """The slugs of the messages in a module."""
    tree = ast.parse(path.read_text())
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = ast.unparse(node.func).rpartition(".")[2]
            first = node.args[0]
            text = first.value if isinstance(first, ast.Constant) else None
            if _HOLDERS.fullmatch(name) and isinstance(text, str) and re.fullmatch("[a-z-]+", text):
                yield text
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from () if id(node) in documentation else _WRITTEN.findall(node.value)


def test_messages() -> None:
    """Each slug in the code has a heading in messages.md; each heading is of a slug in the code."""
    page = (REFERENCE / "messages.md").read_text()
    headings = re.findall(r"^### ([a-z-]+)$", page, re.MULTILINE)
    assert len(headings) == len(set(headings))
    code = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    found = {slug for path in PACKAGE.rglob("*.py") for slug in slugs_in(path)}
    assert len(found) > 50
    assert found - set(headings) == set(), "in the code, and not in messages.md"
    unused = {each for each in headings if f'"{each}"' not in code and f"[{each}]" not in code}
    assert unused == set(), "in messages.md, and not in the code"


@pytest.fixture
def declared() -> Recorder:
    """What pytest is told of options and ini settings."""
    recorder = Recorder()
    add_options(cast(pytest.Parser, recorder))
    return recorder


def test_options(declared: Recorder) -> None:
    """options.md has a row and a heading for each, with the choices that there are, and no others."""
    page = (REFERENCE / "options.md").read_text()
    rows = re.findall(
        r"^\| \[?`?(--[\w-]+|none)`?(?:\]\(#[\w-]+\))? \| (.+?) \|", page, re.MULTILINE
    )
    options = {option for option, _ in rows} - {"none"}
    assert options == set(declared.options)
    ini = set(re.findall(r"`(\w+)`", " ".join(cell for _, cell in rows)))
    assert ini == set(declared.ini)
    headings = dict(re.findall(r"^### `(--[\w-]+)(?:=([^`]*))?`", page, re.MULTILINE))
    assert set(headings) == options
    for name, kwargs in declared.options.items():
        if "choices" in kwargs:
            assert headings[name] == "{" + ",".join(kwargs["choices"]) + "}", name
    for option, cell in rows:
        if option != "none" and "`" in cell:
            assert option[2:].replace("-", "_") in cell


@pytest.mark.parametrize(
    ("line", "page"), [(MARKER_LINE, "marker.md"), (TRACE_MARKER_LINE, "trace-profile.md")]
)
def test_marker_arguments(line: str, page: str) -> None:
    """Each argument of a marker has a row of its own in the table of its page."""
    text = (REFERENCE / page).read_text()
    signature = line.partition("(")[2].partition("): ")[0]
    names = re.findall(r"(\w+)=", signature)
    assert len(names) >= 5
    rows = re.findall(r"^\| `(\w+)", text, re.MULTILINE)
    assert [name for name in names if name not in rows] == []


def test_schemas() -> None:
    """Each schema is named by the page about files, or by that of what it is of."""
    pages = "".join(path.read_text() for path in REFERENCE.glob("*.md"))
    for path in (REFERENCE / "schemas").iterdir():
        assert path.name in pages, path.name


def test_pages_are_in_the_navigation() -> None:
    """What mkdocs does not list, nobody finds."""
    navigation = (ROOT / "mkdocs.yml").read_text()
    for path in (ROOT / "docs").rglob("*.md"):
        assert f": {path.relative_to(ROOT / 'docs').as_posix()}\n" in navigation
