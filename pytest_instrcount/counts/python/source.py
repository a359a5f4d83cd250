"""Finds functions in their source, and the calls of other functions in them."""

from __future__ import annotations

import ast
import linecache
import os
import re
import sysconfig
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

#: Decorators of which no frame stands between a caller and the function.
_PLAIN = frozenset(("property", "classmethod", "staticmethod", "getter", "setter", "deleter"))

_UNNAMED: dict[str, type[ast.AST]] = {
    "<lambda>": ast.Lambda,
    "<genexpr>": ast.GeneratorExp,
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
    "<dictcomp>": ast.DictComp,
}

#: What a statement calls without a name.
_OF_WITH = {ast.With: ("__enter__", "__exit__"), ast.AsyncWith: ("__aenter__", "__aexit__")}

#: What is installed: the standard library, and the folders of packages.
_INSTALLED = tuple(
    {f"{path}/" for path in map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))}
)
_OF_PACKAGES = re.compile("/(?:site|dist)-packages/")


@dataclass(frozen=True, slots=True)
class Site:
    """A piece of one line of source."""

    line: int
    #: the line as it is, without its end
    text: str
    #: the piece begins and ends there, in characters
    start: int
    end: int

    def lines(self, width: int) -> list[str]:
        """The source and, below it, carets; without the indentation, cut to ``width``.

        >>> Site(7, "    total(items)", 4, 9).lines(80)
        ['total(items)', '^^^^^']
        >>> Site(7, "names = total(items)", 8, 20).lines(14)
        ['… total(items)', '  ^^^^^^^^^^^^']
        """
        left = len(self.text) - len(self.text.lstrip())
        text = self.text[left:].expandtabs(1).rstrip()
        start, end = max(0, self.start - left), max(0, self.end - left)
        if end > width:
            cut = max(0, min(start - 1, len(text) - width))
            start, end = start - cut, end - cut
            text = f"…{text[cut + 1 :]}" if cut else text
        text = text if len(text) <= width else f"{text[: width - 1]}…"
        return [text, " " * start + "^" * (min(end, len(text)) - start)]


def is_installed(path: str) -> bool:
    """True if a file is no project's own: of the standard library, of a package, or frozen."""
    return not path.startswith("/") or path.startswith(_INSTALLED) or is_packaged(path)


def is_packaged(path: str) -> bool:
    """True for what is installed into a folder of packages: the project's own may be, too."""
    return _OF_PACKAGES.search(path) is not None


def where_installed(file: str) -> str:
    """The path of a file that a tree names, in the standard library or a package; "" if it is in none.

    >>> where_installed("json/decoder.py").endswith("/json/decoder.py"), where_installed("shop.py")
    (True, '')
    """
    places = [each + file for each in _INSTALLED if ".." not in file]
    return next(filter(os.path.isfile, places), "")


def first_line(path: str, qualname: str, line: int = 0) -> int:
    """The first line of a function; ``line`` if that is known already.

    0 if it is not found, or has namesakes: a property's getter and setter, lambdas of one function.
    """
    lines = first_lines(path, qualname)
    return line or (lines[0] if len(lines) == 1 else 0)


def first_lines(path: str, qualname: str) -> Sequence[int]:
    """The first lines of all functions of that name in a file."""
    return _first_lines(path).get(qualname, ())


def call_sites(path: str, qualname: str, line: int, callee: str) -> list[Site]:
    """Lines where the function calls that qualified name; found by name, so namesakes are included.

    Nothing where the source is not to be had, or where the call has no name (an operator).
    """
    nodes, name = _namesakes(path, qualname, line), _written(callee)
    for find in (_called, _mentions, _managed):
        if found := [each for node in nodes for each in find(node, name)]:
            return [site for each in found if (site := _site(path, each)) is not None]
    return []


def mentions(path: str, qualname: str, line: int, callee: str) -> bool:
    """True if the source of the function has the name of that qualified name."""
    nodes, name = _namesakes(path, qualname, line), _written(callee)
    return any(True for node in nodes for find in (_calls, _mentions) for _ in find(node, name))


def is_decorated(path: str, qualname: str, line: int) -> bool:
    """True if callers may get something else than the function itself, as far as its source tells."""
    decorators = getattr(_function(path, qualname, line), "decorator_list", ())
    return any(getattr(each, "attr", getattr(each, "id", "")) not in _PLAIN for each in decorators)


def _written(callee: str) -> str:
    """How source calls a qualified name: by the class where instances are made, else by the last part."""
    parts = callee.split(".")
    return parts[-2] if parts[-1] in ("__init__", "__new__") and len(parts) > 1 else parts[-1]


def is_resumed(path: str, qualname: str, line: int) -> bool:
    """True if a function, as far as its source is to be had, is a generator or a coroutine.

    So is a comprehension that awaits.
    """
    if qualname.rpartition(".")[2] == "<genexpr>":
        return True
    node = _function(path, qualname, line)
    if node is None or isinstance(node, ast.AsyncFunctionDef):
        return node is not None
    return any(
        isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await)) or getattr(each, "is_async", 0)
        for each in _within(node)
    )


def _namesakes(path: str, qualname: str, line: int) -> list[ast.AST]:
    """The functions of that name; of several the one that begins there, if one does."""
    nodes = _functions(path).get(qualname, [])
    return [each for each in nodes if _line_of(each) == line][:1] or nodes


def _function(path: str, qualname: str, line: int) -> ast.AST | None:
    return next(iter(_namesakes(path, qualname, line)), None)


def _calls(node: ast.AST, name: str) -> Iterator[ast.expr]:
    unnamed = _UNNAMED.get(name)
    for each in _within(node):
        called = isinstance(each, ast.Call) and _named(each.func, name)
        if isinstance(each, ast.expr) and (called or type(each) is unnamed):
            yield each


def _called(node: ast.AST, name: str) -> list[ast.expr]:
    """Calls, and where a method of that name is passed on: which of them it is, nobody knows."""
    calls = [*_calls(node, name)]
    functions = [each.func for each in calls if isinstance(each, ast.Call)]
    passed = [each for each in _mentions(node, name) if isinstance(each, ast.Attribute)]
    return calls and [*calls, *(each for each in passed if each not in functions)]


def _mentions(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """Where it is passed on (``key=f``), or read like a property."""
    for each in _within(node):
        if isinstance(each, (ast.Name, ast.Attribute)) and _named(each, name):
            yield each


def _managed(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """What statements manage that call a method without naming it."""
    for each in _within(node):
        if isinstance(each, (ast.With, ast.AsyncWith)) and name in _OF_WITH[type(each)]:
            yield from (item.context_expr for item in each.items)


def _named(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name
    return isinstance(node, ast.Attribute) and node.attr == name


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function in source order, without those of nested functions and its defaults."""
    body = getattr(node, "body", None)
    pending = list(reversed(body if isinstance(body, list) else list(ast.iter_child_nodes(node))))
    while pending:
        each = pending.pop()
        yield each
        if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending += reversed(list(ast.iter_child_nodes(each)))


def _site(path: str, node: ast.expr) -> Site | None:
    text = linecache.getline(path, node.lineno).rstrip("\n")
    if not text:
        return None
    data = text.encode()  # offsets of the parser are in bytes
    start = len(data[: node.col_offset].decode(errors="ignore"))
    end = len(text)
    if node.end_lineno == node.lineno and node.end_col_offset is not None:
        end = len(data[: node.end_col_offset].decode(errors="ignore"))
    return Site(node.lineno, text, start, end)


def _line_of(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", [])
    lines: list[int] = [getattr(node, "lineno", 0), *(each.lineno for each in decorators)]
    return min(lines)


@lru_cache(maxsize=4096)
def _first_lines(path: str) -> dict[str, list[int]]:
    """Qualified name -> first lines; kept for a whole report, as trees of source are not."""
    return {name: sorted({*map(_line_of, nodes)}) for name, nodes in _functions(path).items()}


@lru_cache(maxsize=64)
def _functions(path: str) -> dict[str, list[ast.AST]]:
    """Qualified name -> functions of a file; nothing if it cannot be read."""
    try:
        if not os.path.isfile(path):  # code may claim to come from a pipe, or from /dev/zero
            return {}
        with tokenize.open(path) as file:
            tree = ast.parse(file.read())
    # before 3.13, too many levels are a MemoryError
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, list[ast.AST]] = {}
    names = {kind: name for name, kind in _UNNAMED.items()}
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, prefix = pending.pop()
        inner = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not any(_named(each, "overload") for each in node.decorator_list):  # it never runs
                found.setdefault(prefix + node.name, []).append(node)
            inner = f"{prefix}{node.name}.<locals>."
        elif isinstance(node, ast.ClassDef):
            found.setdefault(prefix + node.name, []).append(node)
            inner = f"{prefix}{node.name}."
        elif type(node) in names:
            found.setdefault(prefix + names[type(node)], []).append(node)
            inner = f"{prefix}{names[type(node)]}.<locals>."
        pending += [(each, inner) for each in reversed(list(ast.iter_child_nodes(node)))]
    return found
