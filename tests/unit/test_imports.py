"""Single modules: what they import, and that they import each other in no circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_layout import FILES, PACKAGE, imports_of

LIGHT = {
    "__future__",
    "collections.abc",
    "sys",
    "typing",
    "pytest",
    "pytest_instrcount.config.stash",
}


def run_time_imports_of(path: Path) -> set[str]:
    """Modules of ours, without those that only a type checker imports."""
    tree = ast.parse(path.read_text())
    for test in ast.walk(tree):
        if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING":
            test.body = [ast.Pass()]
    text = ast.unparse(ast.fix_missing_locations(tree))
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    names = {each.removeprefix("pytest_instrcount").lstrip(".") or "." for each in found}
    return {each if each in FILES else each.rpartition(".")[0] for each in names} & set(FILES)


def test_the_walk_finds_the_package() -> None:
    """An empty walk would hold anything."""
    assert {".", "plugin", "gate.gate", "counts.parse"} <= set(FILES)
    assert "gate.store.baseline" in run_time_imports_of(FILES["session.start"])
    assert "config.stash" in run_time_imports_of(FILES["plugin"])


def test_modules_import_each_other_in_no_circle() -> None:
    arrows = {name: run_time_imports_of(path) - {name} for name, path in FILES.items()}
    done: set[str] = set()
    while len(done) < len(arrows):
        free = {name for name, to in arrows.items() if name not in done and to <= done}
        assert free, f"a circle among {sorted(set(arrows) - done)}"
        done |= free


#: Names of pytest that its next release may take away.
PRIVATE_NAMES = {
    "_config", "_fixtureinfo", "_id", "_initrequest", "_nodeid", "_readline_workaround",
    "_request", "_rewrite_test", "_setupstate", "_tmp_path_factory", "_tw",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(FILES) - {"config.compat"}))
def test_private_names_of_pytest_stand_in_one_module(name: str) -> None:
    """Those of an object of our own are of ``self``."""
    tree = ast.parse(FILES[name].read_text())
    of_others = {
        each.attr
        for each in ast.walk(tree)
        if isinstance(each, ast.Attribute)
        and not (isinstance(each.value, ast.Name) and each.value.id == "self")
    }
    assert not of_others & PRIVATE_NAMES
    assert (
        not {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}
        & PRIVATE_NAMES
    )


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_private_pytest(name: str) -> None:
    """``_pytest`` may change in any release."""
    assert "_pytest" not in {each.partition(".")[0] for each in imports_of(FILES[name])}


def test_what_every_start_imports_is_light() -> None:
    """Without --instrcount the plugin costs next to nothing: its top imports are pytest and stash."""
    tree = ast.parse((PACKAGE / "plugin.py").read_text())
    top = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert top <= LIGHT
    for name in ("config.options", "config.stash", "."):
        assert run_time_imports_of(FILES[name]) == set()


def test_a_measured_run_without_traces_imports_no_tracer() -> None:
    """What a trace is made with is imported for the first test that is traced."""
    code = """if True:
        import sys
        import pytest_instrcount.session.start
        loaded = {name for name in sys.modules if name.startswith("pytest_instrcount.trace")}
        assert not loaded, loaded
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_no_text_on_the_path_is_passed_over() -> None:
    """As by Python itself: a file that puts a Path there is of no effect, and no error."""
    code = """if True:
        import pathlib, sys
        sys.path.insert(0, pathlib.Path("somewhere"))
        from pytest_instrcount.plugin import STARTED_WITH
        assert {type(each) for each in STARTED_WITH} == {str}
    """
    subprocess.run([sys.executable, "-c", code], check=True)
