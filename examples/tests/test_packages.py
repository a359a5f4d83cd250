"""Well-known packages from PyPI."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

import markdown
import mistune
import pygments
import pyparsing
import pytest
import sqlparse
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pygments.formatters import NullFormatter
from pygments.lexers import PythonLexer

PROSE = (
    "# Title\n\nSome *emphasis*, a [link](https://example.org) and `code`.\n\n- one\n- two\n\n" * 2
)
QUERY = "select a.id, b.name from a join b on a.id = b.id where a.x > 3 order by b.name"
CODE = "def f(x):\n    return [y ** 2 for y in range(x) if y % 2]\n"

Count = Callable[..., Any]


def test_markdown(instrcount: Count) -> None:
    assert "<em>emphasis</em>" in instrcount(markdown.markdown, PROSE)


def test_mistune(instrcount: Count) -> None:
    assert "<em>emphasis</em>" in instrcount(mistune.html, PROSE)


def test_sqlparse_format(instrcount: Count) -> None:
    assert "SELECT" in instrcount(sqlparse.format, QUERY, keyword_case="upper")


def test_sqlparse_split(instrcount: Count) -> None:
    assert len(instrcount(sqlparse.split, f"{QUERY}; {QUERY}")) == 2


def test_pygments(instrcount: Count) -> None:
    assert instrcount(pygments.highlight, CODE, PythonLexer(), NullFormatter()).startswith("def")


def test_pyparsing(instrcount: Count) -> None:
    number = pyparsing.Word(pyparsing.nums)
    expression = number + pyparsing.ZeroOrMore(pyparsing.one_of("+ -") + number)
    assert len(instrcount(expression.parse_string, "1 + 2 - 3 + 4 - 5")) == 9


@pytest.mark.instrcount
def test_versions() -> None:
    versions = [Version(f"1.{minor}.{patch}") for minor in range(8) for patch in range(4)]
    assert max(versions) == Version("1.7.3")


@pytest.mark.instrcount
def test_specifiers() -> None:
    assert "1.5" in SpecifierSet(">=1.2,<2,!=1.4")


class TestRequirements(unittest.TestCase):
    """A TestCase: the method is counted, setUp is not."""

    def setUp(self) -> None:
        self.lines = [f'package{n}[extra]>=1.{n}; python_version >= "3.10"' for n in range(6)]

    @pytest.mark.instrcount
    def test_parse(self) -> None:
        self.assertEqual(next(Requirement(line).name for line in self.lines), "package0")
