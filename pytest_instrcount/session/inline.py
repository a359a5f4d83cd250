"""Counts written into the tests, as ``max_ir`` of their markers: for projects that want no folder."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

from pytest_instrcount.gate.budget import parse_ceiling
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.gate.store.textfile import unwritable
from pytest_instrcount.host.files import replace_file
from pytest_instrcount.host.text import several

#: From which byte to which other ones are put; none where nothing is to change.
_Edit: TypeAlias = tuple[int, int, bytes]
_Definition: TypeAlias = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_UNSURE = (Verdict.failed, Verdict.nondeterministic)
_DIGITS = 3


def write_ceilings(
    root: Path, results: Iterable[TestResult], apart: Collection[str]
) -> tuple[set[str], list[str]]:
    """Write what tests may cost into their markers: which tests have it now, and what is to be said.

    A ceiling that holds, and is not too high, stays. ``apart``: tests for which another marker holds,
    nearer than the one of their function. Raises InstrcountError "baseline-write".
    """
    written, without, changed = set(), [], 0
    for file, tests in _by_file(results, apart).items():
        most = {name: max(cases, key=lambda each: each.ir or 0) for name, cases in tests.items()}
        edited, held = _write_file(root / file, most)
        changed += edited
        without += [f"{file}::{name}" for name in tests if name not in held]
        written |= {each.nodeid for name in held for each in tests[name]}
    notes = [f"instrcount: max_ir written to {several(changed, 'marker')}"]
    if without:
        notes.append(
            "max_ir not written (no single decorator that can take it, or a parameter has its own): "
            + ", ".join(map(printable, without))
        )
    return written, notes


def _by_file(
    results: Iterable[TestResult], apart: Collection[str]
) -> dict[str, dict[str, list[TestResult]]]:
    """File -> name of a test function in it, or id of a test apart -> what was measured, of all parameters."""
    found: dict[str, dict[str, list[TestResult]]] = {}
    for result in results:
        if result.ir is not None and result.verdict not in _UNSURE:
            whole = result.nodeid if result.nodeid in apart else result.nodeid.partition("[")[0]
            file, _, name = whole.partition("::")
            found.setdefault(file, {}).setdefault(name, []).append(result)
    return found


def _write_file(path: Path, tests: Mapping[str, TestResult]) -> tuple[int, set[str]]:
    """How many markers of a file were changed, and which of the tests now have a ceiling that holds."""
    try:
        source = path.read_bytes()
        if tokenize.detect_encoding(BytesIO(source).readline)[0] != "utf-8":
            return 0, set()
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return 0, set()
    edits = {name: _edit(source, _marker(tree, name), result) for name, result in tests.items()}
    held = {name: edit for name, edit in edits.items() if edit is not None}
    changes = sorted((edit for edit in held.values() if edit[2]), reverse=True)
    for start, end, text in changes:  # the last first: the places of the others stay
        source = source[:start] + text + source[end:]
    if changes:
        try:
            replace_file(path.resolve(), source)
        except OSError as error:
            raise unwritable(path, error) from error
    return len(changes), set(held)


def _edit(source: bytes, marker: ast.expr | None, result: TestResult) -> _Edit | None:
    """How a marker gets the ceiling of its test, none if it has it; None if there is no place for it."""
    if marker is None or result.ir is None:
        return None
    ceiling = ceiling_of(result.ir, result.limit)
    old = _ceiling_in(marker)
    if old is None:
        return _with_argument(source, marker, f"max_ir={ceiling:_}".encode())
    try:
        most = parse_ceiling(getattr(old, "value", None))
    except ValueError:
        return None
    holds = result.ir <= most <= 2 * ceiling - result.ir
    start, end = _offset(source, old.lineno, old.col_offset), _end(source, old)
    return start, end, b"" if holds else f"{ceiling:_}".encode()


def _with_argument(source: bytes, marker: ast.expr, new: bytes) -> _Edit | None:
    """How a marker gets one argument more, as its last."""
    end = _end(source, marker)
    if not isinstance(marker, ast.Call):
        return end, end, b"(" + new + b")"
    if any(each.arg is None for each in marker.keywords):  # of **kwargs, which may hold one
        return None
    arguments = [*marker.args, *(each.value for each in marker.keywords)]
    last = max((_end(source, each) for each in arguments), default=_end(source, marker.func))
    rest = b"".join(re.sub(rb"#.*", b"", source[last:end]).split())
    if rest not in ((b")", b",)") if arguments else (b"()",)):  # more parentheses, as in calls=(2)
        return None
    return (last, last, b", " + new) if arguments else (last, end, b"(" + new + b")")


def ceiling_of(ir: int, limit: Limit) -> int:
    """What a test may cost that costs so much now: its limit more, in three digits.

    >>> ceiling_of(11_032, Limit(None, 100)), ceiling_of(5, Limit(None, 0))
    (11200, 5)
    """
    room = ir * limit.relative if limit.relative is not None else limit.absolute or 0
    allowed = int(ir + room)
    unit = int("1".ljust(len(str(allowed)) - _DIGITS + 1, "0"))
    return -(-allowed // unit) * unit


def _marker(node: ast.AST, name: str) -> ast.expr | None:
    """The decorator of a test that is its marker; None if there is none, or it is not known which."""
    for part in name.split("::"):
        found = [each for each in _defined(node) if each.name == part]
        if len(found) != 1:  # as in an if and its else
            return None
        node = found[0]
    for decorator in reversed(getattr(node, "decorator_list", [])):  # the nearest wins
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and called.attr == "instrcount":
            marker: ast.expr = decorator
            return marker
    return None


def _defined(node: ast.AST) -> Iterator[_Definition]:
    """What a module or class defines, in the blocks of its statements, too."""
    inner = [*ast.iter_child_nodes(node)]
    for each in inner:
        if isinstance(each, _Definition):
            yield each
        elif not isinstance(each, ast.expr):
            inner += ast.iter_child_nodes(each)


def _ceiling_in(marker: ast.expr | None) -> ast.expr | None:
    keywords = marker.keywords if isinstance(marker, ast.Call) else ()
    return next((each.value for each in keywords if each.arg == "max_ir"), None)


def _end(source: bytes, node: ast.expr) -> int:
    return _offset(source, node.end_lineno or 0, node.end_col_offset or 0)


def _offset(source: bytes, line: int, column: int) -> int:
    return sum(map(len, source.splitlines(keepends=True)[: line - 1])) + column
