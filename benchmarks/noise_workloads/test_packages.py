"""Well-known packages from PyPI, those of ``examples/requirements.txt``."""

import pytest

pytestmark = pytest.mark.instrcount

markdown = pytest.importorskip("markdown")
mistune = pytest.importorskip("mistune")
pygments = pytest.importorskip("pygments")
pyparsing = pytest.importorskip("pyparsing")
sqlparse = pytest.importorskip("sqlparse")
formatters = pytest.importorskip("pygments.formatters")
lexers = pytest.importorskip("pygments.lexers")
requirements = pytest.importorskip("packaging.requirements")
version = pytest.importorskip("packaging.version")

PROSE = "# Title\n\nSome *emphasis*, a [link](https://example.org) and `code`.\n\n- one\n- two\n\n"
QUERY = "select a.id, b.name from a join b on a.id = b.id where a.x > 3 order by b.name"
CODE = "def f(x):\n    return [y ** 2 for y in range(x) if y % 2]\n"


def test_markdown():
    assert "<em>emphasis</em>" in markdown.markdown(PROSE)


def test_mistune():
    assert "<em>emphasis</em>" in mistune.html(PROSE * 2)


def test_sqlparse():
    assert "SELECT" in sqlparse.format(QUERY, keyword_case="upper")


def test_pygments():
    lexer, formatter = lexers.PythonLexer(), formatters.HtmlFormatter()
    assert "def" in pygments.highlight(CODE, lexer, formatter)


def test_pyparsing():
    number = pyparsing.Word(pyparsing.nums)
    expression = number + pyparsing.ZeroOrMore(pyparsing.one_of("+ -") + number)
    assert len(expression.parse_string("1 + 2 - 3 + 4 - 5")) == 9


def test_versions():
    versions = [version.Version(f"1.{minor}.{patch}") for minor in range(8) for patch in range(6)]
    assert max(versions) == version.Version("1.7.5")


def test_requirements():
    lines = [f'package{n}[extra]>=1.{n},<2; python_version >= "3.10"' for n in range(8)]
    assert {requirements.Requirement(line).name for line in lines}
