"""The layout of the package: folders in layers, no circle among them, and few that know pytest."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pytest_instrcount"
#: From the top down: a folder imports from its own layer and those below; "." is the package.
LAYERS = """
    . __main__ cli cli.doctor
    plugin
    session session.against session.bytecode session.xdist
    callgrind.inside
    fixtures.benchmark fixtures.trace hookspec
    config report
    gate
    gate.store trace.events trace.ranges callgrind.supervisor
    callgrind callgrind.timer counts.python trace.export
    counts fixtures trace
    errors host host.account
"""
KNOWING = re.compile(r"(plugin|hookspec|session|fixtures|config|callgrind\.inside|cli\.doctor)\b")
PATHS = {path.relative_to(PACKAGE).with_suffix("").parts: path for path in PACKAGE.rglob("*.py")}
FILES = {".".join(e for e in parts if e != "__init__") or ".": PATHS[parts] for parts in PATHS}


def imports_of(path: Path) -> set[str]:
    """Names of modules, of those that a function or only a type checker imports, too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    names = {each.removeprefix("pytest_instrcount").lstrip(".") or "." for each in found}
    return {each if each in FILES else each.rpartition(".")[0] or each for each in names}


def folder_of(name: str) -> str:
    return name if FILES[name].stem == "__init__" else name.rpartition(".")[0] or name


def test_folders_import_downwards_and_in_no_circle() -> None:
    used = {name: imports_of(path) & set(FILES) for name, path in FILES.items()}
    arrows = {(folder_of(name), folder_of(to)) for name in used for to in used[name]}
    layer = {each: n for n, line in enumerate(LAYERS.split("\n")) for each in line.split()}
    assert set(map(folder_of, FILES)) == set(layer)
    assert not [(a, b) for a, b in arrows if layer[a] > layer[b]]
    left = set(layer)
    while free := {a for a in left if not any(x == a and y in left - {a} for x, y in arrows)}:
        left -= free
    assert not left


def test_few_know_pytest() -> None:
    knowing = {n for n, path in FILES.items() if {"pytest", "_pytest"} & imports_of(path)}
    assert all(map(KNOWING.match, knowing))
    assert len({name.partition(".")[0] for name in FILES} - {"", "__main__"}) == 13
