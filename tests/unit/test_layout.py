"""The layout of the package: imports point downwards, and few modules know pytest."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pytest_instrcount"

#: From the top down; a module may import what stands in a later line, or in its own.
ROOMS = (
    {"__main__", "cli"},
    {"doctor"},
    {"plugin", "xdist", "bytecode.run"},
    {"backend"},
    {"session"},
    {"counting", "gating"},
    {"tracing.run"},
    {"planning", "preparing", "ending", "clocks", "uncompared", "drift"},
    {"measuring", "starting", "blaming", "bundling", "against", "merging", "comparing", "looking"},
    {"accounting"},
    {"findings"},
    {"commands", "keeping", "budgeting", "saying"},
    {"callgrind.zygote", "callgrind.supervisor"},
    {"callgrind.bootstrap"},
    {"callgrind.inside"},
    {"callgrind.rehearsal"},
    {"callgrind.repeat", "callgrind.collect"},
    {"tracing"},
    {"asking"},
    {"settings", "selection", "replay", "adopting"},
    {"child_spec"},
    {"accepting"},
    {"report"},
    {"gate.call_rulings"},
    {"gate.rulings", "gate.stored"},
    {"gate.records"},
    {"gate"},
    {"blame"},
    {"trace", "trace.export"},
    {"counts.timer"},
    {"facts"},
    {"bytecode"},
    {"counts"},
    {"callgrind"},
    {"fixture"},
    {"outputs", "unconsumed"},
    {"options", "stash", "hookspec"},
    {"account"},
    {"atomic", "body", "errors", "git", "patience", "programs", "subtests", "unobeyed"},
    {""},
)

KNOW_PYTEST = {
    "uncompared",
    "accounting",
    "backend",
    "clocks",
    "bytecode.run",
    "planning",
    "preparing",
    "saying",
    "ending",
    "doctor.project",
    "budgeting",
    "adopting.hooks",
    "asking",
    "plugin",
    "hookspec",
    "xdist.controller",
    "xdist.worker",
    "settings",
    "options",
    "outputs",
    "session",
    "counting",
    "gating",
    "commands",
    "starting",
    "against.sides",
    "against.head",
    "against.other",
    "replay",
    "selection",
    "stash",
    "callgrind.inside",
    "callgrind.repeat",
    "callgrind.collect",
    "callgrind.rehearsal",
    "tracing.hooks",
    "tracing.recognizers",
    "tracing.limits",
    "tracing.run",
    "tracing.settings",
    "tracing.whole",
}

FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    """Name below the package; "" is the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, at its top or within a function."""
    tree = ast.parse(path.read_text())
    # what only a type checker sees is imported by nobody
    unseen = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for part in test.body
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno} imports relatively"
            assert node.module is not None
            yield node.module


def own_imports_of(path: Path) -> set[str]:
    found = {name for name in imports_of(path) if name.partition(".")[0] == "pytest_instrcount"}
    return {name.partition(".")[2] for name in found}


def room_of(module: str) -> int:
    """The line of a module; of its folder, if it has none of its own."""
    for name in (module, module.rpartition(".")[0]):
        for number, room in enumerate(ROOMS):
            if name in room and (name or not module):
                return number
    raise AssertionError(f"{module} has no place in the layout")


def test_the_walk_finds_the_package() -> None:
    """An empty walk would hold anything."""
    assert {"", "plugin", "gate.gate", "callgrind.parse"} <= set(map(module_of, FILES))
    assert "gate.baseline" in own_imports_of(PACKAGE / "session.py")
    assert "session" in own_imports_of(PACKAGE / "plugin.py")


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_point_downwards(path: Path) -> None:
    """No module imports from a room above its own."""
    module = module_of(path)
    upward = {name for name in own_imports_of(path) if room_of(name) < room_of(module)}
    assert not upward


def test_imports_make_no_circle() -> None:
    """Neither do the modules of one room."""
    arrows = {module_of(path): own_imports_of(path) for path in FILES}
    done: set[str] = set()
    while len(done) < len(arrows):
        free = {name for name, to in arrows.items() if name not in done and to <= done}
        assert free, f"a circle among {sorted(set(arrows) - done)}"
        done |= free


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_few_modules_know_pytest(path: Path) -> None:
    """The others can be used, and tested, without a pytest run."""
    uses = "pytest" in {name.partition(".")[0] for name in imports_of(path)}
    assert not uses or module_of(path) in KNOW_PYTEST


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_private_pytest(path: Path) -> None:
    """``_pytest`` may change in any release."""
    assert "_pytest" not in {name.partition(".")[0] for name in imports_of(path)}


def test_what_every_start_imports_is_light() -> None:
    """Without --instrcount the plugin costs next to nothing: its top imports are pytest and stash."""
    tree = ast.parse((PACKAGE / "plugin.py").read_text())
    top = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert top <= {
        "__future__",
        "collections.abc",
        "sys",
        "typing",
        "pytest",
        "pytest_instrcount.stash",
    }
    assert own_imports_of(PACKAGE / "options.py") == set()
    assert own_imports_of(PACKAGE / "stash.py") == set()
    assert own_imports_of(PACKAGE / "__init__.py") == set()


def test_a_measured_run_without_traces_imports_no_tracer() -> None:
    """What a trace is made with is imported for the first test that is traced."""
    code = """if True:
        import sys
        import pytest_instrcount.session
        loaded = {name for name in sys.modules if name.startswith("pytest_instrcount.trace")}
        assert not loaded, loaded
    """
    subprocess.run([sys.executable, "-c", code], check=True)
