"""The promises in writing: each names tests, and these exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/explanation/guarantees.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


def functions_of(path: Path) -> set[str]:
    """Names of the functions of a module."""
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_the_test_of_a_promise_exists(path: str, name: str) -> None:
    assert name in functions_of(ROOT / path)


def test_no_promise_is_without_a_test() -> None:
    """Neither a section nor an item of a list."""
    for section in TEXT.split("\n## ")[1:]:
        assert "::test_" in section, section.partition("\n")[0]
    items = re.findall(r"^- .+(?:\n  .+)*", TEXT, re.MULTILINE)
    assert len(items) > 40
    assert [item for item in items if "::test_" not in item] == []
