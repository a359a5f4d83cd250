"""Counts written into the tests, as ``max_ir`` of their markers: for projects that want no folder."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import named
from pytest_instrcount.gate.store.textfile import unwritable
from pytest_instrcount.host.files import replace_file
from pytest_instrcount.host.text import several

#: Line, from 1, and byte in it.
_Place: TypeAlias = tuple[int, int]
_UNSURE = (Verdict.failed, Verdict.nondeterministic)
_DIGITS = 3


def write_ceilings(root: Path, results: Iterable[TestResult]) -> tuple[set[str], list[str]]:
    """Write what tests may cost into their markers: which tests have it now, and what is to be said.

    A ceiling that holds, and is not too high, stays. Raises InstrcountError "baseline-write".
    """
    written, without, changed = set(), [], 0
    for file, tests in _by_file(results).items():
        most = {name: max(cases, key=lambda each: each.ir or 0) for name, cases in tests.items()}
        edited, held = _write_file(root / file, most)
        changed += edited
        without += [f"{file}::{name}" for name in tests if name not in held]
        written |= {each.nodeid for name in held for each in tests[name]}
    notes = [f"instrcount: max_ir written to {several(changed, 'marker')}"]
    if without:
        notes.append(f"no marker of its own, with a number or none as max_ir: {named(without)}")
    return written, notes


def _by_file(results: Iterable[TestResult]) -> dict[str, dict[str, list[TestResult]]]:
    """File -> name of a test function in it -> what was measured, with all its parameters."""
    found: dict[str, dict[str, list[TestResult]]] = {}
    for result in results:
        if result.ir is not None and result.verdict not in _UNSURE:
            file, _, name = result.nodeid.partition("[")[0].partition("::")
            found.setdefault(file, {}).setdefault(name, []).append(result)
    return found


def _write_file(path: Path, tests: Mapping[str, TestResult]) -> tuple[int, set[str]]:
    """How many markers of a file were changed, and which of the tests now have a ceiling that holds."""
    try:
        source = path.read_bytes()
        if tokenize.detect_encoding(BytesIO(source).readline)[0] != "utf-8":
            return 0, set()
    except (OSError, SyntaxError):
        return 0, set()
    number, held = 0, set()
    for name, result in tests.items():
        edited = _edited(source, name, result)
        number += edited not in (None, source)
        source = source if edited is None else edited
        held |= set() if edited is None else {name}
    if number:
        try:
            replace_file(path, source)
        except OSError as error:
            raise unwritable(path, error) from error
    return number, held


def _edited(source: bytes, name: str, result: TestResult) -> bytes | None:
    """The source with the ceiling of a test; None if there is no place for it."""
    marker = _marker(source, name)
    assert result.ir is not None
    ceiling = ceiling_of(result.ir, result.limit)
    old = _ceiling_in(marker)
    if marker is None or (old is not None and _number(old) is None):
        return None
    if result.ir <= (_number(old) or 0) <= 2 * ceiling - result.ir:
        return source
    edited = _put(source, marker, old, f"{ceiling:_}")
    # what is in a form that this does not know, as an argument in parentheses, shows now
    return edited if _number(_ceiling_in(_marker(edited, name))) == ceiling else None


def _put(source: bytes, marker: ast.expr, old: ast.expr | None, ceiling: str) -> bytes:
    """The source with a ceiling in a marker: in the place of the old one, or as its last argument."""
    new = f"max_ir={ceiling}"
    if old is not None:
        return _replaced(source, (old.lineno, old.col_offset), _end(old), ceiling)
    if not isinstance(marker, ast.Call):
        return _replaced(source, _end(marker), _end(marker), f"({new})")
    arguments = [*marker.args, *(each.value for each in marker.keywords)]
    if not arguments:
        return _replaced(source, _end(marker.func), _end(marker), f"({new})")
    last = max(map(_end, arguments))
    return _replaced(source, last, last, f", {new}")


def ceiling_of(ir: int, limit: Limit) -> int:
    """What a test may cost that costs so much now: its limit more, in three digits.

    >>> ceiling_of(11_032, Limit(None, 100)), ceiling_of(5, Limit(None, 0))
    (11200, 5)
    """
    room = ir * limit.relative if limit.relative is not None else limit.absolute or 0
    allowed = int(ir + room)
    unit = int("1".ljust(len(str(allowed)) - _DIGITS + 1, "0"))
    return -(-allowed // unit) * unit


def _marker(source: bytes, name: str) -> ast.expr | None:
    """The decorator of a test that is its marker."""
    try:
        node: ast.AST = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    for part in name.split("::"):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, kinds)]
        found = [each for each in inner if each.name == part]
        if not found:
            return None
        node = found[-1]
    for decorator in getattr(node, "decorator_list", ()):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and called.attr == "instrcount":
            marker: ast.expr = decorator
            return marker
    return None


def _ceiling_in(marker: ast.expr | None) -> ast.expr | None:
    keywords = marker.keywords if isinstance(marker, ast.Call) else ()
    return next((each.value for each in keywords if each.arg == "max_ir"), None)


def _number(node: ast.expr | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _end(node: ast.expr) -> _Place:
    return node.end_lineno or 0, node.end_col_offset or 0


def _replaced(source: bytes, start: _Place, end: _Place, text: str) -> bytes:
    lines = source.splitlines(keepends=True)
    first, last = (sum(map(len, lines[: line - 1])) + column for line, column in (start, end))
    return source[:first] + text.encode() + source[last:]
