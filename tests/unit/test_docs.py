"""The reference against the code: each message, option, ini setting, marker argument and schema."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

import pytest_instrcount
from pytest_instrcount import hookspec, plugin
from pytest_instrcount.callgrind.repetition import COUNTED_IR, MOST_CALLS, MOST_WARMUP, WARMUP_IR
from pytest_instrcount.cli import main as cli
from pytest_instrcount.config.options import MARKER_LINE, TRACE_MARKER_LINE, add_options
from pytest_instrcount.fixtures.instrcount import InstrCount
from pytest_instrcount.fixtures.trace.fixture import TraceProfile
from pytest_instrcount.session.measure import MOST_BLAMED
from tests.blocks import PAGES
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


def test_options_in_the_text(declared: Recorder) -> None:
    """All pages name options, ini settings and values that there are."""
    text = "".join(path.read_text() for path in PAGES)
    named = re.findall(r"(?<![\w-])(--(?:instrcount|trace-)[\w-]*)(?:=([\w,{}-]+))?", text)
    assert {name.rstrip("-") for name, _ in named} <= set(declared.options)
    for name, value in named:
        choices = declared.options.get(name, {}).get("choices")
        if value and choices and not value.isupper():
            assert set(value.strip("{}").split(",")) <= set(choices), f"{name}={value}"
    settings = set(re.findall(r"(?<![\w./`-])`?(instrcount_[a-z_]+)\b(?!/)", text))
    assert settings - set(declared.ini) - {"instrcount_baselines"} == set()


def test_commands() -> None:
    """Each command has its sections, which name its options with their choices, and no others."""
    pages = "".join((REFERENCE / name).read_text() for name in ("command-line.md", "doctor.md"))
    (commands,) = (
        action.choices
        for action in cli._parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    sections = re.findall(r"^## `(\w+)(.*?)(?=^## |\Z)", pages, re.MULTILINE | re.DOTALL)
    assert {name for name, _ in sections} == set(commands)
    for name, parser in commands.items():
        text = "".join(section for command, section in sections if command == name)
        options = set()
        for action in parser._actions:
            choices = "={" + ",".join(action.choices) + "}" if action.choices else ""
            spellings = {f"{option}{choices}" for option in action.option_strings}
            shown = any(re.search(rf"[` ]{re.escape(each)}(?![\w-])", text) for each in spellings)
            assert shown or action.dest == "help" or not spellings, f"{name} {spellings}"
            options |= set(action.option_strings)
        assert set(re.findall(r"`(--(?!instrcount)[\w-]+)", text)) <= options


def test_hooks() -> None:
    """Each has a row, and its docstring in the reference; no other is named."""
    specs = {name: spec for name, spec in vars(hookspec).items() if name.startswith("pytest_")}
    text = "".join(path.read_text() for path in PAGES)
    rows = re.findall(
        r"^\| \[`(pytest_\w+)`\]\(\S+\) \| .+? \| (.+?) \|",
        (REFERENCE / "hooks.md").read_text(),
        re.MULTILINE,
    )
    first = {name for name, answers in rows if answers.startswith("the first")}
    assert first == {name for name, spec in specs.items() if spec.pytest_spec["firstresult"]}
    assert sorted(name for name, _ in rows) == sorted(specs)
    shown = re.findall(r"^::: pytest_instrcount\.hookspec\.(\w+)$", text, re.MULTILINE)
    assert sorted(shown) == sorted(specs)
    named = set(re.findall(r"\bpytest_instrcount_[a-z]+\b", text))
    assert named - {"pytest_instrcount_example"} == set(specs)


#: Of a fixture's object, what the plugin alone asks for; of a trace, what is said of its nodes.
_ITS_OWN = {
    "called",
    "why_uncounted",
    "start",
    "stop",
    "traces",
    "all_events",
    "edges",
    "ranges",
    "memory",
    "branches",
    "rows",
}
_OF_NODES = {"object", "cls", "number", "parameters"}


@pytest.mark.parametrize(
    ("fixture", "kind", "page"),
    [("instrcount", InstrCount, "fixture.md"), ("trace_profile", TraceProfile, "trace-profile.md")],
)
def test_fixtures(fixture: str, kind: type, page: str) -> None:
    """Each has its page, which names what a test can ask of it, and nothing else."""
    assert hasattr(plugin, fixture)
    text = (REFERENCE / page).read_text()
    assert f"`{fixture}(func, *args, **kwargs)`" in text
    public = {name for name in vars(kind) if not name.startswith("_")}
    named = set(re.findall(rf"`(?:await )?(?:{fixture})?\.(\w+)[(`.]", text))
    assert named - _OF_NODES == public - _ITS_OWN


def test_public_names() -> None:
    """Each stands somewhere in the reference."""
    text = "".join(path.read_text() for path in REFERENCE.glob("*.md"))
    missing = [n for n in pytest_instrcount.__all__ if not re.search(rf"\b{n}\b", text)]
    assert missing == []


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


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("repetition", f"{MOST_WARMUP} calls, or as many as fit into {WARMUP_IR // 10**6} million"),
        ("repetition", f"{MOST_CALLS}, or as many as fit into {COUNTED_IR // 10**6} million"),
        ("blame", f"Of more than {MOST_BLAMED} that changed, {MOST_BLAMED} are attributed"),
    ],
)
def test_figures_of_the_code(page: str, words: str) -> None:
    """What a page promises in figures is what the code does."""
    text = (ROOT / "docs" / "explanation" / f"{page}.md").read_text()
    assert words in " ".join(text.split())


def test_the_site_has_each_page_as_markdown(tmp_path: Path) -> None:
    """And a list of them all, for readers that are programs."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, str(tmp_path)], cwd=ROOT, env=environment, check=True)
    listed = re.findall(
        r"^- \[.+\]\((.+\.md)\)$", (tmp_path / "llms.txt").read_text(), re.MULTILINE
    )
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(path.as_posix() for path in pages)
    for page in pages:
        source, copy = (ROOT / "docs" / page).read_text(), (tmp_path / page).read_text()
        if not (names := re.findall(r"^::: (\S+)$", source, re.MULTILINE)):
            assert copy.strip() == source.strip()
        # what stands in their place
        for name in names:
            assert cast("str", inspect.getdoc(pkgutil.resolve_name(name))).splitlines()[0] in copy
        assert ":::" not in copy
    html = (tmp_path / "reference" / "hooks" / "index.html").read_text()
    assert "Add facts that two counts must share to be compared" in html
    # the comment above a field, and an example in a block of its own
    assert "more options for Valgrind, each" in html
    assert "more options for Valgrind, each" in (tmp_path / "reference" / "hooks.md").read_text()
    assert "<blockquote>" not in html
    assert not list(tmp_path.glob("*.py"))
