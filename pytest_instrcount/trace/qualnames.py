"""Qualified names on Python 3.10, whose code objects do not have them. Delete this with 3.10."""

from __future__ import annotations

import ast
import os
import tokenize
from functools import lru_cache
from types import CodeType
from typing import Final

_UNNAMED: Final = {
    ast.Lambda: "<lambda>",
    ast.GeneratorExp: "<genexpr>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
}


def qualname_of(code: CodeType) -> str:
    """As ``co_qualname``; where the source cannot be read, the bare name.

    >>> class A:
    ...     def f(self): pass
    >>> qualname_of(A.f.__code__).endswith("f")
    True
    """
    known: str | None = getattr(code, "co_qualname", None)
    if known is not None:
        return known
    return qualname_at(code.co_filename, code.co_name, code.co_firstlineno)


def qualname_at(path: str, name: str, line: int) -> str:
    """The qualified name of what has a name and a first line; the name where that is not known."""
    return name if path.startswith("<") else _names_in(path).get((name, line), name)


@lru_cache(maxsize=256)
def _names_in(path: str) -> dict[tuple[str, int], str]:
    """(name, first line) -> qualified name, of all functions and classes in a file."""
    try:
        if not os.path.isfile(path):  # code may claim to come from a pipe, or from /dev/zero
            return {}
        with tokenize.open(path) as file:
            tree = ast.parse(file.read())
    # before 3.13, too many levels are a MemoryError
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[tuple[str, int], str] = {}
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, prefix = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            outside: list[ast.AST] = list(node.decorator_list)
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.setdefault((node.name, first), prefix + node.name)
            inner = prefix + node.name
            inner += "." if isinstance(node, ast.ClassDef) else ".<locals>."
            pending += [(each, prefix) for each in outside]
            pending += [(each, inner) for each in node.body]
            if not isinstance(node, ast.ClassDef):
                pending.append((node.args, prefix))
            continue
        name = _UNNAMED.get(type(node))
        if name is not None:
            found.setdefault((name, node.lineno), prefix + name)  # type: ignore[attr-defined]
            prefix += name + ".<locals>."
        pending += [(child, prefix) for child in ast.iter_child_nodes(node)]
    return found
