"""The size of the package: of its modules, of its functions, and in all."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

radon: Any = pytest.importorskip("radon")
from radon.complexity import cc_visit  # noqa: E402
from radon.raw import analyze  # noqa: E402
from radon.visitors import Function  # noqa: E402

from tests.unit.test_layout import PACKAGE  # noqa: E402

LIMITS = tomllib.loads(Path(PACKAGE.parent, "pyproject.toml").read_text())["tool"]["size"]
SOURCES = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}


def test_no_module_is_long() -> None:
    lines = {name: len(text.splitlines()) for name, text in SOURCES.items()}
    assert not {name: n for name, n in lines.items() if n > LIMITS["module-lines"]}


def test_no_function_is_complex() -> None:
    """But those that the configuration names, each of which is."""
    complex_ones = {
        f"{name}:{each.fullname}"
        for name, text in SOURCES.items()
        for each in cc_visit(text)
        if isinstance(each, Function) and each.complexity > LIMITS["complexity"]
    }
    assert complex_ones == set(LIMITS["fast-paths"])


def test_the_package_does_not_grow() -> None:
    raw = [analyze(text) for text in SOURCES.values()]
    lines = sum(each.loc - each.blank - each.single_comments - each.multi for each in raw)
    assert lines <= LIMITS["code-lines"], f"{lines:,} lines of code"
